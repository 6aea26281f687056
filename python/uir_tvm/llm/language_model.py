# SPDX-License-Identifier: Apache-2.0
"""A compiled language model: prompts in, tokens out."""

from __future__ import annotations

import copy
import json
import pathlib
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Self

import attrs
import numpy as np

from ..errors import GenerationError, SizeError
from .answer_text import AnswerText, stops_of
from .next_token import Sampling

#: What a folder of a saved model has, beside the tokenizer's own files.
CODE, SETTINGS = "model.uir", "llm.json"
#: The kind of `SETTINGS`, for other versions to refuse.
FORMAT = 2

#: A text, or messages of a conversation: mappings of ``role`` and ``content``.
Prompt = str | Sequence[Mapping[str, str]]


@attrs.define
class AnswerFigures:
    """What the last answer took.

    Attributes
    ----------
    prompt_tokens, new_tokens : int
        Of the prompt those that were computed: what the state had already is not computed again.
    prompt_seconds, new_seconds : float
        What was compiled meanwhile is part of it.
    """

    prompt_tokens: int = 0
    prompt_seconds: float = 0.0
    new_tokens: int = 0
    new_seconds: float = 0.0

    def __str__(self) -> str:
        def rate(tokens: int, seconds: float) -> str:
            return f"{tokens} tokens in {seconds:.2f} s" + (f" ({tokens / seconds:.1f}/s)" if seconds else "")

        prompt = rate(self.prompt_tokens, self.prompt_seconds)
        return f"prompt {prompt}, answer {rate(self.new_tokens, self.new_seconds)}"


@attrs.frozen
class ModelBytes:
    """What a model holds in memory.

    Attributes
    ----------
    weights : int
        Shared ones once, packed ones as they are packed.
    state : int
        Keys and values of all tokens that there is room for.
    """

    weights: int
    state: int

    def __str__(self) -> str:
        return f"weights {self.weights / 2**20:.1f} MiB, state {self.state / 2**20:.1f} MiB"


