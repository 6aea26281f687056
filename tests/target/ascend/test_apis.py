# SPDX-License-Identifier: Apache-2.0
"""The table of what may be printed of Ascend C is whole, its page up to date; nothing else can be printed."""

from __future__ import annotations

import pathlib
import re

import pytest
import tvm
from uir_tvm.errors import CodegenError
from uir_tvm.target.ascend import apis

ROOT = pathlib.Path(__file__).parents[3]
HEADERS = ROOT / "src" / "device" / "ascendc" / "include"
call = tvm.get_global_func("uir.codegen.ascend.call")


def test_the_page_shows_the_table() -> None:
    page = (ROOT / "docs" / "targets" / "ascend-apis.md").read_text()
    assert page == apis.markdown(), "run python -m uir_tvm.target.ascend.apis > docs/targets/ascend-apis.md"


def test_every_row_says_where_it_was_checked() -> None:
    rows = apis.table()
    assert all(".h" in row.source for row in rows)
    assert len({(row.name, row.form) for row in rows}) == len(rows)


def test_the_host_model_declares_every_name() -> None:
    text = "\n".join(path.read_text() for path in sorted(HEADERS.rglob("*.h")))
    words = set(re.findall(r"\w+", text))
    wanted = {part for row in apis.table() for part in row.name.split(".")}
    assert wanted <= words, wanted - words


def test_values_of_enumerations_are_those_of_the_model() -> None:
    text = "\n".join(path.read_text() for path in sorted(HEADERS.rglob("*.h")))
    for row in apis.table():
        if row.form == "enum":
            for value in row.params.split():
                assert re.search(rf"\b{value}\b", text), f"{row.name}::{value}"


def test_a_dtype_that_a_row_lacks_is_refused() -> None:
    assert call("Exp", "count", ["float"], ["y", "x", "64"]) == "Exp(y, x, 64)"
    with pytest.raises(CodegenError, match="Exp takes no int32_t"):
        call("Exp", "count", ["int32_t"], ["y", "x", "64"])


def test_a_mode_that_a_combination_lacks_is_refused() -> None:
    with pytest.raises(CodegenError, match="mode RINT"):
        call("Cast", "count", ["float", "half"], ["y", "x", "RoundMode::CAST_RINT", "64"])


def test_what_has_no_row_cannot_be_printed() -> None:
    with pytest.raises(Exception, match="has no Tanh"):
        call("Tanh", "count", ["float"], ["y", "x", "64"])


def test_literals_are_held_to_their_ranges() -> None:
    with pytest.raises(Exception, match="repeatTime"):
        call("Exp", "repeat", ["float"], ["y", "x", "64", "256", "UnaryRepeatParams(1, 1, 8, 8)"])
