# SPDX-License-Identifier: Apache-2.0
"""Which loops of a leaf become rows, columns and serial loops.

Loops are split where an address divides them (``i // 12`` is constant while the inner part of ``i``
runs), neighbours that walk all addresses linearly are merged, loops that carry a dependence or that
a statement cannot express become serial, and of what is left at most two make the tile.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import attrs
import tvm
from tvm_ffi.structural import structural_walk

from ..igraph.affine import Affine, affine, var
from ..igraph.space import Space
from ..schedule.annotations import ROWS
from .affine_from_tir import AffineConverter
from .dependence import carried
from .function_pointers import FunctionPointers
from .leaf_access import AffineQuantity, ItemCollector, Update, update_of
from .refusals import refuse
from .tree_nodes import Leaf, TreeLoop

#: Below this many columns a gather beats a tile cut so that addresses stay linear.
LEAST_COLUMNS = 4
#: Elements that are moved one by one at most where strides along all loops depend on sizes.
MOST_SINGLE = 64


@attrs.frozen
class PlanLoop:
    """A loop ``name`` over ``[0, extent)``; ``serial`` loops are no candidates for the tile.

    ``pipeline``: how many iterations the schedule wants in flight (0: no wish).
    """

    name: str
    extent: int
    serial: bool = False
    pipeline: int = 0


@attrs.define
class LeafPlan:
    """A leaf's loops, decided.

    Attributes
    ----------
    serial : serial loops, outermost first: those that stores depend on, then ``reduced`` ones.
    reduced : names of loops (serial or tile) over which an update accumulates.
    rows, cols : loops of the tile; None = extent 1.
    converter : what the TIR variables stand for in these loops.
    tails : expressions that are >= 1 where a cut loop is inside of its extent.
    """

    leaf: Leaf
    update: Update | None
    serial: list[PlanLoop]
    reduced: set[str]
    rows: PlanLoop | None
    cols: PlanLoop | None
    converter: AffineConverter
    tails: list[Affine]

    @property
    def tile(self) -> tuple[int, int]:
        """(rows, cols)."""
        return (self.rows.extent if self.rows else 1, self.cols.extent if self.cols else 1)

    @property
    def tile_names(self) -> tuple[str | None, str | None]:
        """Variables of rows and columns."""
        return (self.rows.name if self.rows else None, self.cols.name if self.cols else None)

    @property
    def space(self) -> Space:
        """Ranges of all variables."""
        return self.converter.space


class Planner:
    """Plans one leaf.

    Parameters
    ----------
    around : loops of the tree around the leaf, outermost first.
    forced : names of loops that must be serial, found by trying.
    limit : the most elements of a tile; None = as scheduled.
    """

    def __init__(
        self,
        leaf: Leaf,
        memory: FunctionPointers,
        around: Iterable[TreeLoop],
        forced: Iterable[str] = (),
        limit: int | None = None,
    ) -> None:
        self.leaf, self.memory, self.forced, self.limit = leaf, memory, set(forced), limit
        self.update = update_of(leaf)
        self.env, self.outer = memory.environment(list(around))
        self.loops: list[PlanLoop] = []
        self._items: list[AffineQuantity] | None = None
        self.tails: list[Affine] = []
        #: Loops along which an address goes on by sizes, and by no dimension's stride.
        self.multiplied: set[str] = set()
        for k, loop in enumerate(leaf.loops):
            name = f"{loop.var.name}.{k}"  # the dot keeps it apart from every name of the graph
            serial = loop.serial or name in self.forced
            self.loops.append(PlanLoop(name, loop.extent, serial, loop.pipeline))
            self.env[loop.var] = var(name) + loop.start
        self._refresh()

    def plan(self) -> LeafPlan:
        """Split, merge, serialise, choose."""
        self.normalise()
        return self.choose()

    def normalise(self) -> None:
        """Loops linear in all addresses where possible, merged, with carried ones serial."""
        self._split_divided()
        self._mark(carried(self.leaf, self.update, self.memory, self.converter, self.loops))
        if ROWS not in self.leaf.annotations:
            self._merge()

    # -- state --------------------------------------------------------------------------------
    def _refresh(self) -> None:
        self.converter, self._items = self._converter(self.env, self.loops), None

    @property
    def items(self) -> list[AffineQuantity]:
        """The affine quantities of the leaf in its loops as they are now."""
        if self._items is None:
            self._items = self._collected(self.converter)
        return self._items

    def _converter(self, env: dict[Any, Affine], loops: list[PlanLoop]) -> AffineConverter:
        space = Space({**self.outer, **{loop.name: loop.extent for loop in loops}})
        return AffineConverter(env, self.memory.tree.bindings, space)

    def _collected(self, converter: AffineConverter) -> list[AffineQuantity]:
        return ItemCollector(self.memory, converter).collect(self.leaf)

    def _mark(self, names: set[str]) -> None:
        new = {lp.name for lp in self.loops if not lp.serial} & names
        if new:
            self.loops = [attrs.evolve(lp, serial=lp.serial or lp.name in new) for lp in self.loops]

    def _substituted(self, name: str, value: Affine) -> dict[Any, Affine]:
        return {v: e.substitute({name: value}) for v, e in self.env.items()}

    # -- splitting ----------------------------------------------------------------------------
    def _split_divided(self) -> None:
        """Split loops that an address divides; what cannot be split so is serial or left to a gather."""
        # a tile goes along dimensions, not across them
        multiplied = set().union(*(item.expr.multiplied for item in self.items))
        self.multiplied = {
            name for name in multiplied if any(item.stride(name) is None for item in self.items)
        }
        self._mark(self.multiplied)
        given_up: set[str] = set()
        while True:
            found = self._divided(given_up)
            if found is None:
                return
            loop, needed = found
            factor = self._factor(loop, needed)
            if factor is not None:
                self._split(loop, factor)
            elif needed:
                self._mark({loop.name})
            else:
                given_up.add(loop.name)

    def _divided(self, given_up: set[str]) -> tuple[PlanLoop, bool] | None:
        """A candidate loop that an item divides, and whether a store or guard is among those items."""
        for loop in self.loops:
            if loop.serial or loop.name in given_up:
                continue
            kinds = {item.kind for item in self.items if item.stride(loop.name) is None}
            if kinds:
                return loop, bool(kinds & {"store", "guard"})
        return None

    def _factor(self, loop: PlanLoop, needed: bool) -> int | None:
        """The greatest inner extent that is linear in everything, else in all that needs to be."""
        linear_in_needed = None
        for factor in _divisors(loop.extent):
            inner = f"{loop.name}i"
            value = var(f"{loop.name}o") * factor + var(inner)
            converter = self._converter(self._substituted(loop.name, value), self._cut(loop, factor))
            items = self._collected(converter)
            bad = {item.kind for item in items if item.stride(inner) is None}
            if not bad:
                few = factor < LEAST_COLUMNS and not needed
                return None if few and not _repeats(items, f"{loop.name}o", inner, factor) else factor
            if linear_in_needed is None and not bad & {"store", "guard"}:
                linear_in_needed = factor
        return linear_in_needed if needed else None

    def _cut(self, loop: PlanLoop, factor: int) -> list[PlanLoop]:
        at = self.loops.index(loop)
        outer, inner = (
            PlanLoop(f"{loop.name}o", -(-loop.extent // factor), f"{loop.name}o" in self.forced),
            PlanLoop(f"{loop.name}i", factor, f"{loop.name}i" in self.forced),
        )
        return [*self.loops[:at], outer, inner, *self.loops[at + 1 :]]

    def _split(self, loop: PlanLoop, factor: int) -> None:
        value = var(f"{loop.name}o") * factor + var(f"{loop.name}i")
        self.env = self._substituted(loop.name, value)
        self.loops = self._cut(loop, factor)
        if loop.extent % factor:
            self.tails.append(affine(loop.extent) - value)
        self._refresh()

    # -- merging ------------------------------------------------------------------------------
    def _merge(self) -> None:
        """Merge neighbours ``(o, n)`` where every quantity has ``coeff(o) == extent(n) * coeff(n)``."""
        at = 0
        while at + 1 < len(self.loops):
            outer, inner = self.loops[at], self.loops[at + 1]
            name = f"{outer.name}_{inner.name}"
            if outer.serial or inner.serial or name in self.forced or not self._mergeable(outer, inner):
                at += 1
                continue
            merged = PlanLoop(name, outer.extent * inner.extent)
            parts = {outer.name: var(name) // inner.extent, inner.name: var(name) % inner.extent}
            self.env = {v: e.substitute(parts) for v, e in self.env.items()}
            self.loops[at : at + 2] = [merged]
            self._refresh()
            at = max(at - 1, 0)

    def _mergeable(self, outer: PlanLoop, inner: PlanLoop) -> bool:
        def goes_on(item: AffineQuantity) -> bool:
            by_outer, by_inner = item.stride(outer.name), item.stride(inner.name)
            return by_outer is not None and by_inner is not None and by_outer == by_inner * inner.extent

        return all(map(goes_on, self.items))

    # -- choosing -----------------------------------------------------------------------------
    def reduced(self) -> set[str]:
        """Loops that the stored address does not depend on, when the leaf is an update."""
        if self.update is None:
            return set()
        used: set[str] = set()

        def visit(node: Any) -> None:
            if node in self.env:
                used.update(self.env[node].variables())
            elif node in self.memory.tree.bindings:
                structural_walk(self.memory.tree.bindings[node], [(tvm.ir.Var, visit)])

        for index in self.update.store.indices:
            expr = self.converter.try_convert(index)
            if expr is None:
                structural_walk(index, [(tvm.ir.Var, visit)])
            else:
                used.update(expr.variables())
        return {loop.name for loop in self.loops} - used

    def choose(self) -> LeafPlan:
        """Columns: the loop with stride 1; rows: the next; all others serial."""
        reduced = self.reduced()
        free = [loop for loop in self.loops if not loop.serial]
        cols = self._columns(free, reduced)
        rows = self._rows([loop for loop in free if loop is not cols], reduced, cols)
        if rows is None and ROWS in self.leaf.annotations:
            rows, cols = cols, None
        if self.limit is not None:
            cols = self._limited(cols, self.limit)
            rows = self._limited(rows, self.limit // (cols.extent if cols else 1))
        tile = {loop.name for loop in (rows, cols) if loop is not None}
        serial = [loop for loop in self.loops if loop.name not in tile]
        reduced = self.reduced()
        apart = [loop.extent for loop in serial if loop.name in self.multiplied]
        if not tile and math.prod(apart) > MOST_SINGLE:
            refuse(
                "Each element would be moved by itself: along every loop a stride depends on sizes.",
                self.leaf.block,
                self.leaf.stmts[0].stmt,
                need="a loop along which the strides of all operands are numbers",
                remedy="fix some of the sizes: the kernel is then compiled for each of them",
            )
        serial.sort(key=lambda loop: loop.name in reduced)  # stable: what is stored stays outermost
        return LeafPlan(self.leaf, self.update, serial, reduced, rows, cols, self.converter, self.tails)

    def _unit_stride(self, kind: str, free: list[PlanLoop]) -> dict[str, int]:
        counts: dict[str, int] = {}
        for loop in free:
            hits = [i for i in self.items if i.kind == kind and i.expr.coefficient(loop.name) == 1]
            if hits:
                counts[loop.name] = len(hits)
        return counts

    def _columns(self, free: list[PlanLoop], reduced: set[str]) -> PlanLoop | None:
        if not free:
            return None
        stored, loaded = self._unit_stride("store", free), self._unit_stride("load", free)
        by_store = [loop for loop in free if loop.name in stored]
        by_load = sorted(
            (loop for loop in free if loop.name in loaded), key=lambda lp: (loaded[lp.name], lp.extent)
        )
        # a reduction reads more than it writes: its loads decide, unless that makes a narrow tile
        wide = [loop for loop in by_load if loop.name in reduced and loop.extent >= 8]
        if wide:
            return wide[-1]
        if by_store:
            return max(by_store, key=lambda loop: loop.extent)
        return by_load[-1] if by_load else free[-1]

    def _rows(self, free: list[PlanLoop], reduced: set[str], cols: PlanLoop | None) -> PlanLoop | None:
        if not free:
            return None
        spatial = [loop for loop in free if loop.name not in reduced] or self._boxed(free, cols)
        wide = [loop for loop in spatial if loop.extent >= LEAST_COLUMNS]
        return wide[-1] if wide else max(spatial, key=lambda loop: loop.extent)

    def _boxed(self, free: list[PlanLoop], cols: PlanLoop | None) -> list[PlanLoop]:
        """Loops whose conditions are sides of a box: a window's columns have theirs with ``cols``."""
        compared = [item.expr for item in self.items if item.kind in ("guard", "value")]
        beside = [expr for expr in compared if cols is not None and expr.coefficient(cols.name)]
        return [loop for loop in free if not any(expr.coefficient(loop.name) for expr in beside)] or free

    def _limited(self, loop: PlanLoop | None, limit: int) -> PlanLoop | None:
        """The inner part of a loop cut to ``limit``; None when that is a single iteration."""
        if loop is None or loop.extent <= limit:
            return loop
        if limit <= 1:
            return None
        even = [f for f in _divisors(loop.extent) if limit // 4 < f <= limit]
        factor = even[0] if even else limit
        at = self.loops.index(loop)
        self._split(loop, factor)
        inner = self.loops[at + 1]
        return None if inner.serial else inner


def _repeats(items: Iterable[AffineQuantity], outer: str, inner: str, factor: int) -> bool:
    """Whether two loops that were one are linear, and along the inner one everything goes on or stays.

    A tile along the outer one is then loaded once, and stored ``factor`` times, however few these are.
    """
    for item in items:
        around, within = item.stride(outer), item.stride(inner)
        if around is None or within is None or (within != 0 and around != within * factor):
            return False
    return True


def _divisors(extent: int) -> list[int]:
    """Proper divisors above 1, greatest first."""
    small = [d for d in range(1, int(extent**0.5) + 1) if extent % d == 0]
    return sorted({*small, *(extent // d for d in small)} - {1, extent}, reverse=True)


__all__ = ["LeafPlan", "PlanLoop", "Planner"]
