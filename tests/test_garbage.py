# SPDX-License-Identifier: Apache-2.0
"""Garbage is sought once, where it was made, and the collector is left as it was found."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest
from uir_tvm import garbage
from uir_tvm.garbage import search_now, searched_at_the_end, spare, unsearched, without_frames


class Ring:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def unfrozen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The suite froze what it loaded; these tests begin as a user's program does, and give it back."""
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    monkeypatch.setattr(garbage, "_arranged_until", 0.0)
    yield
    gc.enable()
    if frozen:
        gc.freeze()


def test_garbage_that_was_made_inside_is_gone_at_the_end() -> None:
    with searched_at_the_end():
        assert not gc.isenabled() and gc.get_freeze_count() > 1000
        inside = weakref.ref(Ring())
        assert inside() is not None
    assert inside() is None and gc.isenabled() and gc.get_freeze_count() == 0


def test_it_can_be_sought_between_two_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    with searched_at_the_end():
        inside = weakref.ref(Ring())
        search_now()
        assert inside() is None
    monkeypatch.setattr(gc, "collect", lambda: pytest.fail("nobody asked for that outside"))
    search_now()


def test_it_ends_after_an_error_too() -> None:
    with pytest.raises(ValueError), searched_at_the_end():
        raise ValueError
    with pytest.raises(ValueError), unsearched():
        raise ValueError
    assert gc.isenabled() and gc.get_freeze_count() == 0


def test_what_a_program_arranged_stays() -> None:
    gc.disable()
    with searched_at_the_end(), unsearched():
        pass
    assert not gc.isenabled() and gc.get_freeze_count() == 0
    gc.enable()
    gc.freeze()
    with searched_at_the_end():
        assert gc.isenabled()
    assert gc.get_freeze_count() > 0


def test_frozen_objects_are_counted_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.freeze()
    count, now, asked = gc.get_freeze_count(), [50.0], []

    def slowly() -> int:
        asked.append(now[0])
        now[0] += 0.02
        return count

    monkeypatch.setattr(garbage.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(gc, "get_freeze_count", slowly)
    for _ in range(100):
        with searched_at_the_end():
            assert gc.isenabled()
        now[0] += 0.03
    assert len(asked) == 2, "at once, and again 2 s later: not for each of 100 within 3 s"
    gc.unfreeze()
    count = 0
    now[0] += 2
    with searched_at_the_end():
        assert not gc.isenabled(), "a program that gave its objects back is searched again"


def test_what_was_spared_is_no_arrangement_of_the_program() -> None:
    spare()
    assert gc.get_freeze_count() > 0
    with searched_at_the_end():
        assert not gc.isenabled()
    assert gc.isenabled() and gc.get_freeze_count() == 0


def test_one_inside_of_another_leaves_the_search_to_it() -> None:
    with searched_at_the_end():
        with searched_at_the_end(), unsearched():
            pass
        assert not gc.isenabled() and gc.get_freeze_count() > 0
    assert gc.isenabled()


def test_a_compilation_searches_once() -> None:
    import uir_tvm

    from . import tiny

    module, often, seen = tiny.module(), gc.get_threshold(), []

    def note(phase: str, _: object) -> None:
        seen.append(phase)

    gc.set_threshold(700, 10, 10)
    gc.callbacks.append(note)
    try:
        uir_tvm.compile(module)
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*often)
    assert 1 <= seen.count("start") < 10, "one at the end, and what objects before and after ask for"


def test_what_a_program_froze_beside_stays() -> None:
    spare()
    kept = [Ring() for _ in range(1000)]
    gc.freeze()
    with searched_at_the_end():
        assert gc.isenabled()
    assert gc.get_freeze_count() >= len(kept)
    gc.unfreeze()


def test_memory_is_given_back_where_there_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(garbage.ctypes, "CDLL", lambda _: asked.append("trim"))
    with searched_at_the_end():
        pass
    assert not asked
    with searched_at_the_end():
        monkeypatch.setattr(garbage, "resident", lambda: 1 << 50)
    assert asked


def test_an_error_that_is_kept_holds_nothing_of_where_it_was_raised() -> None:
    """What holds the error goes as soon as nobody has it, though a frame that raised it had it too."""

    def holder() -> Ring:
        held = Ring()
        try:
            try:
                raise ValueError("at first")
            except ValueError as first:
                raise KeyError("then") from first
        except KeyError as error:
            held.needed = without_frames(error)  # type: ignore[attr-defined]
        del held.itself
        return held

    gc.disable()
    held = holder()
    gone = weakref.ref(held)
    del held
    assert gone() is None
