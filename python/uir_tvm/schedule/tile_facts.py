# SPDX-License-Identifier: Apache-2.0
"""What a kind of hardware wants of tiles: one fact of every target, which the recipes read.

A CPU's unit is a core that walks many tiles through its L1; a GPU's unit is a warp that takes one tile
in registers, and a group is a block that is one of very many.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import attrs

from ..igraph import HardwareModel
from ..target_facts import Facts
from .smaller import shrink_of, smaller_sides


@attrs.frozen
class TileSpace:
    """The tiles of one kind of hardware.

    Parameters
    ----------
    serial_work : int
        Below this many elementary operations a kernel runs on one unit: waking the others costs more.
    groups : int, optional
        Most groups of a kernel; None = the hardware model's number.
    tiles_per_unit : int
        Tiles for every unit where there are enough: fewer leave units idle at the end.
    flat_tile : int
        Longest tile of a flat run of elements.
    wide_values : bool
        Whether fp16 and bf16 are computed with in fp32, and rounded where they are stored to memory.
    value_bytes : int
        Bytes that an element takes at least while it is computed with.
    least_columns : int
        Columns that a tile of a column reduction keeps at least: whole lines, several vectors.
    tall_columns : int
        Columns that a tile keeps at least where it has each of them whole, as a softmax along another axis
        than the last does: as many as memory brings together, if a unit's memory holds them.
    level_columns : bool
        Whether tiles of columns are widened where that gives all units the same number of columns.
    in_place : bool
        Whether a unit computes with operands where they are, so that only what is made twice otherwise needs
        memory of its own.
    least_part : int
        Elements of a row at least that a unit adds up for another, where rows are fewer than units; 0: rows
        are whole.
    least_tile : int
        Elements of one wide access of a unit: no tile is cut smaller to keep units busy, and where an operand
        is the same for all rows a tile has no more columns, but many rows.  0: neither matters.
    row_values : int
        Most elements of a row tile that one unit holds; 0 = as many as its memory does.
    sets : tuple of int
        How many units may share a row, fewest first; the last shares rows of any length.  Where a unit holds
        as many values as its memory does (``row_values`` 0), modelled time chooses (`row_sharing`).
    transposed : mapping of int to (int, int)
        By bytes of an element, those of a transposed tile along the operand's contiguous dimension and
        along the result's.
    stages : int
        Iterations of a loop over tiles that are in flight at once: what is loaded and stored has as many
        places on chip.
    open_turns : int
        Most tiles that a unit takes in one loop where sizes decide how many tiles there are.
    walkers : int
        Most units that walk a dimension of open length together.
    least_walk : int
        Iterations that each of them has at least, at the greatest length.
    even : bool
        Whether tiles are sized so that all units get the same number of them, `tiles_per_unit` at least where
        a tile is still a whole transfer (the model's ``transfer_bytes``).
    spread_rows : bool
        The same for tiles of whole rows.
    work_bytes : int
        Bytes that an element of a row takes beside its buffers: those that functions work in.
    bands : bool
        Whether results with rows of a few bytes, whose neighbours lie far apart in an operand, are made in
        bands that use up the operand's cache lines.
    line_rounds : int
        How many tiles of other rows one of rows is that share lines of a result in memory.
    turned_work : int
        Elementary operations that an element of a transposition takes as long as.
    fetched_work : int
        The same of an element that is fetched by itself from a place that is data.
    wide_elements : int
        Bytes of the longest row that is moved as one element where its neighbours change places; 0: of none.
    single_lines : mapping
        By architecture, where stores bypass the caches: lines of a result that no cache holds may go to
        memory one by one, as they are transposed, unless its rows are a multiple of so many bytes apart.
    whole_lines : mapping
        The same where a vector is a line: also rows that lie a multiple of these apart, if that is so many
        bytes at most.
    short_row : int
        Columns up to which passes over a row of known length wait for each other so much that each goes over
        all rows of a tile.
    runs, run_bytes : int
        In how many distant parts a unit walks what no cache holds, and how many bytes of each in turn: more
        pages of memory are then read ahead at once.
    matrix_bytes, matrix_columns : int
        Of the contracted dimension, and columns of a result, that the matrix unit takes at once: what lies
        beyond is computed with too, or padded.
    vectors : tuple of float
        Vectors to choose from, as multiples of the model's ``vector_bytes``: what a CPU computes with, how
        wide at most a GPU's accesses are.  None where instructions take whole tiles.
    """

    serial_work: int
    groups: int | None
    tiles_per_unit: int
    flat_tile: int
    wide_values: bool
    value_bytes: int
    least_columns: int
    least_tile: int
    row_values: int
    sets: tuple[int, ...]
    transposed: Mapping[int, tuple[int, int]]
    stages: int = 1
    open_turns: int = 1
    walkers: int = 1
    least_walk: int = 4
    even: bool = False
    spread_rows: bool = False
    work_bytes: int = 0
    bands: bool = False
    line_rounds: int = 1
    turned_work: int = 1
    fetched_work: int = 1
    wide_elements: int = 0
    single_lines: Mapping[str, int] = attrs.field(factory=dict)
    whole_lines: Mapping[str, int] = attrs.field(factory=dict)
    tall_columns: int = 1
    level_columns: bool = False
    in_place: bool = False
    least_part: int = 0
    short_row: int = 0
    runs: int = 1
    run_bytes: int = 0
    matrix_bytes: int = 1
    matrix_columns: int = 1
    vectors: tuple[float, ...] = ()


#: Kind of hardware -> its tiles (`uir_tvm.target.record`).
TILE_SPACES: Mapping[str, TileSpace] = Facts("space")
#: The kind whose tiles another one has that says nothing.
USUAL = "cpu"


def space_of(hw: HardwareModel) -> TileSpace:
    """The row of a hardware model's kind; a kind without one is tiled as a CPU.

    Its tiles are smaller where the model asks for smaller ones (`smaller.with_tiles`).
    """
    space, shrink = TILE_SPACES.get(str(hw.kind)) or TILE_SPACES[USUAL], shrink_of(hw)
    if shrink == 1:
        return space
    return attrs.evolve(
        space,
        row_values=space.row_values // shrink,
        transposed={width: smaller_sides(sides, shrink) for width, sides in space.transposed.items()},
    )


#: What a run with masks costs of one without: scalar work of their bounds.
MASK_COST = 1.05


def even_tile(hw: HardwareModel, elements: int, limit: int, width: int) -> int:
    """Elements of a tile of a flat run so that all units get as many tiles, each a multiple of a line.

    Parameters
    ----------
    elements : int
        Of the run.
    limit : int
        Most elements of a tile.
    width : int
        Bytes of an element.
    """
    space, units = space_of(hw), busy_units(hw)
    if elements <= 1:
        return 1
    line = max(1, int(hw.figures.get("line_bytes", hw.vector_bytes)) // width)
    least = max(line, int(hw.figures.get("transfer_bytes", 0)) // width)
    share = math.ceil(elements / units)
    count = max(math.ceil(share / limit), min(space.tiles_per_unit, share // least), 1)
    tile = max(1, min(math.ceil(share / count / line) * line, limit // line * line or limit, elements))
    # one that divides the run needs no mask: worth it where units that wait for the last ones lose less
    whole = [c for c in range(line, limit + 1, line) if elements % c == 0 and 4 * c >= tile]
    best = min(whole, key=lambda c: (_longest(elements, c, units), -c), default=tile)
    return best if _longest(elements, best, units) <= MASK_COST * _longest(elements, tile, units) else tile


def spread_rows(r: int, row: int, rows: int, units: int, worth: float, least: int = 1) -> int:
    """Rows of a tile: at most ``r``, fewer where the unit with most of them has much less to do then.

    Parameters
    ----------
    r : int
        Rows that a tile may have: a divisor of ``row``.
    row : int
        Rows of which a tile takes a whole part: none crosses their end.
    rows : int
        Of all tiles.
    units : int
        That take tiles in turn.
    worth : float
        What part of its work the busiest unit keeps at most: more tiles take more starts.
    least : int
        Fewest rows of a tile.
    """

    def longest(each: int) -> int:
        return math.ceil(rows // each / units) * each

    for fewer in range(r - 1, least - 1, -1):
        if row % fewer == 0 and longest(fewer) < worth * longest(r):
            r = fewer
    return r


def _longest(elements: int, tile: int, units: int) -> int:
    """Elements of the unit that has most."""
    return math.ceil(math.ceil(elements / tile) / units) * tile


def units_of(hw: HardwareModel) -> int:
    """Units of a group where a schedule asks for no number: those that the model prefers, or all."""
    return int(hw.figures.get("group_units", hw.num_units))


def groups_at_once(hw: HardwareModel, units: int | None = None) -> int:
    """Groups of so many units (default: `units_of`) that run at the same time.

    A model that prefers groups of fewer units than a processor has (`group_units`) takes several to each; one
    that counts the processors that do so (``sms``) says how many.
    """
    held = hw.num_units // (units_of(hw) if units is None else units) if "group_units" in hw.figures else 1
    return int(hw.figures.get("sms", hw.num_groups * max(1, int(held))))


def product_groups(hw: HardwareModel, units: int | None = None) -> int:
    """Groups whose products run at the same time: a device may have fewer matrix units than groups.

    Of an Ascend a block of a kernel with products takes a cube core beside its vector core (``aic_cores``).
    """
    groups = groups_at_once(hw, units)
    return min(groups, int(hw.figures.get("aic_cores", groups)))


def busy_units(hw: HardwareModel) -> int:
    """Units that run at the same time: those that the processors hold, or all of the groups."""
    return groups_at_once(hw) * units_of(hw)
