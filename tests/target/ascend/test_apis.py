# SPDX-License-Identifier: Apache-2.0
"""The table of what may be printed of Ascend C is whole, its page up to date; nothing else can be printed."""

from __future__ import annotations

import pathlib
import re

import numpy as np
import pytest
import tvm
from uir_tvm.errors import CodegenError
from uir_tvm.target.ascend import apis
from uir_tvm.target.ascend.toolkit import CANN

from .kernels import PASSES, check, parse

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


def test_no_function_that_is_printed_takes_event_ids_but_tpipe() -> None:
    """Static ids are safe where nothing else takes any; what takes some has no row, and cannot be printed."""
    names = {row.name for row in apis.table()}
    assert {events.name for events in apis.EVENTS} & names == {"TPipe"}
    assert not names & {"CreateVecIndex", "ReduceSum", "ReduceMax", "ReduceMin", "TQue", "InitOutput"}
    forms = {row.form: row.params for row in apis.table() if row.name in ("SyncAll", "TransDataTo5HD")}
    # SyncAll without a workspace, and lists of addresses that are no tensors
    assert forms == {"plain": forms["plain"]} and "LT<" not in forms["plain"]


def test_ids_of_a_cube_core_keep_clear_of_those_of_its_tpipe() -> None:
    text = check(
        parse(
            """
a = iPointer(dram, fp32, 1024, in)
b = iPointer(dram, fp32, 1024, in)
y = iPointer(dram, fp32, 1024, out)
contract.fp32 y[0; (32,32); (32,1)], a[0; (32,32); (32,1)], b[0; (32,32); (32,1)]
"""
        ),
        [np.eye(32, dtype=np.float32).reshape(-1)] * 2,
        PASSES,
    ).source
    ids = [int(number) for number in re.findall(r"HardEvent::M_MTE1>\((\d+)\)", text)]
    every = [int(number) for number in re.findall(r"Flag<HardEvent::\w+>\((\d+)\)", text)]
    own = {int(n) for events in apis.EVENTS if events.name == "TPipe" for n in events.ids.split()}
    assert "Mmad(" in text and not own & set(ids) and max(every) <= 5


def test_later_names_hold_nothing_that_has_no_row() -> None:
    """Functions that were renamed, in the versions that did; enumerations in them have a row there."""
    rows = apis.table()
    spelled = {row.name: row.spelled() for row in rows if row.spellings}
    kinds = ("Sum", "Max", "Min")
    nine = {"CompareScalar", "ToBfloat16"}
    assert set(spelled) == nine | {f"{of}Reduce{kind}" for of in ("Whole", "Block") for kind in kinds}
    for name, names in spelled.items():
        assert set(names) == ({"9.0", "9.1"} if name in nine else {"9.1"}) <= set(CANN.versions)
        for text in names.values():
            for enum, value in re.findall(r"(\w+)::(\w+)", text):
                (row,) = (row for row in rows if (row.name, row.form) == (enum, "enum"))
                assert value in row.params.split() and row.toolkits == "9.1"


def test_a_version_s_names_and_order_of_parameters() -> None:
    args = ["y", "x", "2", "64", "1", "1", "8"]
    assert call("BlockReduceSum", "repeat", ["float"], args, "8") == "BlockReduceSum(y, x, 2, 64, 1, 1, 8)"
    assert call("BlockReduceSum", "repeat", ["float"], args, "9.0") == "BlockReduceSum(y, x, 2, 64, 1, 1, 8)"
    later = "ReduceDataBlock<ReduceType::SUM>(y, x, 64, 2, 1, 1, 8)"
    assert call("BlockReduceSum", "repeat", ["float"], args, "9.1") == later
    # the range of an argument stays its own, wherever it stands
    with pytest.raises(Exception, match="repeatTime"):
        call("BlockReduceSum", "repeat", ["float"], ["y", "x", "256", "64", "1", "1", "8"], "9.1")
    with pytest.raises(Exception, match="spelled apart by versions"):
        call("BlockReduceSum", "repeat", ["float"], args, "")


def test_a_dtype_that_a_row_lacks_is_refused() -> None:
    assert call("Exp", "count", ["float"], ["y", "x", "64"], "8") == "Exp(y, x, 64)"
    with pytest.raises(CodegenError, match="Exp takes no int32_t"):
        call("Exp", "count", ["int32_t"], ["y", "x", "64"], "8")


def test_a_mode_that_a_combination_lacks_is_refused() -> None:
    with pytest.raises(CodegenError, match="mode RINT"):
        call("Cast", "count", ["float", "half"], ["y", "x", "RoundMode::CAST_RINT", "64"], "8")


def test_what_has_no_row_cannot_be_printed() -> None:
    with pytest.raises(Exception, match="has no Tanh"):
        call("Tanh", "count", ["float"], ["y", "x", "64"], "8")


def test_literals_are_held_to_their_ranges() -> None:
    with pytest.raises(Exception, match="repeatTime"):
        call("Exp", "repeat", ["float"], ["y", "x", "64", "256", "UnaryRepeatParams(1, 1, 8, 8)"], "8")
