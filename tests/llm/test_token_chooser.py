# SPDX-License-Identifier: Apache-2.0
"""Tokens that compiled programs choose, and what their state goes through."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import numpy as np
import pytest
from uir_tvm.errors import StateError
from uir_tvm.llm import Sampling
from uir_tvm.llm.token_chooser import MARKS, TokenChooser, TokenPrograms
from uir_tvm.target import registry

from ..asked import asked
from .draws import samplings, wanted
from .small import WORDS

#: Rows of the batched model of `test_batched_model`, which has the same kernels.
ROWS = 3
MANY = 3 * MARKS


@pytest.fixture(scope="module")
def programs() -> TokenPrograms:
    return TokenPrograms.compiled(ROWS, WORDS, "uir-cpu", None)


@pytest.fixture
def chooser(programs: TokenPrograms) -> TokenChooser:
    return TokenChooser(programs)


def _logits(rng: np.random.Generator, vocabulary: int = WORDS) -> np.ndarray:
    return (3 * rng.standard_normal((ROWS, vocabulary))).astype(np.float32)


def _check(chooser: TokenChooser, rng: np.random.Generator, before: list[list[int]], what: str) -> None:
    vocabulary = chooser.programs.vocabulary
    sampling, logits = samplings(rng, vocabulary), _logits(rng, vocabulary)
    uniforms = rng.random(len(before))
    found = chooser.choose(logits, before, sampling, uniforms.tolist())
    for row, tokens in enumerate(before):
        may = wanted(sampling, logits[row], tokens, uniforms[row])
        assert found[row] in may, f"{what}: {sampling}, {uniforms[row]}"


def test_conversations_in_turns(chooser: TokenChooser) -> None:
    """Two clones, whose rows go on, are turned back, forgotten and cloned anew in any order."""
    seed = int(np.random.default_rng().integers(2**31))
    rng = np.random.default_rng(seed)
    each = [chooser, chooser.clone()]
    rows: list[list[list[int]]] = [[[5] for _ in range(ROWS)] for _ in range(2)]
    for turn in range(80):
        which, what = int(rng.integers(2)), int(rng.integers(8))
        if what == 0:
            each[which].reset()
        elif what == 1:
            each[which], rows[which] = each[1 - which].clone(), [list(row) for row in rows[1 - which]]
        for row in rows[which]:
            del row[int(rng.integers(1, len(row) + 1)) if what == 2 else len(row) :]
            row += rng.integers(WORDS, size=int(rng.integers(3))).tolist()
        count = int(rng.integers(1, ROWS + 1))
        _check(each[which], rng, rows[which][:count], f"seed {seed}, turn {turn}")


def test_one_compilation_takes_all_parameters(programs: TokenPrograms, chooser: TokenChooser) -> None:
    before = programs.most_likely, programs.drawn
    rng = np.random.default_rng(3)
    for _ in range(20):
        _check(chooser, rng, [[4, 9], [7], [8]], "seed 3")
    assert (programs.most_likely, programs.drawn) == before


def test_more_marks_than_a_call_changes() -> None:
    """A prompt of many tokens takes several calls, and is taken back by several."""
    chooser = TokenChooser(TokenPrograms.compiled(ROWS, MANY, "uir-cpu", None))
    logits = np.ones((ROWS, MANY), np.float32)
    logits[:, 5] = 2
    how = Sampling(repetition_penalty=4.0)
    tokens = [number for number in range(MANY) if number != 17]
    assert chooser.choose(logits, [tokens, [5], [6]], how, []).tolist() == [17, 0, 5]
    assert chooser.choose(logits, [[1], [5, 0], [6, 5]], how, []).tolist() == [5, 1, 0]
    assert chooser._marked == [{1}, {5, 0}, {6, 5}]


def test_a_call_that_fails(chooser: TokenChooser, monkeypatch: pytest.MonkeyPatch) -> None:
    """State that may be half written is refused until it is reset; clones made before have nothing of it."""
    logits, how = np.ones((ROWS, WORDS), np.float32), Sampling(repetition_penalty=2.0)
    assert chooser.choose(logits, [[0], [1], [2]], how, []).tolist() == [1, 0, 0]
    other, inside = chooser.clone(), chooser._most_likely
    run = inside._main

    def fails(*given: Any) -> Any:
        run(*given)
        raise RuntimeError("the device is gone")

    with monkeypatch.context() as patched:
        patched.setitem(vars(inside), "_program", None)  # not by C++ alone
        patched.setitem(vars(inside), "_main", fails)
        with pytest.raises(RuntimeError, match="gone"):
            chooser.choose(logits, [[0, 1], [1], [2]], how, [])
    uses: list[Any] = [lambda: chooser.choose(logits, [[0], [1], [2]], how, []), chooser.clone]
    for use in uses:
        with pytest.raises(StateError, match="while it was written"):
            use()
    with pytest.raises(StateError):
        chooser.choose(logits, [[0]], Sampling(1.0), [0.5])
    assert other.choose(logits, [[0, 1], [1], [2]], how, []).tolist() == [2, 0, 0]
    chooser.reset()
    assert chooser.choose(logits, [[0, 1], [1], [2]], how, []).tolist() == [2, 0, 0]


def test_many_steps_take_no_memory(chooser: TokenChooser) -> None:
    """2,000 tokens, with a conversation that is turned back."""
    rng = np.random.default_rng(4)
    logits, how = _logits(rng), Sampling(1.0, top_p=0.9, repetition_penalty=1.2)
    rows: list[list[int]] = [[5] for _ in range(ROWS)]

    def steps(count: int) -> None:
        for _ in range(count):
            found = chooser.choose(logits, rows, how, rng.random(ROWS).tolist())
            for row, token in zip(rows, found.tolist(), strict=True):
                row.append(token)
            if len(rows[0]) == 40:
                for row in rows:
                    del row[3:]

    steps(200)
    tensors, before = chooser._most_likely.state.tensors, _resident()
    steps(2000)
    assert _resident() - before < 1 << 20
    assert chooser._most_likely.state.tensors is tensors and chooser._drawn.state.tensors is tensors


def _resident() -> int:
    """Bytes of memory that this process holds."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


DEVICES = [name for name in registry.TARGETS if name != "uir-cpu"]


@pytest.mark.parametrize("target", asked([], DEVICES))
def test_tokens_of_devices(target: str) -> None:
    """On host models, every kernel by iGraph: the same tokens; logits that are there already stay there."""
    import tvm
    from uir_tvm import CompileOptions

    made = TokenPrograms.compiled(ROWS, WORDS, target, CompileOptions(device="model"))
    chooser, rng = TokenChooser(made), np.random.default_rng(6)
    for step in range(5):
        _check(chooser, rng, [[4, 9, step], [7], [8, 9]], f"step {step}")
    for each in (made.most_likely, made.drawn):
        assert not each.report()["kernels_without_igraph"] and not each.report().get("opaque")
    logits = _logits(rng)
    there = tvm.runtime.tensor(logits, made.most_likely.device)
    how = Sampling(0.9, top_k=9, repetition_penalty=1.1)
    found = [chooser.choose(each, [[4], [7], [8]], how, [0.1, 0.5, 0.9]).tolist() for each in (logits, there)]
    assert found[0] == found[1]
