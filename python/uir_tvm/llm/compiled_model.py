# SPDX-License-Identifier: Apache-2.0
"""What compiled language models have in common: tokens of texts, rules of answers, files."""

from __future__ import annotations

import copy
import json
import operator
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, Self

import attrs
import numpy as np

from ..errors import GenerationError, SizeError, first_line
from ..runtime.tensors import array_of
from .answer_text import stops_of
from .next_token import Sampling
from .token_chooser import TokenChooser, uniforms_of

#: What a folder of a saved model has, beside the tokenizer's own files.
CODE, SETTINGS = "model.uir", "llm.json"
#: The kind of `SETTINGS`, for other versions to refuse.
FORMAT = 5

#: The input of a program whose size says how many keys there are; not all programs have it.
VALID = "valid"

#: Where tokens are chosen (`uir_tvm.llm.load`).
SAMPLING = ("device", "host")

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
    answer_tokens : int
        Of one answer: all of them; the last one is not computed with.
    finish : str
        What ended one answer: ``stop`` (a token or a text that does), or ``length``.
    """

    prompt_tokens: int = 0
    prompt_seconds: float = 0.0
    new_tokens: int = 0
    new_seconds: float = 0.0
    answer_tokens: int = 0
    finish: str = ""

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


@attrs.frozen
class AnswerRules:
    """How an answer goes on, and what ends it.

    Attributes
    ----------
    most : int
        Tokens of an answer.
    sampling : Sampling
    stops : frozenset of int
        Tokens that end it, beside the model's own.
    texts : tuple of str
        Texts that end it.
    seed : int, optional
        Of the numbers that are drawn; None: others each time.
    """

    most: int
    sampling: Sampling
    stops: frozenset[int]
    texts: tuple[str, ...]
    seed: int | None = None

    @staticmethod
    def of(
        max_new_tokens: int,
        temperature: float = 0.0,
        top_k: int = 0,
        top_p: float = 1.0,
        repetition_penalty: float = 1.0,
        stop: str | int | Sequence[str | int] = (),
        seed: int | None = None,
    ) -> AnswerRules:
        """Rules of what a caller asks for.

        Raises
        ------
        GenerationError
            A number out of its range, or a stop or a seed that is none.
        """
        sampling = Sampling(temperature, top_k, top_p, repetition_penalty)
        for name, value, least in (("max_new_tokens", max_new_tokens, 1), ("seed", seed, 0)):
            if value is None and name == "seed":
                continue
            if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
                raise GenerationError(
                    f"{name} is {value!r}.",
                    need=f"a whole number, at least {least}",
                    remedy="pass another, or leave it out",
                )
        return AnswerRules(max_new_tokens, sampling, *stops_of(stop), seed)

    def rng(self) -> np.random.Generator:
        """What draws the numbers of an answer."""
        return np.random.default_rng(self.seed)


@attrs.frozen
class NextToken:
    """What a call of the program says of the tokens that follow.

    Attributes
    ----------
    logits : numpy.ndarray or tvm.runtime.Tensor of float32, (rows, vocabulary)
        Where the program runs.
    most_likely : numpy.ndarray or tvm.runtime.Tensor of int32, (rows,)
    """

    logits: Any
    most_likely: Any

    def on_host(self) -> np.ndarray:
        """The logits as an array."""
        return _array(self.logits)


def _array(value: Any) -> np.ndarray:
    return value if isinstance(value, np.ndarray) else array_of(value)


def numbers_of(tokens: Iterable[Any]) -> list[int]:
    """Tokens as whole numbers.

    Raises
    ------
    GenerationError
        Something else.
    """
    try:
        return [operator.index(token) for token in tokens]
    except TypeError as error:
        raise GenerationError(
            f"{tokens!r:.80} are no tokens.",
            need="a sequence of whole numbers",
            limit=first_line(error),
            remedy="take tokens of the model's own tokenizer (encode)",
        ) from error


def _check_messages(prompt: Any) -> None:
    """Refuse what are no messages."""
    if isinstance(prompt, Sequence) and prompt and all(map(_is_message, prompt)):
        return
    raise GenerationError(
        f"The prompt is {prompt!r:.80}.",
        need='a text, or messages such as {"role": "user", "content": "..."}',
        remedy="pass one of these",
    )


def _is_message(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(value.get(name), str) for name in ("role", "content")
    )


def _check_characters(text: str) -> None:
    """Refuse halves of characters, as JSON may have them: no tokenizer takes them."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise GenerationError(
            f"The prompt is no text: {first_line(error)}",
            need="whole characters",
            remedy="leave out surrogates (U+D800 to U+DFFF)",
        ) from error


