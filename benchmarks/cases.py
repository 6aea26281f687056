# SPDX-License-Identifier: Apache-2.0
"""What is compared: the models of the tests, fused operators, and recurrent layers, by name."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import torch
from operators import OPERATORS, Operator

from tests.models import MODELS

BY_NAME: dict[str, Operator] = {operator.name: operator for operator in OPERATORS}
#: Recurrent layers of 256 inputs and states, 128 steps: name -> class, batch.
RECURRENT: dict[str, tuple[type[torch.nn.RNNBase], int]] = {
    f"{name} 128x{batch}x256": (layer, batch)
    for name, layer in (("lstm", torch.nn.LSTM), ("gru", torch.nn.GRU))
    for batch in (1, 4)
}
NAMES: tuple[str, ...] = (*MODELS, *BY_NAME, *RECURRENT)


def build(name: str) -> Any:
    """(torch module, inputs) of a case; equal calls give equal weights and inputs."""
    if name in RECURRENT:
        layer, batch = RECURRENT[name]
        torch.manual_seed(7)
        return layer(256, 256).eval(), (torch.randn(128, batch, 256),)
    return MODELS[name].build("full") if name in MODELS else BY_NAME[name].build()
