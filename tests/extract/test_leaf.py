# SPDX-License-Identifier: Apache-2.0
"""A statement that cannot be extracted is refused by its name."""

from __future__ import annotations

from typing import Any

import pytest
from tvm import te
from uir_tvm.errors import ExtractionError, IGraphError
from uir_tvm.extract.leaf import LeafExtractor

from .compare import check
from .schedules import prim


def test_what_no_iop_can_say_names_the_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    def attempt(*arguments: Any) -> list[Any]:
        raise IGraphError("A slice has too many columns.", where="8 columns")

    monkeypatch.setattr(LeafExtractor, "_attempt", attempt)
    func = prim(lambda x: te.compute((8,), lambda i: x[i] + 1.0, "out"), ((8,), "float32"))
    with pytest.raises(ExtractionError, match="too many columns") as caught:
        check(func)
    assert "out" in caught.value.where and caught.value.need == "8 columns"
