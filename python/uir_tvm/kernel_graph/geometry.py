# SPDX-License-Identifier: Apache-2.0
"""Strided views of matrices as the sizes and strides that a library is called with."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from attrs import frozen

from ..sizes.open_arithmetic import common_divisor, is_many, is_one, same
from .strided_views import Atom, Layout

# Batch axes with strides of their own that a library takes.
BATCH_AXES = 3


@frozen
class BatchAxis:
    """One batch axis: extent, and the strides of a, b and the result."""

    extent: int
    strides: tuple[int, ...]


@frozen
class MatmulGeometry:
    """result[batch, m, n] = a[batch, m, k] @ b[batch, k, n], in elements.

    Attributes
    ----------
    batch : tuple of BatchAxis
        Outermost first; empty for one product.
    m, n, k : int
    strides : tuple of pairs
        (row, column) strides of a, b and the result, in this order.
    offsets : tuple of int
        Of a, b and the result.
    """

    batch: tuple[BatchAxis, ...]
    m: int
    n: int
    k: int
    strides: tuple[tuple[int, int], ...]
    offsets: tuple[int, ...]

    @property
    def unit_stride(self) -> bool:
        """Whether each operand lies by rows or by columns, without overlaps, and the result by rows."""
        shapes = ((self.m, self.k), (self.k, self.n), (self.m, self.n))
        *operands, result = zip(shapes, self.strides, strict=True)
        return _by_rows(*result) and all(
            _by_rows(shape, strides) or _by_rows(shape[::-1], strides[::-1]) for shape, strides in operands
        )


def _by_rows(shape: tuple[int, int], strides: tuple[int, int]) -> bool:
    """Whether rows are contiguous and do not overlap; a dimension of one element has any stride."""
    (rows, columns), (row_stride, column_stride) = shape, strides
    return (is_one(columns) or is_one(column_stride)) and (is_one(rows) or row_stride >= columns)


def _stride(layout: Layout, axis: int) -> int | None:
    """The stride of a dimension that has one (1 where its extent is 1, as any will do)."""
    dim = layout.dims[axis]
    if len(dim) > 1:
        return None
    return dim[0][1] if dim else 1


def common_atoms(lists: Sequence[Sequence[Atom]]) -> list[BatchAxis] | None:
    """Several splittings of one index range, refined until all agree; None where they cannot."""
    pools = [[atom for atom in atoms if is_many(atom[0])] for atoms in lists]
    axes: list[BatchAxis] = []
    while any(pools):
        if not all(pools):
            return None
        extent = 0
        for pool in pools:
            extent = common_divisor(extent, pool[-1][0])
        if is_one(extent):
            return None
        strides = []
        for pool in pools:
            have, stride = pool.pop()
            strides.append(stride)
            if have > extent:
                pool.append((have // extent, stride * extent))
        axes.append(BatchAxis(extent, tuple(strides)))
    merged: list[BatchAxis] = []
    for axis in axes:  # innermost first
        inner = merged[-1] if merged else None
        if inner and all(same(s, i * inner.extent) for s, i in zip(axis.strides, inner.strides, strict=True)):
            merged[-1] = BatchAxis(inner.extent * axis.extent, inner.strides)
        else:
            merged.append(axis)
    return merged[::-1]


def _fold_rows(a: Layout, b: Layout, out: Layout) -> tuple[Layout, Layout, Layout] | None:
    """The batch of a and of the result as further rows, where b is the same for all of the batch."""
    batch = a.shape[:-2]
    if any(stride for dim in b.dims[:-2] for _, stride in dim):
        return None
    rows = prod(batch) * a.shape[-2]
    rows_a, rows_out = a.reshape((rows, a.shape[-1])), out.reshape((rows, out.shape[-1]))
    if rows_a is None or rows_out is None or len(rows_a.dims[0]) > 1 or len(rows_out.dims[0]) > 1:
        return None
    return rows_a, Layout(b.dims[-2:], b.offset), rows_out


def matmul_geometry(a: Layout, b: Layout, out: Layout) -> MatmulGeometry | None:
    """Sizes and strides of a (batched) matrix product, or None where plain strides cannot say it.

    Parameters
    ----------
    a, b, out : Layout
        (batch..., m, k), (batch..., k, n) and (batch..., m, n), with equal batch shapes.
    """
    layouts = list(_fold_rows(a, b, out) or (a, b, out))
    batch = common_atoms([[atom for dim in layout.dims[:-2] for atom in dim] for layout in layouts])
    pairs = [(_stride(layout, -2), _stride(layout, -1)) for layout in layouts]
    strides = [(row, column) for row, column in pairs if row is not None and column is not None]
    if batch is None or len(batch) > BATCH_AXES or len(strides) < len(pairs):
        return None
    (m, k), n = layouts[0].shape[-2:], layouts[1].shape[-1]
    return MatmulGeometry(tuple(batch), m, n, k, tuple(strides), tuple(layout.offset for layout in layouts))
