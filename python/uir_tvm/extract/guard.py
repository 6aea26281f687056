# SPDX-License-Identifier: Apache-2.0
"""``condition ? a : b`` over a tile: padding, concatenation, and masks.

Where the condition is a box, each side is computed in its own part only, and a padded load is one
move.  Otherwise both sides are computed everywhere and selected by a mask; their loads are then
guarded so that nothing outside of a buffer is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tvm
from tvm import tirx
from tvm_ffi.structural import structural_equal

from ..igraph import ISlice
from ..igraph.tir_calls import call_name
from .affine_from_tir import NotAffineError
from .box import Box, NotABoxError, box_of, conjunction
from .emit import Const, Operand, TileValue, reboxed
from .leaf_access import address_of, children, loads_of
from .load import load_padded, within
from .refusals import NeedsSerialError

if TYPE_CHECKING:
    from .expression import TileContext


def choice(c: TileContext, condition: Any, a: Any, b: Any, into: ISlice | None = None) -> Operand:
    """The value of ``condition ? a : b``; no side is loaded where that is illegal."""
    truth = c.converter.decide(condition)
    if truth is not None:
        return c.evaluate(a if truth else b, into)
    condition, a = _flattened(c, condition, a, b)
    for negate in (False, True):
        box = _box(c, condition, negate)
        if box is None:
            continue
        chosen, other = (b, a) if negate else (a, b)
        value = _padded(c, chosen, other, box, into)
        if value is None:
            value = _pieces(c, condition, chosen, other, (box, _box(c, condition, not negate)), into)
        if value is not None:
            return value
    return _masked(c, condition, a, b, into)


def _flattened(c: TileContext, condition: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """The condition and the first side of a choice whose second side is that of a choice inside of the first.

    ``p ? (q ? x : 0) : 0`` is ``p and q ? x : 0``, where both conditions are one box.
    """
    while isinstance(a, tvm.ir.Call) and call_name(a) == "if_then_else" and structural_equal(a.args[2], b):
        both = tirx.And(condition, a.args[0])
        if _box(c, both, False) is None:
            break
        condition, a = both, a.args[1]
    return condition, a


def _box(c: TileContext, condition: Any, negate: bool) -> Box | None:
    try:
        atoms = conjunction(condition, c.converter, negate)
        return box_of(atoms, c.tile, c.names, c.converter.space)
    except (NotABoxError, NeedsSerialError):
        return None


def _number(c: TileContext, expr: Any) -> Const | None:
    if isinstance(expr, tirx.IntImm | tirx.FloatImm):
        return Const(expr.value, c.dtype(expr))
    return None


def _padded(c: TileContext, chosen: Any, other: Any, box: Box, into: ISlice | None) -> Operand | None:
    """A load inside of a box and a number outside: one move."""
    pad = _number(c, other)
    if pad is None or not isinstance(chosen, tvm.ir.TensorLoad):
        return None
    return load_padded(c, chosen, box, pad, into)


def _pieces(
    c: TileContext,
    condition: Any,
    chosen: Any,
    other: Any,
    boxes: tuple[Box, Box | None],
    into: ISlice | None,
) -> Operand | None:
    """Both sides computed in their own boxes of one temporary; None where boxes cannot say it."""
    space = c.converter.space
    inner = c.box.intersect(boxes[0], space)
    outer = None if boxes[1] is None else c.box.intersect(boxes[1], space)
    number = _number(c, other)
    if inner is None or (number is None and outer is None) or c.guards:
        return None
    if not any(True for side in (chosen, other) for _ in loads_of(side)):
        return None  # nothing to protect and nothing to save: a select is as good
    used = [axes_of(c, expr) for expr in (condition, chosen, other)]
    shape = tuple(c.tile[k] if any(axes[k] for axes in used) else 1 for k in (0, 1))
    if into is not None and any(
        c.memory.storages[load.source].pointer.same_as(into.pointer)
        for side in (chosen, other)
        for load in loads_of(side)
    ):
        into = None  # the old contents are still to be read
    target = c.result(c.dtype(chosen), (shape[0], shape[1]), into)
    if number is not None:
        c.emitter.fill(target, number.number)
        _write(c, target, chosen, inner)
        return TileValue(target)
    assert outer is not None
    # in the order of memory: LLVM (22) merges two vector stores that one load reads wrongly otherwise
    for expr, part in sorted(((other, outer), (chosen, inner)), key=lambda side: _begins_inside(side[1])):
        _write(c, target, expr, part)
    return TileValue(target)


def _begins_inside(box: Box) -> bool:
    return box.row_begin is not None or box.col_begin is not None


def _write(c: TileContext, target: ISlice, expr: Any, box: Box) -> None:
    """Evaluate in a box and leave the result in that part of the target."""
    part = reboxed(target, box.shrink(c.tile, target.shape))
    with c.inside(box):
        value = c.evaluate(expr, part)
        if isinstance(value, Const):
            c.emitter.fill(part, value.number)
        elif value.slice is not part:
            c.emitter.move(part, c.place(value, target.shape).slice)


def _masked(c: TileContext, condition: Any, a: Any, b: Any, into: ISlice | None) -> Operand:
    mask = c.evaluate(condition)
    x = evaluate_guarded(c, a, _box(c, condition, False))
    y = evaluate_guarded(c, b, _box(c, condition, True))
    return c.select(mask, x, y, into)


def evaluate_guarded(c: TileContext, expr: Any, box: Box | None) -> Operand:
    """Evaluate under a guard, a box or data, if some load could leave its buffer without it."""
    if all(_is_safe(c, load) for load in loads_of(expr)):
        return c.evaluate(expr)
    with c.guarded(box):
        return c.evaluate(expr)


def _is_safe(c: TileContext, expr: Any) -> bool:
    storage = c.memory.storages[expr.source]
    try:
        return within(c, storage, address_of(storage, expr.indices, c.converter))
    except NotAffineError:
        return False


def axes_of(c: TileContext, expr: Any) -> tuple[bool, bool]:
    """Whether a value may vary along rows, and along columns."""
    if isinstance(expr, tvm.ir.Var) and expr in c.lets:
        value = c.lets[expr]
        shape = value.shape if isinstance(value, TileValue) else (1, 1)
        return shape[0] > 1, shape[1] > 1
    converted = c.converter.try_convert(expr)
    if converted is not None:
        names = converted.variables()
        return c.names[0] in names, c.names[1] in names
    if isinstance(expr, tvm.ir.Var) and expr in c.converter.bindings:
        return axes_of(c, c.converter.bindings[expr])
    parts = [axes_of(c, child) for child in children(expr)]
    return any(p[0] for p in parts), any(p[1] for p in parts)
