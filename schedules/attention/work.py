# SPDX-License-Identifier: Apache-2.0
"""Which unit has which tiles of rows: of batches that numbers count, and of open ones."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import tvm
from tvm import tirx
from uir_tvm.errors import RecipeError
from uir_tvm.schedule import make_tir as t
from uir_tvm.schedule.annotations import LITTLE_WORK, LOOP, PARALLEL, parallel_value
from uir_tvm.schedule.representative import is_open
from uir_tvm.schedules.attention.blocks import pays_to_spread, step_of
from uir_tvm.schedules.attention.parts import Parts, greatest
from uir_tvm.schedules.attention.tile import FlashTile

#: ``tile(batch, first_row, last_row)``: what is done for a tile of rows; the last is that of all units that
#: share keys.
TileBody = Callable[[list[Any], Any, Any], Any]


def is_ragged(extent: Any, size: int) -> bool:
    """Whether the last of tiles of a size may have less."""
    return is_open(extent) or bool(int(extent) % size)


def most_steps(func: tirx.PrimFunc, extent: Any, size: int) -> int:
    """Tiles of a size of an extent: the most that there may be.

    Raises
    ------
    RecipeError
        The extent is open and has no upper bound.
    """
    return math.ceil(greatest(func, extent, "Queries or keys") / size)


def dealt_groups(tiles: int, groups: int) -> int:
    """Groups that take tiles in turns: as few as need no more turns, so that most often all have as many.

    Where they have, nothing of the last turn is masked.
    """
    return math.ceil(tiles / math.ceil(tiles / min(tiles, groups)))


def work_of(
    func: tirx.PrimFunc, parts: Parts, tile: FlashTile, rows: int, blocks: Sequence[int] = ()
) -> Numbered | _Open | _Walked:
    """How the tiles of a function are dealt.

    Parameters
    ----------
    blocks : sequence of int
        Of keys that each tile of a batch walks, where some are left out.

    Raises
    ------
    RecipeError
        Several axes of the batch are open.
    """
    opened = sum(map(is_open, parts.batch))
    if opened > 1:
        raise RecipeError(
            "Several axes of the batch are open.",
            need="one open axis: how many units there are is affine in sizes",
            limit=" x ".join(map(str, parts.batch)),
        )
    if not opened and not is_open(parts.rows):
        step = rows * tile.units
        tiles = math.ceil(parts.rows / step)
        extents = (*parts.batch, tiles)
        groups = dealt_groups(math.prod(extents), tile.groups)
        spread = bool(blocks) and tile.spread and pays_to_spread(blocks, math.prod(parts.batch), groups)
        return Numbered(extents, groups, rows, tile.units, spread)
    if not opened and math.prod(parts.batch) < tile.groups:
        return _Open(parts, rows, tile.units)
    return _Walked(parts, rows, most_steps(func, parts.rows, rows * tile.units), tile.units)


def _unravelled(number: Any, extents: Sequence[Any]) -> list[Any]:
    """The indices of which a number is made, the first one as large as it comes."""
    places: list[Any] = []
    for position, extent in reversed(list(enumerate(extents))):
        one = not is_open(extent) and int(extent) == 1
        outermost = all(not is_open(e) and int(e) == 1 for e in extents[:position])
        places.insert(0, t.index(0) if one else number if outermost else tirx.floormod(number, extent))
        number = number if one or outermost else tirx.floordiv(number, extent)
    return places


@attrs.frozen(eq=False)
class Numbered:
    """All tiles of all batches in a row, dealt to groups in turns: the last of ``extents`` are tiles.

    A group has neighbours, or where ``spread`` is set in each turn one of as many neighbours as there are
    groups, the same tiles of all batches side by side: early and late ones, which have few keys and many.
    """

    extents: tuple[int, ...]
    groups: int
    rows: int
    units: int = 1
    spread: bool = False

    @property
    def repeats(self) -> bool:
        """Whether a unit has several tiles."""
        return math.prod(self.extents) > self.groups

    def loops(self, body: TileBody) -> Any:
        """The loops around what is done for a tile."""
        units, groups, step, tiles = self.units, self.groups, self.rows * self.units, self.extents[-1]
        sets = math.prod(self.extents)
        turns = math.ceil(sets / groups)

        def unit(pid: Any) -> Any:
            group = tirx.floordiv(pid, units) if units > 1 else pid
            member = tirx.floormod(pid, units) if units > 1 else t.index(0)

            def turn(lid: Any) -> Any:
                number = group * turns + lid if turns > 1 else group
                if self.spread and turns > 1:
                    number = lid * groups + self._place(group, lid)
                    tile, *batch = _unravelled(number, (tiles, *self.extents[:-1]))
                else:
                    *batch, tile = _unravelled(number, self.extents)
                start = tile * step if tiles > 1 else t.index(0)
                first = start + member * self.rows if units > 1 else start
                inside = number < sets if groups * turns > sets else None
                return t.when(inside, body(batch, first, start + (step - 1)))

            return t.loop("lid", turns, turn, {LOOP: 1} if turns > 1 else None)

        return t.loop("p", groups * units, unit, {PARALLEL: parallel_value(groups, units)})

    def _place(self, group: Any, lid: Any) -> Any:
        """Which of the tiles of a turn a group has: another one in each, where all have one."""
        step = step_of(math.prod(self.extents), self.groups)
        return tirx.floormod(group + lid * step, self.groups) if step else group


@attrs.frozen(eq=False)
class _Open:
    """All tiles of a batch that numbers count, a unit for each: neighbours have the same rows of other heads.

    Where ``units`` of a group share keys, they have neighbouring rows of one head instead. Beyond the last
    row a tile reads zeros and stores nothing: only where rows are asked for is there an end.
    """

    parts: Parts
    rows: int
    units: int = 1
    repeats = False

    def loops(self, body: TileBody) -> Any:
        """The loops around what is done for a tile."""
        step = self.rows * self.units
        tiles = tirx.floordiv(self.parts.rows + (step - 1), step)

        def unit(group: Any, member: Any) -> Any:
            tile, *batch = _unravelled(group, (tiles, *self.parts.batch))
            return body(batch, tile * step + member * self.rows, tile * step + (step - 1))

        return _over_units(tiles * math.prod(self.parts.batch), self.units, unit)


@attrs.frozen(eq=False)
class _Walked:
    """A unit for every batch, or the units of a group, which walk its tiles, as `_Open` otherwise."""

    parts: Parts
    rows: int
    most: int
    units: int = 1
    repeats = True

    def loops(self, body: TileBody) -> Any:
        """The loops around what is done for a tile."""

        step = self.rows * self.units

        def unit(group: Any, member: Any) -> Any:
            batch = _unravelled(group, self.parts.batch)
            note = {LOOP: 1} if self.most > 1 else None

            def turn(tile: Any) -> Any:
                return body(batch, tile * step + member * self.rows, tile * step + (step - 1))

            return t.loop("tile", self.most, turn, note)

        return _over_units(functools.reduce(operator.mul, self.parts.batch, t.index(1)), self.units, unit)


def _over_units(count: Any, units: int, body: Callable[[Any, Any], Any]) -> Any:
    """The loop over the units of as many groups as sizes say: ``body(group, member)``."""
    pid = tvm.ir.Var("p", t.INDEX)
    extent = tvm.sym.Analyzer().simplify(count * units)
    group = tirx.floordiv(pid, units) if units > 1 else pid
    member = tirx.floormod(pid, units) if units > 1 else t.index(0)
    return tirx.For(
        pid,
        t.index(0),
        extent,
        tirx.ForKind.SERIAL,
        body(group, member),
        annotations={PARALLEL: str(units), LITTLE_WORK: 1},
    )
