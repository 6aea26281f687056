# SPDX-License-Identifier: Apache-2.0
"""How two accesses relate, checked against the sets of elements that they touch."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.igraph import IPointer, affine, var
from uir_tvm.target.cpu.element_access import Domain, Overlap, StridedAccess, relation

P = IPointer("p", "reg", "fp32", 1 << 20)


@st.composite
def accesses(draw: Any, rows: int) -> tuple[StridedAccess, Domain]:
    strides = st.sampled_from((0, 1, 2, 4, 5, 8, -1, 16))
    return (
        StridedAccess(P, affine(draw(st.integers(0, 12))), draw(strides), draw(strides)),
        Domain(rows, draw(st.integers(1, 5))),
    )


def touched(access: StridedAccess, domain: Domain) -> dict[int, set[tuple[int, int]]]:
    """Coordinates by element."""
    out: dict[int, set[tuple[int, int]]] = {}
    for r, c in itertools.product(range(domain.rows), range(domain.cols)):
        out.setdefault(access.offset.constant + r * access.row + c * access.col, set()).add((r, c))
    return out


@settings(max_examples=400, deadline=None, database=None)
@given(st.data())
def test_relation_never_promises_too_much(data: Any) -> None:
    rows = data.draw(st.integers(1, 4))
    (a, a_domain), (b, b_domain) = data.draw(accesses(rows)), data.draw(accesses(rows))
    found = relation(a, a_domain, b, b_domain)
    at_a, at_b = touched(a, a_domain), touched(b, b_domain)
    common = at_a.keys() & at_b.keys()
    if found == Overlap.DISJOINT:
        assert not common
    elif found == Overlap.SAME:
        assert at_a == at_b and all(len(coordinates) == 1 for coordinates in at_a.values())
    elif found == Overlap.ROW:
        assert all(len({r for r, _ in at_a[k] | at_b[k]}) == 1 for k in common)


@pytest.mark.parametrize(
    ("a", "b", "cols", "expected"),
    [
        ((0, 64, 1), (0, 64, 1), 32, Overlap.SAME),
        ((0, 64, 1), (32, 64, 1), 32, Overlap.DISJOINT),
        ((0, 64, 1), (1, 64, 1), 32, Overlap.ROW),
        ((0, 64, 2), (1, 64, 2), 32, Overlap.DISJOINT),
        ((0, 1, 0), (0, 1, 0), 8, Overlap.ROW),
        ((0, 1, 4), (0, 8, 1), 8, Overlap.OTHER),
    ],
)
def test_relation_finds(a: tuple, b: tuple, cols: int, expected: Overlap) -> None:
    first, second = (StridedAccess(P, affine(o), r, c) for o, r, c in (a, b))
    assert relation(first, Domain(4, cols), second, Domain(4, cols)) == expected


def test_offsets_that_differ_by_a_variable_may_meet() -> None:
    a, b = StridedAccess(P, affine(0), 8, 1), StridedAccess(P, var("pid") * 8, 8, 1)
    assert relation(a, Domain(4, 8), b, Domain(4, 8)) == Overlap.OTHER
    assert relation(a, Domain(4, 8), a, Domain(2, 8)) == Overlap.OTHER