class CompiledModel:
    """A language model on one target.

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
    vocabulary : int
        Tokens that there are.
    batch : int
        Rows of a call.
    chooser : TokenChooser, optional
        Chooses tokens where the logits are; None: the host does.

    Attributes
    ----------
    figures : AnswerFigures
        Of the last answer.
    counts_keys : bool
        Whether calls say how many keys there are (`VALID`).
    """

    def __init__(
        self,
        executable: Any,
        tokenizer: Any,
        max_length: int,
        chunk: int,
        stop: Sequence[int],
        nbytes: ModelBytes,
        vocabulary: int,
        batch: int = 1,
        chooser: TokenChooser | None = None,
    ) -> None:
        self.executable, self.tokenizer, self.nbytes = executable, tokenizer, nbytes
        self.max_length, self.chunk, self.stop, self.batch = max_length, chunk, tuple(stop), batch
        self.vocabulary, self.chooser = vocabulary, chooser
        self.counts_keys = any(each.name == VALID for each in executable.signature.inputs)
        self.figures = AnswerFigures()

    def reset(self) -> None:
        """Forget what was computed."""
        self.executable.reset()
        if self.chooser is not None:
            self.chooser.reset()

    def clone(self) -> Self:
        """The same model with a state of its own; weights and code are shared."""
        made = copy.copy(self)
        made.executable, made.figures = self.executable.clone(), AnswerFigures()
        made.chooser = None if self.chooser is None else self.chooser.clone()
        return made

    def inputs(self, place: int, tokens: np.ndarray, *more: np.ndarray) -> tuple[np.ndarray, ...]:
        """What a call of the program takes.

        Parameters
        ----------
        place : int
            Where the tokens stand.
        tokens : numpy.ndarray of int64, (rows, tokens)
        more
            As the kind of model has them.
        """
        end = place + tokens.shape[1]
        valid = [np.ones(end, np.bool_)] if self.counts_keys else []
        return (tokens, np.arange(place, end, dtype=np.int64), *more, *valid)

    def _next(self, place: int, tokens: np.ndarray, *more: np.ndarray) -> NextToken:
        """Run the program, as of `inputs`."""
        return NextToken(*self.executable.on_device(*self.inputs(place, tokens, *more)))

    def _chosen(
        self,
        found: NextToken,
        before: Sequence[Sequence[int]],
        sampling: Sampling,
        rngs: Sequence[np.random.Generator | None],
    ) -> list[int]:
        """A token for each row; any for those that have no generator."""
        if self.chooser is None:
            rows = zip(found.on_host(), before, rngs, strict=False)
            return [0 if rng is None else sampling.choose(row, seen, rng) for row, seen, rng in rows]
        if sampling.is_most_likely:
            made = _array(found.most_likely)
        else:
            uniforms = [*uniforms_of(rngs, sampling)]
            made = self.chooser.choose(found.logits, before, sampling, uniforms)
        return [int(token) for token in made[: len(before)]]

    def _check_tokens(self, tokens: Sequence[int]) -> None:
        if not tokens:
            raise GenerationError(
                "The prompt has no token.", need="at least one token", remedy="pass a text that is not empty"
            )
        self._check_known(tokens)
        self._check_room(len(tokens))

    def _check_known(self, tokens: Sequence[int]) -> None:
        """Refuse what is no token: the program would read beyond its embedding."""
        for token in tokens:
            if not 0 <= token < self.vocabulary:
                raise GenerationError(
                    f"{token} is no token of the model.",
                    need=f"0 to {self.vocabulary - 1}",
                    remedy="take tokens of the model's own tokenizer (encode)",
                )

    def _check_room(self, count: int) -> None:
        if count > self.max_length:
            raise SizeError(
                f"The conversation has {count} tokens.",
                need=f"at most {self.max_length}, which the state has room for",
                remedy="shorten the prompt, or load the model with a larger max_length (--max-length)",
            )

    def encode(self, prompt: Prompt, template: bool = True) -> list[int]:
        """The tokens of a text or of messages, with the chat template where the tokenizer has one.

        Parameters
        ----------
        prompt : str, or sequence of mapping
            Mappings have ``role`` (``user``, ``assistant``, ``system``) and ``content``.
        template : bool
            Without, a text is taken as it is.

        Raises
        ------
        GenerationError
            It is neither, or the template does not take the messages.
        """
        if not isinstance(prompt, str):
            _check_messages(prompt)
        for text in [prompt] if isinstance(prompt, str) else [message["content"] for message in prompt]:
            _check_characters(text)
        if isinstance(prompt, str) and not (template and self.tokenizer.chat_template):
            return [int(token) for token in self.tokenizer(prompt)["input_ids"]]
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        if not self.tokenizer.chat_template:
            raise GenerationError(
                "The model has no chat template, which messages need.",
                need="a text",
                remedy="pass a text as the model continues it",
            )
        try:
            found = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True)
        except Exception as error:  # whatever a template raises of messages
            raise GenerationError(
                f"The model's chat template does not take these messages: {first_line(error)}",
                where=", ".join(str(message["role"]) for message in messages),
                need="roles in the order that the model was trained with",
                remedy="leave out the system message, or let user and assistant take turns",
            ) from error
        return [int(token) for token in (found["input_ids"] if hasattr(found, "keys") else found)]

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
        if self.chooser is not None:
            self.chooser.programs.save(path)
        self.tokenizer.save_pretrained(str(path))
        settings = {
            "format": FORMAT,
            "max_length": self.max_length,
            "chunk": self.chunk,
            "stop": list(self.stop),
            "batch": self.batch,
            "vocabulary": self.vocabulary,
            "sampling": SAMPLING[self.chooser is None],
            "nbytes": attrs.asdict(self.nbytes),
        }
        (path / SETTINGS).write_text(json.dumps(settings, indent=1))
        return path
