# SPDX-License-Identifier: Apache-2.0
"""Answers end before a stop, however it is cut into tokens; nothing that may belong to it is said before."""

from __future__ import annotations

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


def test_what_is_no_stop() -> None:
    assert stops_of("end") == (frozenset(), ("end",))
    assert stops_of([7, "end"]) == (frozenset({7}), ("end",))
    for wrong in ("", [""], [1.5], [True]):
        with pytest.raises(GenerationError, match="stop has"):
            stops_of(wrong)