class LanguageModel:
    """A language model on one target, with the state of one conversation.

    Parameters
    ----------
    executable : SpecializedExecutable
        Of `uir_tvm.llm.exported.exported`.
    tokenizer : transformers.PreTrainedTokenizerBase
    max_length : int
        Tokens that the state has room for.
    chunk : int
        Tokens that one call takes at most.
    stop : sequence of int
        Tokens that end an answer.
    nbytes : ModelBytes

    Attributes
    ----------
    tokens : list of int
        What the state has.
    figures : AnswerFigures
        Of the last answer.
    """

    def __init__(
        self,
        executable: Any,
        tokenizer: Any,
        max_length: int,
        chunk: int,
        stop: Sequence[int],
        nbytes: ModelBytes,
    ) -> None:
        self.executable, self.tokenizer, self.nbytes = executable, tokenizer, nbytes
        self.max_length, self.chunk, self.stop = max_length, chunk, tuple(stop)
        self.tokens: list[int] = []
        self.figures = AnswerFigures()

    def reset(self) -> None:
        """Forget the conversation."""
        self.executable.reset()
        self.tokens = []

    def clone(self) -> Self:
        """The same model with a state of its own; weights and code are shared."""
        made = copy.copy(self)
        made.executable, made.tokens, made.figures = (
            self.executable.clone(),
            list(self.tokens),
            AnswerFigures(),
        )
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
            There is no token.
        SizeError
            There are more than the state has room for; it stays as it is.
        """
        tokens = [int(token) for token in tokens]
        if not tokens:
            raise GenerationError(
                "The prompt has no token.", need="at least one token", remedy="pass a text that is not empty"
            )
        self._check_room(len(tokens))
        pairs = zip(self.tokens, tokens[:-1], strict=False)  # the last is computed for its logits
        same = next((place for place, (a, b) in enumerate(pairs) if a != b), None)
        begin = min(len(self.tokens), len(tokens) - 1) if same is None else same
        logits = np.empty(0, np.float32)
        for place in range(begin, len(tokens), self.chunk):
            logits = self._run(tokens[place : place + self.chunk], place)
        return logits

    def decode(self, token: int) -> np.ndarray:
        """Add one token; the logits of what follows, as of `prefill`.

        Raises
        ------
        SizeError
            The state is full; it stays as it is.
        """
        self._check_room(len(self.tokens) + 1)
        return self._run([int(token)], len(self.tokens))

    def _check_room(self, count: int) -> None:
        if count > self.max_length:
            raise SizeError(
                f"The conversation has {count} tokens.",
                need=f"at most {self.max_length}, which the state has room for",
                remedy="shorten the prompt, or load the model with a larger max_length (--max-length)",
            )

    def _run(self, tokens: Sequence[int], place: int) -> np.ndarray:
        """Compute tokens that stand at a place; what stood behind it is forgotten."""
        del self.tokens[place:]
        ids = np.array([tokens], np.int64)
        positions = np.arange(place, place + len(tokens), dtype=np.int64)
        made: np.ndarray = self.executable.flat(ids, positions)[0]
        self.tokens += tokens
        return made[0]

    def encode(self, prompt: Prompt, template: bool = True) -> list[int]:
        """The tokens of a text or of messages, with the chat template where the tokenizer has one.

        Parameters
        ----------
        prompt : str, or sequence of mapping
            Mappings have ``role`` (``user``, ``assistant``, ``system``) and ``content``.
        template : bool
            Without, a text is taken as it is.
        """
        if isinstance(prompt, str) and not (template and self.tokenizer.chat_template):
            return [int(token) for token in self.tokenizer(prompt)["input_ids"]]
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        found = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True)
        return [int(token) for token in (found["input_ids"] if hasattr(found, "keys") else found)]

    def generate(
        self,
        prompt: Prompt,
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
            As of `encode`.
        max_new_tokens : int
        temperature, top_k, top_p, repetition_penalty
            As of `Sampling`.
        seed : int, optional
            Equal seeds draw equal tokens; default: another one each time.
        stop : str, int, or sequence of them
            Texts and tokens that end the answer, beside the model's own tokens; they are no part of it.
        stream : bool
            Whether to return an iterator of pieces of text, each as soon as it is known.

        Returns
        -------
        str or iterator of str
            Without the token that ends it. It ends where the state is full, too.

        Raises
        ------
        GenerationError, SizeError
            As of `prefill` and `Sampling`; before anything is computed.
        """
        sampling = Sampling(temperature, top_k, top_p, repetition_penalty)
        stops, texts = stops_of(stop)
        if not isinstance(max_new_tokens, int) or max_new_tokens < 1:
            raise GenerationError(
                f"max_new_tokens is {max_new_tokens!r}.",
                need="a whole number, at least 1",
                remedy="ask for one",
            )
        tokens = self.encode(prompt, template)
        self._check_room(len(tokens))
        if not tokens:
            self.prefill(tokens)
        answer, rng = AnswerText(self.tokenizer, texts), np.random.default_rng(seed)
        pieces = self._pieces(tokens, max_new_tokens, sampling, rng, stops | {*self.stop}, answer)
        return pieces if stream else "".join(pieces)

    def _pieces(
        self,
        tokens: list[int],
        most: int,
        sampling: Sampling,
        rng: np.random.Generator,
        stops: Set[int],
        answer: AnswerText,
    ) -> Iterator[str]:
        """The text of an answer, in pieces of whole characters."""
        figures = self.figures = AnswerFigures()
        before, start = len(self.tokens), time.perf_counter()
        logits = self.prefill(tokens)
        figures.prompt_tokens = len(tokens) - min(before, len(tokens) - 1)
        figures.prompt_seconds = time.perf_counter() - start
        while True:
            token = sampling.choose(logits, self.tokens, rng)
            if token in stops:
                break
            piece = answer.add(token)
            if piece:
                yield piece
            if answer.ended or len(answer.tokens) == most or len(self.tokens) == self.max_length:
                break
            start = time.perf_counter()
            logits = self.decode(token)
            figures.new_seconds += time.perf_counter() - start
            figures.new_tokens += 1
        rest = answer.rest()
        if rest:
            yield rest

    def save(self, folder: str | pathlib.Path) -> pathlib.Path:
        """Write the compiled model, its weights and its tokenizer to a folder, which `load` takes.

        Raises
        ------
        ArtifactError
            The model cannot be written.
        """
        path = pathlib.Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        self.executable.save(path / CODE)
        self.tokenizer.save_pretrained(str(path))
        settings = {
            "format": FORMAT,
            "max_length": self.max_length,
            "chunk": self.chunk,
            "stop": list(self.stop),
            "nbytes": attrs.asdict(self.nbytes),
        }
        (path / SETTINGS).write_text(json.dumps(settings, indent=1))
        return path
