# SPDX-License-Identifier: Apache-2.0
"""What is compared: the models of the tests, and fused operators, by name."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from operators import OPERATORS, Operator

from tests.models import MODELS

BY_NAME: dict[str, Operator] = {operator.name: operator for operator in OPERATORS}
NAMES: tuple[str, ...] = (*MODELS, *BY_NAME)


def build(name: str) -> Any:
    """(torch module, inputs) of a case; equal calls give equal weights and inputs."""
    return MODELS[name].build("full") if name in MODELS else BY_NAME[name].build()
