# SPDX-License-Identifier: Apache-2.0
"""Tokens of the text format, with the errors that point at them."""

from __future__ import annotations

import json
import re
from typing import NoReturn

import attrs

from ..errors import ParseError
from .text import NAME

_TOKENS = re.compile(
    rf"""(?P<space>\s+|\#[^\n]*)
    |(?P<number>\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+)
    |(?P<name>{NAME})
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<punct>[{{}}\[\]();:,=+\-*/%])""",
    re.VERBOSE,
)


@attrs.frozen
class Token:
    """A piece of the text: its kind (name, string, number, punct, end), characters and place."""

    kind: str
    text: str
    position: int


class Tokens:
    """The tokens of a text, one at a time with one of look-ahead."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(self._split())
        self._next = 0

    def _split(self) -> list[Token]:
        out, position = [], 0
        while position < len(self._text):
            match = _TOKENS.match(self._text, position)
            if match is None:
                self.fail(f"The character {self._text[position]!r} has no meaning here.", position)
            if match.lastgroup != "space":
                out.append(Token(str(match.lastgroup), match.group(), position))
            position = match.end()
        out.append(Token("end", "", len(self._text.rstrip())))
        return out

    def fail(self, what: str, at: int | Token, remedy: str = "") -> NoReturn:
        """Raise a ParseError that points at a token or a position."""
        position = at.position if isinstance(at, Token) else at
        before = self._text[:position]
        line = before.count("\n") + 1
        column = position - (before.rfind("\n") + 1) + 1
        lines = self._text.split("\n")
        raise ParseError(what, line=line, column=column, source=lines[line - 1], remedy=remedy)

    @property
    def here(self) -> Token:
        """The next token, not yet taken."""
        return self._tokens[self._next]

    @property
    def after(self) -> Token:
        """The one behind it."""
        return self._tokens[min(self._next + 1, len(self._tokens) - 1)]

    def take(self) -> Token:
        """The next token."""
        token = self.here
        self._next += token.kind != "end"
        return token

    def at(self, *texts: str) -> bool:
        """Whether the next token is one of these words or signs."""
        return self.here.kind in ("name", "punct") and self.here.text in texts

    def accept(self, text: str) -> bool:
        """Take the next token if it is this one."""
        found = self.at(text)
        if found:
            self.take()
        return found

    def expect(self, text: str, why: str) -> Token:
        """Take the next token, which must be this one; ``why`` completes "... is missing"."""
        if not self.at(text):
            self.fail(f"{text!r} is missing {why}: found {self.shown()}.", self.here)
        return self.take()

    def shown(self) -> str:
        """The next token for a message."""
        return "the end of the text" if self.here.kind == "end" else repr(self.here.text)

    def name(self, what: str) -> str:
        """Take a name, bare or quoted."""
        token = self.here
        if token.kind not in ("name", "string"):
            self.fail(f"{what} is missing: found {self.shown()}.", token)
        self.take()
        return self.unquote(token) if token.kind == "string" else token.text

    def unquote(self, token: Token) -> str:
        """The string that a quoted token stands for."""
        try:
            return json.loads(token.text)
        except json.JSONDecodeError:
            self.fail(f"The string {token.text} is malformed.", token, remedy="escape as in JSON")

    def integer(self, what: str) -> int:
        """Take an integer, maybe negative."""
        negative = self.accept("-")
        token = self.here
        if token.kind != "number" or not token.text.isdigit():
            self.fail(f"{what} must be an integer: found {self.shown()}.", token)
        self.take()
        return -int(token.text) if negative else int(token.text)
