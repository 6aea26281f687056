# SPDX-License-Identifier: Apache-2.0
"""Points of two regions are joined by keys of 64 bits, where those suffice."""

from __future__ import annotations

import pytest
from uir_tvm.igraph import IPointer, ISlice, var
from uir_tvm.verify.decide import TooMany
from uir_tvm.verify.meeting import _Question, _Side
from uir_tvm.verify.region import region_of

FAR = 1 << 59
POINTER = IPointer("p", "dram", "fp32", 64)


@pytest.mark.parametrize(("step", "base"), [(FAR, 0), (-FAR, 0), (FAR, -3 * FAR)])
@pytest.mark.parametrize("equal", [[], ["k"]])
def test_keys_that_would_leave_64_bits_are_given_up(step: int, base: int, equal: list[str]) -> None:
    """A key has the address and the loops in which both sides agree, here of two iterations."""
    region = region_of(
        ISlice(POINTER, var("pid") * step + var("k") + base, (1, 1), (1, 1)), {"pid": 5, "k": 2}
    )
    question = object.__new__(_Question)
    question.equal, question.carried = equal, None
    farthest = max(abs(base), abs(base + 4 * step)) + 1
    if farthest * 2 ** len(equal) < 1 << 62:
        table = _Question._table(question, _Side(region, {}))
        assert len(set(table["key"].tolist())) == 10
        assert sorted(set(table["address"].tolist())) == sorted(
            {base + pid * step + k for pid in range(5) for k in range(2)}
        )
    else:
        with pytest.raises(TooMany):
            _Question._table(question, _Side(region, {}))
