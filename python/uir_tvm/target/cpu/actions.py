# SPDX-License-Identifier: Apache-2.0
"""iOps as actions over a common domain: what each computes at coordinate (r, c), reads and writes there.

A broadcast becomes a read with stride 0, a transpose a read with exchanged strides, a reduction of one
element a copy; so a nest of loops has few kinds of actions to handle:

``map``      one element of the target from the elements at the same coordinate
``reduce``   row r of the domain into element (r, 0)
``collect``  column c of the domain into element (0, c)
``scatter``  the element at (r, c) to where an index says
``opaque``   a nest of its own (contract)
"""

from __future__ import annotations

import functools
from typing import Any

import attrs

from ...errors import CodegenError
from ...igraph.iops import REDUCE, mnemonic
from ...igraph.nodes import IOp, ISlice
from .element_access import WHOLE, Box, StridedAccess, access_of, swap_box
from .short_columns import IN_REGISTERS

MAP, REDUCE_ROW, COLLECT, SCATTER, OPAQUE = "map", "reduce", "collect", "scatter", "opaque"


@attrs.frozen(eq=False)
class OperandRead:
    """One operand.

    Parameters
    ----------
    access : Access
        Where it lies.
    guard : Box, optional
        Elements outside this box (of ``rows`` x ``cols``) do not exist and count as ``outside``.
    outside : Any
        That value.
    """

    access: StridedAccess
    guard: Box | None = None
    outside: Any = 0

    def swapped(self) -> OperandRead:
        """The same with rows and columns exchanged."""
        return OperandRead(
            self.access.swapped(), None if self.guard is None else swap_box(self.guard), self.outside
        )


@attrs.define(eq=False)
class Action:
    """One iOp over its domain ``rows`` x ``cols``, of which the coordinates in ``box`` are done."""

    iop: IOp
    kind: str
    rows: int
    cols: int
    box: Box
    write: StridedAccess
    reads: list[OperandRead]
    #: slices of which any element may be read (tables, operands of opaque actions)
    tables: list[ISlice] = attrs.field(factory=list)
    #: which side of the domain an index (R, 1) runs along, if there is one
    indexed_rows: bool = False
    #: whether rows and columns of the iOp's own slices are exchanged in the domain
    is_swapped: bool = False

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """Of the pointers that it reads or writes."""
        read = (access.access.pointer.name for access in self.reads)
        return frozenset((self.write.pointer.name, *read, *(piece.pointer.name for piece in self.tables)))

    @property
    def row_key(self) -> tuple[Any, ...]:
        """Equal for actions that one loop over rows can serve."""
        return (self.rows, self.box[0], self.box[1])

    @property
    def col_key(self) -> tuple[Any, ...]:
        """Equal for actions that one loop over columns can serve."""
        return (self.cols, self.box[2], self.box[3])

    def swapped(self) -> Action:
        """The same action with rows and columns exchanged."""
        kind = {REDUCE_ROW: COLLECT, COLLECT: REDUCE_ROW}.get(self.kind, self.kind)
        return Action(
            self.iop,
            kind,
            self.cols,
            self.rows,
            swap_box(self.box),
            self.write.swapped(),
            [read.swapped() for read in self.reads],
            self.tables,
            self.indexed_rows,
            not self.is_swapped,
        )


def action_of(iop: IOp) -> Action | None:
    """The action of one iOp; None where there is nothing to do at run time.

    Raises
    ------
    CodegenError
        A form that needs several units in a group.
    """
    maker = _MAKERS.get(iop.op, _elementwise)
    return maker(iop)


def _elementwise(iop: IOp) -> Action:
    t = iop.target
    return Action(
        iop, MAP, t.rows, t.cols, t.valid, access_of(t), [OperandRead(access_of(s)) for s in iop.sources]
    )


def _move(iop: IOp) -> Action:
    action = _elementwise(iop)
    source = iop.sources[0]
    if "pad" in iop.attrs and source.valid not in (WHOLE, iop.target.valid):
        action.reads = [OperandRead(access_of(source), source.valid, iop.attrs["pad"])]
    return action


