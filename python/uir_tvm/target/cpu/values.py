# SPDX-License-Identifier: Apache-2.0
"""Where each operand comes from, and therefore which values must exist in memory.

An operand that an earlier action of the same group made at the same coordinate is passed in a register;
one value per row is a variable of the row loop; a cheap value of an earlier group is computed again; all else
is read from memory, and then whatever writes that pointer stores it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum

import attrs

from ...igraph.dtypes import dtype_of
from ...igraph.nodes import IOp
from .actions import COLLECT, MAP, OPAQUE, REDUCE_ROW, SCATTER, Action, OperandRead
from .element_access import Domain, Overlap, StridedAccess, relation
from .groups import RowNest, write_domain

#: What `is_cheap` goes by.
CHEAP = frozenset({"move", "broadcast", "transpose", "cast", "fill", "iota", "select", "compare"})
CHEAP_UNARY = frozenset(
    {
        "copy",
        "adds",
        "subs",
        "muls",
        "maxs",
        "mins",
        "rsubs",
        "abs",
        "neg",
        "relu",
        "not",
        "ands",
        "shls",
        "shrs",
    }
)
CHEAP_BINARY = frozenset({"add", "sub", "mul", "max", "min", "and", "or", "xor"})
#: What processors have a slow instruction for.
BRIEF = {"unary": frozenset({"divs", "rdivs", "sqrt"}), "binary": frozenset({"div"})}
#: A value is computed again when it takes at most so many cheap iOps.
RECOMPUTE_LIMIT = 4


class Origin(Enum):
    """Where an operand comes from."""

    REGISTER = "the value that an action of the group made at this coordinate"
    ROW = "the value that an action made for this row"
    AGAIN = "computed again as an action of an earlier group did"
    MEMORY = "loaded"


@attrs.frozen(eq=False)
class MadeBy:
    """The origin of one operand and the action that made it."""

    origin: Origin
    maker: Action | None = None


class OperandValues:
    """The operands of the actions of a whole graph, and the pointers that are read from memory.

    Attributes
    ----------
    sources : dict[int, list[Source]]
        By ``id`` of the action, one per read.
    loaded : set[str]
        Names of pointers that something reads from memory.
    writers : Counter[str]
        How many actions write a pointer, by its name.
    in_parts : set[str]
        Names of pointers whose rows end with vectors of a half and less, as each column may be written once:
        what a reduction along columns writes, and what is read where it is written.
    """

    def __init__(self, nests: Iterable[RowNest]) -> None:
        self.sources: dict[int, list[MadeBy]] = {}
        self.loaded: set[str] = set()
        self.writers: Counter[str] = Counter()
        self.in_parts: set[str] = set()
        for nest in nests:
            self.writers.update(action.write.pointer.name for action in nest.actions)
            self.in_parts |= {a.write.pointer.name for a in nest.actions if a.kind == COLLECT}
            self.in_parts |= {a.write.pointer.name for a in nest.actions if _goes_on(a)}
            places = {id(action): k for k, group in enumerate(nest.groups) for action in group.actions}
            for position, action in enumerate(nest.actions):
                self.sources[id(action)] = [
                    self._source(nest, position, places, action, read) for read in action.reads
                ]
                self.loaded |= {piece.pointer.name for piece in action.tables}
                if action.kind == OPAQUE and action.iop.attrs.get("accumulate"):
                    self.loaded.add(action.write.pointer.name)

    def stored(self, action: Action) -> bool:
        """Whether the action's result has to be in memory."""
        pointer = action.write.pointer
        opaque = action.kind in (OPAQUE, SCATTER)
        return opaque or pointer.level == "dram" or pointer.name in self.loaded

    def _source(
        self, nest: RowNest, position: int, places: dict[int, int], action: Action, read: OperandRead
    ) -> MadeBy:
        pointer = read.access.pointer.name
        for maker in reversed(nest.actions[:position]):
            if maker.write.pointer.name != pointer:
                continue
            found = _meets(maker, action, read.access)
            if found == Overlap.DISJOINT:
                continue
            source = self._from_maker(nest.actions, places, maker, action, read, found)
            if source is not None:
                return source
            break
        self.loaded.add(pointer)
        return MadeBy(Origin.MEMORY)

    def _from_maker(
        self,
        actions: Sequence[Action],
        places: dict[int, int],
        maker: Action,
        action: Action,
        read: OperandRead,
        found: Overlap,
    ) -> MadeBy | None:
        before = places[id(maker)] < places[id(action)]
        if found == Overlap.SAME and not before and maker.kind == MAP:
            return MadeBy(Origin.REGISTER, maker)
        if before and is_row_value(maker) and _one_per_row(maker.write, read.access, action):
            return MadeBy(Origin.ROW, maker)
        if found == Overlap.SAME and before and maker.col_key == action.col_key:
            cost = self._cost(maker, actions)
            if cost is not None and cost <= RECOMPUTE_LIMIT:
                return MadeBy(Origin.AGAIN, maker)
        return None

    def _cost(self, maker: Action, actions: Sequence[Action]) -> int | None:
        """Cheap iOps that making the value again takes; None where it cannot or should not be.

        Nothing from the maker to the end of the nest may write what it loads: a later action may share
        the group that the value is made again in.
        """
        since = actions[actions.index(maker) :]
        if not is_cheap(maker.iop) or maker.kind != MAP:
            return None
        total = 0 if maker.iop.op in ("move", "broadcast", "transpose", "fill") else 1
        for read, source in zip(maker.reads, self.sources[id(maker)], strict=True):
            if source.origin in (Origin.REGISTER, Origin.AGAIN):
                assert source.maker is not None
                part = self._cost(source.maker, actions)
                if part is None:
                    return None
                total += part
            elif source.origin == Origin.MEMORY:
                if any(_meets(writer, maker, read.access) != Overlap.DISJOINT for writer in since):
                    return None
                total += 1
        return total


