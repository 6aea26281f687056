# SPDX-License-Identifier: Apache-2.0
"""A compiled language model that answers several prompts at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import attrs
import numpy as np

from ..errors import GenerationError
from .answer_text import AnswerText
from .compiled_model import AnswerFigures, AnswerRules, CompiledModel, NextToken, Prompt, numbers_of


@attrs.define
class _Row:
    """An answer that is being made."""

    answer: AnswerText
    rng: np.random.Generator
    open: bool = True


class BatchedModel(CompiledModel):
    """A language model on one target whose calls compute a row for each of several prompts.

    The rows end at one place: a shorter prompt begins later, and reads nothing of what stands before it. So
    each row's tokens are those of its prompt alone.

    Parameters
    ----------
    executable, tokenizer, max_length, chunk, stop, nbytes, vocabulary, batch
        As of `CompiledModel`.

    Attributes
    ----------
    rows : list of list of int
        The tokens of each row.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.rows: list[list[int]] = []
        self._begins = np.zeros(self.batch, np.int64)
        self._place = 0

    def reset(self) -> None:
        """Forget all rows."""
        super().reset()
        self.rows, self._place = [], 0

    def clone(self) -> Self:
        """The same model with a state of its own; weights and code are shared."""
        made = super().clone()
        made.rows, made._begins = [list(row) for row in self.rows], self._begins.copy()
        return made

    def prefill(self, rows: Sequence[Sequence[int]]) -> np.ndarray:
        """Compute the tokens of up to `batch` prompts anew.

        Parameters
        ----------
        rows : sequence of sequence of int

        Returns
        -------
        numpy.ndarray of float32, (prompts, vocabulary)
            For what follows each row's last token.

        Raises
        ------
        GenerationError
            No prompt or too many, one without a token, or with one that the model does not know.
        SizeError
            One has more tokens than the state has room for; it stays as it is.
        """
        taken = [numbers_of(row) for row in rows]
        return self._filled(taken).on_host()[: len(taken)]

    def _filled(self, taken: list[list[int]]) -> NextToken:
        """As of `prefill`, where the program runs."""
        if not 1 <= len(taken) <= self.batch:
            raise GenerationError(
                f"There are {len(taken)} prompts.",
                need=f"1 to {self.batch}, by the batch that the model was loaded with",
                remedy="pass others, or load it with another batch",
            )
        for row in taken:
            self._check_tokens(row)
        length = max(map(len, taken))
        ids = np.zeros((self.batch, length), np.int64)
        begins = np.full(self.batch, length - 1, np.int64)  # rows without a prompt have one token
        for place, row in enumerate(taken):
            begins[place] = length - len(row)
            ids[place, begins[place] :] = row
        self.rows, self._place, self._begins = [], 0, begins
        found: list[NextToken] = []
        for begin in range(0, length, self.chunk):
            found = [self._run(ids[:, begin : begin + self.chunk])]
        self.rows = taken
        return found[-1]

    def decode(self, tokens: Sequence[int]) -> np.ndarray:
        """Add one token to each row; the logits of what follows, as of `prefill`.

        Raises
        ------
        GenerationError
            There are not as many tokens as rows, or the model does not know one.
        SizeError
            The state is full; it stays as it is.
        """
        numbers = numbers_of(tokens)
        self._check_known(numbers)
        return self._more(numbers).on_host()[: len(numbers)]

    def _more(self, tokens: Sequence[int]) -> NextToken:
        """As of `decode`, where the program runs."""
        if len(tokens) != len(self.rows) or not self.rows:
            raise GenerationError(
                f"There are {len(tokens)} tokens for {len(self.rows)} rows.",
                need="one token for each prompt of the last prefill",
                remedy="begin with prefill, and pass a token for each of its rows",
            )
        self._check_room(self._place + 1)
        ids = np.zeros((self.batch, 1), np.int64)
        ids[: len(tokens), 0] = tokens
        found = self._run(ids)
        for row, token in zip(self.rows, tokens, strict=True):
            row.append(token)
        return found

    def _after(self, rows: list[list[int]], tokens: Sequence[int]) -> NextToken:
        """Add a token to each answer; where others were begun meanwhile, these are computed again."""
        if self.rows == rows:
            return self._more(tokens)
        return self._filled([[*row, token] for row, token in zip(rows, tokens, strict=True)])

    def _run(self, ids: np.ndarray) -> NextToken:
        """Compute the next tokens of all rows."""
        made = self._next(self._place, ids, self._begins)
        self._place += ids.shape[1]
        return made

    def generate(
        self,
        prompts: Sequence[Prompt],
        max_new_tokens: int = 128,
        *,
        seed: int | None = None,
        stream: bool = False,
        template: bool = True,
        **rules: Any,
    ) -> Any:
        """Answers to all prompts, `batch` of them at a time.

        Parameters
        ----------
        prompts : sequence of str, or of sequences of mapping
        max_new_tokens, template
            As of `LanguageModel.generate`.
        seed : int, optional
            Every row draws as its prompt alone does with this seed.
        stream : bool
            Whether to return an iterator of (number of the prompt, piece of its answer).
        **rules
            As of `AnswerRules.of`: temperature, top_k, top_p, repetition_penalty, stop.

        Returns
        -------
        list of str, or iterator of (int, str)

        Raises
        ------
        GenerationError, SizeError
            As of `LanguageModel.generate`; before anything is computed.
        """
        how = AnswerRules.of(max_new_tokens, seed=seed, **rules)
        if isinstance(prompts, str | bytes | Mapping) or not isinstance(prompts, Sequence):
            raise GenerationError(
                f"The prompts are {prompts!r:.80}.",
                need="a sequence of texts, or of messages",
                remedy="put one prompt into a list",
            )
        tokens = [self.encode(prompt, template) for prompt in prompts]
        for each in tokens:
            self._check_tokens(each)
        self.figures = AnswerFigures()
        pieces = self._all_pieces(tokens, how, self.figures)
        if stream:
            return pieces
        texts = [""] * len(tokens)
        for number, piece in pieces:
            texts[number] += piece
        return texts

    def _all_pieces(
        self, prompts: list[list[int]], how: AnswerRules, figures: AnswerFigures
    ) -> Iterator[tuple[int, str]]:
        for begin in range(0, len(prompts), self.batch):
            for place, piece in self._pieces(prompts[begin : begin + self.batch], how, figures):
                yield begin + place, piece

    def _pieces(
        self, before: list[list[int]], how: AnswerRules, figures: AnswerFigures
    ) -> Iterator[tuple[int, str]]:
        """The answers of the rows of a call, in pieces of whole characters; `before` gets their tokens."""
        start, stops = time.perf_counter(), how.stops | {*self.stop}
        found = self._filled([list(row) for row in before])
        figures.prompt_tokens += sum(map(len, before))
        figures.prompt_seconds += time.perf_counter() - start
        rows = [_Row(AnswerText(self.tokenizer, how.texts), how.rng()) for _ in before]
        while True:
            # of rows that have ended any will do
            rngs = [row.rng if row.open else None for row in rows]
            tokens = self._chosen(found, before, how.sampling, rngs)
            for place, row in enumerate(rows):
                if not row.open:
                    continue
                if tokens[place] in stops:
                    row.open = False
                    continue
                piece = row.answer.add(tokens[place])
                if piece:
                    yield place, piece
                row.open = not row.answer.ended and len(row.answer.tokens) < how.most
            left = sum(row.open for row in rows)
            if not left or max(map(len, before)) == self.max_length:
                break
            start = time.perf_counter()
            found = self._after(before, tokens)
            for each, token in zip(before, tokens, strict=True):
                each.append(token)
            figures.new_seconds += time.perf_counter() - start
            figures.new_tokens += left
        for place, row in enumerate(rows):
            rest = row.answer.rest()
            if rest:
                yield place, rest
