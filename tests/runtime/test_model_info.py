# SPDX-License-Identifier: Apache-2.0
"""What an executable says of its kernels: rows of passes are made when they are read."""

from __future__ import annotations

import attrs
from uir_tvm.runtime.model_info import KernelInfo, StepRows, changed_by_pass

ROW = {"pass": "simplify", "changed": True, "note": "1 iOp less", "fault": ""}


def test_rows_are_made_once_when_they_are_read() -> None:
    """Neither an info nor a copy of it reads them; a reader gets them all, each time the same."""
    made: list[int] = []

    def make() -> list[dict[str, object]]:
        made.append(1)
        return [ROW, {**ROW, "changed": False}]

    info = KernelInfo("one", "softmax", "normalization", "", passes=StepRows(make))
    copy = attrs.evolve(info, kept="memory")
    assert not made
    assert [step["changed"] for step in copy.passes] == [True, False]
    assert list(info.passes) == [ROW, {**ROW, "changed": False}] and len(info.passes) == 2
    assert info.passes[0] == ROW and list(info.passes[1:]) == [{**ROW, "changed": False}]
    assert changed_by_pass([info]) == {"simplify": 1}
    assert made == [1]


def test_rows_equal_those_of_a_file() -> None:
    """An info compares with the one that is read again, whose rows are there."""
    kept = KernelInfo("one", "softmax", "normalization", "", passes=[ROW])
    info = KernelInfo("one", "softmax", "normalization", "", passes=StepRows(lambda: [ROW]))
    other = KernelInfo(
        "one", "softmax", "normalization", "", passes=StepRows(lambda: [{**ROW, "fault": "x"}])
    )
    assert info == kept and other != kept
