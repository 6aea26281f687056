# SPDX-License-Identifier: Apache-2.0
"""Numbers of half precision are held as such, and converted where something computes with them."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import tirx
from uir_tvm.igraph import IGraph
from uir_tvm.target.cpu.elements import convert, element, narrow_of
from uir_tvm.target.cpu.lower import lower

from .support import check, parsed, signature

HALF = element("fp16")


def _value(dtype: str) -> tirx.Var:
    return tirx.Var("x", dtype)


def test_what_was_widened_is_narrow_again() -> None:
    half = _value("float16")
    assert convert(HALF.load(half), "float16").same_as(half)
    assert HALF.store(HALF.load(half)).same_as(half)
    assert narrow_of(HALF.load(half)).same_as(half)


def test_rounding_what_is_rounded_does_nothing() -> None:
    once = HALF.round(_value("float32"))
    again = HALF.round(once)
    assert narrow_of(again).same_as(narrow_of(once))


@pytest.mark.parametrize(("dtype", "to"), [("float32", "float64"), ("float64", "float32"), ("int8", "int32")])
def test_others_are_converted(dtype: str, to: str) -> None:
    assert isinstance(convert(convert(_value(dtype), to), dtype), tirx.Cast)
    assert narrow_of(convert(_value(dtype), to)) is None


def _added(cols: int) -> IGraph:
    return parsed(
        f"x = iPointer(dram, fp16, {cols}, in)\ny = iPointer(dram, fp16, {cols}, in)\n"
        f"o = iPointer(dram, fp16, {cols}, out)\nt = iPointer(reg, fp16, {cols})",
        f"binary.add.fp16 t[0; (1,{cols}); ({cols},1)], x[0; (1,{cols}); ({cols},1)], "
        f"y[0; (1,{cols}); ({cols},1)]\n"
        f"binary.mul.fp16 o[0; (1,{cols}); ({cols},1)], t[0; (1,{cols}); ({cols},1)], "
        f"x[0; (1,{cols}); ({cols},1)]",
    )


def test_one_conversion_for_each_rounding() -> None:
    """Of a sum and a product: each is rounded once, and the product is stored as it is held."""
    graph = _added(16)
    assert lower(graph, signature(graph)).script().count('T.Cast("float16x16"') == 2


def test_values() -> None:
    rng = np.random.default_rng(2)
    check(_added(77), [rng.standard_normal(77).astype("float16") for _ in range(2)], rtol=0, atol=0)
