# SPDX-License-Identifier: Apache-2.0
"""Draws of tokens with a number that is given, by the sampler of the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from uir_tvm.llm import Sampling

#: Beside the number that was drawn, where sums in float32 may lie: 5,000 terms, each rounded by 2**-24.
NEAR = 2e-5


class Given:
    """A generator that draws one number only, as NumPy's `choice` draws by it."""

    def __init__(self, uniform: float) -> None:
        self.uniform = uniform

    def choice(self, order: np.ndarray, p: np.ndarray) -> Any:
        sums = p.cumsum()
        return order[min(int((sums / sums[-1]).searchsorted(self.uniform, side="right")), len(order) - 1)]


def wanted(sampling: Sampling, logits: np.ndarray, before: Sequence[int], uniform: float) -> set[int]:
    """The host's token, and those of numbers that rounding does not tell from the given one."""
    each = (max(uniform - NEAR, 0.0), uniform, min(uniform + NEAR, 1 - 1e-9))
    found: list[Any] = [Given(number) for number in each]
    return {sampling.choose(logits, before, generator) for generator in found}


def samplings(rng: np.random.Generator, vocabulary: int) -> Sampling:
    """Parameters of every kind, alone and together."""
    return Sampling(
        temperature=float(rng.choice([0.0, 0.2, 0.8, 1.0, 5.0])),
        top_k=int(rng.choice([0, 1, 3, 40, vocabulary, 10 * vocabulary])),
        top_p=float(rng.choice([1.0, 0.95, 0.5, 0.01])),
        repetition_penalty=float(rng.choice([1.0, 1.3, 0.8])),
    )
