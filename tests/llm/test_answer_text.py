# SPDX-License-Identifier: Apache-2.0
"""Answers end before a stop, however it is cut into tokens; nothing that may belong to it is said before."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.errors import GenerationError
from uir_tvm.llm.answer_text import AnswerText, stops_of


class _Bytes:
    """A token for each byte."""

    def decode(self, tokens: list[int], skip_special_tokens: bool) -> str:
        assert skip_special_tokens
        return bytes(tokens).decode(errors="replace")


def _said(text: str, *stops: str) -> tuple[list[str], bool]:
    """Pieces until a stop or the end."""
    answer = AnswerText(_Bytes(), stops)
    pieces = []
    for token in text.encode():
        pieces.append(answer.add(token))
        if answer.ended:
            break
    return [*pieces, answer.rest()], answer.ended


@pytest.mark.parametrize(
    ("text", "stops", "wanted"),
    [
        ("one\n\ntwo", ("\n\n",), "one"),
        ("aab", ("ab",), "a"),
        ("ababac and", ("abac",), "ab"),
        ("a\nb", ("\n\n",), "a\nb"),
        ("an end, a stop", ("stop", "end"), "an "),
        ("grün: é", ("é",), "grün: "),
        ("almost ab", ("abc",), "almost ab"),
    ],
)
def test_the_text_before_a_stop(text: str, stops: tuple[str, ...], wanted: str) -> None:
    pieces, ended = _said(text, *stops)
    assert "".join(pieces) == wanted and ended == (wanted != text)


def test_pieces_come_at_once() -> None:
    """Without a stop each character with its last byte; with one, only what it may begin with is held."""
    assert _said("aé")[0] == ["a", "", "é", ""]
    assert _said("xaby", "abc")[0] == ["x", "", "", "aby", ""]


class _Pieces:
    """Words of a vocabulary of sentences' pieces, and bytes of what it has not: tokens of text or of a byte.

    The first space is no part of a text; bytes that are no characters are each one that stands for none.
    Token 0 is special and has no text.
    """

    words = ("", "\u2581the", "\u2581", "ing", ".", "\u2581\u2581", "x")

    def __init__(self) -> None:
        self.decoded = 0

    def decode(self, tokens: list[int], skip_special_tokens: bool) -> str:
        assert skip_special_tokens
        self.decoded += len(tokens)
        parts, run = [], b""
        for token in [*tokens, 0]:
            if token >= len(self.words):
                run += bytes([token - len(self.words)])
                continue
            if run and token:
                parts.append(self._characters(run))
                run = b""
            parts.append(self.words[token].replace("\u2581", " "))
        return "".join([*parts, self._characters(run)]).removeprefix(" ")

    @staticmethod
    def _characters(run: bytes) -> str:
        try:
            return run.decode()
        except UnicodeDecodeError:
            return "\ufffd" * len(run)

    def tokens_of(self, text: str) -> list[int]:
        """A token for each byte of a text."""
        return [len(self.words) + byte for byte in text.encode()]


def _of_whole_texts(tokenizer: _Pieces, tokens: list[int]) -> str:
    """What is said where the whole answer is decoded at each token: what was said stays."""
    said = ""
    for count in range(1, len(tokens) + 1):
        text = tokenizer.decode(tokens[:count], skip_special_tokens=True)
        if count == len(tokens) or not text.endswith("\ufffd"):
            said += text[len(said) :]
    return said


def test_pieces_are_those_of_the_whole_text() -> None:
    """Words, special tokens between them, spaces, characters of two to four bytes, and bytes of none."""
    tokenizer, rng = _Pieces(), np.random.default_rng(0)
    kinds = [[number] for number in range(len(tokenizer.words))]
    kinds += [tokenizer.tokens_of(text) for text in ("é", "你好", "👍🏽")] + [
        tokenizer.tokens_of("你")[:2] + [6]
    ]
    for _ in range(200):
        tokens = [token for pick in rng.integers(0, len(kinds), 12) for token in kinds[pick]]
        answer = AnswerText(tokenizer)
        said = "".join(map(answer.add, tokens)) + answer.rest()
        assert said == _of_whole_texts(tokenizer, tokens), tokens
        assert answer.tokens == tokens


def test_an_answer_that_ends_within_a_character() -> None:
    tokenizer = _Pieces()
    answer = AnswerText(tokenizer)
    said = "".join(map(answer.add, [1, *tokenizer.tokens_of("你好")[:-1]]))
    assert said == "the你" and answer.rest() == "\ufffd" * 4


def test_no_token_is_decoded_often() -> None:
    """An answer costs what its tokens cost, however long it is."""
    tokenizer = _Pieces()
    answer = AnswerText(tokenizer, ("no such text",))
    tokens = [1, 3, *tokenizer.tokens_of("你好"), 4] * 100
    for token in tokens:
        answer.add(token)
    assert tokenizer.decoded <= 6 * len(tokens)


def test_what_is_no_stop() -> None:
    assert stops_of("end") == (frozenset(), ("end",))
    assert stops_of([7, "end"]) == (frozenset({7}), ("end",))
    for wrong in ("", [""], [1.5], [True]):
        with pytest.raises(GenerationError, match="stop has"):
            stops_of(wrong)
