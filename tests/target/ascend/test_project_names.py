# SPDX-License-Identifier: Apache-2.0
"""The table of the vendor's names: complete, sourced, and as the stand-ins' headers declare them."""

from __future__ import annotations

import pathlib
import re

import pytest
from uir_tvm.export.render import template
from uir_tvm.target.ascend import project_names as ascend_api
from uir_tvm.target.ascend.project import LIBRARY, QUANT, SAME

HEADERS = pathlib.Path(__file__).parents[3] / "src" / "device" / "ascendc" / "include"


def normal(text: str) -> str:
    """A declaration without blanks that mean nothing."""
    return re.sub(r"\s*([(),*])\s*", r"\1", " ".join(text.split()))


def declared() -> dict[str, str]:
    """Every function of the stand-ins' headers of the runtime and the operator library."""
    found = {}
    for folder in ("acl", "aclnn", "aclnnop"):
        for header in sorted((HEADERS / folder).glob("*.h")):
            for declaration in re.findall(r"ACL_FUNC_VISIBILITY\s([^;]*\));", header.read_text()):
                found[normal(declaration).partition("(")[0].split("*")[-1].split()[-1]] = normal(declaration)
    return found


def test_every_row_has_a_source_and_functions_a_header() -> None:
    for name, row in ascend_api.table().items():
        assert row["source"], name
        assert row["kind"] in ("function", "constant", "type", "macro", "header"), name
        if row["kind"] != "header":
            assert row["header"] in ascend_api.table() or row["kind"] == "macro", name


def test_the_stand_ins_declare_what_the_table_has() -> None:
    """Same functions, same signatures: a project that compiles against them uses them as the table says."""
    table = {
        name: normal(row["signature"])
        for name, row in ascend_api.table().items()
        if row["kind"] == "function"
    }
    assert declared() == table


def test_values_of_constants() -> None:
    """The numbers of the vendor's headers (acl_base.h, acl_rt.h)."""
    text = (HEADERS / "acl" / "acl_base.h").read_text()
    for name, value in {
        "ACL_FLOAT": 0,
        "ACL_FLOAT16": 1,
        "ACL_INT64": 9,
        "ACL_BOOL": 12,
        "ACL_BF16": 27,
    }.items():
        assert f"{name} = {value}," in text


@pytest.mark.parametrize("name", [*SAME, *LIBRARY, QUANT])
def test_templates_name_nothing_else(name: str) -> None:
    ascend_api.check(template("uir_tvm.target.ascend", "project", name), name)


def test_an_unlisted_name_cannot_be_printed() -> None:
    with pytest.raises(AssertionError, match="aclnnSilu, aclrtMemcpyAsync"):
        ascend_api.check("aclnnSilu(x); aclrtMemcpyAsync(y); aclrtMalloc(z); aclrtlaunch_mine(w);", "text")
