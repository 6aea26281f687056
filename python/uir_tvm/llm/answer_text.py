# SPDX-License-Identifier: Apache-2.0
"""The text of an answer while its tokens come, and the texts that end it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import GenerationError

#: Stands in a text for bytes that are no whole character yet.
UNFINISHED = "\ufffd"


class AnswerText:
    """Tokens become pieces of text: whole characters, and nothing that may be the beginning of a stop.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerBase
    stops : sequence of str
        Texts that end the answer, which has none of them.

    Attributes
    ----------
    tokens : list of int
    ended : bool
        Whether a stop was found.
    """

    def __init__(self, tokenizer: Any, stops: Iterable[str] = ()) -> None:
        self._tokenizer, self._stops = tokenizer, tuple(stops)
        self.tokens: list[int] = []
        self.ended = False
        #: Text that is certain and not said.
        self._pending = ""
        #: Length of the text of the tokens before `_read`.
        self._length = 0
        #: Tokens from `_start` are decoded with each new one, for what a text depends on before it; those
        #: from there to `_read` are the text `_known`.
        self._start = self._read = 0
        self._known = ""

    def add(self, token: int) -> str:
        """The piece that is certain with this token; often empty."""
        self.tokens.append(token)
        text = self._decoded(self._start)
        if text.endswith(UNFINISHED):
            return ""
        self._take(text)
        return self._piece(self._held())

    def rest(self) -> str:
        """What was held back, when no token follows."""
        if self._read < len(self.tokens):
            self._take(self._decoded(self._start))
        return self._piece(0)

    def _decoded(self, start: int) -> str:
        found: str = self._tokenizer.decode(self.tokens[start:], skip_special_tokens=True)
        return found

    def _take(self, text: str) -> None:
        """Read all tokens, those from `_start` being this text."""
        if text.startswith(self._known):
            new = text[len(self._known) :]
        else:  # what follows has changed text before it, as a byte that completes no character may
            new = self._decoded(0)[self._length :]
        self._pending += new
        self._length += len(new)
        alone = self._decoded(self._read)
        # Without a text of their own the last tokens do not say what the next ones look like behind text.
        if alone:
            self._start, self._known = self._read, alone
        else:
            self._known = text
        self._read = len(self.tokens)

    def _piece(self, held: int) -> str:
        text = self._pending
        ends = [place for place in map(text.find, self._stops) if place >= 0]
        if ends:
            self.ended = True
        end = min(ends, default=len(text) - held)
        self._pending = text[end:]
        return text[:end]

    def _held(self) -> int:
        """Characters at the end with which a stop may begin: no said one is of a stop."""
        return max((_overlap(self._pending, stop) for stop in self._stops), default=0)


def _overlap(text: str, stop: str) -> int:
    """The length of the longest end of a text that a stop begins with, but is not."""
    longest = min(len(stop) - 1, len(text))
    return next((size for size in range(longest, 0, -1) if text.endswith(stop[:size])), 0)


def stops_of(given: Any) -> tuple[frozenset[int], tuple[str, ...]]:
    """Tokens and texts that end an answer.

    Parameters
    ----------
    given : str, int, iterable of them, or None

    Raises
    ------
    GenerationError
        Something else, or an empty text.
    """
    one = isinstance(given, str | int | bytes) or not isinstance(given, Iterable)
    each = [] if given is None else [given] if one else list(given)
    wrong = [item for item in each if not isinstance(item, str | int) or isinstance(item, bool) or item == ""]
    if wrong:
        raise GenerationError(
            f"stop has {wrong[0]!r}.",
            need="texts that are not empty, or numbers of tokens",
            remedy="pass others, or leave it out",
        )
    return frozenset(item for item in each if isinstance(item, int)), tuple(
        item for item in each if isinstance(item, str)
    )
