# SPDX-License-Identifier: Apache-2.0
"""Whole models at small scale, through every front end: torch's numbers, and no kernel without an iGraph.

``scripts/check_models.py`` does the same at full scale.
"""

from __future__ import annotations

import pytest
from uir_tvm.target.registry import TARGETS

from tests.models import MODELS

from .model_check import LIMIT, check_model

ROUTES = [(name, "torch") for name in MODELS] + [(name, "onnx") for name in MODELS if MODELS[name].onnx]


#: A front end is tested once; other targets start from what the first route gives.
RUNS = [(*route, "uir-cpu") for route in ROUTES]
RUNS += [(name, "torch", target) for target in TARGETS if target != "uir-cpu" for name in MODELS]


@pytest.mark.parametrize(("name", "route", "target"), RUNS, ids=["-".join(run) for run in RUNS])
def test_model(name: str, route: str, target: str) -> None:
    outcome = check_model(name, route, "small", target)
    assert outcome.fallbacks == {}
    assert outcome.kernels > 0
    assert outcome.error <= LIMIT
