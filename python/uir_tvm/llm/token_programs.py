# SPDX-License-Identifier: Apache-2.0
"""Programs that choose tokens of logits: the most likely one, or one that is drawn.

Nothing is sorted. How far a token lies behind the most likely one, in units of the temperature, becomes a
whole number, its distance; a bound of distances is found digit by digit, from sums over the tokens below each
of some bounds at once. So there is a bound for the k most likely tokens, one for the likely ones of a share,
and one where the running sum in the order of likelihood passes a number that was drawn. Of tokens with one
distance, all stay or go, and they are equally likely.

Tokens that stood before are a mask of the vocabulary, which is state: each call says what changes of it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

#: Numbers of a row of settings, in their order.
SETTINGS = ("repetition_penalty", "temperature", "top_k", "top_p", "uniform")
#: Distances of a unit of the temperature, and of the least likely tokens: those behind are never drawn. Their
#: probabilities are below exp(-32), and all whole numbers up to the farthest are exact in float32.
UNIT, FARTHEST = 2**19, 2**24
#: Bits of a digit of a bound.
DIGIT = 3
#: Tokens whose distances are summed beside each other, at most, and those of a part of them.
CHUNK, PART = 2048, 64


class MostLikelyToken(torch.nn.Module):
    """The most likely token of each row; of several the first.

    Parameters
    ----------
    rows, vocabulary : int
    """

    seen: Tensor

    def __init__(self, rows: int, vocabulary: int) -> None:
        super().__init__()
        self.rows, self.vocabulary = rows, vocabulary
        self.register_buffer("seen", torch.zeros(rows * vocabulary))

    def scores(self, logits: Tensor, settings: Tensor, places: Tensor, marks: Tensor) -> Tensor:
        """Logits, those of tokens that stood before less likely by the penalty."""
        self.seen.index_copy_(0, places, marks)
        penalty = settings[:, :1]
        less = torch.where(logits > 0, logits / penalty, logits * penalty)
        return torch.where(self.seen.reshape(self.rows, self.vocabulary) > 0, less, logits)

    def forward(self, logits: Tensor, settings: Tensor, places: Tensor, marks: Tensor) -> Tensor:
        """A token of each row, int32 (rows,).

        Parameters
        ----------
        logits : Tensor of float32, (rows, vocabulary)
        settings : Tensor of float32, (rows, 5)
            As `SETTINGS` names them.
        places : Tensor of int64, (count,)
            Of the masks of all rows, one after the other, those that change.
        marks : Tensor of float32, (count,)
            What they become: 1 for tokens that stood before, else 0.
        """
        return self.scores(logits, settings, places, marks).argmax(1).to(torch.int32)


class DrawnToken(MostLikelyToken):
    """A token of each row, drawn by a number between 0 and 1: the first, in the order of likelihood, at which
    the running sum of probabilities exceeds it."""

    def __init__(self, rows: int, vocabulary: int) -> None:
        super().__init__(rows, vocabulary)
        self.chunk = min(CHUNK, -(-vocabulary // PART) * PART)
        self.chunks = -(-vocabulary // self.chunk)
        self.digits = [2**shift for shift in range(int(math.log2(FARTHEST)) - DIGIT, -1, -DIGIT)]
        for digit in self.digits:
            bounds = torch.arange(1, 2**DIGIT, dtype=torch.float32) * digit
            self.register_buffer(f"bounds_{digit}", bounds[None])
        for size in {self.chunks, self.chunk // PART, PART}:
            self.register_buffer(f"upto_{size}", torch.ones(size, size).tril()[None])
            self.register_buffer(f"number_{size}", torch.arange(size, dtype=torch.float32)[None])

    def forward(self, logits: Tensor, settings: Tensor, places: Tensor, marks: Tensor) -> Tensor:
        """As of `MostLikelyToken`."""
        _, temperature, most, share, uniform = settings.split(1, 1)
        scores = self.scores(logits, settings, places, marks)
        behind = (scores.amax(1, keepdim=True) - scores) / temperature
        distance = (behind * UNIT).floor().clamp(max=FARTHEST)
        behind = self._chunked(behind, FARTHEST / UNIT)
        distance = self._chunked(distance, FARTHEST)
        drawable = distance < FARTHEST
        weights = torch.where(drawable, torch.exp(-behind), 0.0)
        bound = self._bound(distance, torch.where(drawable, 1.0, 0.0), most - 1)
        weights = torch.where(distance <= bound, weights, 0.0)
        bound = self._bound(distance, weights, share * _total(weights))
        weights = torch.where(distance <= bound, weights, 0.0)
        goal = uniform * _total(weights)
        bound = self._bound(distance, weights, goal)
        # where sums are rounded the bound may lie behind all tokens that there are
        kept = (distance <= bound) & (weights > 0)
        last = torch.where(kept, distance, 0.0).amax(2).amax(1)[:, None, None]
        before = _total(torch.where(distance < last, weights, 0.0))
        equal = torch.where((distance == last) & (weights > 0), 1.0, 0.0)
        rank = ((goal - before) / torch.exp(last[:, 0] / -UNIT)).floor()
        rank = torch.minimum(rank, _total(equal) - 1).clamp(min=0)
        chunk, rank, part = self._in(equal, rank)
        inner, rank, part = self._in(part.reshape(self.rows, -1, PART), rank)
        place, _, _ = self._in(part[:, :, None], rank)
        token = (chunk * (self.chunk // PART) + inner) * PART + place
        return token[:, 0].clamp(max=self.vocabulary - 1).to(torch.int32)

    def _chunked(self, values: Tensor, behind: float) -> Tensor:
        """(rows, chunks, chunk), with what stands behind the last one."""
        room = self.chunks * self.chunk - self.vocabulary
        if room:
            values = torch.nn.functional.pad(values, (0, room), value=behind)
        return values.reshape(self.rows, self.chunks, self.chunk)

    def _bound(self, distance: Tensor, weights: Tensor, goal: Tensor) -> Tensor:
        """The greatest bound that the weights of lesser distances do not exceed a goal, (rows, 1, 1)."""
        found = torch.zeros(self.rows, 1)
        for digit in self.digits:
            bounds = found + getattr(self, f"bounds_{digit}")
            below = distance[:, :, None] < bounds[:, None, :, None]
            sums = torch.where(below, weights[:, :, None], 0.0).sum(3).sum(1)
            found = torch.maximum(found, torch.where(sums <= goal, bounds, 0.0).amax(1, keepdim=True))
        return found[:, :, None]

    def _in(self, marks: Tensor, rank: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Which row of marks, (rows, count, size), has the mark of a rank; its rank there, and that row."""
        size = marks.shape[1]
        upto = (marks.sum(2)[:, None] * getattr(self, f"upto_{size}")).sum(2)
        before = upto <= rank
        found = torch.where(before, 1.0, 0.0).sum(1, keepdim=True)
        rank = rank - torch.where(before, upto, 0.0).amax(1, keepdim=True)
        one = getattr(self, f"number_{size}") == found
        return found, rank, torch.where(one[:, :, None], marks, 0.0).sum(1)


def _total(values: Tensor) -> Tensor:
    """The sum of each row, (rows, 1), of (rows, chunks, chunk)."""
    return values.sum(2).sum(1, keepdim=True)
