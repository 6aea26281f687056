# SPDX-License-Identifier: Apache-2.0
"""Loads and stores of a tile: slices where addresses are affine, gather and scatter elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..igraph import ISlice, make
from ..igraph.affine import Affine
from ..igraph.dtypes import dtype_of
from .affine_from_tir import NotAffineError
from .box import FULL, Box
from .emit import Const, Operand, TileValue, reboxed
from .function_pointers import Storage
from .leaf_access import address_of, stride_along
from .refusals import NeedsSerialError, refuse

if TYPE_CHECKING:
    from .expression import TileContext


def load(c: TileContext, expr: Any, into: ISlice | None) -> Operand:
    """The value of a load: a reg slice as it stands, a move from elsewhere, a gather where not affine."""
    storage = c.memory.storages[expr.source]
    address = affine_address(c, storage, expr.indices)
    if address is None:
        return gather(c, storage, expr.indices, into)
    piece = slice_at(c, storage, address)
    guard = None if within(c, storage, address) else guard_box(c)
    if guard is None:
        if c.guards and not within(c, storage, address):
            return gather(c, storage, expr.indices, into)
        return _loaded(c, piece, into)
    return _moved(c, piece, guard, 0, into)


def load_padded(c: TileContext, expr: Any, box: Box, pad: Const, into: ISlice | None) -> Operand | None:
    """A load inside of a box, a number elsewhere; None where one move cannot do it."""
    storage = c.memory.storages[expr.source]
    address = affine_address(c, storage, expr.indices)
    if address is None or c.guards:
        return None
    piece = slice_at(c, storage, address)
    sides = ((box.row_begin, box.row_end), (box.col_begin, box.col_end))
    for axis, bounds in enumerate(sides):
        name = c.names[axis]
        if piece.shape[axis] == c.tile[axis] or name is None:
            continue
        if any(b is not None and not _is_uniform(b, c.tile[axis]) for b in bounds):
            return None  # the number reaches along an axis that the load does not have
    return _moved(c, piece, box, pad.number, into)


def _is_uniform(bound: Affine, extent: int) -> bool:
    """Whether a bound is a multiple of the extent: it takes the whole axis or nothing."""
    return bound.constant % extent == 0 and all(t.coeff % extent == 0 for t in bound.terms)


def affine_address(c: TileContext, storage: Storage, indices: Sequence[Any]) -> Affine | None:
    """The address if it is affine, linear in the tile's variables."""
    try:
        address = address_of(storage, indices, c.converter)
    except NotAffineError:
        return None
    known = (n is None or stride_along(address, n, storage.dims) is not None for n in c.names)
    return address if all(known) else None


def slice_at(c: TileContext, storage: Storage, address: Affine) -> ISlice:
    """The slice that a linear address walks over the tile; extent 1 along an axis that does not move it."""
    strides = [0 if name is None else stride_along(address, name, storage.dims) or 0 for name in c.names]
    shape = (c.tile[0] if strides[0] != 0 else 1, c.tile[1] if strides[1] != 0 else 1)
    base = address.without(name for name in c.names if name is not None)
    stride = (strides[0] if strides[0] != 0 else shape[1], strides[1] if strides[1] != 0 else 1)
    box = c.box.shrink(c.tile, shape)
    return ISlice(storage.pointer, base, shape, stride, **box.slice_bounds())


def within(c: TileContext, storage: Storage, address: Affine) -> bool:
    """Whether the address stays inside of the pointer wherever the loops run."""
    return _inside(c, address, 0, storage.pointer.size - 1)


def _inside(c: TileContext, address: Affine, least: int, most: int) -> bool:
    """Whether ``least <= address <= most`` by the ranges and the conditions of the statement."""
    return _highest(c, address) <= most and -_highest(c, -address) >= least


