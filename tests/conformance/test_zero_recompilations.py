# SPDX-License-Identifier: Apache-2.0
"""Models with open sizes compile once: whatever shape comes, nothing is compiled after the first call.

``scripts/check_open_models.py`` has the same models at their real sizes.
"""

from __future__ import annotations

import os

import pytest

from ..models.open_models import OPEN_MODELS, ROUTES, TOLERANCE, recompilations

ALL = bool(os.environ.get("UIR_TEST_ALL"))
#: The others with ``UIR_TEST_ALL=1``, at ten shapes each.
FEW = [("gpt2", "onnx"), ("lstm", "torch"), ("lstm", "onnx"), ("convolutions", "onnx")]
CASES = [(name, route) for name in OPEN_MODELS for route in ROUTES] if ALL else FEW


@pytest.mark.compares_itself
@pytest.mark.parametrize(("name", "route"), CASES)
def test_nothing_is_compiled_after_the_first_call(name: str, route: str) -> None:
    found = recompilations(name, route, 10 if ALL else 4)
    assert found.error <= TOLERANCE
    assert found.count == 0, found
