# SPDX-License-Identifier: Apache-2.0
"""Keys and values kept in 16 bits: half the state, and answers that differ by their rounding alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import uir_tvm.llm
from uir_tvm.errors import GenerationError
from uir_tvm.options import CompileOptions

from ..asked import asked
from .small import WORDS, model, tokenizer

TOKENS = [5 + number * 7 % (WORDS - 5) for number in range(19)]
#: Devices are a matter of the campaign.
TARGETS = asked(["uir-cpu"], ["uir-cpu", "uir-cuda", "uir-ascend", "uir-bang"])


def _load(cache: str | None, target: str = "uir-cpu", **given: Any) -> uir_tvm.llm.LanguageModel:
    options = CompileOptions(variants="named", device="auto" if target == "uir-cpu" else "model")
    return uir_tvm.llm.load(
        model(1), target, max_length=32, chunk=8, tokenizer=tokenizer(), cache=cache, options=options, **given
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("cache", "most"), [("fp16", 4e-3), *asked([], [("bfloat16", 3e-2)])])
def test_logits_differ_by_the_rounding_of_the_cache(target: str, cache: str, most: float) -> None:
    """Logits are up to 3; what the rounding of keys, values and queries makes of them was 1e-3 and 1e-2."""
    kept = _load(cache, target)
    with torch.no_grad():
        wanted = model(1)(torch.tensor([TOKENS])).logits[0].numpy()
    for got, place in ((kept.prefill(TOKENS[:-1]), -2), (kept.decode(TOKENS[-1]), -1)):
        difference = np.abs(got - wanted[place]).max()
        assert 1e-5 < difference < most
    room = 32 + kept.counts_keys  # one that is never written
    whole = 2 * 2 * room * 8 * 4  # keys and values, heads, tokens, numbers, bytes
    assert kept.nbytes.state == whole // 2
    if target == "uir-cpu":  # and the library reads it, a token too
        report = kept.executable.specialized(np.array([[5]]), np.array([3])).report()
        assert "attention" not in report["heroes"]


def test_packed_weights_keep_it_in_float16_and_others_in_their_own_type() -> None:
    from uir_tvm.llm.load_model import _cache_type
    from uir_tvm.llm.read_model import packed_model

    assert _cache_type(model(1), None) is None
    assert _cache_type(packed_model(model(1), "q8"), None) is torch.float16
    assert _cache_type(packed_model(model(1), "q8"), "float32") is torch.float32


def test_what_it_cannot_be_kept_in() -> None:
    with pytest.raises(
        GenerationError, match=r"cache is 'int8'(.|\n)*need: *one of float32, float16, bfloat16, fp32"
    ):
        _load("int8")
