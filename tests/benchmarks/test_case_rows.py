# SPDX-License-Identifier: Apache-2.0
"""Rows of a benchmark: what is kept, what two files make together, what their table says."""

from __future__ import annotations

import json
import math
import pathlib
from typing import Any

import pytest


def a_row(
    case: str, wrong: tuple[str, ...] = (), failed: dict[str, str] | None = None, **times: float
) -> Any:
    """A row with seconds by peer."""
    seconds = {name.replace("_", "-"): value for name, value in times.items()}
    errors = {name: 1.0 if name in wrong else 0.0 for name in seconds}
    row = {"case": case, "seconds": seconds, "errors": errors, "wrong": list(wrong), "failed": failed or {}}
    return row | {"prepare": dict.fromkeys(seconds, 1.0)}


def rows_of(case_rows: Any, *rows: Any, cpu: str = "znver3", threads: int = 2) -> Any:
    return case_rows.Rows(cpu, threads, {row["case"]: row for row in rows})


def test_a_file_keeps_rows(case_rows: Any, tmp_path: pathlib.Path) -> None:
    """What is infinite too; and no file lies beside it."""
    bad = a_row("b", ("torch",), torch=1.0)
    bad["errors"]["torch"] = math.inf
    rows = rows_of(case_rows, a_row("a", uir_cpu=2.0), bad)
    rows.write(tmp_path / "rows.json")
    assert case_rows.Rows.read(tmp_path / "rows.json") == rows
    assert [each.name for each in tmp_path.iterdir()] == ["rows.json"]


def test_a_file_of_before_is_read(case_rows: Any, tmp_path: pathlib.Path) -> None:
    """It does not name the processor."""
    (tmp_path / "old.json").write_text(json.dumps({"threads": 2, "rows": [a_row("a", torch=1.0)]}))
    found = case_rows.Rows.read(tmp_path / "old.json")
    assert found.cpu == "" and found.joined(rows_of(case_rows), "it").cpu == "znver3"


def test_later_files_replace_rows(case_rows: Any, tmp_path: pathlib.Path) -> None:
    rows_of(case_rows, a_row("a", torch=1.0), a_row("b", torch=1.0)).write(tmp_path / "one")
    rows_of(case_rows, a_row("b", torch=3.0), a_row("c", torch=4.0)).write(tmp_path / "two")
    found = case_rows.read_all([tmp_path / "one", tmp_path / "two"])
    assert {name: row["seconds"]["torch"] for name, row in found.rows.items()} == {
        "a": 1.0,
        "b": 3.0,
        "c": 4.0,
    }


@pytest.mark.parametrize("other", [{"cpu": "haswell"}, {"threads": 4}])
def test_other_machines_are_other_tables(case_rows: Any, tmp_path: pathlib.Path, other: Any) -> None:
    with pytest.raises(case_rows.OtherRun, match="that is of (znver3|haswell) with [24] threads"):
        rows_of(case_rows).joined(rows_of(case_rows, **other), "that")


def test_a_case_is_there_with_all_peers(case_rows: Any) -> None:
    """A peer that has failed is: it would again."""
    rows = rows_of(case_rows, a_row("a", failed={"IREE": "it crashed"}, torch=1.0))
    assert rows.has("a", ["torch", "IREE"]) and rows.has("a", ["torch"])
    assert not rows.has("a", ["torch", "XLA"]) and not rows.has("b", ["torch"])


def test_the_ratio_is_of_what_is_right(case_rows: Any) -> None:
    """The fastest peer's; none of ours in another form, nor of the limit."""
    row = a_row("a", ("XLA",), uir_cpu=2.0, torch=3.0, IREE=4.0, XLA=1.0)
    row["seconds"] |= {"backend uir": 0.5, case_rows.LIMIT: 1.6}
    assert case_rows.ratio(row) == 1.5
    assert case_rows.of_limit(row) == pytest.approx(1.25)
    assert case_rows.ratio(row | {"wrong": ["uir-cpu"]}) is None
    assert (
        case_rows.ratio(a_row("a", uir_cpu=1.0)) is None
        and case_rows.of_limit(a_row("a", uir_cpu=1.0)) is None
    )


def test_every_peer_that_is_asked_for_is_no_competitor(case_rows: Any, cpu: Any) -> None:
    assert {*cpu.ASKED, case_rows.OURS} == case_rows.NO_COMPETITORS


def test_markdown(case_rows: Any) -> None:
    """Cells, heads and the mean: of 2 and 1/2 it is 1."""
    one = a_row("a", uir_cpu=0.001, torch=0.002) | {"share_of_copy": 0.914}
    two = a_row("b", failed={"torch": "it crashed"}, uir_cpu=0.004, XLA=0.002)
    rows = rows_of(case_rows, one, two)
    peers = rows.peers(["torch", "XLA", "IREE", "uir-cpu"])
    assert case_rows.markdown(rows.rows.values(), peers).splitlines() == [
        "| case | torch | XLA | uir-cpu | best peer / uir-cpu | of copy bandwidth |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
        "| a | 2.000 |  | 1.000 | 2.00 | 91% |",
        "| b | failed | 2.000 | 4.000 | 0.50 |  |",
        "| geometric mean |  |  |  | 1.00 |  |",
    ]
    assert case_rows.reasons(rows.rows.values()) == ["b: torch failed: it crashed"]


def test_the_limit_has_a_column_where_it_was_run(case_rows: Any) -> None:
    row = a_row("a", uir_cpu=0.0011, torch=0.002)
    row["seconds"][case_rows.LIMIT] = 0.001
    heads, cells, mean = case_rows.cells([row], ["torch", case_rows.LIMIT, "uir-cpu"])
    assert heads[-2] == "uir-cpu / hand-written loop" and cells[-2] == "1.10"
    assert len(heads) == len(cells) == len(mean)
