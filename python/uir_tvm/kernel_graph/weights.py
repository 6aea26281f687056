# SPDX-License-Identifier: Apache-2.0
"""Constant operands of products that kernels compute, stored as these read them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..library.library_tables import LibraryTable
from .library_match import dense
from .program import Op, Program, Value, View, is_float
from .strided_views import Layout

#: An operand's number, and its axes in the order in which a kernel reads it, outermost first.
Order = tuple[int, tuple[int, ...]]


def lay_out_weights(program: Program, table: LibraryTable) -> None:
    """Store constant operands of products with the contracted side innermost, where the target wants that.

    Before: y = x @ w, w a constant [k, n], of which a kernel turns every tile.  After: y = x @ v.T, v the
    constant [n, k], of which tiles are read as they lie.

    Parameters
    ----------
    program : Program
        Changed in place; products of the library are gone from it.
    table : LibraryTable
        Its ``contracted_innermost``.

    Notes
    -----
    What a matrix unit does to an operand beyond that (``__bang_reshape_filter``) stays in the kernel: no
    public text says which layout it makes.  A constant that something else reads too is there in both orders.
    """
    if not table.contracted_innermost:
        return
    made: dict[tuple[Value, Layout, tuple[int, ...]], View] = {}
    for op in program.ops:
        orders = ORDERS.get(op.name)
        for index, axes in orders(op) if orders is not None else ():
            view = op.operands[index]
            if _is_weight(view) and not _unit_stride(view.layout, axes[-1]):
                key = (view.base, view.layout, axes)
                if key not in made:
                    made[key] = _stored(program, view, axes)
                op.operands[index] = made[key]


def _is_weight(view: View) -> bool:
    """Whether it is a constant of floats, each element of which is read once."""
    return (
        view.base.constant is not None
        and view.layout.size > 1
        and not view.layout.broadcasts()
        and is_float(view.base.dtype)
    )


def _unit_stride(layout: Layout, axis: int) -> bool:
    """Whether neighbours along an axis are neighbours in memory; an axis of one element has none."""
    dim = layout.dims[axis]
    return not dim or dim[-1][1] == 1


def _stored(program: Program, view: View, axes: tuple[int, ...]) -> View:
    """The same elements of a constant whose axes lie in this order."""
    array = dense(view, len(view.shape)).transpose(axes)
    value = program.constant(array.copy(order="C"), f"{view.base.name}_turned")
    whole = value.view()
    return View(value, whole.layout.permute([axes.index(axis) for axis in range(len(axes))]))


def _matmul(op: Op) -> Iterator[Order]:
    """Rows of the left matrix, columns of the right one."""
    a, b = (len(view.shape) for view in op.operands)
    yield 0, tuple(range(a))
    yield 1, (*range(b - 2), b - 1, b - 2) if b > 1 else (0,)


def _einsum(op: Op) -> Iterator[Order]:
    """Letters of the result in their order, then those that are summed."""
    assert op.call is not None
    subscripts = str(op.call.attrs.subscripts).replace(" ", "")
    inputs, arrow, result = subscripts.partition("->")
    terms = inputs.split(",")
    if not arrow or "." in subscripts or len(terms) != len(op.operands):
        return
    for index, term in enumerate(terms):
        if len(set(term)) == len(term) == len(op.operands[index].shape):
            kept, summed = (
                [axis for axis, letter in enumerate(term) if (letter in result) is inside]
                for inside in (True, False)
            )
            if summed:
                yield index, (*kept, *summed)


def _conv2d(op: Op) -> Iterator[Order]:
    """Positions of the window, each a matrix with the input's channels innermost, as such data have them."""
    assert op.call is not None
    data, kernel = str(op.call.attrs.data_layout), str(op.call.attrs.kernel_layout)
    if data == "NHWC" and sorted(kernel) == sorted("OIHW"):
        yield 1, tuple(kernel.index(letter) for letter in "HWOI")


#: Operator -> the orders in which its kernels read operands.
ORDERS: dict[str, Callable[[Op], Iterator[Order]]] = {
    "matmul": _matmul,
    "einsum": _einsum,
    "nn.conv2d": _conv2d,
}
