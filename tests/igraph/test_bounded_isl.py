# SPDX-License-Identifier: Apache-2.0
"""isl's texts are read once, and an answer does not depend on what was read before."""

from __future__ import annotations

import threading

import islpy
import pytest
from uir_tvm.igraph import bounded_isl

TEXT = "{ [a, b] : 0 <= a < 40 and exists k : b = 3*k and a <= b <= a + 7 }"


def test_a_text_is_read_once() -> None:
    assert bounded_isl.read_set(TEXT) is bounded_isl.read_set(TEXT)
    relation = bounded_isl.read_map("{ [a] -> [b] : b = a + 1 }")
    assert relation is bounded_isl.read_map("{ [a] -> [b] : b = a + 1 }")
    assert isinstance(relation, islpy.Map)


def test_reading_that_takes_too_much_does_so_again() -> None:
    many = " and ".join(f"(x mod {n} = 1 or (x + y) mod {n + 1} = 0)" for n in range(3, 12))
    for _ in range(2):
        with pytest.raises(bounded_isl.Exhausted):
            bounded_isl.bounded(lambda: bounded_isl.read_set(f"{{ [x, y] : {many} }}"), 100)


def test_what_is_left_of_the_effort_does_not_depend_on_what_is_kept() -> None:
    text = "{ [x] : exists a, b, c : x = 5*a + 7*b + 11*c and 0 <= a, b, c < 9 }"

    def answer(most: int) -> bool | None:
        try:
            return bounded_isl.bounded(lambda: bool(bounded_isl.read_set(text).is_empty()), most)
        except bounded_isl.Exhausted:
            return None

    first = [answer(most) for most in (10, 100, 1000, 100_000)]
    assert [answer(most) for most in (10, 100, 1000, 100_000)] == first
    assert first[0] is None and first[-1] is False


def test_a_malformed_text_is_no_lack_of_effort() -> None:
    for _ in range(2):
        with pytest.raises(bounded_isl.IslError):
            bounded_isl.bounded(lambda: bounded_isl.read_set("{ [x : }"))


def test_the_oldest_texts_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_isl, "MOST_KEPT", 2)
    monkeypatch.setattr(bounded_isl, "_local", threading.local())  # nothing is kept yet
    texts = [f"{{ [x] : x = {90_000 + k} }}" for k in range(3)]
    first, *others = [bounded_isl.read_set(text) for text in texts]
    assert all(bounded_isl.read_set(text) is kept for text, kept in zip(texts[1:], others, strict=True))
    assert bounded_isl.read_set(texts[0]) is not first
