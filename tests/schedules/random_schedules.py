# SPDX-License-Identifier: Apache-2.0
"""Random schedules of a function: tiles, levels, group sizes, loop orders, all through the primitives.

Every decision is drawn, so that a failure shrinks to few and small ones; `Trial.steps` says what was done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from hypothesis import strategies as st
from tvm.s_tir import Schedule
from uir_tvm import schedule as primitives
from uir_tvm.igraph import HardwareModel
from uir_tvm.schedule.annotations import LOOP
from uir_tvm.schedule.blocks import BlockInfo, leaf_blocks, loop_extent, param_names, reduction_loops
from uir_tvm.schedule.prepare import inline_producers, prepare
from uir_tvm.schedule.row_chain import Nest, map_chain, output_blocks
from uir_tvm.schedule.transaction import refused_by_tvm

Draw = Callable[[Any], Any]

#: Memory of a unit and of a group; small ones make capacity part of the game.
REG_BYTES, SRAM_BYTES = (1 << 14, 1 << 16, 1 << 18), (1 << 14, 1 << 17)


def devices(draw: Draw, like: HardwareModel | None = None) -> HardwareModel:
    """A device with groups of several units; ``like``: of that kind, with its figures."""

    def choose(options: tuple[int, ...]) -> int:
        return options[draw(st.integers(0, len(options) - 1))]

    units, groups = choose((2, 4, 1, 3, 8)), choose((2, 1, 3))
    reg, sram = choose(REG_BYTES), choose(SRAM_BYTES)
    kind, figures = ("test", {}) if like is None else (like.kind, dict(like.figures))
    if "group_units" in figures:
        figures["group_units"] = min(units, int(figures["group_units"]))
    return HardwareModel(f"random-{groups}x{units}", kind, groups, units, reg, sram, 64, figures)  # type: ignore[call-arg]


@attrs.define
class Trial:
    """One schedule while it is made."""

    sch: Schedule
    hardware: HardwareModel
    draw: Draw
    steps: list[str] = attrs.field(factory=list)

    def choose(self, *options: Any) -> Any:
        """One of the options; shrinks to the first."""
        return options[self.draw(st.integers(0, len(options) - 1))]

    def note(self, text: str) -> None:
        """Say what is about to be done."""
        self.steps.append(text)

    # -- the steps

    def run(self) -> None:
        """Make the schedule.

        Raises
        ------
        ScheduleError
            A primitive refuses.
        """
        self._prepare()
        if self.hardware.num_units > 1 and self.choose(False, True):
            self._group_reduce()
        nest = self._map()
        self._attach(nest)
        self._stage(nest)
        self._split_reductions(nest)
        self._reorder(nest)
        self._pipeline(nest)

    def _prepare(self) -> None:
        how = self.choose("prepare", "prepare", "inline", "nothing")
        self.note(f"{how} first")
        if how == "prepare":
            prepare(self.sch)
        elif how == "inline":
            inline_producers(self.sch)

    def _group_reduce(self) -> None:
        """Share one reduction between units."""
        reductions = [b for b in leaf_blocks(self.sch) if b.is_reduction]
        if not reductions:
            return
        block = self.choose(*reductions)
        loops = reduction_loops(self.sch, block.rv)
        loop = self.choose(*loops)
        units, extent = int(self.hardware.num_units), loop_extent(self.sch, loop)
        sizes = [d for d in range(2, units + 1) if units % d == 0 and extent % d == 0]
        if not sizes:
            return
        size = self.choose(*sizes)
        self.note(f"group_reduce({block.name}, loop of {extent}, {size})")
        primitives.group_reduce(self.sch, block.rv, loop, size, hardware=self.hardware)

    def _map(self) -> Nest:
        roots = output_blocks(self.sch)
        spatial = roots[-1].spatial or (1,)
        count = self.draw(st.integers(0, len(spatial)))
        if roots[-1].is_reduction:
            count = len(spatial)
        rows = 1
        for extent in spatial[:count]:
            rows *= extent
        tile = (
            self.choose(1, 2, 3, 4, 8, 16, None),
            self.choose(None, 1, 2, 3, 7, 8, 16, 32, 100),
        )
        groups = self.choose(int(self.hardware.num_groups), 1)
        split = self.choose(False, True)
        self.note(
            f"map {[b.name for b in roots]}: {rows} rows, tile {tile}, {groups} groups, split_columns={split}"
        )
        return map_chain(self.sch, self.hardware, rows, tile, num_groups=groups, split_columns=split)

    def _levels(self) -> tuple[str, ...]:
        return ("reg", "reg", "sram") if self.hardware.sram_bytes else ("reg",)

    def _loops(self, nest: Nest) -> list[Any]:
        """Loops that producers may be attached at: the serial ones around the last output block."""
        loops = list(self.sch.get_loops(nest.roots[-1].rv))
        return (
            [lp for lp in loops if LOOP in self.sch.get(lp).annotations]
            if len(nest.roots) == 1
            else [nest.lid]
        )

    def _attach(self, nest: Nest) -> None:
        """Every producer under a serial loop, in reg or sram, or inlined; last first."""
        roots = {b.name for b in nest.roots}
        for block in reversed([b for b in leaf_blocks(self.sch) if b.name not in roots]):
            if block.is_injective and not block.is_expensive and self.choose(False, False, False, True):
                self.note(f"inline {block.name}")
                try:
                    self.sch.compute_inline(block.rv)
                    continue
                except Exception as error:
                    if not refused_by_tvm(error):
                        raise
                    self.note("... which TVM refuses")
            level, loop = self._level_of(block), self.choose(*reversed(self._loops(nest)))
            self.note(f"move_to_hierarchy({block.name}, {block.writes[0]}, {level}, at={self._named(loop)})")
            primitives.move_to_hierarchy(
                self.sch, block.rv, block.writes[0], level, loop, hardware=self.hardware
            )

    def _level_of(self, block: BlockInfo) -> str:
        scopes = {w.source.scope() for w in block.stmt.writes}
        # what group_reduce put into sram stays there
        return "sram" if "shared" in scopes else self.choose(*self._levels())

    def _stage(self, nest: Nest) -> None:
        """Some parameters through reg or sram."""
        if not self.choose(False, True):
            return
        for block in leaf_blocks(self.sch):
            read = sorted(set(block.reads) & param_names(self.sch) - set(block.writes))
            if not read or not self.choose(False, True):
                continue
            name, level = self.choose(*read), self.choose(*self._levels())
            loop = self.choose(*reversed(self._loops(nest)))
            self.note(f"move_to_hierarchy({block.name}, {name}, {level}, at={self._named(loop)})")
            primitives.move_to_hierarchy(self.sch, block.rv, name, level, loop, hardware=self.hardware)

    def _split_reductions(self, nest: Nest) -> None:
        """Cut reduction loops in chunks, the outer one serial."""
        for block in leaf_blocks(self.sch):
            if not block.is_reduction or not self.choose(False, True):
                continue
            for loop in reduction_loops(self.sch, block.rv)[-1:]:
                chunk = self.choose(1, 2, 4, 8, 16)
                if loop_extent(self.sch, loop) > chunk:
                    self.note(f"split a reduction of {block.name} by {chunk}")
                    outer, _ = self.sch.split(loop, [None, chunk])
                    self.sch.annotate(outer, LOOP, 1)

    def _reorder(self, nest: Nest) -> None:
        """Exchange the two tile loops of an output block."""
        for root in nest.roots:
            loops = list(self.sch.get_loops(root.rv))[-2:]
            free = [lp for lp in loops if not self.sch.get(lp).annotations]
            if len(free) == 2 and not root.is_reduction and self.choose(False, False, True):
                self.note(f"reorder the tile loops of {root.name}")
                try:
                    self.sch.reorder(free[1], free[0])
                except Exception as error:
                    if not refused_by_tvm(error):
                        raise
                    self.note("... which TVM refuses")

    def _pipeline(self, nest: Nest) -> None:
        """Several buffers for one of the serial loops."""
        if self.choose(False, False, True):
            loop, stages = self.choose(*self._loops(nest)), self.choose(2, 3)
            self.note(f"pipeline({self._named(loop)}, {stages})")
            primitives.pipeline(self.sch, loop, stages)

    def _named(self, loop: Any) -> str:
        return str(self.sch.get(loop).loop_var.name)
