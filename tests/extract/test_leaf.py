# SPDX-License-Identifier: Apache-2.0
"""A statement that cannot be extracted is refused by its name."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import te
from uir_tvm.errors import ExtractionError, IGraphError
from uir_tvm.extract.box import NotABoxError
from uir_tvm.extract.leaf import LeafExtractor

from .compare import check
from .schedules import prim


@pytest.mark.parametrize(
    ("error", "what", "need"),
    [
        (IGraphError("A slice has too many columns.", where="8 columns"), "too many columns", "8 columns"),
        (NotABoxError("i < 4 or j < 3"), "more conditions than a box", "too many with i < 4 or j < 3"),
    ],
)
def test_what_no_iop_can_say_names_the_statement(
    error: Exception, what: str, need: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attempt(*arguments: Any) -> list[Any]:
        raise error

    monkeypatch.setattr(LeafExtractor, "_attempt", attempt)
    func = prim(lambda x: te.compute((8,), lambda i: x[i] + 1.0, "out"), ((8,), "float32"))
    with pytest.raises(ExtractionError, match=what) as caught:
        check(func)
    assert "out" in caught.value.where and need in caught.value.need
