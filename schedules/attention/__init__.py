# SPDX-License-Identifier: Apache-2.0
"""Attention: two products around a softmax, in one pass over the keys, scores and weights on chip.

See `uir_tvm.schedules.attention.flash` for the form.  A unit has a tile of rows of one head; the heads of a
group of queries that share their keys are the rows where there is one query (decoding).  On hardware with
groups and sram the units of a group have neighbouring rows and stage keys and values together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
from tvm import tirx
from tvm.relax import op
from tvm.s_tir import Schedule
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.blocks import prim_func
from uir_tvm.schedule.decisions import OWN, Decisions, near
from uir_tvm.schedule.overlap import IN_FLIGHT
from uir_tvm.schedule.recipe import Recipe
from uir_tvm.schedule.representative import is_open
from uir_tvm.schedule.smaller import shrink_of
from uir_tvm.schedule.tile_facts import USUAL, product_groups
from uir_tvm.schedules.attention.even import EvenTiles, even_tile
from uir_tvm.schedules.attention.flash import flash_function
from uir_tvm.schedules.attention.folded import fold_heads
from uir_tvm.schedules.attention.parts import HasExtents, looks_like_attention, read_parts
from uir_tvm.schedules.attention.speed import AttentionSpeed
from uir_tvm.schedules.attention.tile import FlashTile, block_bytes, reg_bytes
from uir_tvm.schedules.demo import from_relax
from uir_tvm.target_facts import Facts


@attrs.frozen
class AttentionSpace:
    """The tiles of one kind of hardware.

    Parameters
    ----------
    rows : int
        Rows of a unit's tile.
    key_bytes : int
        Bytes of a row of scores of a block, in fp32.
    units : int
        Most units that share keys and values.
    stages : int
        Blocks in flight.
    groups : int, optional
        Most groups; None: those of the hardware model.
    whole_tiles : bool
        See `FlashTile`.
    reg_share : float
        The part of reg that a tile takes: the rest is for the work buffers of what is printed.
    least_rows : int
        Fewest rows of another tile: those of a matrix instruction.
    turned_above : int, optional
        Rows above which vectors run along them (``turned`` of `FlashTile`); None: always along keys.
    few_row_keys : int
        Keys of a block of fewer rows, along which vectors run then; 0: as of others.
    leaves_out, ended, bounded, spread : bool
        See `FlashTile`.
    part_keys : int
        Keys at least of a unit that shares those of a batch with others; 0: none do.
    widened : bool
        See `FlashTile`.
    held : bool
        See `FlashTile`.
    even : EvenTiles, optional
        Tiles that divide all there is, which are taken where there are such.
    speed : AttentionSpeed
        By which one kernel is compared with products of the library.
    """

    rows: int
    key_bytes: int
    units: int
    stages: int
    groups: int | None
    whole_tiles: bool
    reg_share: float = 1.0
    least_rows: int = 1
    turned_above: int | None = None
    few_row_keys: int = 0
    leaves_out: bool = False
    ended: bool = False
    bounded: bool = False
    spread: bool = False
    part_keys: int = 0
    widened: bool = False
    held: bool = False
    even: EvenTiles | None = None
    speed: AttentionSpeed | None = None


#: Kind of hardware -> its tiles (`uir_tvm.target.record`).
ATTENTION_SPACES: Mapping[str, AttentionSpace] = Facts("attention_space")
#: Kind of hardware -> whether its vectors compare floats alone.
FLOAT_PLACES: Mapping[str, bool] = Facts("float_places")


def space_of_attention(hw: HardwareModel) -> AttentionSpace:
    """The tiles of a hardware model's kind; those of a CPU where it has none."""
    return ATTENTION_SPACES.get(str(hw.kind)) or ATTENTION_SPACES[USUAL]


#: How much more work than the least larger tiles may be.
PADDING = 1.07
#: What a unit moves to sram at a time: more than half of its registers may be on the way.
STAGED_BYTES = 12 * 1024


def matches(sch: Schedule) -> bool:
    """Two products around a maximum and a sum."""
    return looks_like_attention(sch)


def schedule(sch: Schedule, hw: HardwareModel, decisions: Decisions = OWN) -> Schedule:
    """The function in online form, mapped to units.

    Raises
    ------
    RecipeError
        It is no attention that this recipe knows.
    """
    func = prim_func(sch)
    parts = fold_heads(read_parts(sch))
    tile = decide_tile(parts, hw, tile_of(parts, hw), decisions)
    return decisions.restart(flash_function(func, parts, tile))


