# SPDX-License-Identifier: Apache-2.0
"""The table of what may be printed of BANG C is whole, its page up to date; nothing else can be printed."""

from __future__ import annotations

import pathlib

import pytest
import tvm
from uir_tvm.errors import CodegenError
from uir_tvm.target.bang import apis

ROOT = pathlib.Path(__file__).parents[3]
call = tvm.get_global_func("uir.codegen.bang.call")


def test_the_page_shows_the_table() -> None:
    page = (ROOT / "docs" / "targets" / "bang-apis.md").read_text()
    assert page == apis.markdown(), "run python -m uir_tvm.target.bang.apis > docs/targets/bang-apis.md"


def test_every_row_says_where_it_was_checked() -> None:
    rows = apis.table()
    assert all(row.evidence and row.source for row in rows)
    assert len({(row.name, row.form) for row in rows}) == len(rows)


def test_a_function_that_an_architecture_lacks_is_refused() -> None:
    args = ["y", "a", "b", "64"]
    assert call("__bang_div", "count", ["float"], args, "592", "4") == "__bang_div(y, a, b, 64)"
    with pytest.raises(CodegenError, match="does not exist on architecture 372"):
        call("__bang_div", "count", ["float"], args, "372", "4")


def test_names_are_those_of_the_version_of_the_compiler() -> None:
    args = ["y", "x", "64"]
    assert call("__bang_log2", "count", ["float"], args, "372", "4") == "__bang_log2(y, x, 64)"
    assert call("__bang_log2", "count", ["float"], args, "372", "3") == "__bang_log(y, x, 64)"
    with pytest.raises(CodegenError, match="not known of version 3"):
        call("__bang_move", "count", [], args, "372", "3")
    with pytest.raises(CodegenError, match="not known of version 4"):
        call("__bang_float2int32_dn", "count", [], [*args, "0"], "372", "4")


def test_a_dtype_that_a_row_lacks_is_refused() -> None:
    with pytest.raises(CodegenError, match="__bang_add takes no int32_t"):
        call("__bang_add", "count", ["int32_t"], ["y", "a", "b", "64"], "372", "4")


def test_what_has_no_row_cannot_be_printed() -> None:
    with pytest.raises(Exception, match="has no __bang_active_exp"):
        call("__bang_active_exp", "count", ["float"], ["y", "x", "64"], "372", "4")


def test_literals_are_held_to_their_ranges() -> None:
    with pytest.raises(Exception, match="elem_count"):
        call("__bang_add", "count", ["float"], ["y", "a", "b", "0"], "372", "4")
