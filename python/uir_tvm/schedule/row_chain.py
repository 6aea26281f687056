# SPDX-License-Identifier: Apache-2.0
"""The engine of most recipes: one nest over row tiles, every producer attached inside it."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs
from tvm.error import InternalError
from tvm.ir import Expr, TensorLoad, Var
from tvm.s_tir import SBlockRealize, Schedule
from tvm.tirx import BufferStore, IntImm
from tvm_ffi.structural import structural_equal, structural_map

from ..errors import RecipeError
from ..igraph import HardwareModel
from .annotations import LOOP, PARALLEL
from .blocks import BlockInfo, collect, dtype_bytes, leaf_blocks, param_names, prim_func, total_work
from .decisions import Choice, Decisions
from .joined_rounds import joined_rounds
from .map_to_units import map_to_units
from .representative import usual_elements
from .split_loop import split
from .tile_facts import groups_at_once, space_of, units_of

#: Units of a group, to choose from.
UNITS = (1, 2, 4, 8, 16)
#: What stands for the first, second, ... variable of a block where those of several are compared.
_PLACES = tuple(Var(f"place{number}", "int64") for number in range(16))
#: Elements of a side of a tile at least.
LEAST_SIDE = 4


@attrs.frozen
class Nest:
    """The loops that `map_chain` made; producers are attached at ``lid``."""

    pid: Any
    lid: Any
    roots: tuple[BlockInfo, ...]


def output_blocks(sch: Schedule) -> list[BlockInfo]:
    """Blocks that write a parameter, in program order."""
    outputs = param_names(sch)
    return [b for b in leaf_blocks(sch) if set(b.writes) & outputs]


def groups_for(
    hw: HardwareModel, blocks: Sequence[BlockInfo], units: int | None = None, work: int = 1
) -> int:
    """How many groups of ``units`` are worth waking; a schedule takes no more than its tiles fill.

    ``work``: how many elementary operations each of the blocks' takes.
    """
    space = space_of(hw)
    if total_work(blocks, work) < space.serial_work:
        return 1
    return groups_at_once(hw, units) if space.groups is None else space.groups


def decide_groups(
    sch: Schedule,
    hw: HardwareModel,
    blocks: Sequence[BlockInfo],
    decisions: Decisions,
    tiles: int | None = None,
    most: int | None = None,
    work: int = 1,
) -> int:
    """A number of groups, by default `groups_for`; where a processor has few one, half of them, or all.

    Parameters
    ----------
    tiles : int, optional
        No more groups by default than these fill.
    most : int, optional
        No more groups than so many.
    work : int
        As `groups_for` takes it.
    """
    limit = groups_at_once(hw) if most is None else most
    own = groups_for(hw, blocks, work=work)
    if space_of(hw).groups is not None:
        return own
    own = min(own, limit)
    if not decisions.sampled:
        return own
    default = min(own, limit, max(1, math.ceil(tiles / units_of(hw))) if tiles else limit)
    return decisions.choose(sch, "num_groups", (1, max(1, limit // 2), limit), default)


def decide_units(sch: Schedule, hw: HardwareModel, decisions: Decisions) -> int | None:
    """Units of a group where there are as many groups as tiles fill; None: what the hardware model prefers.

    Where a schedule has as many groups as processors take at once, it has the same units, however grouped.
    """
    if space_of(hw).groups is None:
        return None
    candidates = [k for k in UNITS if k <= hw.num_units]
    made = decisions.choose(sch, "num_units", candidates, units_of(hw))
    return made if isinstance(made, Choice) else None


def decide_rows(sch: Schedule, root: BlockInfo, rows: int, own: int, most: int, decisions: Decisions) -> int:
    """Rows of a tile: a divisor of the loop that is cut into row tiles, at most so many."""
    count = row_loops_of(root, rows)
    if count and count <= len(sch.get_loops(root.rv)):
        return decisions.tile(sch, "tile_rows", sch.get_loops(root.rv)[count - 1], own, max(own, most))
    if count is None:
        # a part of a loop, which `map_chain` splits first
        inner = rows // math.prod(itertools.takewhile(lambda n: rows % n == 0, root.spatial))
        sizes = [r for r in range(1, min(inner, max(own, most)) + 1) if inner % r == 0]
        return decisions.choose(sch, "tile_rows", sizes, own)
    return own


def tile_sides(extent: int, own: int, most: int) -> list[int]:
    """Candidates for a side of a tile of two contiguous dimensions: a quarter to four times its own."""
    sides = {min(extent, side) for side in (own // 4, own // 2, own, 2 * own, 4 * own)}
    return sorted(side for side in sides if LEAST_SIDE <= side <= max(own, most) or side == min(extent, own))


def line_of(hw: HardwareModel) -> int:
    """The least columns of a tile that are worth trying: one vector of 4-byte elements."""
    return max(1, hw.vector_bytes // 4)


def most_elements(hw: HardwareModel, blocks: Sequence[BlockInfo]) -> int:
    """Elements of the largest tile worth trying: what a unit's memory holds."""
    preferred = int(hw.figures.get("tile_bytes", hw.reg_bytes // 2))
    return tile_elements(hw, blocks) * max(1, hw.reg_bytes // preferred)


def tile_elements(hw: HardwareModel, blocks: Sequence[BlockInfo]) -> int:
    """Elements of a tile so that one slice of every buffer fits the preferred working set."""
    if space_of(hw).stages > 1:
        return _staged_elements(hw, blocks)
    return _together(hw, {r.source.name: r.source for b in blocks for r in (*b.stmt.reads, *b.stmt.writes)})


def chunk_elements(hw: HardwareModel, blocks: Sequence[BlockInfo], rows: int) -> int:
    """The same for a part of one row, where what has one element for each row takes next to nothing."""
    if space_of(hw).stages > 1:
        return _staged_elements(hw, blocks)
    sources = {r.source.name: r.source for b in blocks for r in (*b.stmt.reads, *b.stmt.writes)}
    wide = {name: source for name, source in sources.items() if usual_elements(source) != rows}
    return _together(hw, wide or sources)


def _together(hw: HardwareModel, buffers: Mapping[str, Any]) -> int:
    """Elements of a slice of each buffer that fit the preferred working set."""
    least = space_of(hw).value_bytes
    size = sum(max(least, dtype_bytes(source.ty.dtype)) for source in buffers.values())
    preferred = int(hw.figures.get("tile_bytes", hw.reg_bytes // 2))
    return max(1, preferred // max(1, size))


def _staged_elements(hw: HardwareModel, blocks: Sequence[BlockInfo]) -> int:
    """Elements of a tile where what is loaded and stored has several places at once.

    A buffer counts by its part of the largest one: what has one element for each row takes next to nothing.
    Beside the buffers two values of a tile are alive between two iOps.
    """
    space = space_of(hw)
    buffers = {r.source.name: r.source for b in blocks for r in (*b.stmt.reads, *b.stmt.writes)}
    made, used = {w for b in blocks for w in b.writes}, {r for b in blocks for r in b.reads}
    sizes = {name: usual_elements(source) for name, source in buffers.items()}
    largest = max(sizes.values(), default=1)
    bytes_each = 2.0 * space.value_bytes
    for name, source in buffers.items():
        # what a block makes for another stays on chip, once
        inner = name in made and name in used
        width = space.value_bytes if inner else space.stages * dtype_bytes(source.ty.dtype)
        bytes_each += width * sizes[name] / largest
    return max(1, int(hw.figures.get("tile_bytes", hw.reg_bytes // 2) / bytes_each))


def column_tile(hw: HardwareModel, columns: int, limit: int) -> int:
    """Columns of a tile of at most ``limit``: all; else a divisor near it; else whole cache lines.

    A tile that is no multiple of a cache line leaves every tile but the first unaligned, where streaming
    stores cannot be used; one that divides the columns needs no mask.
    """
    if columns <= limit:
        return max(1, columns)
    line = int(hw.figures.get("line_bytes", hw.vector_bytes))
    if limit < line:
        return max(1, limit)
    aligned = range(limit // line * line, limit // 2, -line)
    return next((c for c in aligned if columns % c == 0), limit // line * line)


def row_loops_of(block: BlockInfo, rows: int) -> int | None:
    """How many leading spatial loops of ``block`` make up ``rows`` rows (None: no prefix does)."""
    product = 1
    for count, extent in enumerate(block.spatial):
        if product == rows:
            # the last of them is cut into tiles: one that follows, of one iteration, would leave it whole
            return count
        product *= extent
    return len(block.spatial) if product == rows else None


def _row_loops(sch: Schedule, block: BlockInfo, rows: int) -> int | None:
    """`row_loops_of`; a loop that holds the last factor of the rows is split first (grouped channels)."""
    count = row_loops_of(block, rows)
    if count is not None:
        return count
    product = 1
    for position, extent in enumerate(block.spatial):
        factor, rest = divmod(rows, product)
        if rest == 0 and product * extent > rows:
            if extent % factor:
                return None
            split(sch, sch.get_loops(block.rv)[position], [factor, None])
            return position + 1
        product *= extent
    return None


def map_chain(
    sch: Schedule,
    hw: HardwareModel,
    rows: int,
    tile: tuple[int | None, int | None],
    *,
    num_groups: int,
    num_units: int | None = None,
    split_columns: bool = False,
    columns_first: bool = False,
    group_size: int = 1,
    share: int | None = None,
) -> Nest:
    """Map every output block to the same units and row tiles, and merge them into one nest.

    Raises
    ------
    RecipeError
        An output block has no such rows.
    """
    roots = output_blocks(sch)
    refuse_crossing(roots)
    nests = []
    for block in roots:
        count = count_row_loops(sch, block, rows)
        pid, lid, *_ = map_to_units(
            sch,
            block.rv,
            num_groups,
            num_units,
            tile,
            row_loops=count,
            split_columns=split_columns,
            columns_first=columns_first,
            group_size=group_size,
            share=share,
            hardware=hw,
        )
        nests.append((pid, lid))
    return join_nests(sch, nests, roots, num_units)


def count_row_loops(sch: Schedule, block: BlockInfo, rows: int) -> int:
    """How many leading loops of an output block make up ``rows`` rows; one that holds more is split.

    Raises
    ------
    RecipeError
        It has no such rows.
    """
    count = _row_loops(sch, block, rows)
    if count is None:
        raise RecipeError(
            f"Output block {block.name!r} does not have {rows} rows.",
            need=f"leading loops whose product is {rows}",
            limit=f"loops {block.spatial}",
        )
    return count


def join_nests(
    sch: Schedule, nests: list[tuple[Any, Any]], roots: list[BlockInfo], num_units: int | None = None
) -> Nest:
    """One nest of those of several blocks, each with its loop over units and that over the tiles of one."""
    if len(nests) == 1:
        return Nest(nests[0][0], nests[0][1], tuple(roots))
    return _merge(sch, nests, roots, num_units)


def refuse_crossing(roots: Sequence[BlockInfo]) -> None:
    """Refuse output blocks one of which touches what another writes in an element other than its own.

    In one nest a tile of the one comes before later tiles of the other.
    """
    for (one, other), name in _shared_outputs(roots):
        places = [
            [_numbered(index, block) for index in access]
            for block in (one, other)
            for access in _accesses(block, name)
        ]
        if any(not structural_equal(place, places[0]) for place in places[1:]):
            raise RecipeError(
                f"Output blocks {one.name!r} and {other.name!r} touch different elements of {name!r}.",
                need="the same element in every iteration",
            )


def _shared_outputs(roots: Sequence[BlockInfo]) -> Iterator[tuple[tuple[BlockInfo, BlockInfo], str]]:
    """Pairs of blocks with the buffers that both touch and one of them writes."""
    for pair in itertools.combinations(roots, 2):
        touched = [{*block.reads, *block.writes} for block in pair]
        written = {*pair[0].writes, *pair[1].writes}
        yield from ((pair, name) for name in sorted(touched[0] & touched[1] & written))


def _accesses(block: BlockInfo, name: str) -> Iterator[Sequence[Any]]:
    """The indices at which a block touches a buffer."""
    for load in collect(block.stmt.body, TensorLoad):
        if load.source.name == name:
            yield load.indices
    for store in collect(block.stmt.body, BufferStore):
        if store.buffer.name == name:
            yield store.indices


def _numbered(index: Any, block: BlockInfo) -> Any:
    """An index with variables that are the same for all blocks, by their place."""
    places = {iv.var: place for place, iv in enumerate(block.stmt.iter_vars)}

    def numbered(var: Var) -> Var:
        return _PLACES[places[var]] if places.get(var, len(_PLACES)) < len(_PLACES) else var

    return structural_map(index, (Var, numbered)) if isinstance(index, Expr) else index


def _merge(
    sch: Schedule, nests: list[tuple[Any, Any]], roots: list[BlockInfo], num_units: int | None
) -> Nest:
    outer = dict(sch.get(nests[0][0]).annotations)
    value = outer[PARALLEL]
    if any(sch.get(pid).annotations[PARALLEL] != value for pid, _ in nests):
        raise RecipeError(
            "The output blocks were dealt to different numbers of units.",
            need="the same row tiles",
        )
    depth = [str(sch.get(loop).loop_var) for loop in sch.get_loops(roots[0].rv)].index(
        str(sch.get(nests[0][1]).loop_var)
    )
    for (pid, _), root in zip(nests, roots, strict=True):
        for name in list(sch.get(pid).annotations):
            sch.unannotate(pid, name)
        # that over a unit's tiles, and those over open dimensions that it walks
        for loop in sch.get_loops(root.rv)[1 : depth + 1]:
            sch.unannotate(loop, LOOP)
    lid = sch.merge(*[lid for _, lid in nests])
    pid, *walked = sch.get_loops(roots[0].rv)[: depth + 1]
    if isinstance(num_units, Choice):
        outer[PARALLEL] = num_units.rv
    for name, given in outer.items():
        sch.annotate(pid, name, given)
    for loop in walked:
        sch.annotate(loop, LOOP, 1)
    return Nest(pid, lid, tuple(roots))


def attach_producers(
    sch: Schedule, nest: Nest, once: Collection[str] = (), among: Collection[str] | None = None
) -> list[BlockInfo]:
    """Move every other block under the row loop, its result in reg, last first.

    Parameters
    ----------
    once : collection of str
        Blocks, by name, whose result all tiles of a unit share: they stand outside of the loop over them.
    among : collection of str, optional
        Blocks, by name, that are moved; default: all others than the roots.

    Returns
    -------
    list of BlockInfo
        The attached blocks, last first.

    Raises
    ------
    RecipeError
        What a tile reads of a producer is no box that TVM can bound, or is empty.
    """
    root_names = {b.name for b in nest.roots}
    producers = [
        b for b in leaf_blocks(sch) if b.name not in root_names and (among is None or b.name in among)
    ]
    shared = any(block.name in once for block in producers)
    with contextlib.nullcontext() if shared else joined_rounds(sch, nest.pid, nest.lid):
        for block in reversed(producers):
            for index, region in enumerate(block.stmt.writes):
                if str(region.source.scope()) != "shared":
                    sch.set_scope(block.rv, index, "local")
            _attach(sch, block, nest.pid if block.name in once else nest.lid)
    return list(reversed(producers))


def _attach(sch: Schedule, block: BlockInfo, loop: Any) -> None:
    try:
        sch.compute_at(block.rv, loop, preserve_unit_loops=True)
    except InternalError as error:
        # TVM asserts, where it should refuse, that the region read is bounded; a gathered row is not
        raise RecipeError(
            f"What a tile reads of {block.name!r} has no bounds.",
            need="indices that are affine in the loops",
        ) from error
    if _never_runs(sch, block):
        raise RecipeError(
            f"A tile reads nothing of {block.name!r}.",
            need="at least one element in every tile",
        )


def _never_runs(sch: Schedule, block: BlockInfo) -> bool:
    """Whether a block has empty loops or a false predicate: padding asked for what lies outside of it."""
    realizes = collect(prim_func(sch).body, SBlockRealize)
    predicates = [r.predicate for r in realizes if r.block.name_hint == block.name]
    extents = [sch.get(loop).extent for loop in sch.get_loops(block.rv)]
    return any(isinstance(p, IntImm) and p.value == 0 for p in predicates) or any(
        isinstance(n, IntImm) and n.value < 1 for n in extents
    )


def rows_per_tile(elements: int, row: int, cols: int) -> int:
    """Rows of ``cols`` elements that a tile of ``elements`` holds: the largest such divisor of ``row``."""
    limit = max(1, min(row, elements // max(1, cols)))
    return next(r for r in range(limit, 0, -1) if row % r == 0)
