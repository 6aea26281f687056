# SPDX-License-Identifier: Apache-2.0
"""Attention of few rows to many keys: several units share the keys of a batch, and combine what they found.

    for p in batch * parts:                    for p in batch:
      m, l, o over the blocks J = p mod parts    n = max_p m_p
      m_p, l_p, o_p = m, l, o                    l = sum_p exp(m_p - n) * l_p;  o = sum_p exp(m_p - n) * o_p
                                                 O = o / l

Between both stands a barrier of all units.  However many keys there are when the kernel runs, all parts have
nearly as many.
"""

from __future__ import annotations

import math
from typing import Any

from tvm import tirx
from uir_tvm.schedule import make_tir as t
from uir_tvm.schedule.annotations import LOOP, ROWS
from uir_tvm.schedule.wide_values import WIDE
from uir_tvm.schedules.attention.work import Numbered, dealt_groups
from uir_tvm.schedules.attention.writer import FlashWriter


class SplitWriter(FlashWriter):
    """Writes one function whose batch is counted by numbers, and whose rows are one tile."""

    def write(self) -> tirx.PrimFunc:
        """The whole function."""
        parts, batch = self.tile.parts, self.parts.batch
        sets = math.prod(batch)
        groups = dealt_groups(sets * parts, self.tile.groups)
        self.uneven = bool(self.blocks % parts)
        places = sets * parts
        self.m_part, self.l_part = (
            self._buffer(name, (places, self.rows), WIDE, "global") for name in ("m_part", "l_part")
        )
        shape = (places, *self._pair(self.rows, self.width))
        self.o_part = self._buffer("o_part", shape, WIDE, "global")
        self.first_row, self.last_row = t.index(0), t.index(self.rows - 1)

        def some(place: list[Any], *_rows: Any) -> Any:
            *self.batch, self.part = place
            return t.sequence(
                [
                    self._rows_of_queries(),
                    *self._begin(),
                    self._walk(math.ceil(self.blocks / parts)),
                    *self._kept(self._number() * parts + self.part),
                ]
            )

        def all_of_it(place: list[Any], *_rows: Any) -> Any:
            self.batch = place
            first = self._number() * parts
            begin = self._begin("all_")
            peaks = t.loop("part", parts, lambda part: self._peak(first + part), {LOOP: 1})
            sums = t.loop("part", parts, lambda part: self._added(first + part), {LOOP: 1})
            return t.sequence([*begin, peaks, sums, *self._end()])

        loops = [
            Numbered((*batch, parts, 1), groups, self.rows).loops(some),
            Numbered((*batch, 1), groups, self.rows).loops(all_of_it),
        ]
        return t.function(self.func, t.sequence(loops), self.buffers)

    def _first_key(self, number: Any) -> Any:
        return (number * self.tile.parts + self.part) * self.keys

    def _number(self) -> Any:
        """The number of the batch."""
        number: Any = t.index(0)
        for place, extent in zip(self.batch, self.parts.batch, strict=True):
            number = number * extent + place
        return number

    def _kept(self, place: Any) -> list[Any]:
        """What a unit found, to memory."""

        def line(target: Any, source: Any) -> Any:
            return t.nest(
                [("i", self.rows)],
                lambda i: t.block(
                    "keep",
                    t.store(target, (place, i), t.load(source, i)),
                    {} if self.tile.turned else {ROWS: 1},
                ),
            )

        def tile(a: Any, b: Any) -> Any:
            return t.block("keep", t.store(self.o_part, (place, a, b), t.load(self.o, a, b)), {ROWS: 1})

        extents = self._pair(("i", self.rows), ("c", self.width))
        return [line(self.m_part, self.m), line(self.l_part, self.total), t.nest(list(extents), tile)]

    def _peak(self, place: Any) -> Any:
        """The greatest of all maxima."""
        return self._rows(
            "peak", self.m, None, lambda i: tirx.max(t.load(self.m, i), t.load(self.m_part, place, i))
        )

    def _added(self, place: Any) -> Any:
        """One part, rescaled."""

        def output(i: Any, c: Any) -> Any:
            part = t.load(self.o_part, place, *self._pair(i, c))
            return self._load(self.o, i, c) + part * t.load(self.a, i)

        return t.sequence(
            [
                self._rows(
                    "rescale",
                    self.a,
                    None,
                    lambda i: tirx.exp(t.load(self.m_part, place, i) - t.load(self.m, i)),
                ),
                self._rows(
                    "sum",
                    self.total,
                    None,
                    lambda i: t.load(self.total, i) + t.load(self.l_part, place, i) * t.load(self.a, i),
                ),
                self._rows("output", self.o, self.width, output),
            ]
        )
