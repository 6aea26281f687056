# SPDX-License-Identifier: Apache-2.0
"""The ladder asks the cheapest method first, and says which one answered."""

from __future__ import annotations

import attrs
import pytest
from uir_tvm.verify import decide, isl
from uir_tvm.verify.decide import Decision, Rung, TooMany
from uir_tvm.verify.launch import STATIC, Launch


@attrs.define
class Asked:
    """A question that notes who was asked."""

    num_points: int
    intervals: bool = False
    found: str | None = "it"
    outgrows: tuple[bool, ...] = ()
    exhausted: bool = False
    log: list[str] = attrs.field(factory=list)
    launch: Launch = STATIC

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


def test_what_nothing_decides_is_not_excluded():
    assert not Decision(None, None).decided and not Decision(None, None).excluded
    assert Decision(None, Rung.ISL).excluded and not Decision("it", Rung.ISL).excluded


def test_few_points_are_those_of_the_module(monkeypatch):
    monkeypatch.setattr(decide, "FEW_POINTS", 0)
    question = Asked(1)
    assert decide.decide(question).rung is Rung.ISL
