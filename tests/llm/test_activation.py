# SPDX-License-Identifier: Apache-2.0
"""Language models whose products round activations to 8 bits; where that is refused."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
import torch
import uir_tvm.llm
from click.testing import CliRunner
from uir_tvm.cli import main
from uir_tvm.errors import GenerationError, TargetError, UirError
from uir_tvm.options import CompileOptions

from .small import model, tokenizer

TOKENS = [7, 8, 9, 3, 20, 41]


def load(**given: Any) -> Any:
    return uir_tvm.llm.load(model(), max_length=40, chunk=20, tokenizer=tokenizer(), **given)


def test_logits_are_close_and_not_the_same(tmp_path: pathlib.Path) -> None:
    """Of one row and of many; saved and loaded again, too."""
    exact, rounded = load(weights="q8"), load(weights="q8", activation="int8")
    for tokens in (TOKENS, [*TOKENS, *range(20, 33)]):
        want, got = exact.prefill(tokens), rounded.prefill(tokens)
        assert 0 < np.abs(got - want).max() < 0.02 * np.abs(want).max()
    want, got = exact.decode(5), rounded.decode(5)
    assert 0 < np.abs(got - want).max() < 0.02 * np.abs(want).max()
    rounded.save(tmp_path)
    again = uir_tvm.llm.load(tmp_path)
    rounded.reset()
    np.testing.assert_array_equal(again.prefill(TOKENS), rounded.prefill(TOKENS))
    with pytest.raises(GenerationError, match="activation is what it was"):
        uir_tvm.llm.load(tmp_path, activation="int8")


def test_it_needs_packed_weights() -> None:
    with pytest.raises(GenerationError, match="no packed weights") as caught:
        load(activation="int8")
    assert "q8" in caught.value.need


@pytest.mark.parametrize("target", ["uir-ascend", "uir-bang", "uir-cuda"])
def test_targets_that_do_not_round_say_why(target: str) -> None:
    options = CompileOptions(device="model", activation="int8")
    program = torch.export.export(torch.nn.Linear(4, 4), (torch.zeros(2, 4),))
    with pytest.raises(TargetError, match="int8") as caught:
        uir_tvm.compile(program, target, options=options)
    assert "kernels" in caught.value.limit and "exact" in caught.value.remedy


def test_a_way_that_is_none() -> None:
    with pytest.raises(UirError, match="'int4' is no way to read activations") as caught:
        CompileOptions(activation="int4")
    assert "exact, int8" in caught.value.need


def test_the_command_says_the_same(tmp_path: pathlib.Path) -> None:
    model().save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    how = ["generate", str(tmp_path), "--prompt", "w1", "--max-length", "40", "--activation", "int8"]
    refused = CliRunner().invoke(main, how)
    assert refused.exit_code != 0 and "no packed weights" in refused.output
