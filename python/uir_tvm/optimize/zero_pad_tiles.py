# SPDX-License-Identifier: Apache-2.0
"""Tiles of matrix products that are staged in sram are filled with zeros where the operand ends.

Before::

    move.dram.sram t[rows :r; cols :k], a[rows :r; cols :k]
    contract c[rows :r], t[rows :r; cols :k], b[rows :k]

After::

    move.dram.sram t, a[rows :r; cols :k] [pad=0.0]
    contract c[rows :r], t, b

A matrix unit reads whole fragments: with zeros beyond the end of the contracted dimension, and anything in
rows and columns that the result does not keep, it needs no masks.

Exact: what is added is a product of zeros, since both operands are zero there.  A tile is padded if nothing
but moves from dram fills it and nothing but contractions reads it, if all of the padded tile lies in its
pointer, and if no two units fill one element; the bounds of the contracted dimension go where it is proved
that both operands are zero beyond them.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ..errors import VerifyError
from ..igraph.affine import Affine
from ..igraph.iops import spec_of
from ..igraph.nodes import IGraph, IOp, ISlice
from ..verify import verify
from ..verify.access import GraphFacts
from .edit import edited, with_slices
from .flow import facts_of

#: What may be wrong with a padded graph that was right before.
RULES = ("bounds", "uninitialised", "race")


def run(graph: IGraph) -> IGraph:
    """The graph with every tile padded that may be; itself where there is none."""
    facts = facts_of(graph)
    tiles = _tiles(facts)
    while tiles:
        made = _padded(facts, tiles)
        if made is graph or _is_right(made):
            return made
        tiles.popitem()  # the tiles are few, and one that may not be padded is rare
    return graph


@attrs.frozen(eq=False)
class _FilledPointer:
    """A pointer that is filled by moves from dram and read by contractions: the iOps, by position."""

    fills: Mapping[int, IOp]
    reads: Mapping[int, str]


def _tiles(facts: GraphFacts) -> dict[str, _FilledPointer]:
    out: dict[str, _FilledPointer] = {}
    for pointer in facts.graph.pointers:
        if pointer.level != "sram":
            continue
        accesses = facts.by_pointer[str(pointer.name)]
        fills = {a.position: a.iop for a in accesses if a.kind == "write"}
        reads = {a.position: a.operand for a in accesses if a.kind == "read"}
        plain = all(_is_fill(iop) for iop in fills.values())
        read = all(spec_of(facts.steps[k].iop).is_product for k in reads)
        if fills and reads and plain and read and any(_is_bounded(iop.target) for iop in fills.values()):
            out[str(pointer.name)] = _FilledPointer(fills, reads)
    return out


def _is_fill(iop: IOp) -> bool:
    return spec_of(iop).copies and iop.sources[0].pointer.level == "dram" and "pad" not in iop.attrs


def _is_bounded(piece: ISlice) -> bool:
    return any(bound is not None for bound in piece.valid)


def _is_right(graph: IGraph) -> bool:
    try:
        verify(graph, RULES)
    except VerifyError:
        return False
    return True


def _whole(piece: ISlice) -> ISlice:
    return piece.replace(rows=(None, None), cols=(None, None))


def _padded(facts: GraphFacts, tiles: Mapping[str, _FilledPointer]) -> IGraph:
    changes: dict[int, IOp] = {}
    for tile in tiles.values():
        for position, iop in tile.fills.items():
            if _is_bounded(iop.target):
                kept = dict(iop.attrs) | {"pad": 0}
                changes[position] = IOp(iop.op, iop.name, iop.dtype, [_whole(iop.target)], iop.sources, kept)
    for step in facts.steps:
        if step.spec.is_product:
            made = _contraction(step.iop, tiles)
            if made is not step.iop:
                changes[step.position] = made
    return edited(facts.graph, changes)


def _contraction(iop: IOp, tiles: Mapping[str, _FilledPointer]) -> IOp:
    """The contraction without bounds that padded operands make needless."""
    a, b = iop.sources
    held = [tiles.get(str(piece.pointer.name)) for piece in (a, b)]
    ends = all(
        tile is not None and _is_zero_beyond(tile, piece, side)
        for tile, piece, side in zip(held, (a, b), ("cols", "rows"), strict=True)
    )
    changes: dict[str, ISlice] = {}
    if held[0] is not None:
        changes["source0"] = a.replace(rows=(None, None), cols=(None, None) if ends else a.valid[2:])
    if held[1] is not None:
        changes["source1"] = b.replace(rows=(None, None) if ends else b.valid[:2], cols=(None, None))
    same = all(_bounds(p) == _bounds(changes.get(f"source{k}", p)) for k, p in enumerate((a, b)))
    return iop if same else with_slices(iop, changes)


def _bounds(piece: ISlice) -> list[str]:
    return [str(bound) for bound in piece.valid]


def _is_zero_beyond(tile: _FilledPointer, piece: ISlice, side: str) -> bool:
    """Whether everything that a slice has beyond its bounds on a side was filled with zeros."""
    if not _of(piece, side):
        return True
    return all(_ends_alike(fill.target, piece, side) for fill in tile.fills.values())


def _of(piece: ISlice, side: str) -> list[Affine]:
    bounds = piece.valid[:2] if side == "rows" else piece.valid[2:]
    return [bound for bound in bounds if bound is not None]


def _ends_alike(fill: ISlice, piece: ISlice, side: str) -> bool:
    """Whether two slices of one tile have the same bounds on a side, counted from the tile's beginning."""
    strides = (fill.row_stride, fill.col_stride)
    if strides != (piece.row_stride, piece.col_stride) or min(strides) != 1 or max(strides) <= 1:
        return False
    pitch = max(strides)
    along = (fill.row_stride if side == "rows" else fill.col_stride) == pitch

    def placed(s: ISlice) -> list[dict[_Atom, int] | None]:
        begin = _part(s.offset, pitch, along)
        bounds = s.valid[:2] if side == "rows" else s.valid[2:]
        return [None if bound is None else _sum(begin, _atoms(bound)) for bound in bounds]

    return placed(fill) == placed(piece)


#: What a term of an expression multiplies: kind, variable, inner expression, divisor; of a constant nothing.
_Atom = tuple[str, str, str, int]


def _atoms(expr: Affine) -> dict[_Atom, int]:
    out: dict[_Atom, int] = {("", "", "", 1): int(expr.constant)}
    for term in expr.terms:
        out[str(term.kind), str(term.var), str(term.inner), int(term.divisor)] = int(term.coeff)
    return out


def _sum(a: Mapping[_Atom, int], b: Mapping[_Atom, int]) -> dict[_Atom, int]:
    out = {atom: a.get(atom, 0) + b.get(atom, 0) for atom in {*a, *b}}
    return {atom: factor for atom, factor in out.items() if factor != 0}


def _part(offset: Affine, pitch: int, lines: bool) -> dict[_Atom, int]:
    """Of an offset in a tile of lines of ``pitch`` elements: the line's number, or the place within it."""
    out: dict[_Atom, int] = {}
    for atom, factor in _atoms(offset).items():
        whole, rest = divmod(factor, pitch) if atom[0] == "" else (factor // pitch, 0)
        if atom[0] != "" and factor % pitch:
            whole, rest = 0, factor
        out[atom] = whole if lines else rest
    return out