def decide_tile(parts: HasExtents, hw: HardwareModel, own: FlashTile, decisions: Decisions) -> FlashTile:
    """The tile ``own``, or one near it that fits too: each number shapes the function, so all are forks."""

    if own.even:
        return own

    def fits(rows: int, keys: int) -> bool:
        return _held_bytes(parts, hw, rows, keys) <= _room(hw)

    # a taller tile may have fewer keys at a time, but no fewer than a matrix instruction takes
    least_rows = min(own.rows, _lanes(hw) if own.turned else space_of_attention(hw).least_rows)
    least = min(16, own.keys)
    taller = [r for r in near(own.rows, parts.usual.rows) if r >= least_rows and fits(r, least)]
    if own.turned:
        taller = [r for r in taller if r % least_rows == 0]
    rows = decisions.fork("tile_rows", taller, own.rows)
    held = [k for k in near(own.keys, parts.usual.keys) if least <= k and fits(rows, k)]
    if not own.turned:
        held = [k for k in held if k == own.keys or k % least_rows == 0]
    keys = own.keys if fits(rows, own.keys) or not held else max(held)
    keys = decisions.fork("tile_keys", held, keys)
    units, stages, whole = own.units, own.stages, own.whole_tiles
    if own.staged:
        most = min(hw.num_units, math.ceil(parts.usual.rows / rows))
        units = decisions.fork("units", near(own.units, most), min(own.units, most))
        room = hw.sram_bytes // max(1, block_bytes(parts, keys))
        stages = decisions.fork("stages", [s for s in IN_FLIGHT if s <= room], max(1, min(own.stages, room)))
    elif parts.usual.rows % rows:
        whole = bool(decisions.fork("whole_tiles", (0, 1), int(whole)))
    groups = own.groups if space_of_attention(hw).groups else product_groups(hw, units)
    return attrs.evolve(
        own, rows=rows, keys=keys, groups=groups, units=units, stages=stages, whole_tiles=whole
    )