def _highest(c: TileContext, expr: Affine) -> int:
    """An upper bound; an atom ``e >= 1`` lets any multiple of ``e - 1`` be added."""
    best = c.converter.space.range(expr)[1]
    for atom in c.atoms:
        for term in atom.expr.terms:
            own = expr.coefficient(str(term.var)) if term.kind == "var" else 0
            if own * term.coeff < 0 and own % term.coeff == 0:
                raised = c.converter.space.fold(expr + (atom.expr - 1) * (own // -term.coeff))
                high = c.converter.space.range(raised)[1]
                if high < best:
                    best, expr = high, raised
    return best


def guard_box(c: TileContext) -> Box | None:
    """All guards as one box; None when there is none or one is no box."""
    box: Box | None = FULL
    for guard in c.guards:
        if box is None or guard is None:
            return None
        box = box.intersect(guard, c.converter.space)
    return box if c.guards else None


def _loaded(c: TileContext, piece: ISlice, into: ISlice | None) -> Operand:
    in_place = into is not None and into.shape == piece.shape and into.pointer.dtype == piece.pointer.dtype
    if piece.pointer.level == "reg" and not in_place:
        return TileValue(piece)
    key = ("load", str(piece.pointer.name), str(piece.offset), piece.shape, piece.stride)
    known = c.recall(key)
    if known is not None and not (in_place and piece.pointer.level == "reg"):
        return known
    target = c.result(str(piece.pointer.dtype), piece.shape, into)
    c.emitter.move(target, piece)
    return TileValue(target) if target is into else c.remember(key, TileValue(target))


def _moved(c: TileContext, piece: ISlice, box: Box, pad: Any, into: ISlice | None) -> TileValue:
    target = c.result(str(piece.pointer.dtype), piece.shape, into)
    c.emitter.move(target, reboxed(piece, box.shrink(c.tile, piece.shape)), pad=pad)
    return TileValue(target)


# -- gather and scatter -----------------------------------------------------------------------
def gather(c: TileContext, storage: Storage, indices: Sequence[Any], into: ISlice | None) -> Operand:
    """A load whose address is data, or not linear in the tile."""
    table, index, shape = _indexed(c, storage, indices)
    if c.guards and not _is_inside_whatever_index(c, storage, table):
        # of the pointer as a whole an index takes what there is; what a guard excludes nobody chooses
        table, index, shape = _elements(c, storage, indices)
    place = c.place(index, (shape[0], 1) if table.cols > 1 else shape)
    target = c.result(str(storage.pointer.dtype), shape, into)
    c.emitter.add(make.gather(target, table, place.slice, 0))
    return TileValue(target)


def _is_inside_whatever_index(c: TileContext, storage: Storage, table: ISlice) -> bool:
    """Whether the slice that is indexed lies in its pointer: an index outside of it is harmless then."""
    last = (table.rows - 1) * table.row_stride + (table.cols - 1) * table.col_stride
    return _inside(c, table.offset, 0, storage.pointer.size - 1 - last)


def scatter(c: TileContext, storage: Storage, indices: Sequence[Any], value: Operand) -> None:
    """A store whose address is data."""
    table, index, _ = _indexed(c, storage, indices)
    source = c.place(value, c.tile)
    place = c.place(index, (c.tile[0], 1) if table.cols > 1 else c.tile)
    if table.cols > 1 and table.cols != c.tile[1]:
        raise NeedsSerialError(str(c.names[1]))
    c.emitter.add(make.scatter(table, source.slice, place.slice))


def _indexed(
    c: TileContext, storage: Storage, indices: Sequence[Any]
) -> tuple[ISlice, Operand, tuple[int, int]]:
    """(the slice that is indexed, the index into its rows, the shape of what it gives).

    Whole rows where one dimension is indexed by a value that does not vary along columns and the
    rest of the address does not vary along rows; single elements of the whole pointer otherwise.
    """
    rest, data = _parts(c, storage, indices)
    rows, cols = c.names
    linear = (cols is None or rest.is_linear_in(cols)) and (rows is None or rows not in rest.variables())
    if len(data) == 1 and linear:
        dim, stride, index = data[0]
        shape = index.shape if isinstance(index, TileValue) else (1, 1)
        if shape[1] == 1:
            step = 0 if cols is None else rest.coefficient(cols)
            width = c.tile[1] if step else 1
            base = rest if cols is None else rest.without([cols])
            extent, steps = (storage.shape[dim], width), (stride, step or 1)
            # rows of open width end where the tile does
            own = (None, None) if isinstance(stride, int) or not step else (c.box.col_begin, c.box.col_end)
            table = ISlice(
                storage.pointer, base, extent, steps, rows=(None, _open_rows(storage, dim)), cols=own
            )
            return table, index, (shape[0], width)
    return _elements(c, storage, indices)


def _open_rows(storage: Storage, dim: int) -> Affine | None:
    """How many rows a dimension has, where sizes decide it: an index beyond them reads nothing."""
    dims = storage.pointer.dims
    extent = dims[dim] if len(dims) == len(storage.shape) else None
    return None if extent is None or extent.is_constant or not extent.is_affine else extent


def _elements(
    c: TileContext, storage: Storage, indices: Sequence[Any]
) -> tuple[ISlice, Operand, tuple[int, int]]:
    """As `_indexed`, always single elements: the index is the whole address."""
    rest, data = _parts(c, storage, indices)
    strides = [stride for _, stride, _ in data if isinstance(stride, int)]
    if not rest.is_affine or len(strides) < len(data):
        refuse(
            f"An element of '{storage.pointer.name}' is looked up whose strides depend on sizes.",
            c.block,
            need="strides that are numbers: of the dimensions only the outermost depends on sizes",
            remedy="fix the other sizes: the kernel is then compiled for each of them",
        )
    # as wide as the address: what fits in int32 by itself need not when it is multiplied
    wide = storage.pointer.size > 1 << 31 or any(dtype_of(value.dtype).bytes > 4 for _, _, value in data)
    wide = wide or any(value.dtype == "uint32" for _, _, value in data)
    dtype = "int64" if wide else "int32"
    total: Operand = c.affine(rest, dtype)
    for stride, (_, _, value) in zip(strides, data, strict=True):
        part = c.cast(value, dtype)
        part = part if stride == 1 else c.binary("mul", part, Const(stride, dtype))
        total = part if isinstance(total, Const) and total.number == 0 else c.binary("add", total, part)
    elements = storage.pointer.elements
    rows = (None, None if elements.is_constant or not elements.is_affine else elements)
    table = ISlice(storage.pointer, 0, (storage.pointer.size, 1), (1, 1), rows=rows)
    return table, total, total.shape if isinstance(total, TileValue) else (1, 1)


def _parts(
    c: TileContext, storage: Storage, indices: Sequence[Any]
) -> tuple[Affine, list[tuple[int, int | Affine, Operand]]]:
    """The affine part of an address, a unit's own part of sram with it, and the indices that are data.

    Each of these is (dimension, stride, value).
    """
    rest, data = storage.base, list[tuple[int, int | Affine, Operand]]()
    for dim, (expr, start, stride) in enumerate(zip(indices, storage.start, storage.strides(), strict=True)):
        converted = c.converter.try_convert(expr)
        if converted is None:
            data.append((dim, stride, _offset(c, c.evaluate(expr), start)))
        else:
            rest = rest + (converted - start) * stride
    for name in rest.multiplied & set(c.names):
        raise NeedsSerialError(str(name))  # rows and columns of a table are numbers apart
    return c.converter.space.fold(rest), data


def _offset(c: TileContext, value: Operand, start: Affine) -> Operand:
    return value if start == 0 else c.binary("sub", value, c.affine(start, value.dtype))


# -- stores -----------------------------------------------------------------------------------
def target_slice(c: TileContext, buffer: Any, indices: Sequence[Any], stmt: Any) -> ISlice | None:
    """Where a store over the tile goes; None when it is data that says where.

    Raises
    ------
    NeedsSerialError
        A tile variable moves the address in no linear way, or not at all.
    """
    storage = c.memory.storages[buffer]
    try:
        address = address_of(storage, indices, c.converter)
    except NotAffineError:
        return None
    for name in c.names:
        if name is not None and stride_along(address, name, storage.dims) in (None, 0):
            raise NeedsSerialError(name)
    if storage.pointer.role == "in":
        refuse("A store to a parameter that is only read.", c.block, stmt)
    return slice_at(c, storage, address)


def store(c: TileContext, stmt: Any) -> None:
    """Evaluate a BufferStore over the tile."""
    target = target_slice(c, stmt.buffer, stmt.indices, stmt)
    if target is None:
        scatter(c, c.memory.storages[stmt.buffer], stmt.indices, c.evaluate(stmt.value))
        return
    # straight into reg; sram takes a copy from dram as it is
    direct = target.pointer.level == "reg" or (target.pointer.level == "sram" and _is_copy(c, stmt.value))
    put(c, target, c.evaluate(stmt.value, target if direct else None))


def _is_copy(c: TileContext, expr: Any) -> bool:
    source = getattr(expr, "source", None)
    if source is None or c.guards:
        return False
    storage = c.memory.storages[source]
    address = affine_address(c, storage, expr.indices)
    return (
        storage.pointer.level == "dram"
        and address is not None
        and slice_at(c, storage, address).shape == c.tile
    )


def put(c: TileContext, target: ISlice, value: Operand) -> None:
    """Leave a value in a target slice of the tile's shape."""
    if isinstance(value, TileValue) and value.slice is target:
        return
    if isinstance(value, Const) and target.pointer.level == "reg":
        c.emitter.fill(target, value.number)
        return
    c.emitter.move(target, c.place(value, target.shape).slice)
