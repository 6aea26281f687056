# SPDX-License-Identifier: Apache-2.0
"""Buffers in one allocation: apart while both are needed, and in the same place every time."""

from __future__ import annotations

import random

from uir_tvm.export.arena import ALIGNMENT, Lifetime, occupied, plan


def test_buffers_that_do_not_meet_share_bytes() -> None:
    arena = plan([Lifetime("a", 1000, 0, 1), Lifetime("b", 1000, 2, 3), Lifetime("c", 100, 1, 2)])
    assert arena.offsets == {"a": 0, "b": 0, "c": 1536}
    assert arena.nbytes == 2048


def test_every_part_has_what_the_runtime_asks_for() -> None:
    """A size rounded up to 32 bytes and 32 more, from a multiple of 64 (aclrtMalloc, restrictions)."""
    assert occupied(1) == 64 and occupied(32) == 64 and occupied(33) == 96
    arena = plan([Lifetime("a", 512, 0, 0), Lifetime("b", 1, 0, 0)])
    assert arena.offsets == {"a": 0, "b": 1024}


def test_random_lifetimes_do_not_overlap() -> None:
    """No two buffers that are alive together share a byte, and the order of equal sizes is the caller's."""
    for seed in range(30):
        rng = random.Random(seed)
        rows = []
        for i in range(rng.randint(1, 40)):
            first = rng.randint(0, 20)
            rows.append(
                Lifetime(f"t{i}", rng.choice([1, 31, 512, 4000, 4096]), first, first + rng.randint(0, 6))
            )
        arena = plan(rows)
        for i, one in enumerate(rows):
            start = arena.offsets[one.name]
            assert start % ALIGNMENT == 0 and start + occupied(one.nbytes) <= arena.nbytes, seed
            for other in rows[:i]:
                begin = arena.offsets[other.name]
                apart = start + occupied(one.nbytes) <= begin or begin + occupied(other.nbytes) <= start
                assert apart or not one.meets(other), (seed, one, other)
        assert plan(rows) == arena


def test_nothing() -> None:
    assert plan([]).nbytes == 0
