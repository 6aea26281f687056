# SPDX-License-Identifier: Apache-2.0
"""What each iOp computes at one point of its domain: the table from iOps to TIR expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import numpy as np
from tvm import tirx
from tvm.ir import Expr

from ...igraph.affine import affine
from ...igraph.dtypes import dtype_of
from ...igraph.nodes import IOp
from . import scalar_ops
from .actions import Action
from .address import INDEX, LoopScope, as_int, index
from .buffers import Buffers
from .elements import constant, convert, element, lanes_of, splat
from .llvm_text import LlvmText
from .never_above import AT_MOST_ZERO
from .prefetch import Prefetches
from .row_loops import LongPasses
from .vector_math import OF_NEGATIVE
from .vector_math.ops import let


@attrs.frozen
class Point:
    """``lanes`` neighbouring columns of one row; ``guarded`` where operands may not exist (`spans`).

    ``first``: how many of the lanes exist, where not all of them do (`first_lanes`).  ``again``: how many of
    the first lanes were done before, where a row ends with a whole vector.  ``span``: the first lane that
    exists, and the one behind the last, where that is not known to be all of them.  ``phase``: how often the
    first element of an access that repeats each came before.
    """

    row: Expr
    col: Expr
    lanes: int = 1
    guarded: bool = False
    first: Expr | None = None
    again: int = 0
    span: tuple[Expr, Expr] | None = None
    phase: int = 0


@attrs.frozen
class KernelContext:
    """What emission needs to know of the kernel around it.

    ``registers`` are those of vectors, ``masked`` the bytes of elements that are moved under masks;
    ``avx512``: whether the processor has these instructions; ``loop``: the innermost loop's variable;
    ``tiles``: how many tiles, one beneath the other, are done as one (`tall_tiles`); ``first_cache``: its
    bytes; ``long_passes``: which rows have passes (`row_loops.is_short`).
    """

    scope: LoopScope
    memory: Buffers
    text: LlvmText
    registers: int = 16
    masked: frozenset[int] = frozenset()
    avx512: bool = False
    prefetches: Prefetches | None = None
    loop: str | None = None
    tiles: Expr | None = None
    first_cache: int = 0
    long_passes: LongPasses = LongPasses()


def parameter(value: float, dtype: str, lanes: int) -> Expr:
    """A number rounded to an iGraph dtype, as a constant of its compute type."""
    with np.errstate(all="ignore"):
        held = np.asarray(value).astype(dtype_of(dtype).numpy)
    number = float(held) if dtype_of(dtype).kind == "float" else int(held)
    return constant(number, element(dtype).compute, lanes)


def _copy(kernel: KernelContext, action: Action, args: Sequence[Expr], point: Point) -> Expr:
    return args[0]


def _unary(kernel: KernelContext, action: Action, args: Sequence[Expr], point: Point) -> Expr:
    iop = action.iop
    if iop.attrs.get(AT_MOST_ZERO) and element(iop.dtype).compute == "float32":
        return OF_NEGATIVE[iop.name](*args)
    params = [parameter(p, iop.dtype, point.lanes) for p in iop.attrs.get("params", ())]
    return scalar_ops.UNARY[iop.name](*args, *params)


def _binary(kernel: KernelContext, action: Action, args: Sequence[Expr], point: Point) -> Expr:
    return scalar_ops.BINARY[action.iop.name](*args)


def _compare(kernel: KernelContext, action: Action, args: Sequence[Expr], point: Point) -> Expr:
    return scalar_ops.COMPARE[action.iop.name](*args)


def _select(kernel: KernelContext, action: Action, args: Sequence[Expr], point: Point) -> Expr:
    mask, a, b = args
    if action.iop.dtype == "bool":
        return tirx.Or(tirx.And(mask, a), tirx.And(tirx.Not(mask), b))
    return tirx.Select(mask, a, b)


def _reduce(kernel: KernelContext, action: Action, args: Sequence[Expr], point: Point) -> Expr:
    """Elements of a window, first to last, rounded once (`short_columns`); one element as it is."""
    if len(args) == 1:
        return args[0]

    def combined(held: Expr, rest: Sequence[Expr]) -> Expr:
        if not rest:
            return held if action.iop.name in EXTREMES else element(action.iop.dtype).round(held)
        return let(scalar_ops.COMBINE[action.iop.name](held, rest[0]), lambda made: combined(made, rest[1:]))

    return combined(args[0], args[1:])


def _fill(kernel: KernelContext, action: Action, args: Sequence[Expr], point: Point) -> Expr:
    return parameter(action.iop.attrs["value"], action.iop.dtype, point.lanes)


def _cast(kernel: KernelContext, action: Action, args: Sequence[Expr], point: Point) -> Expr:
    iop = action.iop
    return scalar_ops.cast(args[0], iop.name, iop.dtype, iop.attrs.get("round"))


def _iota(kernel: KernelContext, action: Action, args: Sequence[Expr], point: Point) -> Expr:
    iop = action.iop
    row_step, col_step = int(iop.attrs.get("row_step", 0)), int(iop.attrs.get("col_step", 1))
    base = affine(iop.attrs.get("base", 0))
    low, high = kernel.scope.range(base)
    reach = [row_step * (iop.target.rows - 1), col_step * (iop.target.cols - 1)]
    low, high = low + sum(min(r, 0) for r in reach), high + sum(max(r, 0) for r in reach)
    if action.is_swapped:
        row_step, col_step = col_step, row_step
    # vectors convert from int32 in one instruction, from int64 element by element
    narrow = -(2**31) <= low and high < 2**31
    start = kernel.scope.expr(base) + point.row * row_step
    start = start + point.col * col_step
    dtype = "int32" if narrow else INDEX
    first = convert(start, dtype)
    target = element(iop.dtype).compute
    if point.lanes == 1:
        return convert(first, target)
    # held apart, since TVM would make the ramp one of the target's dtype
    return let(
        tirx.Ramp(first, tirx.const(col_step, dtype), point.lanes), lambda whole: convert(whole, target)
    )


def _gather(kernel: KernelContext, action: Action, args: Sequence[Expr], point: Point) -> Expr:
    """An index outside the table reads its first row instead, and the result is replaced."""
    iop, table = action.iop, action.tables[0]
    scope, memory = kernel.scope, kernel.memory
    begin = scope.bound(table.row_begin, 0, table.rows)
    end = scope.bound(table.row_end, table.rows, table.rows)
    at = convert(args[0], INDEX)
    width = lanes_of(at)
    inside = tirx.And(at >= splat(begin, width), at < splat(end, width))
    start = scope.expr(table.offset)
    row = element(iop.dtype)
    buffer = memory.buffer(table.pointer)
    pad = parameter(iop.attrs.get("pad", 0), iop.dtype, point.lanes)
    static = as_int(begin) is not None and as_int(end) is not None

    pitch = scope.expr(affine(table.stride[0]))

    def load(which: Expr) -> Expr:
        where = which * splat(pitch, width) + splat(start, width)
        if action.indexed_rows:
            where = where + point.col * table.col_stride
            if point.lanes > 1:
                where = tirx.Ramp(where, index(table.col_stride), point.lanes)
        return row.load(tirx.BufferLoad(buffer, [where]))

    if static:
        value = load(tirx.Select(inside, at, splat(begin, width)))
        return tirx.Select(splat(inside, point.lanes), value, pad)
    # a table without rows has nothing to read in place
    return tirx.if_then_else(inside, load(at), pad)


Emit = Callable[[KernelContext, Action, Sequence[Expr], Point], Expr]

#: iOp -> its value at a point; contract and scatter are nests of their own, sync and identity are nothing.
EMIT: dict[str, Emit] = {
    "move": _copy,
    "unary": _unary,
    "binary": _binary,
    "compare": _compare,
    "select": _select,
    "broadcast": _copy,
    "reduce": _reduce,
    "fill": _fill,
    "cast": _cast,
    "iota": _iota,
    "transpose": _copy,
    "gather": _gather,
    "scatter": _copy,
}


#: Binary iOps and reductions whose value is one of their operands.
EXTREMES = frozenset({"max", "min"})
#: Other iOps whose value is one of their operands or already rounded.
_EXACT = ("move", "broadcast", "transpose", "select", "gather", "reduce", "scatter", "fill")


def result_dtype(iop: IOp) -> str:
    """The iGraph dtype of what an iOp writes."""
    return iop.target.pointer.dtype


def value_at(kernel: KernelContext, action: Action, args: Sequence[Expr], point: Point) -> Expr:
    """The value of an action at a point, rounded to its dtype."""
    iop = action.iop
    value = EMIT[iop.op](kernel, action, args, point)
    exact = iop.op in _EXACT or (iop.op == "binary" and iop.name in EXTREMES)
    return value if exact else element(result_dtype(iop)).round(value)


def scalar_only(kernel: KernelContext, action: Action) -> bool:
    """Whether the action can only be emitted one element at a time."""
    iop = action.iop
    if iop.op == "scatter":
        return not action.indexed_rows or iop.target.valid[2:] != (None, None)
    if iop.op == "gather" and not action.indexed_rows:
        table = action.tables[0]
        # CompactBufferAllocation cannot unite vector indices of two widths into memory that we allocate
        bounded = table.row_begin is not None or table.row_end is not None
        return bounded or kernel.memory.allocates(table.pointer)
    return scalar_ops.needs_scalars(iop.op, iop.name, iop.dtype)
