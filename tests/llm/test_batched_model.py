# SPDX-License-Identifier: Apache-2.0
"""Several prompts in one program: each is answered as it is alone."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest
import torch
import uir_tvm.llm
from uir_tvm.errors import ArtifactError, GenerationError, SizeError

from .small import model, tokenizer

LENGTH, CHUNK, NEW, BATCH = 40, 8, 10, 3
PROMPTS = ["w1 w2 w3", " ".join(f"w{number}" for number in range(15)), "w7", "w4 w9"]


@pytest.fixture(scope="module")
def batched() -> uir_tvm.llm.BatchedModel:
    return uir_tvm.llm.load(model(1), max_length=LENGTH, chunk=CHUNK, tokenizer=tokenizer(), batch=BATCH)


def _logits(tokens: list[int]) -> np.ndarray:
    with torch.no_grad():
        found: np.ndarray = model(1)(torch.tensor([tokens])).logits[0, -1].numpy()
    return found


def _alone(prompt: str) -> list[str]:
    """The words of an answer by transformers."""
    tokens = torch.tensor([tokenizer()(f"user {prompt} assistant")["input_ids"]])
    with torch.no_grad():
        found = model(1).generate(tokens, max_new_tokens=NEW, do_sample=False, eos_token_id=1, pad_token_id=1)
    words: list[str] = tokenizer().decode(found[0][tokens.shape[1] :], skip_special_tokens=True).split()
    return words


def test_answers_are_those_of_each_prompt_alone(batched: uir_tvm.llm.BatchedModel) -> None:
    """Prompts of 3 to 17 tokens, longer than a chunk too, and more of them than rows."""
    wanted = [_alone(prompt) for prompt in PROMPTS]
    assert [text.split() for text in batched.generate(PROMPTS, NEW)] == wanted
    texts = [""] * len(PROMPTS)
    for number, piece in batched.generate(PROMPTS, NEW, stream=True):
        texts[number] += piece
    assert [text.split() for text in texts] == wanted
    assert batched.figures.new_tokens <= (NEW - 1) * len(PROMPTS)


def test_answers_that_take_turns(batched: uir_tvm.llm.BatchedModel) -> None:
    """Two groups of prompts in turns: each goes on as it does alone."""
    groups = [PROMPTS[:2], PROMPTS[2:]]
    wanted = [[_alone(prompt) for prompt in group] for group in groups]
    streams = [batched.generate(group, NEW, stream=True) for group in groups]
    texts = [["", ""], ["", ""]]
    for turn in range(4 * NEW):
        for number, piece in (next(streams[turn % 2], (0, "")),):
            texts[turn % 2][number] += piece
    for group, stream in zip(texts, streams, strict=True):
        for number, piece in stream:
            group[number] += piece
    assert [[text.split() for text in group] for group in texts] == wanted


def test_what_are_no_prompts(batched: uir_tvm.llm.BatchedModel) -> None:
    """A text is no sequence of prompts, a letter each."""
    batched.prefill([[7, 8]])
    wrongs: list[Any] = ["w1 w2", b"w1", None, {"role": "user", "content": "w1"}, [7]]
    for wrong in wrongs:
        with pytest.raises(GenerationError, match=r"The prompts? (are|is)"):
            batched.generate(wrong)
    with pytest.raises(GenerationError, match="seed is -1"):
        batched.generate(PROMPTS, seed=-1)
    assert batched.rows == [[7, 8]]


def test_rows_end_apart(batched: uir_tvm.llm.BatchedModel) -> None:
    """What one row says ends that row alone."""
    wanted = [_alone(prompt) for prompt in PROMPTS[:BATCH]]
    stop = next(word for word in wanted[0] if word not in wanted[1])
    found = batched.generate(PROMPTS[:BATCH], NEW, stop=stop)
    assert found[0].split() == wanted[0][: wanted[0].index(stop)]
    assert found[1].split() == wanted[1]


def test_seeds(batched: uir_tvm.llm.BatchedModel) -> None:
    """A row draws as its prompt alone does, whatever stands beside it."""
    how = {"temperature": 1.5, "top_p": 0.95, "repetition_penalty": 1.2, "seed": 4}
    texts = batched.generate(PROMPTS[:BATCH], NEW, **how)
    assert texts == [batched.generate([prompt], NEW, **how)[0] for prompt in PROMPTS[:BATCH]]
    assert texts != batched.generate(PROMPTS[:BATCH], NEW, **{**how, "seed": 5})


def test_logits_of_every_row(batched: uir_tvm.llm.BatchedModel) -> None:
    """Of a prompt, of tokens after it, and of other prompts where these stood; a clone goes on by itself."""
    rows = [[7, 8, 9], [*range(10, 22)]]
    for found, row in zip(batched.prefill(rows), rows, strict=True):
        np.testing.assert_allclose(found, _logits(row), atol=1e-4)
    other = batched.clone()
    for found, row in zip(batched.decode([5, 6]), ([*rows[0], 5], [*rows[1], 6]), strict=True):
        np.testing.assert_allclose(found, _logits(row), atol=1e-4)
    np.testing.assert_allclose(other.decode([9, 8])[0], _logits([*rows[0], 9]), atol=1e-4)
    assert batched.rows == [[*rows[0], 5], [*rows[1], 6]] and other.rows[0] == [*rows[0], 9]
    np.testing.assert_allclose(batched.prefill([[20, 21]])[0], _logits([20, 21]), atol=1e-4)


def test_what_does_not_fit(batched: uir_tvm.llm.BatchedModel) -> None:
    batched.prefill([[7, 8]])
    many = [5 + number % 40 for number in range(LENGTH + 1)]
    with pytest.raises(SizeError, match=f"{LENGTH + 1} tokens"):
        batched.prefill([[7], many])
    for wrong in ([], [[7]] * (BATCH + 1)):
        with pytest.raises(GenerationError, match="prompts"):
            batched.prefill(wrong)
    with pytest.raises(GenerationError, match="no token"):
        batched.prefill([[7], []])
    with pytest.raises(GenerationError, match="2 tokens for 1 rows"):
        batched.decode([7, 8])
    assert batched.rows == [[7, 8]]
    batched.prefill([many[:LENGTH], [7]])
    with pytest.raises(SizeError):
        batched.decode([7, 7])
    batched.reset()
    with pytest.raises(GenerationError, match="0 rows"):
        batched.decode([7])
    with pytest.raises(GenerationError, match="batch is 0"):
        uir_tvm.llm.load(model(1), max_length=LENGTH, tokenizer=tokenizer(), batch=0)


def test_saved(batched: uir_tvm.llm.BatchedModel, tmp_path: pathlib.Path) -> None:
    wanted = batched.generate(PROMPTS, 3)
    again = uir_tvm.llm.load(batched.save(tmp_path / "saved"))
    assert again.batch == BATCH and again.generate(PROMPTS, 3) == wanted
    settings = json.loads((tmp_path / "saved/llm.json").read_text())
    del settings["batch"]
    (tmp_path / "saved/llm.json").write_text(json.dumps(settings))
    with pytest.raises(ArtifactError, match="cannot be read"):
        uir_tvm.llm.load(tmp_path / "saved")
