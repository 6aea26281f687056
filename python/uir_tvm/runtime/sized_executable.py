# SPDX-License-Identifier: Apache-2.0
"""An executable for all sizes that a model leaves open, and the same seen for the sizes of a call."""

from __future__ import annotations

import functools
import itertools
import pathlib
from collections.abc import Callable
from typing import Any

import attrs
import tvm_ffi

from ..sizes.saved_sizes import number
from ..sizes.symbolic_shapes import Sizes
from .direct_call import direct_of
from .executable import Executable
from .kernel_errors import failing
from .model_info import ModelInfo
from .tensors import TensorSpec

#: Shapes whose memory is kept: TVM's pool gives a block only to those who ask for just its size.
KEPT = 8


class HeldMemory:
    """What the pool holds for one executable, by the sizes that it ran with."""

    def __init__(self) -> None:
        self._held: set[tuple[int, ...]] = set()

    def ask(self, sizes: tuple[int, ...]) -> None:
        """Before a run: give the pool's free blocks back where it would hold those of too many shapes."""
        if sizes not in self._held and len(self._held) >= KEPT:
            tvm_ffi.get_global_func("vm.builtin.memory_manager.clear")()
            self._held.clear()
        self._held.add(sizes)


class SizedExecutable(Executable):
    """One executable that serves all sizes, for some of them: its code and memory are those of the whole.

    Parameters
    ----------
    whole : Executable
        Whose description has open sizes.
    memory : HeldMemory
        Of the whole.
    sizes : mapping of str to int
        A number for each symbol, in the order of the program's space.
    alone : callable
        Compiles an executable for these sizes alone: what is saved, and explained.
    seconds : mapping of str to float
        What was compiled for these sizes first.
    """

    def __init__(
        self,
        whole: Executable,
        memory: HeldMemory,
        sizes: Sizes,
        alone: Callable[[], Executable],
        seconds: dict[str, float],
    ) -> None:
        info = _in_numbers(whole.info, sizes)
        info = attrs.evolve(info, seconds=seconds)
        super().__init__(None, info, whole.kernel_graph, load=_shared(whole), initial=whole.initial)
        self.whole, self._memory, self._alone = whole, memory, alone
        self._sizes = tuple(sizes.values())
        self._lock = whole._lock

    @functools.cached_property
    def _vm(self) -> Any:
        return self.whole._vm

    @functools.cached_property
    def programs(self) -> Any:
        """Of the whole: programs for any sizes take turns, and share their memory."""
        return self.whole.programs

    @functools.cached_property
    def _program(self) -> Any:
        return direct_of(self, self._sizes or None)

    @functools.cached_property
    def _main(self) -> Any:
        whole, sizes = self.whole._main, tvm_ffi.Shape(self._sizes)

        given = (sizes,) if self._sizes else ()
        # of sizes that are found every run may have others
        runs = itertools.count() if self.info.graph.get("found") else itertools.repeat(0)

        def main(*tensors: Any) -> Any:
            self._memory.ask((*self._sizes, next(runs)))
            with failing():
                return whole(*tensors, *given)

        return main

    @functools.cached_property
    def _alone_now(self) -> Executable:
        return self._alone()

    @property
    def standalone(self) -> Executable:
        """An executable for these sizes alone, compiled when it is first asked for."""
        return self._alone_now

    def report(self, explain: bool = False) -> dict[str, Any]:
        """As of `Executable`; kernels are explained as they would be compiled for these sizes alone."""
        report = super().report()
        if explain:
            report["explain"] = self.standalone.report(explain=True)["explain"]
        return report

    def save(self, path: str | pathlib.Path) -> pathlib.Path:
        """Write an executable for these sizes alone, as `Executable.save`."""
        return self.standalone.save(path)


def _shared(whole: Executable) -> Callable[[], Any]:
    return lambda: whole.library


def _in_numbers(info: ModelInfo, sizes: Sizes) -> ModelInfo:
    """A description with numbers for open sizes."""

    def spec(given: TensorSpec) -> TensorSpec:
        shape = tuple(number(size, sizes) for size in given.shape)
        if all(isinstance(size, int) for size in shape):
            return TensorSpec(given.name, shape, given.dtype)
        # sizes that the model finds while it runs
        known = tuple(size if isinstance(size, int) else -1 for size in shape)
        return TensorSpec(given.name, known, given.dtype, tuple(map(str, shape)))

    return attrs.evolve(
        info,
        inputs=tuple(map(spec, info.inputs)),
        outputs=tuple(map(spec, info.outputs)),
        graph=_numbers(info.graph, sizes),
        state=tuple(
            attrs.evolve(each, written=number(each.written, sizes), copied=number(each.copied, sizes))
            for each in info.state
        ),
        positions=tuple(_numbers(row, sizes) for row in info.positions),
    )


def _numbers(value: Any, sizes: Sizes) -> Any:
    if isinstance(value, dict):
        return {key: _numbers(part, sizes) for key, part in value.items()}
    return [_numbers(part, sizes) for part in value] if isinstance(value, list) else number(value, sizes)
