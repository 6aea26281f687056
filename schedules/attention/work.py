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
from uir_tvm.igraph.tir_sizes import MOST
from uir_tvm.schedule import make_tir as t
from uir_tvm.schedule.annotations import FEW_UNITS, LOOP, PARALLEL, parallel_value
from uir_tvm.schedule.representative import is_open, most_of
from uir_tvm.schedules.attention.parts import Parts
from uir_tvm.schedules.attention.tile import FlashTile

#: ``tile(batch, first_row)``: what is done for a tile of rows.
TileBody = Callable[[list[Any], Any], Any]


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
    most = most_of(extent, func)
    if is_open(extent) and not 0 <= most < MOST:
        raise RecipeError(
            f"Queries or keys, {extent}, have no upper bound.",
            need="a greatest length: a loop of a unit has as many rounds for all sizes",
            remedy="give its sizes upper bounds (Dim(max=), tir_var_upper_bound)",
        )
    return math.ceil(most / size)


def work_of(func: tirx.PrimFunc, parts: Parts, tile: FlashTile, rows: int) -> Numbered | _Open | _Walked:
    """How the tiles of a function are dealt.

    Raises
    ------
    RecipeError
        Several axes of the batch are open, or sizes are and units of a group share keys.
    """
    if tile.staged and any(map(is_open, (*parts.batch, parts.rows, parts.keys))):
        raise RecipeError(
            "The units of a group share keys, and sizes are open.",
            need="units that have keys of their own",
            remedy="fix the sizes of batch, queries and keys: the kernel is then compiled for each of them",
        )
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
        groups = min(math.prod(parts.batch) * tiles, tile.groups)
        return Numbered((*parts.batch, tiles), groups, rows, tile.units)
    if not opened and math.prod(parts.batch) < tile.groups:
        return _Open(parts, rows)
    return _Walked(parts, rows, most_steps(func, parts.rows, rows))


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
    """All tiles of all batches in a row, dealt to groups in turns: the last of ``extents`` are tiles."""

    extents: tuple[int, ...]
    groups: int
    rows: int
    units: int = 1

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
                *batch, tile = _unravelled(number, self.extents)
                first = tile * step if tiles > 1 else t.index(0)
                if units > 1:
                    first = first + member * self.rows
                inside = number < sets if groups * turns > sets else None
                return t.when(inside, body(batch, first))

            return t.loop("lid", turns, turn, {LOOP: 1} if turns > 1 else None)

        return t.loop("p", groups * units, unit, {PARALLEL: parallel_value(groups, units)})


@attrs.frozen(eq=False)
class _Open:
    """All tiles of a batch that numbers count, a unit for each: neighbours have the same rows of other heads.

    Beyond the last row a tile reads zeros and stores nothing: only where rows are asked for is there an end.
    """

    parts: Parts
    rows: int

    def loops(self, body: TileBody) -> Any:
        """The loops around what is done for a tile."""
        tiles = tirx.floordiv(self.parts.rows + (self.rows - 1), self.rows)

        def unit(pid: Any) -> Any:
            tile, *batch = _unravelled(pid, (tiles, *self.parts.batch))
            return body(batch, tile * self.rows)

        return _over_units(tiles * math.prod(self.parts.batch), unit)


@attrs.frozen(eq=False)
class _Walked:
    """A unit for every batch, which walks its tiles, as `_Open` otherwise."""

    parts: Parts
    rows: int
    most: int

    def loops(self, body: TileBody) -> Any:
        """The loops around what is done for a tile."""

        def unit(pid: Any) -> Any:
            batch = _unravelled(pid, self.parts.batch)
            note = {LOOP: 1} if self.most > 1 else None
            return t.loop("tile", self.most, lambda tile: body(batch, tile * self.rows), note)

        return _over_units(functools.reduce(operator.mul, self.parts.batch, t.index(1)), unit)


def _over_units(count: Any, body: Callable[[Any], Any]) -> Any:
    """The loop over as many units as sizes say."""
    pid = tvm.ir.Var("p", t.INDEX)
    extent = tvm.sym.Analyzer().simplify(count)
    return tirx.For(
        pid,
        t.index(0),
        extent,
        tirx.ForKind.SERIAL,
        body(pid),
        annotations={PARALLEL: "1", FEW_UNITS: 1},
    )
