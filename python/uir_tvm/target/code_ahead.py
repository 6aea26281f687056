# SPDX-License-Identifier: Apache-2.0
"""Machine code of kernels while the ones behind them go through the stages.

LLVM needs no Python: beside the stages, which are Python, it takes no time on a machine of several CPUs.  So
kernels that are worth a module of their own together are given to it as soon as they are made.  Which ones
these are is said by their order and size alone, never by which thread is ready.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import attrs
import tvm
import tvm_ffi
from tvm.ir.transform import PassContext

from .. import environment
from . import code_parts
from .flat_passes import FLAT

#: Of a target that is for another machine than this one: nothing is made ready to run here.
ELSEWHERE = "mtriple"

_registered = False
_AHEAD: contextvars.ContextVar[Ahead | None] = contextvars.ContextVar("uir_code_ahead", default=None)


@attrs.define(eq=False)
class Ahead:
    """Modules of kernels that LLVM is given while there are kernels to come."""

    pool: ThreadPoolExecutor
    _waiting: dict[int, dict[Any, Any]] = attrs.field(factory=dict)
    _weights: dict[int, int] = attrs.field(factory=dict)
    _given: list[Future[tvm_ffi.Module]] = attrs.field(factory=list)
    _ready: list[Future[None]] = attrs.field(factory=list)

    def take(
        self, functions: Mapping[Any, Any], finish: Callable[[tvm.IRModule], tvm.IRModule]
    ) -> Mapping[Any, Any]:
        """Note functions of one kernel, and give LLVM those that wait for it where they are worth it.

        Parameters
        ----------
        functions : mapping of GlobalVar to PrimFunc
            What a target made of a kernel.
        finish : callable
            TVM's passes for the host, all of them.

        Returns
        -------
        mapping
            Functions that LLVM has been given, of this kernel and earlier ones.
        """
        weights = [code_parts.weight_of(each) for each in functions.values() if FLAT in (each.attrs or {})]
        known = [weight for weight in weights if weight is not None]
        if not functions or len(known) < len(functions):
            return {}
        level = max(code_parts.level_of(each) for each in functions.values())
        waiting = self._waiting.setdefault(level, {})
        waiting.update(functions)
        self._weights[level] = self._weights.get(level, 0) + sum(known)
        if self._weights[level] < code_parts.WORTH:
            return {}
        del self._waiting[level], self._weights[level]
        self._give(finish(tvm.IRModule(waiting)), next(iter(waiting.values())).attrs["target"])
        return waiting

    def _give(self, part: tvm.IRModule, target: tvm.target.Target) -> None:
        host = target if target.host is None else target.host
        level = PassContext.current().opt_level

        def compiled() -> tvm_ffi.Module:
            with PassContext(opt_level=level):
                made = _build(part, host)
            if ELSEWHERE not in host.attrs:
                with contextlib.suppress(RuntimeError):  # the pool ends: whoever calls it makes it ready
                    self._ready.append(self.pool.submit(code_parts.first_function, made))
            return made

        self._given.append(self.pool.submit(compiled))

    def modules(self) -> list[tvm_ffi.Module]:
        """What LLVM has made of all that it was given; raises what TVM raised."""
        made = [each.result() for each in self._given]
        self._given.clear()
        return made


def _build(part: tvm.IRModule, host: tvm.target.Target) -> tvm_ffi.Module:
    """One module by TVM, at the level that its functions ask for."""
    made: tvm_ffi.Module = tvm_ffi.get_global_func(code_parts.BUILD)(part, host)
    return made


def register() -> None:
    """Let a module that TVM builds import what LLVM was given before (idempotent)."""
    global _registered
    stock = None if _registered else tvm_ffi.get_global_func(code_parts.BUILD, allow_missing=True)
    if stock is None:
        return
    _registered = True

    def build(mod: tvm.IRModule, target: tvm.target.Target) -> tvm_ffi.Module:
        early = ahead()
        given = [] if early is None else early.modules()
        first, *others = given if given and not mod.functions else [stock(mod, target), *given]
        for other in others:
            first.import_module(other)
        return first

    tvm_ffi.register_global_func(code_parts.BUILD, build, override=True)


def ahead() -> Ahead | None:
    """What takes kernels while others are to come, inside of `going_ahead`."""
    return _AHEAD.get()


@contextlib.contextmanager
def going_ahead() -> Iterator[None]:
    """Let LLVM begin inside with kernels while others are to come, where this process has several CPUs.

    Not where a pass context asks for anything of its own, which then is asked of all kernels at once.
    """
    context, threads = PassContext.current(), environment.num_threads()
    if threads < 2 or context.instruments or dict(context.config):
        yield
        return
    pool = ThreadPoolExecutor(threads - 1)
    token = _AHEAD.set(Ahead(pool))
    try:
        yield
    finally:
        _AHEAD.reset(token)
        # what is not ready to run by now is made so at the first call, by all threads
        pool.shutdown(wait=True, cancel_futures=True)
