# SPDX-License-Identifier: Apache-2.0
"""A summary says what was gained, by which times, and what is left to do."""

from __future__ import annotations

import json
import pathlib

from rich.console import Console
from uir_tvm.cli.print import table_of
from uir_tvm.cli.tune_progress import Progress
from uir_tvm.explain.tuning_summary import Summary
from uir_tvm.tune.budget import Budget
from uir_tvm.tune.job import WRONG, Job, Result
from uir_tvm.tune.summary import summarise
from uir_tvm.tune.task import Extracted

from .fakes import FakeMeasurer, session, tasks, time_of


def summary(folder: pathlib.Path, budget: Budget, measurer: FakeMeasurer, **fields: object) -> Summary:
    made = session(folder, measurer, budget, **fields)
    made.run()
    found = Extracted(tuple(tasks()), {"odd": "it is an iGraph"}, 5)
    return summarise(made.known, "net", found, measurer.name, 12.0, made.ended)


def test_totals_and_rows(tmp_path: pathlib.Path) -> None:
    """Weights count, the largest share is first, and all of it is JSON."""
    found = summary(tmp_path, Budget(trials=1000), FakeMeasurer())
    assert [row.kernel for row in found.rows] == ["thrice", "once"]
    assert [round(row.share_before, 2) for row in found.rows] == [0.75, 0.25]
    assert found.before == sum(row.launches * (row.default or 0) for row in found.rows)
    assert found.after < found.before and all((row.gain or 0) > 1 for row in found.rows)
    data = json.loads(json.dumps(found.to_json()))
    assert data["after"] == found.after and data["rows"][0]["launches"] == 3
    text = "\n".join(found.lines())
    for said in (
        "80 trials in 12 s",
        "measured",
        "5 launches of the library",
        "odd is not tuned",
        str(tmp_path),
    ):
        assert said in text
    assert "modelled" not in text


def test_a_resumed_one(tmp_path: pathlib.Path) -> None:
    first = summary(tmp_path, Budget(trials=1000), FakeMeasurer())
    second = summary(tmp_path, Budget(trials=1000), FakeMeasurer())
    assert (second.trials, second.resumed) == (0, 80)
    assert (second.before, second.after) == (first.before, first.after)


def test_wrong_candidates_have_reports(tmp_path: pathlib.Path) -> None:
    def one_wrong(job: Job) -> Result:
        bad = job.decisions.get("columns") == 7
        return Result(outcome=WRONG, said="differs", report="all of it") if bad else time_of(job)

    found = summary(tmp_path, Budget(trials=1000), FakeMeasurer(result=one_wrong))
    for row in found.rows:
        (path,) = row.reports
        assert pathlib.Path(path).read_text() == "all of it" and row.rejected == {WRONG: 1}
        assert any(path in line for line in found.lines())


def test_lines_where_there_is_no_terminal(tmp_path: pathlib.Path) -> None:
    """Each batch and each comparison is a line, without control characters."""
    console = Console(width=100, force_terminal=False, record=True)
    with Progress(console) as watcher:
        made = summary(tmp_path, Budget(trials=40), FakeMeasurer(), watcher=watcher)
    text = console.export_text()
    assert "2 kernels to tune, 40 trials, by fake" in text
    assert (
        "8 candidates (75% of the kernels' time)" in text and "in the database" in text and "\x1b" not in text
    )
    assert made.trials == 40


def test_a_table_on_a_terminal(tmp_path: pathlib.Path) -> None:
    """It has every kernel, the time left, and what Ctrl-C does; afterwards nothing of it stays."""
    console = Console(width=140, force_terminal=True, record=True)
    with Progress(console) as watcher:
        found = summary(tmp_path, Budget(trials=40), FakeMeasurer(), watcher=watcher)
        shown = Console(width=140, record=True)
        shown.print(watcher._table())
    text = shown.export_text()
    for said in ("thrice", "once", "of the time", "40 trials", "Ctrl-C ends"):
        assert said in text
    shown.print(table_of([row.shown() for row in found.rows]))
    assert "gain" in shown.export_text()


def test_quiet(tmp_path: pathlib.Path) -> None:
    console = Console(record=True)
    with Progress(console, quiet=True) as watcher:
        summary(tmp_path, Budget(trials=20), FakeMeasurer(), watcher=watcher)
    assert console.export_text() == ""
