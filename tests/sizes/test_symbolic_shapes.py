# SPDX-License-Identifier: Apache-2.0
"""What inputs say of symbols: solved, checked, refused by type."""

from __future__ import annotations

import pytest
from uir_tvm.errors import FrontendError, ShapeError, SizeError
from uir_tvm.sizes.symbolic_shapes import NUMBER, OpenInput, OpenSignature, value_of

SIGNATURE = OpenSignature(
    [
        OpenInput("x", ("2*n + 1", 8), "float32"),
        OpenInput("y", ("n", "m"), "float32"),
        OpenInput("z", ("max(n, m) // 2",), "float32"),
        OpenInput("k", ("k",), "int64", NUMBER),
    ],
    {"n": (1, 16)},
)
GOOD = {"x": (7, 8), "y": (3, 9), "z": (4,), "k": (5,)}


def test_symbols_are_solved_and_shapes_made_of_them() -> None:
    assert SIGNATURE.symbols == ("n", "m", "k")
    sizes = SIGNATURE.bind(GOOD)
    assert sizes == {"n": 3, "m": 9, "k": 5}
    assert SIGNATURE.shapes(sizes) == GOOD
    assert OpenSignature.from_json(SIGNATURE.to_json()) == SIGNATURE


def test_a_multiple_alone_says_what_its_symbol_is() -> None:
    alone = OpenSignature([OpenInput("x", ("4*n",), "float32")])
    assert alone.bind({"x": (12,)}) == {"n": 3}
    with pytest.raises(SizeError, match="cannot be 13"):
        alone.bind({"x": (13,)})


def test_some_sizes_may_be_fixed_first() -> None:
    fixed = SIGNATURE.fixed({"n": 3, "k": 5})
    assert fixed.symbols == ("m",) and fixed.inputs[0].sizes == (7, 8)
    assert fixed.bind(GOOD) == {"m": 9}


@pytest.mark.parametrize(
    "wrong, said",
    [
        ({"x": (7,)}, "rank 1"),
        ({"x": (7, 9)}, "Axis 1 of x is 9"),
        ({"x": (9, 8)}, "disagree on n: axis 0 of x is 9, not 7"),
        ({"z": (3,)}, "disagree on n, m: axis 0 of z is 3, not 4"),
        ({"x": (1, 8), "y": (0, 9)}, "n cannot be 0"),
        ({"x": (35, 8), "y": (17, 9), "z": (8,)}, "n cannot be 17"),
    ],
)
def test_shapes_that_do_not_go_together(wrong: dict[str, tuple[int, ...]], said: str) -> None:
    with pytest.raises(SizeError) as caught:
        SIGNATURE.bind({**GOOD, **wrong})
    assert said in caught.value.what


def test_who_disagrees_is_named_with_axes_and_sizes() -> None:
    with pytest.raises(SizeError) as caught:
        SIGNATURE.bind({**GOOD, "x": (9, 8)})
    assert "axis 0 of x is 9" in caught.value.what and "axis 0 of y is 3" in caught.value.where


def test_names_that_are_no_symbols_and_symbols_without_a_size() -> None:
    with pytest.raises(ShapeError, match="no size 'q'"):
        SIGNATURE.fixed({"q": 1})
    with pytest.raises(ShapeError, match="No size is given for m, k"):
        SIGNATURE.shapes({"n": 3})


@pytest.mark.parametrize("text", ["n.real", "__import__('os')", "n ** 2", "n +", "open(n)"])
def test_only_arithmetic_is_read(text: str) -> None:
    with pytest.raises(FrontendError):
        value_of(text, {"n": 1})
