# SPDX-License-Identifier: Apache-2.0
"""The text of Relay: what it means, and where it stops being any."""

from __future__ import annotations

import pytest

pytest.importorskip("lark")

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.errors import FrontendError, ModelFormatError
from uir_tvm.frontend import from_relay
from uir_tvm.frontend.relay import parse
from uir_tvm.frontend.relay.relay_program import Call, Constant, Local, Tuple

from .fixtures import text_of


def body_of(text: str) -> object:
    return parse("def @main() { " + text + " }")["main"].body


@pytest.mark.parametrize(
    ("text", "value", "dtype"),
    [
        ("5", 5, "int32"),
        ("-5i64", -5, "int64"),
        ("3u8", 3, "uint8"),
        ("1.5f", 1.5, "float32"),
        ("1e-05f64", 1e-5, "float64"),
        ("3f16", 3, "float16"),
        ("-inff", -np.inf, "float32"),
        ("True", True, "bool"),
    ],
)
def test_numbers(text: str, value: float, dtype: str) -> None:
    node = body_of(text)
    assert isinstance(node, Constant) and node.value.item() == value and str(node.value.dtype) == dtype


def test_attributes_and_comments() -> None:
    node = body_of(
        '/* a */ nn.pad(%x, 0f /* ty=float32 */, pad_width=[[0, 1], [2, 3]], pad_mode="edge", n=None)'
    )
    assert isinstance(node, Call)
    assert node.attributes == {"pad_width": [[0, 1], [2, 3]], "pad_mode": "edge", "n": None}
    assert [type(arg) for arg in node.args] == [Local, Constant]


def test_infix_operators_bind_as_usual() -> None:
    node = body_of("%x + %y * 2f")
    assert isinstance(node, Call) and node.callee.name == "add"
    assert isinstance(node.args[1], Call) and node.args[1].callee.name == "multiply"


def test_tuples() -> None:
    for text, count in (("()", 0), ("(%x,)", 1), ("(%x, %y)", 2)):
        node = body_of(text)
        assert isinstance(node, Tuple) and len(node.fields) == count
    assert isinstance(body_of("(%x)"), Local)


@pytest.mark.parametrize(
    ("text", "what", "where", "need"),
    [
        (
            "def @main(%x: Tensor[(2), float32]) {\n  add(%x %x)\n}",
            "'%x' is not expected",
            "line 2, column 10",
            "','",
        ),
        ("def @main(%x) {\n  $\n}", "'$' is not expected", "line 2, column 3", "a variable"),
        ("def @main(%x) {\n  add(%x,", "ends within", "line 2, column 10", "a number"),
        ("def @main(%x) {\n  match (%x) { }\n}", "data type", "line 2, column", ""),
        ("type List[A] { }\n", "data type", "line 1, column 1", ""),
        (
            "def @main(%x) {\n  meta[relay.Constant][0]\n}",
            "no metadata section",
            "line 2, column 3",
            "section",
        ),
    ],
)
def test_syntax_errors_say_line_column_and_what_was_expected(
    text: str, what: str, where: str, need: str
) -> None:
    with pytest.raises(ModelFormatError) as caught:
        parse(text)
    assert what in caught.value.what and where in caught.value.where and need in caught.value.need


def test_a_wrong_index_of_the_metadata() -> None:
    text = text_of("operators").replace("meta[relay.Constant][0]", "meta[relay.Constant][9999]", 1)
    with pytest.raises(ModelFormatError, match="9999") as caught:
        parse(text)
    assert "line " in caught.value.where
    with pytest.raises(ModelFormatError, match="relay.Nothing"):
        parse(text_of("operators").replace("meta[relay.Constant][0]", "meta[relay.Nothing][0]", 1))


@settings(max_examples=60, deadline=None)
@given(st.floats(0, 1, exclude_max=True))
def test_any_truncation_is_said(share: float) -> None:
    """Cut anywhere before the last brace, the text ends in a FrontendError and in no other exception."""
    text = text_of("bert").split("#[metadata]")[0].rstrip()
    with pytest.raises(FrontendError):
        from_relay(text[: int(share * len(text))])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_damage_is_said(data: st.DataObject) -> None:
    """A text with a stretch of it replaced is read, or refused by a FrontendError: nothing else."""
    text = text_of("lstm")
    begin = data.draw(st.integers(0, len(text) - 1))
    end = begin + data.draw(st.integers(0, 6))
    put = data.draw(st.text(st.sampled_from('%@(){}[],;=."0f /*-#a\n'), max_size=5))
    try:
        parse(text[:begin] + put + text[end:])
    except FrontendError as error:
        assert error.remedy
