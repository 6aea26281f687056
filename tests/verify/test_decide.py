# SPDX-License-Identifier: Apache-2.0
"""The ladder asks the cheapest method first, and says which one answered."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import attrs
import islpy
import pytest
from uir_tvm.igraph.space import Size
from uir_tvm.verify import decide, isl
from uir_tvm.verify.decide import Decision, Rung, TooMany
from uir_tvm.verify.sized_launch import STATIC, SizedLaunch


@attrs.define
class Asked:
    """A question that notes who was asked."""

    num_points: int
    intervals: bool = False
    found: str | None = "it"
    outgrows: tuple[bool, ...] = ()
    exhausted: bool = False
    log: list[str] = attrs.field(factory=list)
    launch: SizedLaunch = STATIC

    def excluded(self) -> bool:
        self.log.append("intervals")
        return self.intervals

    def by_points(self, few: bool) -> str | None:
        self.log.append("few" if few else "all")
        if few in self.outgrows:
            raise TooMany
        return self.found

    def by_isl(self) -> str | None:
        self.log.append("isl")
        if self.exhausted:
            raise isl.Exhausted
        return self.found


@pytest.mark.parametrize(
    ("question", "asked", "answer"),
    [
        (Asked(1, intervals=True), ["intervals"], Decision(None, Rung.INTERVALS)),
        (Asked(9), ["intervals", "few"], Decision("it", Rung.POINTS)),
        (Asked(9, found=None), ["intervals", "few"], Decision(None, Rung.POINTS)),
        (Asked(11), ["intervals", "isl"], Decision("it", Rung.ISL)),
        (Asked(9, outgrows=(True,)), ["intervals", "few", "isl"], Decision("it", Rung.ISL)),
        (Asked(11, exhausted=True), ["intervals", "isl", "all"], Decision("it", Rung.POINTS)),
        (Asked(11, exhausted=True, outgrows=(False,)), ["intervals", "isl", "all"], Decision(None, None)),
        (Asked(101, exhausted=True), ["intervals", "isl"], Decision(None, None)),
    ],
)
def test_the_first_rung_with_an_answer(monkeypatch, question, asked, answer):
    monkeypatch.setattr(decide, "MAX_POINTS", 100)
    assert decide.decide(question, few=10) == answer
    assert question.log == asked


@attrs.define
class AskedForAll(Asked):
    """A question for all sizes: each way has an answer or gives up, and so has each size."""

    ways: tuple[str | None, ...] = ()
    launch: SizedLaunch = SizedLaunch((Size("n", 3, 100),))
    shown_from: int = 0

    def counterexamples(self) -> list[Callable[[], islpy.Set]]:
        def way(name: str | None) -> islpy.Set:
            self.log.append(str(name))
            if name is None:
                raise isl.Exhausted
            return islpy.Set.read_from_str(isl.context(), f"[s0] -> {{ [a] : {name} and s0 <= 100 }}")

        return [functools.partial(way, name) for name in self.ways]

    def at(self, sizes: Mapping[str, int]) -> Asked:
        self.log.append(f"at {sizes['n']}")
        return Asked(1, found="it" if sizes["n"] >= self.shown_from else None)


@pytest.mark.parametrize(
    ("question", "asked", "answer"),
    [
        (AskedForAll(1, intervals=True), ["intervals"], Decision(None, Rung.INTERVALS)),
        (AskedForAll(1, ways=("false",)), ["intervals", "false"], Decision(None, Rung.ISL)),
        (
            AskedForAll(1, ways=("s0 > 7",)),
            ["intervals", "s0 > 7", "at 8"],
            Decision("it", Rung.ISL, {"n": 8}),
        ),
        (AskedForAll(1, ways=(None, "false")), ["intervals", "None", "false"], Decision(None, Rung.ISL)),
        (
            AskedForAll(1, ways=(None,), shown_from=5),
            ["intervals", "None", "at 3", "at 4", "at 8"],
            Decision("it", Rung.POINTS, {"n": 8}),
        ),
        (
            AskedForAll(1, ways=(None,), shown_from=101),
            ["intervals", "None", "at 3", "at 4", "at 8", "at 69", "at 100"],
            Decision(None, None),
        ),
    ],
)
def test_for_all_sizes_intervals_or_isl_decide(question, asked, answer):
    """What isl finds is shown at its least sizes; where it gives up, sizes may show it, none disproves it."""
    assert decide.decide(question) == answer
    assert question.log == asked


def test_what_nothing_decides_is_not_excluded():
    assert not Decision(None, None).decided and not Decision(None, None).excluded
    assert Decision(None, Rung.ISL).excluded and not Decision("it", Rung.ISL).excluded


def test_few_points_are_those_of_the_module(monkeypatch):
    monkeypatch.setattr(decide, "FEW_POINTS", 0)
    question = Asked(1)
    assert decide.decide(question).rung is Rung.ISL
