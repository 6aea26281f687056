# SPDX-License-Identifier: Apache-2.0
"""A compiled language model: prompts in, tokens out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from .answer_text import AnswerText
from .compiled_model import AnswerFigures, AnswerRules, CompiledModel, NextToken, Prompt, numbers_of


class LanguageModel(CompiledModel):
    """A language model on one target, with the state of one conversation.

    Parameters
    ----------
    executable, tokenizer, max_length, chunk, stop, nbytes, vocabulary
        As of `CompiledModel`.

    Attributes
    ----------
    tokens : list of int
        What the state has.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.tokens: list[int] = []

    def reset(self) -> None:
        """Forget the conversation."""
        super().reset()
        self.tokens = []

    def clone(self) -> Self:
        """The same model with a state of its own; weights and code are shared."""
        made = super().clone()
        made.tokens = list(self.tokens)
        return made

    def prefill(self, tokens: Sequence[int]) -> np.ndarray:
        """Bring the state to these tokens; what it begins with already is kept.

        Parameters
        ----------
        tokens : sequence of int

        Returns
        -------
        numpy.ndarray of float32
            A logit for each token of the vocabulary, for what follows the last one.

        Raises
        ------
        GenerationError
            There is no token, or one that the model does not know.
        SizeError
            There are more than the state has room for; it stays as it is.
        """
        return self._filled(numbers_of(tokens)).on_host()[0]

    def _filled(self, tokens: list[int]) -> NextToken:
        """As of `prefill`, where the program runs."""
        self._check_tokens(tokens)
        found: list[NextToken] = []
        for place in range(self._kept(tokens), len(tokens), self.chunk):
            found = [self._run(tokens[place : place + self.chunk], place)]
        return found[-1]

    def _kept(self, tokens: list[int]) -> int:
        """How many of these the state begins with; the last is computed for its logits."""
        pairs = zip(self.tokens, tokens[:-1], strict=False)
        same = next((place for place, (a, b) in enumerate(pairs) if a != b), None)
        return min(len(self.tokens), len(tokens) - 1) if same is None else same

    def decode(self, token: int) -> np.ndarray:
        """Add one token; the logits of what follows, as of `prefill`.

        Raises
        ------
        GenerationError
            The model does not know it.
        SizeError
            The state is full; it stays as it is.
        """
        (number,) = numbers_of([token])
        self._check_known([number])
        return self._more(number).on_host()[0]

    def _more(self, token: int) -> NextToken:
        """As of `decode`, where the program runs."""
        self._check_room(len(self.tokens) + 1)
        return self._run([token], len(self.tokens))

    def _after(self, tokens: list[int], token: int) -> NextToken:
        """Add one token to an answer; where another was begun meanwhile, these are computed again."""
        return self._more(token) if self.tokens == tokens else self._filled([*tokens, token])

    def _run(self, tokens: Sequence[int], place: int) -> NextToken:
        """Compute tokens that stand at a place; what stood behind it is forgotten."""
        del self.tokens[place:]
        made = self._next(place, np.array([tokens], np.int64))
        self.tokens += tokens
        return made

    def generate(
        self,
        prompt: Prompt | Sequence[Prompt],
        max_new_tokens: int = 128,
        *,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        repetition_penalty: float = 1.0,
        seed: int | None = None,
        stop: str | int | Sequence[str | int] = (),
        stream: bool = False,
        template: bool = True,
    ) -> Any:
        """An answer.

        Parameters
        ----------
        prompt, template
            As of `encode`. Several prompts are answered one after the other, as of `BatchedModel.generate`.
        max_new_tokens : int
        temperature, top_k, top_p, repetition_penalty
            As of `Sampling`.
        seed : int, optional
            Equal seeds draw equal tokens; default: another one each time.
        stop : str, int, or sequence of them
            Texts and tokens that end the answer, beside the model's own tokens; they are no part of it.
        stream : bool
            Whether to return an iterator of pieces of text, each as soon as it is known. Answers that take
            turns go on as each would alone; what another has overwritten is computed again.

        Returns
        -------
        str or iterator of str
            Without the token that ends it. It ends where the state is full, too. Of several prompts a
            list, or an iterator of (number of the prompt, piece).

        Raises
        ------
        GenerationError, SizeError
            As of `prefill` and `Sampling`; before anything is computed.
        """
        rules = AnswerRules.of(max_new_tokens, temperature, top_k, top_p, repetition_penalty, stop, seed)
        several = isinstance(prompt, Sequence) and not isinstance(prompt, str | bytes)
        several = several and not all(isinstance(each, Mapping) for each in prompt)
        prompts: Any = prompt if several else [prompt]
        tokens = [self.encode(each, template) for each in prompts]
        for each in tokens:
            self._check_tokens(each)
        answers = [self._pieces(each, rules) for each in tokens]
        if not several:
            return answers[0] if stream else "".join(answers[0])
        if stream:
            return ((number, piece) for number, answer in enumerate(answers) for piece in answer)
        return ["".join(answer) for answer in answers]

    def _pieces(self, tokens: list[int], rules: AnswerRules) -> Iterator[str]:
        """The text of an answer, in pieces of whole characters; its tokens are put behind the prompt's."""
        answer, stops = AnswerText(self.tokenizer, rules.texts), rules.stops | {*self.stop}
        figures, rng = AnswerFigures(), rules.rng()
        self.figures = figures
        start = time.perf_counter()
        figures.prompt_tokens = len(tokens) - self._kept(tokens)
        found = self._filled(tokens)
        figures.prompt_seconds = time.perf_counter() - start
        while True:
            (token,) = self._chosen(found, [tokens], rules.sampling, [rng])
            if token in stops:
                figures.finish = "stop"
                break
            piece = answer.add(token)
            figures.answer_tokens = len(answer.tokens)
            figures.finish = "stop" if answer.ended else "length"
            if piece:
                yield piece
            if answer.ended or len(answer.tokens) == rules.most or len(tokens) == self.max_length:
                break
            start = time.perf_counter()
            found = self._after(tokens, token)
            tokens.append(token)
            figures.new_seconds += time.perf_counter() - start
            figures.new_tokens += 1
        rest = answer.rest()
        if rest:
            yield rest
