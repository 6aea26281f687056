# SPDX-License-Identifier: Apache-2.0
"""The programs that choose tokens, run by PyTorch: what they choose is what the host's sampler does."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from uir_tvm.llm import Sampling
from uir_tvm.llm.token_programs import DrawnToken, MostLikelyToken

from ..asked import asked
from .draws import samplings, wanted


def _chosen(
    rows: int, logits: np.ndarray, before: list[list[int]], sampling: Sampling, uniforms: np.ndarray
) -> list[int]:
    vocabulary = logits.shape[1]
    settings = torch.tensor(
        [
            [
                sampling.repetition_penalty,
                sampling.temperature or 1.0,
                sampling.top_k or vocabulary,
                sampling.top_p,
                uniform,
            ]
            for uniform in uniforms
        ],
        dtype=torch.float32,
    )
    places = torch.tensor([row * vocabulary + token for row in range(rows) for token in before[row]])
    kind = DrawnToken if sampling.temperature else MostLikelyToken
    found = kind(rows, vocabulary)(torch.from_numpy(logits), settings, places, torch.ones(len(places)))
    assert found.dtype == torch.int32 and found.shape == (rows,)
    return [int(token) for token in found]


@pytest.mark.parametrize("vocabulary", asked([61, 5000], [61, 64, 2048, 2049, 5000, 50257]))
def test_tokens_are_those_of_the_host(vocabulary: int) -> None:
    """Logits of parts and chunks that are full and not, parameters of all kinds, two rows."""
    seed = int(np.random.default_rng().integers(2**31))
    rng = np.random.default_rng(seed)
    for _ in range(12):
        sampling = samplings(rng, vocabulary)
        logits = (3 * rng.standard_normal((2, vocabulary))).astype(np.float32)
        before = [rng.integers(vocabulary, size=7).tolist() for _ in range(2)]
        uniforms = rng.random(2)
        found = _chosen(2, logits, before, sampling, uniforms)
        for row in range(2):
            may = wanted(sampling, logits[row], before[row], uniforms[row])
            assert found[row] in may, f"seed {seed}: {sampling}, {uniforms[row]}"


def test_equal_logits_are_drawn_alike() -> None:
    """Of tokens with one logit each has its part of the numbers, in the vocabulary's order."""
    logits = np.zeros((1, 5000), np.float32)
    for place in (0, 1, 63, 64, 2047, 2048, 4998, 4999):
        found = _chosen(1, logits, [[0]], Sampling(1.0), np.array([(place + 0.5) / 5000]))
        assert found == [place]
    logits[0, [5, 2100, 4999]] = 9.0
    drawn = [
        _chosen(1, logits, [[0]], Sampling(0.1), np.array([u]))[0]
        for u in (0.0, 0.32, 0.35, 0.65, 0.68, 0.999)
    ]
    assert drawn == [5, 5, 2100, 2100, 4999, 4999]


def test_numbers_at_the_ends() -> None:
    """The last number below 1 draws a token that may be drawn; so does one that rounding makes too large."""
    rng = np.random.default_rng(5)
    logits = (3 * rng.standard_normal((1, 3000))).astype(np.float32)
    last = np.nextafter(np.float32(1), np.float32(0))
    for sampling in (Sampling(1.0), Sampling(1.0, top_k=7), Sampling(0.01, top_p=0.5), Sampling(1e-38)):
        order = np.argsort(-logits[0], kind="stable")
        for uniform in (last, np.float32(1)):
            (found,) = _chosen(1, logits, [[0]], sampling, np.array([uniform]))
            assert found in order[: sampling.top_k or None]
        assert _chosen(1, logits, [[0]], sampling, np.array([0.0])) == [order[0]]


def test_tokens_far_behind_are_not_drawn() -> None:
    logits = np.full((1, 100), -np.inf, np.float32)
    logits[0, [40, 90]] = 3.0, 2.5
    found = {_chosen(1, logits, [[0]], Sampling(1.0), np.array([u]))[0] for u in np.linspace(0, 0.999, 20)}
    assert found == {40, 90}