def is_cheap(iop: IOp) -> bool:
    """Whether an iOp costs about as much as a load and a store of its result would."""
    return (
        iop.op in CHEAP
        or (iop.op == "unary" and iop.name in CHEAP_UNARY)
        or (iop.op == "binary" and iop.name in CHEAP_BINARY)
    )


def is_brief(iop: IOp) -> bool:
    """Whether an iOp is an instruction or a few, be they slow: its text may stand twice."""
    return is_cheap(iop) or (iop.name in BRIEF.get(iop.op, ()) and dtype_of(iop.dtype).kind == "float")


def is_dear(actions: Iterable[Action]) -> bool:
    """Whether actions of a group compute what takes longer than the addition of the result."""
    return any(action.kind == MAP and not is_cheap(action.iop) for action in actions)


def _goes_on(action: Action) -> bool:
    """Whether an action reads the pointer that it writes."""
    return any(read.access.pointer.name == action.write.pointer.name for read in action.reads)


def _meets(writer: Action, reader: Action, access: StridedAccess) -> Overlap:
    if writer.write.pointer.name != access.pointer.name:
        return Overlap.DISJOINT
    return relation(writer.write, write_domain(writer), access, Domain(reader.rows, reader.cols))


def _one_per_row(write: StridedAccess, read: StridedAccess, reader: Action) -> bool:
    """Whether row r of ``read`` is the one element that row r of ``write`` is."""
    same_rows = reader.rows == 1 or (write.row == read.row and write.pitches[0] == read.pitches[0])
    return write.offset == read.offset and same_rows and (read.col == 0 or reader.cols == 1)


def is_row_value(action: Action) -> bool:
    """Whether the action makes one value per row, which later groups of its nest can use."""
    if action.kind == REDUCE_ROW:
        return True
    return action.kind == MAP and action.cols == 1 and action.box[2:] == (None, None)
