# SPDX-License-Identifier: Apache-2.0
"""A small language model with random weights, and a tokenizer of its words."""

from __future__ import annotations

from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

WORDS = 61
TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }} {{ m['content'] }} {% endfor %}"
    "{% if add_generation_prompt %}assistant {% endif %}"
)


def tokenizer() -> Any:
    """Words w0 to w60 and the roles; ``end`` ends an answer."""
    words = ["unknown", "end", "user", "assistant", "system"]
    words += [f"w{number}" for number in range(WORDS - len(words))]
    made = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="unknown"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    found = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="end", unk_token="unknown")
    found.chat_template = TEMPLATE
    return found


def model(layers: int = 2) -> Any:
    """Query heads share key and value heads."""
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=WORDS,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=96,
        tie_word_embeddings=True,
        eos_token_id=1,
    )
    made = LlamaForCausalLM(config).eval()
    for (
        parameter
    ) in made.parameters():  # logits apart, so that the most likely token is no matter of rounding
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.2)
    return made
