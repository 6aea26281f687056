# SPDX-License-Identifier: Apache-2.0
"""The table of Cambricon's names: complete, sourced, and as the stand-ins' headers declare them."""

from __future__ import annotations

import pathlib
import re

import pytest
from uir_tvm.export.render import template
from uir_tvm.target.bang import project_names as bang_api
from uir_tvm.target.bang.project import LIBRARY, SAME

HEADERS = pathlib.Path(__file__).parents[3] / "src" / "device" / "bang" / "host" / "include"


def normal(text: str) -> str:
    """A declaration without blanks that mean nothing."""
    return re.sub(r"\s*([(),*])\s*", r"\1", " ".join(text.split()))


def declared() -> dict[str, str]:
    """Every function of the stand-ins' headers."""
    found = {}
    for name in ("cnrt.h", "cnnl.h"):
        for declaration in re.findall(r"UIR_CNRT_API\s([^;]*\));", (HEADERS / name).read_text()):
            found[normal(declaration).partition("(")[0].split("*")[-1].split()[-1]] = normal(declaration)
    return found


def test_every_row_has_a_source_and_functions_a_header() -> None:
    for name, row in bang_api.table().items():
        assert row["source"], name
        assert row["kind"] in ("function", "constant", "type", "header"), name
        assert row["kind"] == "header" or row["header"] in bang_api.table(), name


def test_the_stand_ins_declare_what_the_table_has() -> None:
    """Same functions, same signatures: a project that compiles against them uses them as the table says."""
    rows = bang_api.table().items()
    table = {name: normal(row["signature"]) for name, row in rows if row["kind"] == "function"}
    assert declared() == table


@pytest.mark.parametrize("name", [*SAME, *LIBRARY])
def test_templates_name_nothing_else(name: str) -> None:
    bang_api.check(template("uir_tvm.target.bang", "project", name), name)


def test_an_unlisted_name_cannot_be_printed() -> None:
    with pytest.raises(AssertionError, match="cnnlSilu, cnrtMemcpyAsync"):
        bang_api.check("cnnlSilu(x); cnrtMemcpyAsync(y); cnrtMalloc(z);", "text")
