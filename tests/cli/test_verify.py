# SPDX-License-Identifier: Apache-2.0
"""``uir verify`` as a user types it: what is right, at fault, or no iGraph; exit codes and JSON."""

from __future__ import annotations

import json
import pathlib

from click.testing import CliRunner, Result
from uir_tvm.cli import main

FAILURES = pathlib.Path(__file__).parents[1] / "verify" / "failures"


def uir(*args: object) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def test_right_and_wrong() -> None:
    """Every file is answered for; one that is wrong makes the exit code that of a bad iGraph."""
    right, wrong = FAILURES / "write_after_read.fixed.igraph", FAILURES / "write_after_read.igraph"
    result = uir("verify", right)
    assert result.exit_code == 0 and result.stdout == f"{right}: OK\n"
    result = uir("verify", right, wrong)
    assert result.exit_code == 5
    assert "write_after_read.fixed.igraph: OK" in result.stdout
    assert "race" in result.stderr and "pid'" in result.stderr and "remedy" in result.stderr


def test_json() -> None:
    (row,) = json.loads(uir("--json", "verify", FAILURES / "conditional_store.igraph").stdout)
    assert row["ok"] is False
    assert row["faults"][0]["rule"] == "race" and "element" in row["faults"][0]["witness"]


def test_what_is_no_igraph(tmp_path: pathlib.Path) -> None:
    (tmp_path / "x.igraph").write_text("igraph")
    result = uir("verify", tmp_path / "x.igraph")
    assert result.exit_code == 5 and "x.igraph, line 1" in result.stderr
    result = uir("verify", tmp_path / "missing.igraph")
    assert result.exit_code == 11 and "missing.igraph" in result.stderr
