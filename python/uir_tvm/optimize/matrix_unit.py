# SPDX-License-Identifier: Apache-2.0
"""Matrix products go to a unit that reads its operands from dram and leaves its results there.

Before::

    contract.fp32 c(10,16), a(10,8), b(8,16)

After, for a unit that multiplies tiles of 16 rows and columns::

    fill z, 0                                       # once, before everything (behind a barrier of all units)
    move a_tile(16,16), z; move b_tile(16,16), z
    move a_tile(10,8), a; move b_tile(8,16), b      # dram that the unit of this pid owns
    contract.fp32 product(16,16), a_tile, b_tile
    move c, product(10,16)

The tiles are whole, and zero where an operand ends.  An operand that lies in dram as whole tiles is read
where it is.  A result that a loop accumulates stays with the matrix unit: it begins as zero before the loop,
and comes back behind it.  When it is back, what was there before is added, unless that is zero, and the sum
is rounded where its dtype is narrower.

Where sums are accumulated, the product of each loop (each contraction, where there is no such loop) is
rounded to the dtype of its sums before it is added: one rounding more than the interpreter's.

It does something for hardware with the figure ``product_level = dram`` only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ..igraph import make
from ..igraph.affine import affine, var
from ..igraph.dtypes import bytes_of
from ..igraph.iops import spec_of
from ..igraph.nodes import HardwareModel, IGraph, IOp, IPointer, ISlice, Loop, walk_body
from ..igraph.rewrite import FreshNames
from ..igraph.sizes import dram
from .edit import fresh_name
from .multibuffer import PIPELINE
from .slices import UNBOUNDED, place, valid
from .split import is_barrier

#: Dtype of the sums by that of the factors.
SUMS: Mapping[str, str] = {"fp32": "fp32", "fp16": "fp32", "bf16": "fp32", "int8": "int32"}
#: Rows and columns of the smallest tile, bytes of a row of it; rows of memory that one transfer may skip.
TILE, ROW_BYTES, LONGEST_ROW = 16, 32, 65535
#: Attribute of a loop: names of the products that it accumulates, and that were cleared before it.
CARRIES = "carries"
#: Bytes of zeros that a unit keeps to clear its tiles with.
ZERO_BYTES = 4096


def run(graph: IGraph) -> IGraph:
    """The graph with its products where the matrix unit finds and leaves them."""
    if not reads_dram(graph.hardware) or not any(_takes(iop) for iop, _ in graph.walk()):
        return graph
    walk = _UnitProducts(graph)
    body = walk.whole()
    return graph.replace(body=body, pointers=[*graph.pointers, *walk.pointers])


def reads_dram(hardware: HardwareModel) -> bool:
    """Whether the device's matrix unit reads dram."""
    return str(hardware.figures.get("product_level", "")) == "dram"


def readable(piece: ISlice) -> bool:
    """Whether the matrix unit can read an operand where it lies: whole tiles of memory that nobody writes."""
    depth = _depth(str(piece.pointer.dtype))
    across, along = sorted((int(piece.row_stride), int(piece.col_stride)), reverse=True)
    return (
        piece.pointer.role == "in"
        and str(piece.pointer.dtype) in SUMS
        and valid(piece) == UNBOUNDED
        and along == 1
        and across <= LONGEST_ROW
        and int(piece.rows) % depth == 0
        and int(piece.cols) % depth == 0
    )


