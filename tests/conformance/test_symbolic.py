# SPDX-License-Identifier: Apache-2.0
"""Every recipe with each axis open in turn, then all: one kernel, right at every size, or a known refusal.

The suite takes a sample on every target, the campaign every form at all its points, interpreted too.
"""

from __future__ import annotations

import functools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.schedules import RECIPES
from uir_tvm.target.registry import TARGETS

from tests.asked import ALL, asked

from .symbolic import Form, Made, check, forms, widest
from .symbolic_axes import axes_of, forms_of
from .symbolic_operators import EXAMPLES
from .symbolic_record import DOCUMENT, differs, entry_of, load, rendered

#: What the suite runs on each target: (function, number of its form), each a mechanism of its own.
QUICK = {
    "uir-cpu": [("normalization", 2), ("concat of three", 0), ("flat", 1), ("gather", 3), ("pad", 2)],
    "uir-cuda": [("contraction", 3), ("column reduction", 2), ("greatest of windows", 3), ("log softmax", 2)],
    "uir-ascend": [("transpose", 2), ("sum over the outermost", 0)],
    "uir-bang": [("normalization", 1), ("concat", 2), ("layer norm", 2)],
}
#: What the suite compares with the record, each on one target.
RECORDED = [("gather", 1), ("convolution", 7), ("flip of columns", 0), ("phases", 0), ("reduction", 1)]
#: Sizes at which a window fits into the image, of a convolution of which none is closed: batch, channels in,
#: height and width of images, channels out, height and width of windows.  Ones, twos, primes, the greatest of
#: each, both sides of a tile of channels, a window as large as the padded image, nothing to sum.
WINDOWS = [
    (1, 1, 1, 1, 1, 1, 1),
    (2, 2, 2, 2, 2, 2, 2),
    (1, 5, 7, 11, 13, 3, 5),
    (24, 1, 3, 5, 15, 3, 1),
    (1, 24, 4, 2, 17, 1, 2),
    (2, 2, 24, 3, 16, 24, 4),
    (1, 1, 5, 24, 24, 2, 24),
    (1, 2, 3, 3, 2, 5, 5),
    (2, 0, 5, 5, 2, 3, 3),
]
#: Of sizes that are drawn, each pair on one target.
DRAWN = [("layer norm", 2, "uir-cpu"), ("concat", 2, "uir-ascend"), ("reduction", 2, "uir-bang")]


@functools.cache
def forms_named(function: str) -> list[Form]:
    return list(forms(function))


@functools.cache
def made(function: str, number: int, target: str) -> tuple[Form, Made]:
    return widest(forms_named(function)[number], target)


def _all(known: bool) -> list[tuple[str, int, str]]:
    record = load()
    return [
        (function, number, target)
        for function, rows in record.items()
        for number, entries in enumerate(rows.values())
        for target in TARGETS
        if not known or "recipe" in entries[target]
    ]


SAMPLE = [(function, number, target) for target, taken in QUICK.items() for function, number in taken]


@pytest.mark.compares_itself
@pytest.mark.parametrize(("function", "number", "target"), _all(known=True) if ALL else SAMPLE)
def test_one_kernel_is_right_at_every_size(function: str, number: int, target: str) -> None:
    form, kernel = made(function, number, target)
    assert kernel.refused is None
    graph = kernel.record.products["igraph"]
    points = form.points(graph)
    if not ALL and target != "uir-cpu":
        # of none, and around a tile
        points = [points[-1], *points[2:4]]
    assert check(form, kernel, target, points, interpreted=ALL) >= 2


@pytest.mark.compares_itself
@pytest.mark.parametrize("target", asked(["uir-cpu", "uir-bang"], list(TARGETS)))
def test_a_convolution_of_which_no_size_is_closed(target: str) -> None:
    """Seven sizes and two that follow, six of them ends of loops: more conditions than a box has sides."""
    form, kernel = made("convolution", 7, target)
    assert kernel.refused is None
    points = [dict(zip(form.sizes, sizes, strict=True)) for sizes in WINDOWS]
    assert check(form, kernel, target, points[:2], interpreted=True) == 2
    assert check(form, kernel, target, points[2:], interpreted=ALL) == len(points) - 2


@pytest.mark.compares_itself
@pytest.mark.parametrize(
    ("function", "number", "target"),
    _all(known=False) if ALL else [(f, n, [*TARGETS][k % len(TARGETS)]) for k, (f, n) in enumerate(RECORDED)],
)
def test_no_kernel_comes_or_goes_unrecorded(function: str, number: int, target: str) -> None:
    """A form that gets a kernel, or loses it, is recorded by ``scripts/sweep_open_axes.py --write``."""
    form = forms_named(function)[number]
    found, known = entry_of(form, target), load()[function][form.label][target]
    assert not differs(found, known), (found, known)


def test_the_record_has_every_recipe_form_and_target() -> None:
    record = load()
    assert set(record) == set(EXAMPLES) >= {recipe.hero for recipe in RECIPES}
    for function in RECIPES.heroes:
        assert list(record[function]) == [form.label for form in forms_named(function)]
    assert all(set(entries) == set(TARGETS) for rows in record.values() for entries in rows.values())


def test_the_page_is_that_of_the_record() -> None:
    assert DOCUMENT.read_text() == rendered(load())


def test_a_kernel_that_is_lost_is_told() -> None:
    kernel, other = {"recipe": "gather", "least": 0}, {"recipe": "concat", "least": 0}
    refusal = {"error": "ExtractionError", "reason": "why"}
    assert not differs(kernel, other) and not differs(refusal, {**refusal, "reason": "otherwise"})
    assert differs(kernel, refusal) and differs(refusal, kernel) and differs(kernel, {**kernel, "least": 1})


def test_dimensions_that_blocks_walk_together_are_one_size() -> None:
    example = RECIPES["attention"].example()
    axes = axes_of(example.func, len(example.inputs))
    assert [axis.places for axis in axes] == [
        ((0, 1), (1, 1), (2, 1)),  # heads
        ((0, 2), (3, 0)),  # queries
        ((0, 3), (1, 3)),  # what a score sums over
        ((1, 2), (2, 2), (3, 1)),  # keys
        ((2, 3),),  # the width of values
    ]
    *_, (shapes, extents) = forms_of(example.shapes, axes)
    assert shapes == [(1, "n", "m", "k"), (1, "n", "a", "k"), (1, "n", "a", "b"), ("m", "a")]
    assert extents == {"n": 2, "m": 70, "k": 32, "a": 70, "b": 32}


@pytest.mark.compares_itself
@pytest.mark.parametrize(("function", "number", "target"), DRAWN)
def test_random_sizes(function: str, number: int, target: str) -> None:
    form, kernel = made(function, number, target)
    assert kernel.refused is None
    sizes = {
        # most often short, so that elements are few
        name: st.one_of(st.integers(size.low, min(40, size.high)), st.integers(size.low, size.high))
        for name, size in form.sizes.items()
    }

    @settings(max_examples=asked(5, 60))
    @given(st.fixed_dictionaries(sizes).filter(lambda drawn: math.prod(drawn.values()) <= 20_000))
    def right(drawn: dict[str, int]) -> None:
        check(form, kernel, target, [drawn], interpreted=False)

    right()