def tile_of(parts: HasExtents, hw: HardwareModel) -> FlashTile:
    """The tile for a function on some hardware: blocks of keys shrink until all of a tile fits a unit."""
    space = space_of_attention(hw)
    float_places = FLOAT_PLACES.get(str(hw.kind), False)
    room = _room(hw)
    rows = min(space.rows, parts.usual.rows)
    keys = min(space.key_bytes // 4, parts.usual.keys)
    # sram that only whole clusters have is none to units that do not wait for each other
    staged = hw.sram_bytes > 0 and "sram_units" not in hw.figures
    while keys > 16 and _held_bytes(parts, hw, rows, keys) > room:
        keys = max(16, keys // 2)
    while (
        staged and keys > 16 and block_bytes(parts, keys) > math.ceil(parts.usual.rows / rows) * STAGED_BYTES
    ):
        keys = max(16, keys // 2)
    turned = space.turned_above is not None and parts.usual.rows > space.turned_above
    if space.few_row_keys and not turned:
        keys = min(space.few_row_keys, parts.usual.keys)
    if turned:
        # of open queries there may be few, for which vectors stay empty
        rows = (
            2 * _lanes(hw)
            if is_open(parts.rows)
            else _whole_vectors(parts.usual.rows, space.rows, _lanes(hw))
        )
    while rows > 1 and _held_bytes(parts, hw, rows, keys) > room:
        rows = max(1, rows // 2)
    units = min(space.units, hw.num_units, math.ceil(parts.usual.rows / rows)) if staged else 1
    stages = space.stages
    while staged and stages > 1 and stages * block_bytes(parts, keys) > hw.sram_bytes // shrink_of(hw):
        stages -= 1
    if staged and units == 1:
        stages = _stages_in_reg(parts, hw, rows, keys, stages)
    groups = space.groups or product_groups(hw, units)
    found = even_tile(parts, hw, space.even, groups) if space.even is not None else None
    if found is not None:
        return FlashTile(
            found.rows,
            found.keys,
            found.groups,
            parts=found.parts,
            even=True,
            float_places=float_places,
            leaves_out=space.leaves_out,
            ended=space.ended,
            bounded=space.bounded,
            spread=space.spread,
        )
    # of groups without number as many as there are processors, with as many units each as a group may have
    at_once = min(groups, space.units // units * hw.num_groups) if space.groups else groups
    shares = _key_parts(parts, rows, keys, at_once, space)
    return FlashTile(
        rows,
        keys,
        groups,
        units,
        staged,
        stages,
        whole_tiles=space.whole_tiles or turned,
        turned=turned,
        leaves_out=space.leaves_out,
        ended=space.ended,
        bounded=space.bounded,
        spread=space.spread,
        widened=space.widened,
        parts=shares,
        float_places=float_places,
        held=space.held and turned,
    )


def _stages_in_reg(parts: HasExtents, hw: HardwareModel, rows: int, keys: int, stages: int) -> int:
    """Blocks in flight of a unit alone: it may hold what it stages in reg (pass promote)."""
    room = hw.reg_bytes // shrink_of(hw) - reg_bytes(parts, rows, keys)
    return max(1, min(stages, room // block_bytes(parts, keys)))


#: What a barrier of all units and combining take, in blocks of keys.
COMBINING = 2


def _key_parts(parts: HasExtents, rows: int, keys: int, groups: int, space: AttentionSpace) -> int:
    """Units that share the keys of a batch: what takes the fewest blocks, where one tile has all rows."""
    most = parts.usual.keys // max(keys, space.part_keys) if space.part_keys else 1
    if most < 2 or any(map(is_open, (*parts.batch, parts.rows))) or parts.usual.rows > rows:
        return 1
    sets, blocks = math.prod(parts.batch), math.ceil(parts.usual.keys / keys)

    def cost(count: int) -> int:
        return math.ceil(sets * count / groups) * math.ceil(blocks / count) + COMBINING * (count > 1)

    return min(range(1, min(most, groups) + 1), key=lambda count: (cost(count), count))


def _lanes(hw: HardwareModel) -> int:
    """Numbers in fp32 of a vector."""
    return max(1, hw.vector_bytes // 4)


def _whole_vectors(rows: int, most: int, lanes: int) -> int:
    """Rows of a tile: whole vectors of them, as many as tiles of all rows need not exceed them by much."""

    def padded(size: int) -> int:
        return math.ceil(rows / size) * size

    sizes = range(lanes if rows <= lanes else 2 * lanes, max(most, 2 * lanes) + 1, lanes)
    least = min(padded(size) for size in sizes)
    return max(size for size in sizes if padded(size) <= PADDING * least)


def _room(hw: HardwareModel) -> int:
    """Bytes of reg that a tile may take."""
    return int(hw.reg_bytes * space_of_attention(hw).reg_share) // shrink_of(hw)


def _held_bytes(parts: HasExtents, hw: HardwareModel, rows: int, keys: int) -> int:
    """Bytes of reg that a tile takes."""
    # keys, then values, lie in reg twice: as they come, and turned
    loaded = block_bytes(parts, keys) if "sram_units" in hw.figures else 0
    return reg_bytes(parts, rows, keys) + loaded


def example() -> Any:
    """Causal attention of 2 heads, 70 queries and keys of 32."""

    shape = (1, 2, 70, 32)

    def build(q: Any, k: Any, v: Any, mask: Any) -> Any:
        scores = op.matmul(q, op.permute_dims(k, (0, 1, 3, 2)))
        return op.matmul(op.nn.softmax(op.add(scores, mask), axis=-1), v)

    def reference(q: Any, k: Any, v: Any, mask: Any) -> Any:
        x = q @ k.swapaxes(-1, -2) + mask
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True) @ v

    return from_relax(build, [shape, shape, shape, (70, 70)], reference)


def one_query(func: tirx.PrimFunc) -> dict[tirx.Var, int]:
    """An open number of queries, which may be one: keys then lie along vectors in the place of queries."""
    shape = func.params[-1].shape
    # before the heads where the result lies as its reader wants it
    places = (-2, -3) if len(shape) > 3 else (-2,)
    rows = [shape[place] for place in places if isinstance(shape[place], tirx.Var)]
    return {rows[0]: 1} if rows else {}


RECIPE = Recipe(
    "attention",
    matches,
    schedule,
    example,
    reason="Scores and weights stay on chip: nothing of their size is in dram.",
    apart=one_query,
)