def _depth(dtype: str) -> int:
    """What the contracted side, and both sides of a tile that is turned on its way, are multiples of."""
    return max(TILE, ROW_BYTES // bytes_of(dtype))


def _takes(iop: IOp) -> bool:
    """Whether an iOp is a product that the unit can compute, and that is not yet where it can."""
    if not spec_of(iop).is_product or iop.target.pointer.level != "reg":
        return False
    left, right = (str(piece.pointer.dtype) for piece in iop.sources)
    if left != right or left not in SUMS:
        return False
    return str(iop.dtype) in (SUMS[left], left if SUMS[left] == "fp32" else "int32")


@attrs.frozen
class _UnitOperand:
    """An operand as the unit reads it, and what brings it there."""

    piece: ISlice
    #: Moves at the contraction, and those that may stand before everything.
    staging: Sequence[Any] = ()
    once: Sequence[Any] = ()


@attrs.define
class _Around:
    """What a loop is for the contractions in it."""

    #: Whether products are accumulated over it.
    carries: bool = False
    #: Those of which it is the outermost such loop, with the tile of the product that is theirs.
    carried: list[tuple[IOp, ISlice, ISlice]] = attrs.field(factory=list)


class _UnitProducts:
    """Rewrites the loop tree from the outside inwards."""

    def __init__(self, graph: IGraph) -> None:
        self.graph = graph
        self.pointers: list[IPointer] = []
        self.first: list[Any] = []
        self._names: set[str] = set()
        self._loops = FreshNames(graph)
        self._zeros: dict[str, IPointer] = {}

    def whole(self) -> list[Any]:
        """The graph's body, rewritten; what stands before everything stands behind barriers of all units too.

        A kernel may end there, and reg with it.
        """
        parts: list[list[Any]] = [[]]
        for node in self.graph.body:
            parts[-1].append(node)
            if isinstance(node, IOp) and is_barrier(node):
                parts.append([])
        made: list[Any] = []
        for part in parts:
            self.first, self._zeros = [], {}
            body = self.body(part, ())
            made += [*self.first, *body]
        return made

    def body(self, nodes: Sequence[Any], loops: tuple[tuple[Loop, _Around], ...]) -> list[Any]:
        """The nodes of one body, rewritten."""
        made: list[Any] = []
        for node in nodes:
            if isinstance(node, Loop):
                around = _Around()
                inner = self.body(node.body, (*loops, (node, around)))
                dropped = {PIPELINE} if around.carries else set()
                kept = {key: value for key, value in node.attrs.items() if key not in dropped}
                behind: list[Any] = []
                for iop, part, tile in around.carried:
                    zero = _take_zero(made, iop.target)
                    made += self._clear(tile)
                    behind += self._back(iop, part, accumulate=not zero)
                if around.carried:
                    kept[CARRIES] = " ".join(str(tile.pointer.name) for _, _, tile in around.carried)
                made += [Loop(node.var, node.extent, inner, kept), *behind]
            elif _takes(node):
                made += self._product(node, loops, made)
            else:
                made.append(node)
        return made

    def _product(self, iop: IOp, loops: tuple[tuple[Loop, _Around], ...], before: list[Any]) -> list[Any]:
        """What a product becomes; where what stands before it in the body cleared its target, that goes."""
        a, b = iop.sources
        turned = [_turned(a), _turned(b)]
        depth = _depth(str(a.pointer.dtype))
        rows = _up(int(a.rows), depth if turned[0] else TILE)
        cols = _up(int(b.cols), TILE if turned[1] else depth)
        contracted = _up(int(a.cols), depth)
        left = self._tile("a_tile", a, rows, contracted, turned[0])
        right = self._tile("b_tile", b, contracted, cols, turned[1])
        for tile in (left, right):
            self.first += tile.once
        sums = self._own("product", SUMS[str(a.pointer.dtype)], rows, cols)
        shape = (int(iop.target.rows), int(iop.target.cols))
        kept = ISlice(
            sums.pointer, sums.offset, shape, (cols, 1), rows=iop.target.valid[:2], cols=iop.target.valid[2:]
        )
        accumulate = bool(iop.attrs.get("accumulate", False))
        number = _carrying(iop, [loop for loop, _ in loops]) if accumulate else None
        product = make.contract(sums, left.piece, right.piece, accumulate=number is not None)
        here = [*left.staging, *right.staging, product]
        if number is None:
            accumulate = accumulate and not _take_zero(before, iop.target)
            return [*here, *self._back(iop, kept, accumulate)]
        for _, inside in loops[number:]:
            inside.carries = True  # the matrix unit keeps the sums: a loop cut into pieces would lose them
        loops[number][1].carried.append((iop, kept, sums))
        return here

    def _back(self, iop: IOp, product: ISlice, accumulate: bool) -> list[Any]:
        """What brings a result to where the contraction had it."""
        target = iop.target
        wide = str(product.pointer.dtype)
        if not accumulate and str(iop.dtype) == wide:
            return [make.move(target, product)]
        here = self._local("sums", wide, target)
        nodes: list[Any] = [make.move(here, product)]
        if accumulate and str(iop.dtype) == wide:
            return [*nodes, make.binary("add", target, target, here)]
        if accumulate:
            old = self._local("old", wide, target)
            nodes += [make.cast(old, target), make.binary("add", here, old, here)]
        return [*nodes, make.cast(target, here)]

    def _tile(self, hint: str, piece: ISlice, rows: int, cols: int, turned: bool) -> _UnitOperand:
        """An operand as a whole tile in dram; ``turned`` keeps its columns together."""
        shape = (int(piece.rows), int(piece.cols))
        if piece.pointer.level == "dram" and readable(piece) and shape == (rows, cols):
            return _UnitOperand(piece)
        tile = self._own(hint, str(piece.pointer.dtype), *((cols, rows) if turned else (rows, cols)))
        stride = (1, rows) if turned else (cols, 1)
        box = {"rows": piece.valid[:2], "cols": piece.valid[2:]}
        part = ISlice(tile.pointer, tile.offset, shape, stride, **box)
        stored = make.move(_lying(part), _lying(piece)) if turned else make.move(part, piece)
        whole = ISlice(tile.pointer, tile.offset, (rows, cols), stride)
        if shape == (rows, cols) and valid(piece) == UNBOUNDED:
            return _UnitOperand(whole, [stored])
        clear = self._clear(tile)
        named = {name for bound in piece.valid if bound is not None for name in bound.variables()}
        if named <= {"pid", *(str(size.name) for size in self.graph.sizes)}:
            return _UnitOperand(whole, [stored], clear)
        return _UnitOperand(whole, [*clear, stored])

    def _clear(self, tile: ISlice) -> list[Any]:
        """Moves of zeros into all of a tile."""
        dtype, (rows, cols) = str(tile.pointer.dtype), tile.shape
        most = max(1, ZERO_BYTES // (cols * bytes_of(dtype)))
        step = max(n for n in range(1, rows + 1) if rows % n == 0 and n <= most)
        zero = self._zero(dtype, step * cols)
        source = ISlice(zero, 0, (step, cols))
        if step == rows:
            return [make.move(tile, source)]
        loop = self._loops.like("clear")
        target = tile.replace(offset=tile.offset + var(loop) * (step * cols), shape=(step, cols))
        return [Loop(loop, rows // step, [make.move(target, source)])]

    def _zero(self, dtype: str, size: int) -> IPointer:
        """A pointer to at least ``size`` zeros, which nothing else writes."""
        held = self._zeros.get(f"{dtype} {size}")
        if held is None:
            held = self._pointer("zero", "reg", dtype, size)
            self._zeros[f"{dtype} {size}"] = held
            self.first.append(make.fill(ISlice(held, 0, (1, size)), 0))
        return held

    def _own(self, hint: str, dtype: str, rows: int, cols: int) -> ISlice:
        """A tile in dram for every unit: that of this pid."""
        own = dram(self._fresh(hint), dtype, [self.graph.parallel, rows * cols], self.graph.sizes, "tmp")
        pointer = self._listed(own)
        return ISlice(pointer, var("pid") * (rows * cols), (rows, cols))

    def _local(self, hint: str, dtype: str, like: ISlice) -> ISlice:
        """A new slice in reg of the same shape and box; rows start at blocks, as `align_rows` has them."""
        rows, cols = like.shape
        block = int(self.graph.hardware.figures.get("row_align_bytes", 1))
        pitch = _up(cols, max(1, block // bytes_of(dtype))) if rows > 1 and cols > 1 else cols
        pointer = self._pointer(hint, "reg", dtype, rows * pitch)
        box = {"rows": like.valid[:2], "cols": like.valid[2:]}
        return ISlice(pointer, affine(0), like.shape, (pitch, 1), **box)

    def _pointer(self, hint: str, level: str, dtype: str, size: int) -> IPointer:
        return self._listed(IPointer(self._fresh(hint), level, dtype, size, "tmp"))

    def _fresh(self, hint: str) -> str:
        return fresh_name(self.graph, hint, self._names)

    def _listed(self, pointer: IPointer) -> IPointer:
        self.pointers.append(pointer)
        return pointer


def _up(length: int, unit: int) -> int:
    return -(-length // unit) * unit


def _turned(piece: ISlice) -> bool:
    """Whether columns lie together in memory, and rows do not."""
    return int(piece.row_stride) == 1 and int(piece.col_stride) != 1 and int(piece.rows) > 1


def _lying(piece: ISlice) -> ISlice:
    """The same elements with rows and columns exchanged."""
    (rows, cols), (row, col) = piece.shape, piece.stride
    return piece.replace(shape=(cols, rows), stride=(col, row), rows=piece.valid[2:], cols=piece.valid[:2])


def _take_zero(nodes: list[Any], target: ISlice) -> bool:
    """Whether the last thing that nodes did to a target was to clear it; then that goes."""
    for number in reversed(range(len(nodes))):
        users = [
            iop
            for iop, _ in walk_body([nodes[number]])
            if any(piece.pointer.name == target.pointer.name for piece in iop.slices())
        ]
        if not users:
            continue
        (first, *more) = users
        clears = nodes[number] is first and spec_of(first).constant and float(first.attrs["value"]) == 0
        if more or not clears or place(first.target) != place(target):
            return False
        if valid(first.target) not in (UNBOUNDED, valid(target)):
            return False
        del nodes[number]
        return True
    return False


def _carrying(iop: IOp, loops: Sequence[Loop]) -> int | None:
    """The outermost loop over whose iterations a product is only ever added to its target."""
    target = iop.target
    named = {n for part in (target.offset, *target.valid) if part is not None for n in part.variables()}
    found = None
    for number in reversed(range(len(loops))):
        loop = loops[number]
        users = [
            other
            for other, _ in walk_body(loop.body)
            if any(piece.pointer.name == target.pointer.name for piece in other.slices())
        ]
        if str(loop.var) in named or len(users) != 1:
            break
        found = number
    return found