def _nothing(iop: IOp) -> None:
    return None


def _single(iop: IOp) -> None:
    size = iop.attrs.get("group_size", 1)
    if iop.attrs["scope"] == "group" and size != 1:
        raise CodegenError(
            f"uir-cpu has one unit in a group and cannot {iop.op} over {size}.",
            where=mnemonic(iop),
            need="group_size 1",
            limit="num_units = 1",
            remedy="schedule the reduction within a unit",
        )


def _broadcast(iop: IOp) -> Action:
    _single(iop)
    t, s = iop.target, iop.sources[0]
    return Action(
        iop, MAP, t.rows, t.cols, t.valid, access_of(t), [OperandRead(access_of(s, iop.attrs["axis"]))]
    )


def _transpose(iop: IOp) -> Action:
    action = _elementwise(iop)
    action.reads = [OperandRead(access_of(iop.sources[0]).swapped())]
    return action


def _reduce(iop: IOp) -> Action:
    _single(iop)
    t, s = iop.target, iop.sources[0]
    by_row = iop.attrs["axis"] == "row"
    # along the reduced axis the source's valid range, along the other the target's
    box: Box = (*t.valid[:2], *s.valid[2:]) if by_row else (*s.valid[:2], *t.valid[2:])
    guard = None if s.valid in (box, WHOLE) else s.valid
    read = OperandRead(access_of(s), guard, REDUCE[iop.name].identity(iop.dtype))
    kind = REDUCE_ROW if by_row else COLLECT
    if iop.attrs.get(IN_REGISTERS):
        reads = [OperandRead(row, guard, read.outside) for row in _rows_of(s)]
        return Action(iop, MAP, 1, s.cols, box, access_of(t), reads)
    if (s.cols if by_row else s.rows) == 1:
        # one element: a copy, or the identity where that element does not exist
        limits = s.valid[2:] if by_row else s.valid[:2]
        guard = None if s.valid in (WHOLE, t.valid) and limits == (None, None) else s.valid
        read = OperandRead(read.access, guard, read.outside)
        kind, box = MAP, t.valid
    return Action(iop, kind, s.rows, s.cols, box, access_of(t), [read])


def _rows_of(piece: ISlice) -> list[StridedAccess]:
    """Every row of a slice as one of its own."""
    access = access_of(piece)
    along = access.pitches[1]
    return [
        StridedAccess(access.pointer, access.offset + k * piece.stride[0], 0, access.col, (None, along))
        for k in range(piece.rows)
    ]


def _by_row(index: ISlice, rows: int, cols: int, table_cols: int) -> bool:
    return index.shape == (rows, 1) and table_cols == cols


def _gather(iop: IOp) -> Action:
    t, (s, i) = iop.target, iop.sources
    by_row = _by_row(i, t.rows, t.cols, s.cols)
    index = access_of(i, "row" if by_row else None)
    return Action(iop, MAP, t.rows, t.cols, t.valid, access_of(t), [OperandRead(index)], [s], by_row)


def _scatter(iop: IOp) -> Action:
    t, (s, i) = iop.target, iop.sources
    by_row = _by_row(i, s.rows, s.cols, t.cols)
    index = access_of(i, "row" if by_row else None)
    reads = [OperandRead(access_of(s)), OperandRead(index)]
    return Action(iop, SCATTER, s.rows, s.cols, s.valid, access_of(t), reads, [], by_row)


def _contract(iop: IOp) -> Action:
    t = iop.target
    return Action(iop, OPAQUE, t.rows, t.cols, t.valid, access_of(t), [], list(iop.sources))


_MAKERS = {
    "move": _move,
    "sync": _nothing,  # within a unit nothing waits; `phases` has taken those of all units
    "identity": _nothing,
    "broadcast": _broadcast,
    "transpose": _transpose,
    "reduce": _reduce,
    "gather": _gather,
    "scatter": _scatter,
    "contract": _contract,
}
