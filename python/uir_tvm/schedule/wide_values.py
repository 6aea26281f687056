# SPDX-License-Identifier: Apache-2.0
"""Narrow floats are computed with in fp32: rounded where they are stored, not after every operation.

Before::

    T[i] = X[i] + B[i]                        # all bf16
    Y[i] = T[i] * bf16(0.5)

After::

    T[i] = f32(X[i]) + f32(B[i])              # T is fp32
    Y[i] = bf16(T[i] * f32(0.5))

A GPU has no functions of narrow floats, and every rounding is an instruction; results come nearer to the
exact ones.  A cast of another dtype to a narrow one asks for its rounding, and keeps it::

    Y[i] = f32(bf16(X[i])) + T[i]             # X and Y are fp32: the same after

but where it ends a function of narrow values that is computed in a wide dtype, such as erf, or their sum.
What only moves data stays as it is, and so does a function with an expression that is not known here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from tvm import tirx
from tvm.ir import Call, TensorLoad
from tvm.s_tir import SBlock, Schedule
from tvm_ffi.structural import structural_map

from .blocks import EXPENSIVE, BlockInfo, collect, leaf_blocks, param_names, prim_func
from .make_tir import changed, with_body
from .prepare import separate_outputs

NARROW = ("float16", "bfloat16")
WIDE = "float32"

log = logging.getLogger(__name__)

#: Nodes of two operands, all of which take any float.
_PAIRS = (
    tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.FloorDiv, tirx.FloorMod, tirx.Min, tirx.Max,
    tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.And, tirx.Or,
)  # fmt: skip
#: Functions of floats, and what chooses between them.
_FUNCTIONS = EXPENSIVE | frozenset(
    "fabs abs floor ceil round nearbyint trunc isnan isinf isfinite if_then_else fma sigmoid fmod "
    "copysign".split()
)


class _UnknownError(Exception):
    """An expression that is not known here."""


def widen_values(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function with fp32 in the place of narrow floats on chip; itself where it computes with none."""
    if not _has_narrow(func):
        return func
    sch = Schedule(func, debug_mask="none")
    separate_outputs(sch)
    blocks = leaf_blocks(sch)
    wide = _widened(sch, blocks)
    computing = {b.name for b in blocks if _computes(b) or _reads_any(b, wide)}
    if not computing:
        return func
    try:
        widen = _Widener(wide, _reduced(blocks))
        bodies = {b.name: _rewritten(b.stmt, widen) for b in blocks if b.name in computing}
    except _UnknownError as unknown:
        log.debug("values stay narrow: %s is not known", unknown)
        return func

    def block(node: SBlock) -> SBlock:
        if node.name_hint in bodies:
            return with_body(node, *bodies[node.name_hint])
        if any(b in wide for b in node.alloc_buffers):
            held = [wide.get(b, b) for b in node.alloc_buffers]
            return changed(node, alloc_buffers=held)
        return node

    return structural_map(prim_func(sch), (SBlock, block))


def _has_narrow(func: tirx.PrimFunc) -> bool:
    loads = collect(func.body, TensorLoad)
    return any(str(load.source.ty.dtype) in NARROW for load in loads)


def _computes(block: BlockInfo) -> bool:
    return block.is_reduction or not block.is_copy


def _reads_any(block: BlockInfo, buffers: dict[Any, Any]) -> bool:
    return any(region.source in buffers for region in block.stmt.reads)


def _widened(sch: Schedule, blocks: list[BlockInfo]) -> dict[Any, Any]:
    """The narrow buffers on chip that hold what was computed, with what takes their place."""
    params = param_names(sch)
    wide: dict[Any, Any] = {}
    for block in blocks:  # in program order: what is copied from a wide buffer is wide
        for region in block.stmt.writes:
            buffer = region.source
            if buffer.name in params or str(buffer.ty.dtype) not in NARROW:
                continue
            if _computes(block) or _reads_any(block, wide):
                wide[buffer] = tirx.decl_buffer(
                    list(buffer.ty.shape), WIDE, name=buffer.name, scope=str(buffer.scope())
                )
    return wide


