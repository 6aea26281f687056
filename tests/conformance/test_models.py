# SPDX-License-Identifier: Apache-2.0
"""Whole models at small scale, through every front end: torch's numbers, and no kernel without an iGraph.

``scripts/check_models.py`` does the same at full scale.
"""

from __future__ import annotations

import pytest

from tests.models import MODELS

from .model_check import LIMIT, check_model

ROUTES = [(name, "torch") for name in MODELS] + [(name, "onnx") for name in MODELS if MODELS[name].onnx]


@pytest.mark.parametrize(("name", "route"), ROUTES, ids=[f"{name}-{route}" for name, route in ROUTES])
def test_model(name: str, route: str) -> None:
    outcome = check_model(name, route, "small")
    assert outcome.fallbacks == {}
    assert outcome.kernels > 0
    assert outcome.error <= LIMIT
