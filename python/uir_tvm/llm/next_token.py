# SPDX-License-Identifier: Apache-2.0
"""How the next token is chosen of a model's logits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import attrs
import numpy as np

from ..errors import GenerationError


def _within(least: float, most: float | None, whole: bool = False, above: bool = False) -> Any:
    """A validator of a number's range."""

    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        number = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
        fits = number and math.isfinite(value) and (value > least if above else value >= least)
        if fits and (most is None or value <= most):
            return
        ends = f"{'above' if above else 'at least'} {least:g}" + (
            "" if most is None else f", at most {most:g}"
        )
        raise GenerationError(
            f"{attribute.name} is {value!r}.",
            need=f"a {'whole number' if whole else 'number'}, {ends}",
            remedy="pass another, or leave it out",
        )

    return check


@attrs.frozen
class Sampling:
    """How a token is chosen.

    Parameters
    ----------
    temperature : float
        0: the most likely token. Else logits are divided by it, and a token is drawn.
    top_k : int
        Tokens that may be drawn: the most likely ones. 0: all.
    top_p : float
        The least number of most likely tokens whose probabilities make this sum may be drawn.
    repetition_penalty : float
        Logits of tokens that stand before are divided by it where positive, multiplied where not
        (Keskar and others, 2019, CTRL). 1: none.

    Raises
    ------
    GenerationError
        A number out of its range.
    """

    temperature: float = attrs.field(default=0.0, validator=_within(0, None))
    top_k: int = attrs.field(default=0, validator=_within(0, None, whole=True))
    top_p: float = attrs.field(default=1.0, validator=_within(0, 1, above=True))
    repetition_penalty: float = attrs.field(default=1.0, validator=_within(0, None, above=True))

    @property
    def is_most_likely(self) -> bool:
        """Whether it is the most likely token of the logits as they are."""
        return self.temperature == 0 and self.repetition_penalty == 1

    def choose(self, logits: np.ndarray, before: Iterable[int], rng: np.random.Generator) -> int:
        """The next token.

        Parameters
        ----------
        logits : numpy.ndarray of float32
            One for each token of the vocabulary.
        before : iterable of int
            The tokens so far.
        rng : numpy.random.Generator
        """
        if self.is_most_likely:
            return int(logits.argmax())
        scores = np.array(logits, np.float64)
        if self.repetition_penalty != 1:
            seen = np.unique(np.fromiter(before, np.int64))
            old = scores[seen]
            scores[seen] = np.where(old > 0, old / self.repetition_penalty, old * self.repetition_penalty)
        if self.temperature == 0:
            return int(scores.argmax())
        scores = (scores - scores.max()) / self.temperature  # nothing overflows, however small it is
        order = np.argsort(-scores, kind="stable")
        if self.top_k:
            order = order[: self.top_k]
        shares = np.exp(scores[order])
        shares /= shares.sum()
        if self.top_p < 1:
            count = int(np.searchsorted(np.cumsum(shares), self.top_p)) + 1
            order, shares = order[:count], shares[:count] / shares[:count].sum()
        return int(rng.choice(order, p=shares))
