# SPDX-License-Identifier: Apache-2.0
"""Where values lie: the element order of library results, and copies where no view serves."""

from __future__ import annotations

from math import prod

from .attention import ATTENTION, store_in_order
from .channels_last import TO_FIRST, TO_LAST
from .library_match import geometry
from .op_kinds import (
    FINDING,
    INTEGER_MATMUL,
    INTEGER_PRODUCT,
    LIBRARY_SORT,
    OPAQUE,
    RECURRENCE,
    SELF_DESCRIBED,
)
from .program import Op, Program, Value, View, compose
from .strided_views import Layout

#: Operators that read whole tensors in row-major order.
_WHOLE = SELF_DESCRIBED | {FINDING, INTEGER_MATMUL, INTEGER_PRODUCT, LIBRARY_SORT, OPAQUE, RECURRENCE}


def place(program: Program) -> None:
    """Give every library operator operands that it can read, and every output memory of its own order.

    A product that is read transposed or regrouped is written in the order of its reader, where all of its
    readers agree with that (attention: the heads' results side by side).  Where that does not serve, the
    operand or output is copied by an operator ``copy``, which fusion may merge with its neighbours.
    """
    users = program.users()  # which stay the same: a value that lies in another order is read by as many
    for op in list(program.ops):
        if op.name in ("library.matmul", ATTENTION):
            _reorder_result(program, op, users.get(op.result, []))
    for op in list(program.ops):
        if op.name == "library.matmul" and geometry(op) is None:
            _copy_operands(program, op)
        elif op.name == "library.conv2d":
            for index, view in enumerate(op.operands):
                is_bias = op.attrs["epilogue"][: index - 1] == ("bias",) and index == 2
                weight = index == 1 and view.base.constant is not None  # it is laid out, or packed, anyway
                if not weight and not is_bias:
                    _lay_image(program, op, index)
        elif op.name in _WHOLE:
            for index, view in enumerate(op.operands):
                weight = op.name == RECURRENCE and index == 1 and view.layout.strides() is not None
                if not weight and not _plain(view):
                    op.operands[index] = _copied(program, view, before=op)
    for op in program.ops:
        if op.name == ATTENTION:
            store_in_order(op)
    count = len(program.outputs) - len(program.state)
    program.outputs[:count] = [_owned(program, view) for view in program.outputs[:count]]
    program.remove_dead()
    program.sort()


def _plain(view: View) -> bool:
    """Whether the view is all of its buffer in row-major order."""
    return view.layout.offset == 0 and view.layout.is_contiguous() and view.layout.size == view.base.size


def _reorder_result(program: Program, op: Op, users: list[tuple[Op, int]]) -> None:
    """Store a product in the order of a reader that cannot read it as it is."""
    value = op.result
    wanted = [reader.operands[i] for reader, i in users if _hinders(reader)]
    wanted += [view for view in program.outputs if view.base is value and not _plain(view)]
    for view in wanted:
        flat = view.layout.reshape([prod(view.shape)])
        storage = flat.inverse_of() if flat is not None and flat.size == value.size else None
        if storage is not None and _try_storage(program, value, storage, op, users):
            return


def _hinders(reader: Op) -> bool:
    return reader.name == "library.matmul" and geometry(reader) is None


def _try_storage(
    program: Program, value: Value, storage: Layout, writer: Op, users: list[tuple[Op, int]]
) -> bool:
    """Store a value in another order if its writer and all of its readers can live with that."""
    old = value.storage
    before = [(reader, i, reader.operands[i]) for reader, i in users]
    outputs = program.outputs
    moved = View(value, storage)
    value.storage = storage
    for reader, i, view in before:
        reader.operands[i] = compose(view, moved)
    program.outputs = [compose(view, moved) if view.base is value else view for view in outputs]
    fits = (
        (writer.name == ATTENTION or geometry(writer) is not None)
        and all(reader.operands[i] is not view for reader, i, view in before)
        and not any(_hinders(reader) for reader, _, _ in before)
        and all(_plain(view) for view in program.outputs if view.base is value)
    )
    if not fits:
        value.storage, program.outputs = old, outputs
        for reader, i, view in before:
            reader.operands[i] = view
    return fits


def _copy_operands(program: Program, op: Op) -> None:
    """Copy the fewest operands that let the library read all; constants are laid out when they are packed."""
    for index in (0, 1, *range(2, len(op.operands))):
        view = op.operands[index]
        if geometry(op) is not None:
            return
        if view.base.quantized is not None:
            continue
        if _plain(view) and view.layout.strides() is not None:
            continue
        op.operands[index] = _copied(program, view, before=op)
    assert geometry(op) is not None, op


def _lay_image(program: Program, op: Op, index: int) -> None:
    """Copy an operand of a convolution that does not lie as its attributes say."""
    layout = {0: "input_layout", 1: ""}.get(index, "output_layout")
    if op.attrs["conv"].get(layout, "NCHW") == "NCHW":
        if not _plain(op.operands[index]):
            op.operands[index] = _copied(program, op.operands[index], before=op)
        return
    view = op.operands[index]
    lying = View(view.base, view.layout.permute(TO_LAST))
    if not _plain(lying):
        copy = _copied(program, lying, before=op)
        op.operands[index] = View(copy.base, copy.layout.permute(TO_FIRST))


def _copied(program: Program, view: View, before: Op) -> View:
    """A row-major copy, made just before an operator."""
    copy = program.add_op("copy", [view], view.shape, view.base.dtype, hint=f"{view.base.name}_copy")
    program.ops.insert(program.ops.index(before), copy)
    return copy.result.view()


def _owned(program: Program, view: View) -> View:
    """An output that is the whole of some operator's result; one without elements needs no memory."""
    if not view.base.size or (_plain(view) and view.base.producer is not None):
        return view
    copy = program.add_op("copy", [view], view.shape, view.base.dtype, hint="output")
    program.ops.append(copy)
    return copy.result.view()