def _reduced(blocks: list[BlockInfo]) -> dict[Any, str]:
    """Buffers that hold what values of one dtype are reduced to, with that dtype."""
    found: dict[Any, str] = {}
    for block in blocks:
        for region in block.stmt.writes if block.is_reduction else ():
            loads = collect(block.stmt.body, TensorLoad)
            dtypes = {_dtype(load) for load in loads if not load.source.same_as(region.source)}
            if len(dtypes) == 1:
                found[region.source] = dtypes.pop()
    return found


class _Widener:
    """Expressions with every narrow value in fp32.

    Parameters
    ----------
    wide : dict
        Narrow buffers, with what takes their place.
    sums : dict
        Of `_reduced`.
    """

    def __init__(self, wide: dict[Any, Any], sums: dict[Any, str]) -> None:
        self.wide, self.sums = wide, sums
        self.by_class: dict[type, Callable[[Any], Any]] = {
            TensorLoad: self._load,
            tirx.FloatImm: lambda e: tirx.const(e.value, WIDE) if _narrow(e) else e,
            tirx.Cast: self._cast,
            tirx.Select: lambda e: tirx.Select(self(e.condition), self(e.true_value), self(e.false_value)),
            tirx.Not: lambda e: tirx.Not(self(e.a)),
            Call: self._call,
            **dict.fromkeys(_PAIRS, lambda e: type(e)(self(e.a), self(e.b))),
        }

    def __call__(self, expr: Any) -> Any:
        if not _mentions_narrow(expr):
            return expr
        made = self.by_class.get(type(expr))
        if made is None:
            raise _UnknownError(type(expr).__name__)
        return made(expr)

    def _load(self, load: Any) -> Any:
        buffer = self.wide.get(load.source)
        if buffer is not None:
            return tirx.BufferLoad(buffer, list(load.indices))
        return tirx.Cast(WIDE, load) if _narrow(load) else load

    def _cast(self, cast: Any) -> Any:
        value = self(cast.value)
        if _narrow(cast) and self._dtypes(cast.value) != {_dtype(cast)}:
            return tirx.Cast(WIDE, _rounded(value, _dtype(cast)))
        wanted = WIDE if _narrow(cast) else _dtype(cast)
        return value if _dtype(value) == wanted else tirx.Cast(wanted, value)

    def _dtypes(self, expr: Any) -> set[str]:
        """Of what it is a function of."""
        loads = collect(expr, TensorLoad)
        return {self.sums.get(load.source, _dtype(load)) for load in loads}

    def _call(self, call: Any) -> Any:
        name = str(getattr(call.op, "name", ""))
        if name.rpartition(".")[2] not in _FUNCTIONS:
            raise _UnknownError(name)
        return Call(call.op, [self(a) for a in call.args], ret_ty=WIDE if _narrow(call) else _dtype(call))


def _dtype(expr: Any) -> str:
    return str(expr.ty.dtype)


def _rounded(value: Any, dtype: str) -> Any:
    """A value as a dtype has it; what was only widened from that dtype as it was before."""
    if isinstance(value, tirx.Cast) and _dtype(value) == WIDE and _dtype(value.value) == dtype:
        return value.value
    return value if _dtype(value) == dtype else tirx.Cast(dtype, value)


def _narrow(expr: Any) -> bool:
    return _dtype(expr) in NARROW


def _mentions_narrow(expr: Any) -> bool:
    """Whether a narrow value is anywhere in it (a load's indices aside)."""
    if _narrow(expr):
        return True
    found = [*collect(expr, TensorLoad), *collect(expr, tirx.Cast), *collect(expr, tirx.FloatImm)]
    return any(_narrow(node) for node in found)


def _rewritten(stmt: SBlock, widen: _Widener) -> tuple[Any, Any]:
    """The body of a block and what it starts from."""

    def made(node: Any) -> Any:
        if isinstance(node, tirx.SeqStmt):
            return tirx.SeqStmt([made(part) for part in node.seq])
        if not isinstance(node, tirx.BufferStore):
            raise _UnknownError(type(node).__name__)
        buffer = widen.wide.get(node.buffer, node.buffer)
        value = _rounded(widen(node.value), str(buffer.dtype))
        return tirx.BufferStore(buffer, value, node.indices)

    return made(stmt.body), None if stmt.init is None else made(stmt.init)
