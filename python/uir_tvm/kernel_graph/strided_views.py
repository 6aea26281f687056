# SPDX-License-Identifier: Apache-2.0
"""Strided views with composite dimensions: the algebra that makes reshape, transpose and slice free.

A dimension is a tuple of *atoms* ``(extent, stride)``, outermost first; its index is split over them in
mixed radix.  Most dimensions have one atom.  Composite ones let any reshape that regroups whole atoms be
a view (the heads of attention, the repeated heads of grouped queries), where plain strides would copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

from attrs import field, frozen

from ..sizes.open_arithmetic import divides, is_many, is_one, may_exceed, representative, same, structure

Atom = tuple[int, int]
Dim = tuple[Atom, ...]


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def merge_atoms(atoms: Iterable[Atom]) -> Dim:
    """Drop unit atoms and join neighbours that walk memory in one run."""
    merged: list[Atom] = []
    for extent, stride in atoms:
        if is_one(extent):
            continue
        if merged and same(merged[-1][1], extent * stride):
            merged[-1] = (merged[-1][0] * extent, stride)
        else:
            merged.append((extent, stride))
    return tuple(merged)


def outermost_first(atoms: Mapping[int, Atom]) -> list[int]:
    """Atoms by name in the order in which they are one run of memory; of others those that are."""
    order: list[int] = []
    step = 1
    while True:
        inner = (name for name, atom in atoms.items() if name not in order and same(atom[1], step))
        if (found := next(inner, None)) is None:
            return order[::-1]
        order.append(found)
        step *= atoms[found][0]


@frozen
class Layout:
    """Shape, strides and offset of a view, in elements of its base; equal where they are for all sizes.

    Attributes
    ----------
    dims : tuple of Dim
        The atoms of every dimension; a dimension of extent 1 has none.
    offset : int
        Address of the first element.
    """

    dims: tuple[Dim, ...] = field(eq=structure)
    offset: int = field(default=0, eq=structure)

    @staticmethod
    def contiguous(shape: Sequence[int]) -> Layout:
        """The whole of a row-major tensor."""
        return Layout(
            tuple(merge_atoms([atom]) for atom in zip(shape, contiguous_strides(shape), strict=True))
        )

    @staticmethod
    def strided(shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Layout:
        """A view with one stride for each dimension."""
        return Layout(tuple(merge_atoms([atom]) for atom in zip(shape, strides, strict=True)), offset)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the dimensions."""
        return tuple(prod(extent for extent, _ in dim) for dim in self.dims)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def atoms(self) -> Dim:
        """All atoms, outermost first."""
        return tuple(atom for dim in self.dims for atom in dim)

    def is_contiguous(self) -> bool:
        """Whether the view walks memory in one run from its offset."""
        merged = merge_atoms(self.atoms)
        return not merged or (len(merged) == 1 and merged[0][1] == 1)

    def broadcasts(self) -> bool:
        """Whether several elements share an address."""
        return any(stride == 0 for _, stride in self.atoms)

    def strides(self) -> tuple[int, ...] | None:
        """One stride per dimension (0 for extent 1), or None where a dimension is composite."""
        if any(len(dim) > 1 for dim in self.dims):
            return None
        return tuple(dim[0][1] if dim else 0 for dim in self.dims)

    def permute(self, axes: Sequence[int]) -> Layout:
        """Dimensions in another order."""
        return Layout(tuple(self.dims[axis] for axis in axes), self.offset)

    def slice(self, axis: int, begin: int, extent: int, step: int = 1) -> Layout | None:
        """``extent`` elements of one dimension from ``begin``; None where its atoms cannot express it."""
        dim = self.dims[axis]
        if same(begin, 0) and same(step, 1) and same(extent, self.shape[axis]):
            return self
        if len(dim) > 1:
            return self._slice_composite(axis, begin, extent, step)
        stride = dim[0][1] if dim else 0
        dims = list(self.dims)
        dims[axis] = merge_atoms([(extent, stride * step)])
        return Layout(tuple(dims), self.offset + begin * stride)

    def _slice_composite(self, axis: int, begin: int, extent: int, step: int) -> Layout | None:
        """Whole runs of the inner atoms: a slice of the outermost atom."""
        outer, *inner = self.dims[axis]
        run = prod(e for e, _ in inner)
        if step != 1 or not divides(run, begin) or not divides(run, extent):
            return None
        dims = list(self.dims)
        dims[axis] = merge_atoms([(extent // run, outer[1]), *inner])
        return Layout(tuple(dims), self.offset + begin // run * outer[1])

    def broadcast(self, shape: Sequence[int]) -> Layout:
        """NumPy broadcasting to a larger shape."""
        dims = [()] * (len(shape) - len(self.dims)) + list(self.dims)
        result: list[Dim] = []
        for dim, extent in zip(dims, shape, strict=True):
            have = prod(e for e, _ in dim)
            repeated = not same(have, extent) and is_one(have)
            assert repeated or have == extent, (self, shape)
            result.append(((extent, 0),) if repeated else dim)
        return Layout(tuple(result), self.offset)

    def reshape(self, shape: Sequence[int]) -> Layout | None:
        """The same elements, row by row, under another shape; None where an atom would have to be cut."""
        if prod(shape) != self.size:
            return None
        pool = list(merge_atoms(self.atoms))
        dims: list[Dim] = []
        for extent in reversed(shape):
            taken: list[Atom] = []
            while is_many(extent):
                have, stride = pool.pop()
                if divides(have, extent):
                    taken.append((have, stride))
                    extent //= have
                elif divides(extent, have):
                    taken.append((extent, stride))
                    pool.append((have // extent, stride * extent))
                    extent = 1
                else:
                    return None
            dims.append(merge_atoms(reversed(taken)))
        return Layout(tuple(reversed(dims)), self.offset)

    def inverse_of(self) -> Layout | None:
        """The flat tensor as a view of this one's row-major copy; None unless this view is a permutation."""
        if self.offset or self.broadcasts():
            return None
        merged = merge_atoms(self.atoms)
        mine = contiguous_strides([extent for extent, _ in merged])
        order = outermost_first(dict(enumerate(merged)))
        if len(order) < len(merged):
            return None
        return Layout((merge_atoms((merged[i][0], mine[i]) for i in order),))


@frozen
class Digit:
    """One atom's share of an address in mixed radix: ``coefficient * index`` added to digit ``position``."""

    extent: int
    position: int
    coefficient: int


def digits(
    layout: Layout, radices: Sequence[int]
) -> tuple[tuple[tuple[Digit, ...], ...], tuple[int, ...]] | None:
    """Addresses of a view as coordinates of a row-major tensor, without division.

    Parameters
    ----------
    layout : Layout
        A view of a tensor of ``prod(radices)`` elements.
    radices : sequence of int
        The tensor's shape.

    Returns
    -------
    dims, offsets
        For every dimension of the view the digits of its index (outermost first), and the constant part of
        every coordinate.  None where an atom straddles a boundary or coordinates could carry.
    """
    strides = contiguous_strides(radices)
    # of what has no elements nothing is read
    filled = [*radices, *(extent for extent, _ in layout.atoms)]
    live = [j for j in range(len(radices)) if is_many(radices[j])]
    offsets, rest = [0] * len(radices), layout.offset
    for j in live:
        offsets[j], rest = divmod(rest, strides[j])
    if rest:
        return None
    highest = list(offsets)
    dims = []
    for dim in layout.dims:
        found: list[Digit] = []
        for extent, stride in reversed(dim):
            if stride == 0:
                found.append(Digit(extent, 0, 0))
                continue
            while is_many(extent):
                position = next((j for j in live if same(strides[j], stride)), None)
                if position is None:
                    position = next((j for j in live if not may_exceed(strides[j], stride, filled)), None)
                if position is None or not divides(strides[position], stride):
                    return None
                factor = stride // strides[position]
                room = -(-radices[position] // factor)
                inner = extent
                if may_exceed(extent, room, filled):
                    if not divides(room, extent) or factor * room != radices[position]:
                        return None
                    inner = room
                found.append(Digit(inner, position, factor))
                highest[position] += factor * (inner - 1)
                extent //= inner
                stride *= inner
        dims.append(tuple(reversed(found)))
    if any(may_exceed(high + 1, radix, filled) for high, radix in zip(highest, radices, strict=True)):
        return None
    return tuple(dims), tuple(offsets)


def rebase(layout: Layout, storage: Layout) -> Layout | None:
    """A view of a row-major tensor as a view of the memory where ``storage`` now keeps that tensor.

    ``storage`` is one flat dimension: the old address, in mixed radix, with its new strides.
    """
    (flat,) = storage.dims
    found = digits(layout, [extent for extent, _ in flat])
    if found is None:
        return None
    dims, offsets = found

    def stride(digit: Digit) -> int:
        return digit.coefficient * flat[digit.position][1] if digit.coefficient else 0

    return Layout(
        tuple(merge_atoms((digit.extent, stride(digit)) for digit in dim) for dim in dims),
        storage.offset + sum(o * step for o, (_, step) in zip(offsets, flat, strict=True)),
    )


def factored_shape(layout: Layout, size: int) -> tuple[int, ...] | None:
    """A row-major shape of ``size`` elements along whose axes the view's atoms lie; None if there is none."""
    cuts = {1, size} | {s for e, s in layout.atoms if s} | {e * s for e, s in layout.atoms if s}
    # in an order that is right for no more than it need be: each has to divide the next one
    ordered = sorted((cut for cut in cuts if divides(cut, size)), key=representative)
    shape = []
    for low, high in zip(ordered, ordered[1:], strict=False):
        if not divides(low, high):
            return None
        shape.append(high // low)
    return tuple(reversed(shape)) or (1,)
