# SPDX-License-Identifier: Apache-2.0
"""What is compared by name: models, networks, operators, recurrent layers, a graph break."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import torch
from networks import NETWORKS
from networks import build as build_network
from operators import OPERATORS, Operator
from transformers import BertConfig, BertModel

from tests.models import MODELS
from tests.models.minilm import SentenceEncoder
from tests.models.registry import perturb

BY_NAME: dict[str, Operator] = {operator.name: operator for operator in OPERATORS}
#: Recurrent layers of 256 inputs and states, 128 steps: name -> class, batch.
RECURRENT: dict[str, tuple[type[torch.nn.RNNBase], int]] = {
    f"{name} 128x{batch}x256": (layer, batch)
    for name, layer in (("lstm", torch.nn.LSTM), ("gru", torch.nn.GRU))
    for batch in (1, 4)
}
#: BERT-base (the defaults of BertConfig: 12 layers of 768) on one row of 128 tokens, random weights.
BERT = "bert"
#: A module that dynamo cuts in two.
BREAK = "graph break"
NAMES: tuple[str, ...] = (*MODELS, BERT, *NETWORKS, *BY_NAME, *RECURRENT, BREAK)


class Broken(torch.nn.Module):
    """Two blocks of a transformer's feed-forward part, with a graph break between them."""

    def __init__(self) -> None:
        super().__init__()
        sizes = (384, 1536)
        self.parts = torch.nn.ModuleList(
            torch.nn.Sequential(
                torch.nn.LayerNorm(sizes[0]),
                torch.nn.Linear(*sizes),
                torch.nn.GELU(),
                torch.nn.Linear(*sizes[::-1]),
            )
            for _ in range(2)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32 (rows, 384) -> the same shape."""
        x = x + self.parts[0](x)
        torch._dynamo.graph_break()
        return x + self.parts[1](x)


def build(name: str) -> Any:
    """(torch module, inputs) of a case; equal calls give equal weights and inputs."""
    if name == BERT:
        torch.manual_seed(7)
        config = BertConfig()
        tokens = torch.randint(config.vocab_size, (1, 128))
        encoder = perturb(SentenceEncoder(BertModel(config, add_pooling_layer=False)))
        return encoder.eval().requires_grad_(False), (tokens, torch.ones_like(tokens))
    if name == BREAK:
        torch.manual_seed(7)
        return Broken().eval(), (torch.randn(128, 384),)
    if name in RECURRENT:
        layer, batch = RECURRENT[name]
        torch.manual_seed(7)
        return layer(256, 256).eval(), (torch.randn(128, batch, 256),)
    if name in NETWORKS:
        return build_network(name)
    return MODELS[name].build("full") if name in MODELS else BY_NAME[name].build()
