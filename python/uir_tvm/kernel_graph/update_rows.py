# SPDX-License-Identifier: Apache-2.0
"""The operator ``uir.update``: rows of a tensor get new values, the others stay as they are in memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import attrs
import tvm
from tvm import relax

from ..frontend.relax_view import integer
from ..row_updates import Rows, row_update
from ..sizes.open_size import expression, expressions
from .program import Op, Value, View
from .strided_views import Layout

#: The operator's name; its operands are the values, then the index where data says which rows.
UPDATE = "uir.update"


def update_of(op: Op) -> tuple[Rows, list[View]] | None:
    """An operator that changes rows of its first operand, as an update: the rows, and its operands.

    None where it is none, changes more than rows, or its operands are no views of (outer, count, inner).
    """
    rule = _RULES.get(op.name)
    return None if rule is None or op.call is None else rule(op)


def is_updated(value: Value) -> bool:
    """Whether a value is a tensor of which an operator has just changed rows."""
    op = value.producer
    return op is not None and (op.name == UPDATE or update_of(op) is not None)


def _scattered(op: Op) -> tuple[Rows, list[View]] | None:
    """``scatter_elements`` that replaces elements, of whole rows."""
    assert op.call is not None
    data, index, values = op.operands
    if str(op.call.attrs.reduction) != "update" or not data.shape:
        return None
    axis = int(op.call.attrs.axis) % len(data.shape)
    shape = index.shape
    beside = [at for at in range(len(shape)) if at != axis]
    if any(shape[at] != data.shape[at] for at in beside) or values.shape != shape:
        return None
    rows = Rows(prod(shape[:axis]), data.shape[axis], shape[axis], prod(shape[axis + 1 :]), sets=1)
    layout = index.layout
    for at in beside:
        uniform = all(stride == 0 for _, stride in layout.dims[at])
        if not uniform and at > axis:
            return None  # elements of a row go to different rows
        if uniform:
            cut = layout.slice(at, 0, 1)
            if cut is None:
                return None
            layout = cut
        else:
            rows = attrs.evolve(rows, sets=rows.outer, own=1)
    if rows.own:
        layout = index.layout
        for at in range(axis + 1, len(shape)):
            cut = layout.slice(at, 0, 1)
            if cut is None:
                return None
            layout = cut
    places = layout.reshape((rows.sets, rows.count))
    read = values.reshape(rows.values)
    if places is None or read is None:
        return None
    return rows, [read, View(index.base, places)]


def _sliced(op: Op) -> tuple[Rows, list[View]] | None:
    """``slice_scatter`` at a constant place."""
    assert op.call is not None
    data, values = op.operands
    axis = int(op.call.attrs.axis) % len(data.shape)
    begin, _, step = (integer(arg) for arg in op.call.args[2:5])
    if begin is None or step is None:
        return None
    length = data.shape[axis]
    begin = min(max(begin + length if begin < 0 else begin, 0), length)
    count = values.shape[axis]
    if step < 1 or begin + step * (count - 1) >= length:
        return None
    shape = data.shape
    rows = Rows(prod(shape[:axis]), length, count, prod(shape[axis + 1 :]), begin, step)
    read = values.reshape(rows.values)
    return None if read is None else (rows, [read])


_RULES: dict[str, Any] = {"scatter_elements": _scattered, "slice_scatter": _sliced}


def legalize_update(builder: relax.BlockBuilder, op: Op, operands: Sequence[tvm.ir.Expr]) -> tvm.ir.Expr:
    """A call of the function that stores the rows; what it does not store stays as it is."""
    rows: Rows = op.attrs["rows"]
    values, *index = operands
    dtype = str(values.ty.dtype)
    kind = str(index[0].ty.dtype) if index else ""
    open_ = {name: expression(size) for name, size in attrs.asdict(rows).items()}
    function = builder.add_func(row_update(Rows(**open_), dtype, kind), "update")
    made = relax.TensorType(expressions(op.shape), dtype)
    return builder.emit(relax.call_tir(function, [values, *index], made))


def flat(view: View) -> View | None:
    """All of a buffer in row-major order, whatever the shape; None for any other view."""
    whole = view.layout.offset == 0 and view.layout.is_contiguous() and view.layout.size == view.base.size
    return View(view.base, Layout.contiguous(view.base.shape)) if whole else None
