# SPDX-License-Identifier: Apache-2.0
"""Which groups of a nest share a loop over its rows: all of them, or those of one pass over a row.

Before::

    for r:  m = max of row r;  e = exp(row r - m), t = sum of e;  out = e / t

After, where sizes decide how long rows are, or they are short::

    for r:  m[r] = max of row r
    for r:  e[r] = exp(row r - m[r]), t[r] = sum of e[r]
    for r:  out = e[r] / t[r]

Passes over one row wait for each other, the same pass over other rows does not.  A processor that waits has
the next row in view where all passes over one are little straight code; with the loops and ends of an open
length it has not, and of a short row the waits are most of its time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import attrs
from tvm import tirx
from tvm.ir import Expr

from ...hardware.last_cache import last_cache_bytes
from ...igraph.affine import Affine
from ...igraph.dtypes import bytes_of
from ...igraph.nodes import HardwareModel, IPointer
from .actions import MAP, REDUCE_ROW, SCATTER, Action
from .address import LoopScope
from .buffers import Buffers, scratch
from .code import Code
from .element_access import StridedAccess
from .elements import boundable, like, type_of
from .groups import ColumnGroup, RowNest
from .tiles import TILES
from .values import OperandValues, Origin, is_brief

#: Columns up to which passes over rows of known length go over all rows each.
SHORT_ROW = TILES.short_row


@attrs.frozen
class LongPasses:
    """Rows beyond short ones that have passes: of exponentials of one operand that stays in the last cache.

    Attributes
    ----------
    columns : int
        At most.
    tensor_bytes : int
        Of the operand, and of a result, at most.
    """

    columns: int = 0
    tensor_bytes: int = 0

    @staticmethod
    def of(hw: HardwareModel) -> LongPasses:
        """Those of a processor."""
        return LongPasses(int(hw.figures.get("pass_columns", 0)), last_cache_bytes(hw) or 0)

    def columns_of(self, nest: RowNest) -> int:
        """Columns up to which the rows of a nest have passes; 0: it is no such nest."""
        wide = [action for group in nest.groups if group.cols > 1 for action in group.actions]
        reads = (read.access for action in wide for read in action.reads)
        operands = {access.pointer for access in reads if access.pointer.level == "dram"}
        results = {action.write.pointer for action in wide if action.write.pointer.level == "dram"}
        sizes = [pointer.size * bytes_of(pointer.dtype) for pointer in operands | results]
        small = len(operands) == 1 and max(sizes) <= self.tensor_bytes
        is_long = any(action.kind == MAP and not is_brief(action.iop) for action in wide)
        return self.columns if small and is_long else 0


def passes(
    nest: RowNest,
    values: OperandValues,
    memory: Buffers,
    scope: LoopScope,
    near_bytes: int,
    long_passes: LongPasses,
) -> list[list[ColumnGroup]]:
    """The groups of a nest, those together that share a loop over rows; what makes a value of a row joins.

    Parameters
    ----------
    nest : RowNest
    values : OperandValues
        Which operands come from memory, and which results are stored.
    memory : Buffers
        Where one row of a pointer serves all rows of the nest, these are done one after the other.
    scope : LoopScope
        The sizes that decide how long rows are.
    near_bytes : int
        What all rows touch may be as much, so that each pass finds it in the first cache.
    long_passes : LongPasses
        Which rows that are not short have passes too.
    """
    whole = [list(nest.groups)]
    open_ends = any(scope.sizes & set(bound.variables()) for bound in _ends(nest))
    if not is_short(nest, long_passes) and (nest.rows == 1 or not open_ends):
        return whole
    if _has_tables(nest) or not is_near(nest, values, near_bytes):
        return whole
    accesses = (access for action in nest.actions for access in _in_memory(action, values))
    if any(memory.has_one_row(access.pointer) for access in accesses):
        return whole
    apart: list[list[ColumnGroup]] = []
    for group in nest.groups:
        if apart and group.cols == 1:
            apart[-1].append(group)
        else:
            apart.append([group])
    return apart


def is_short(nest: RowNest, long_passes: LongPasses) -> bool:
    """Whether rows have a known length, so short that their passes mostly wait for each other."""
    longest = max(SHORT_ROW, long_passes.columns_of(nest))
    wide = [group for group in nest.groups if group.cols > 1]
    reduced = any(action.kind == REDUCE_ROW for action in nest.actions)
    known = not _ends(nest) and max((group.cols for group in wide), default=0) <= longest
    return nest.rows > 1 and reduced and known and not _has_tables(nest)


def is_near(nest: RowNest, values: OperandValues, near_bytes: int) -> bool:
    """Whether all rows of a nest fit in the first cache with what they are made of."""
    widths: Counter[IPointer] = Counter()
    for action in nest.actions:
        for access in _in_memory(action, values):
            size = bytes_of(access.pointer.dtype) * (action.cols if access.col != 0 else 1)
            widths[access.pointer] = max(widths[access.pointer], size)
    return nest.rows * widths.total() <= near_bytes


def _ends(nest: RowNest) -> list[Affine]:
    return [bound for action in nest.actions for bound in action.box[2:] if bound is not None]


def _has_tables(nest: RowNest) -> bool:
    return any(action.kind == SCATTER or action.tables for action in nest.actions)


def _in_memory(action: Action, values: OperandValues) -> Iterator[StridedAccess]:
    """What an action loads and stores."""
    for read, source in zip(action.reads, values.sources[id(action)], strict=True):
        if source.origin == Origin.MEMORY:
            yield read.access
    if values.stored(action):
        yield action.write


class RowValues:
    """Values that there is one of per row, for loops over the same rows that come later."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._held: dict[int, tuple[tirx.Buffer, bool]] = {}

    def load(self, code: Code, row: Expr) -> dict[int, Expr]:
        """What loops before this one made of a row, by id of the action that made it."""
        found = {}
        for key, (buffer, is_bool) in self._held.items():
            held = code.bind(tirx.BufferLoad(buffer, [row]))
            found[key] = tirx.NE(held, like(held, 0)) if is_bool else held
        return found

    def hold(self, made: Iterable[tuple[Action, tirx.Buffer]]) -> None:
        """Results of reductions that lie in memory already."""
        self._held |= {id(action): (buffer, False) for action, buffer in made}

    def store(self, code: Code, outside: Code, row: Expr, made: Mapping[int, Expr]) -> None:
        """Hold what this loop made of a row, in memory of the code around it."""
        for key, value in made.items():
            if key not in self._held:
                held = boundable(value)
                buffer = scratch(outside, "row_values", type_of(held), self._rows)
                self._held[key] = (buffer, type_of(value) == "bool")
                code.add(tirx.BufferStore(buffer, held, [row]))
