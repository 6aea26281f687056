# SPDX-License-Identifier: Apache-2.0
"""Devices are told how many keys there are: one program for all lengths of a conversation, and no mask."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import uir_tvm.llm
from uir_tvm.llm.load_model import _counts_keys
from uir_tvm.options import CompileOptions
from uir_tvm.target.registry import TARGETS

from .small import WORDS, model, tokenizer

TOKENS = [5 + number * 7 % (WORDS - 5) for number in range(19)]
DEVICES = [target for target in TARGETS if target != "uir-cpu"]
ROOM, CHUNK = 24, 8


def _load(target: str, **given: Any) -> Any:
    options = CompileOptions(variants="named", device="auto" if target == "uir-cpu" else "model")
    return uir_tvm.llm.load(
        model(1), target, max_length=ROOM, chunk=CHUNK, tokenizer=tokenizer(), options=options, **given
    )


def test_who_is_told() -> None:
    """The library of uir-cpu finds open keys by the mask; a captured graph has one shape."""
    assert [target for target in TARGETS if _counts_keys(target, None)] == DEVICES
    assert not any(_counts_keys(target, CompileOptions(cuda_graph=True)) for target in TARGETS)


#: Two chunks, a token, some more, and as many as there is room for.
PROMPTS = (TOKENS[:13], TOKENS[:14], TOKENS, [*TOKENS, *TOKENS[: ROOM - len(TOKENS)]])


@pytest.fixture(scope="module")
def wanted() -> list[np.ndarray]:
    """What the CPU answers to each prompt."""
    made = _load("uir-cpu")
    return [np.array(made.prefill(tokens)) for tokens in PROMPTS]


@pytest.mark.parametrize("target", DEVICES)
def test_tokens_are_those_of_the_cpu(target: str, wanted: list[np.ndarray]) -> None:
    made = _load(target)
    for tokens, logits in zip(PROMPTS, wanted, strict=True):
        np.testing.assert_allclose(made.prefill(tokens), logits, rtol=1e-4, atol=1e-4)
    report = made.executable.report()
    (program,) = report["programs"]
    assert (report["imported_by_shape"], program["kernels_by_sizes"]) == ("", [])
    token = made.executable.specialized(*made.inputs(3, np.zeros((1, 1), np.int64)))
    assert not any(kernel.fallback for kernel in token.info.kernels)
    assert not any("arange" in kernel.name or "less" in kernel.name for kernel in token.info.kernels)


def test_rows_of_several_prompts() -> None:
    """Where rows begin is data, so a mask is left; it is of the keys so far."""
    made, wanted = _load("uir-ascend", batch=2), _load("uir-cpu", batch=2)
    rows = [TOKENS[:9], TOKENS[3:8]]
    np.testing.assert_allclose(made.prefill(rows), wanted.prefill(rows), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(made.decode([7, 9]), wanted.decode([7, 9]), rtol=1e-4, atol=1e-4)
    (program,) = made.executable.report()["programs"]
    assert program["kernels_by_sizes"] == []


def test_a_saved_model_is_told_too(tmp_path: Any) -> None:
    made = _load("uir-ascend")
    wanted = made.prefill(TOKENS[:6])
    made.save(tmp_path)
    loaded = uir_tvm.llm.load(tmp_path)
    assert loaded.counts_keys
    np.testing.assert_array_equal(loaded.prefill(TOKENS[:6]), wanted)
