# SPDX-License-Identifier: Apache-2.0
"""Matrix products read their operands where they lie, and as they are.

Before::

    move.sram.reg.fp16 t, s
    cast.fp16.fp32 u, t
    contract.fp32 c, u, b

After::

    contract.fp32 c, s, b

The copies that nobody reads any more go at once (`dead`): they may not fit beside each other.

A matrix unit takes operands from shared memory, in a narrower dtype than that of its sums.  An operand is
replaced by what it is a copy of, through moves from sram (and from dram, where the matrix unit reads that:
see `matrix_unit`) and through casts that hold every value, as long as nothing between the copy and the
product may write what was copied, nor lets other units write it (a sync).

Exact: a contraction's products and sums do not depend on which dtype holds its operands, only on their
values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from ..igraph.iops import problems, spec_of
from ..igraph.nodes import IGraph, IOp, ISlice, Loop
from . import dead
from .edit import with_slices
from .exact_casts import holds
from .made_values import KnownValues, written
from .matrix_unit import readable, reads_dram
from .slices import UNBOUNDED, may_meet, place, valid


def run(graph: IGraph) -> IGraph:
    """The graph with the operands of its contractions replaced by what they are copies of."""
    if not any(spec_of(iop).is_product for iop, _ in graph.walk()):
        return graph
    walk = _OperandFolding()
    body = walk.body(graph.body, _Origins(reads_dram(graph.hardware)))
    return dead.run(graph.replace(body=body)) if walk.changed else graph


@attrs.frozen(eq=False)
class _Origin:
    """A piece of reg, the box in which it was made, and the slice whose values it holds."""

    target: ISlice
    source: ISlice


class _Origins(KnownValues):
    """What reg holds copies of; ``far``: whether products may read dram."""

    def __init__(self, far: bool) -> None:
        super().__init__()
        self.far = far

    def of(self, piece: ISlice) -> ISlice | None:
        """What a slice is a copy of, wherever it may be read."""
        if piece.pointer.level != "reg":
            return None
        for origin in self.known:
            if place(origin.target) == place(piece) and valid(origin.target) in (UNBOUNDED, valid(piece)):
                rows, cols = piece.valid[:2], piece.valid[2:]
                made = origin.source.replace(rows=rows, cols=cols)
                return made if made.pointer.level != "dram" or readable(made) else None
        return None

    def made(self, iop: IOp) -> _Origin | None:
        """Of what its target is a copy, if it is one."""
        if not (spec_of(iop).copies or spec_of(iop).converts) or iop.target.pointer.level != "reg":
            return None
        source = iop.sources[0]
        if "pad" in iop.attrs and source.valid != UNBOUNDED:
            return None
        if spec_of(iop).converts and not holds(str(iop.dtype), str(iop.name)):
            return None
        if spec_of(iop).copies and source.pointer.level == "dram" and not (self.far and readable(source)):
            return None  # what is in dram another unit may write; and it is far away
        origin = self.of(source.replace(rows=_rows(iop), cols=_cols(iop))) or source
        return None if may_meet(iop.target, origin) else _Origin(iop.target, origin)

    def left(self, iop: IOp) -> Iterator[_Origin]:
        """The copies of what is still there, and no other unit may have changed."""
        for origin in self.known:
            shared = origin.source.pointer.level != "reg"
            if shared and (spec_of(iop).barrier or iop.attrs.get("scope") == "group"):
                continue
            if not any(may_meet(piece, own) for piece in _changed(iop) for own in _ends(origin)):
                yield origin


def _rows(iop: IOp) -> tuple[Any, Any]:
    """The rows of a source that an elementwise iOp reads: those of its target's box."""
    return tuple(iop.target.valid[:2])  # type: ignore[return-value]


def _cols(iop: IOp) -> tuple[Any, Any]:
    return tuple(iop.target.valid[2:])  # type: ignore[return-value]


def _changed(iop: IOp) -> Sequence[ISlice]:
    return [*written(iop), *([iop.attrs["buffer"]] if "buffer" in iop.attrs else [])]


def _ends(origin: _Origin) -> tuple[ISlice, ISlice]:
    return origin.target, origin.source


class _OperandFolding:
    """Rewrites the contractions of a loop tree."""

    def __init__(self) -> None:
        self.changed = False

    def body(self, nodes: Sequence[Any], origins: _Origins) -> list[Any]:
        """The nodes rewritten; ``origins`` is left as it holds after them."""
        out: list[Any] = []
        for node in nodes:
            if isinstance(node, Loop):
                inside = origins.inside(node.body)
                out.append(Loop(node.var, node.extent, self.body(node.body, inside), node.attrs))
                origins.leave(node.body)
                continue
            iop = self._rewritten(node, origins) if spec_of(node).is_product else node
            origins.pass_by(iop)
            out.append(iop)
        return out

    def _rewritten(self, iop: IOp, origins: _Origins) -> IOp:
        found = {f"source{k}": origins.of(piece) for k, piece in enumerate(iop.sources)}
        changes = {name: piece for name, piece in found.items() if piece is not None}
        # both factors have one dtype: where only one may be narrower, neither is
        both = with_slices(iop, changes)
        if changes and not problems(both) and not any(may_meet(iop.target, p) for p in changes.values()):
            self.changed = True
            return both
        return iop
