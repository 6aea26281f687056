# SPDX-License-Identifier: Apache-2.0
"""GPT-2 of ``transformers``, random weights, without a KV cache."""

from __future__ import annotations

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from .registry import Built, Scale, perturb

# The defaults of GPT2Config are GPT-2 small: 12 layers, 12 heads, hidden 768, vocabulary 50257.
CONFIGS: dict[str, tuple[GPT2Config, int]] = {
    "full": (GPT2Config(use_cache=False), 128),
    "small": (
        GPT2Config(
            vocab_size=97,
            n_positions=16,
            n_embd=32,
            n_layer=2,
            n_head=2,
            use_cache=False,
            bos_token_id=None,
            eos_token_id=None,
        ),
        16,
    ),
}


class Gpt2(torch.nn.Module):
    """Token ids, int64 (batch, length) -> logits, fp32 (batch, length, vocabulary)."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.model = GPT2LMHeadModel(config)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=input_ids, use_cache=False).logits


def build(scale: Scale) -> Built:
    """GPT-2 on one row of random token ids."""
    config, length = CONFIGS[scale]
    return perturb(Gpt2(config)), (torch.randint(config.vocab_size, (1, length)),)
