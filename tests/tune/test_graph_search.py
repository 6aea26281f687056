# SPDX-License-Identifier: Apache-2.0
"""Options of a graph are timed in turns; what is faster is kept and taken, and nothing is measured twice."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Sequence

import pytest
import torch
import uir_tvm
from uir_tvm.explain.tuning_summary import SiteResult
from uir_tvm.import_model import import_model
from uir_tvm.kernel_graph import Choices, KernelGraph
from uir_tvm.kernel_graph.graph_difference import difference
from uir_tvm.target import registry
from uir_tvm.tune import ScheduleDatabase, tune
from uir_tvm.tune.graph_search import GraphSearch, choices_of
from uir_tvm.tune.job import CRASHED, Result, Settings
from uir_tvm.tune.key import key_of
from uir_tvm.tune.measure import LocalMeasurer
from uir_tvm.tune.models import Subject
from uir_tvm.tune.segments import Segment, compare, write

TARGET = registry.resolve("uir-cpu").target
FAST = Settings(repeats=2, min_repeat_seconds=0.0)


class Twice(torch.nn.Module):
    """A product with an activation, twice."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Rows of 64."""
        for part in self.parts:
            x = torch.relu(part(x))
        return x


class Wide(torch.nn.Module):
    """Two products of different sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(64, 96), torch.nn.Linear(96, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Rows of 64."""
        return self.second(torch.relu(self.first(x)))


def program() -> torch.export.ExportedProgram:
    return torch.export.export(Twice().eval(), (torch.randn(16, 64),))


class Told(LocalMeasurer):
    """Times as they are told, by the option's name."""

    def __init__(self, factors: dict[str, float]) -> None:
        super().__init__()
        self.factors, self.asked = factors, list[str]()

    def confirm(self, jobs: Sequence[Segment]) -> list[Result]:  # type: ignore[override]
        """A default takes a second."""
        assert all(pathlib.Path(job.module).is_file() for job in jobs)
        self.asked.append(jobs[0].kernel)
        factor = self.factors.get(jobs[0].kernel.rpartition(": ")[2], 1.0)
        if factor < 0:
            return [Result(outcome=CRASHED, said="planted")] * 2
        return [Result((1.0,)), Result((factor,))]


def search(folder: pathlib.Path, measurer: LocalMeasurer) -> GraphSearch:
    return GraphSearch(Subject(program(), TARGET, folder), measurer, FAST)


def test_what_is_faster_is_kept_and_not_measured_again(tmp_path: pathlib.Path) -> None:
    with Told({"unpacked": 0.5, "own kernel": 0.8, "plain": -1.0, "apart": 0.99, "all choices": 0.9}) as told:
        made = search(tmp_path, told)
        made.run(lambda row: None, lambda: False)
    product, activation = made.rows.values()
    assert (product.chosen, product.count, product.gain) == ("unpacked", 1, 2.0), "both hang together"
    assert product.failed == {"plain": "planted"} and product.saved == 0.5
    assert activation.chosen == "" and "default is best" in str(activation)
    assert choices_of(ScheduleDatabase(tmp_path), key_of(TARGET)).chosen == {product.site: "unpacked"}
    with Told({}) as again:
        resumed = search(tmp_path, again)
        resumed.run(lambda row: None, lambda: False)
        assert again.asked == [] and resumed.rows == made.rows
    assert SiteResult.from_json(product.to_json()) == product
    other = ScheduleDatabase(tmp_path / "other")
    assert other.merge(ScheduleDatabase(tmp_path)) == 2 and other.merge(ScheduleDatabase(tmp_path)) == 0


def test_a_model_takes_what_the_database_says(tmp_path: pathlib.Path) -> None:
    """Products as they were chosen, with the same result."""
    with Told({"unpacked": 0.5, "all choices": 0.9}) as told:
        search(tmp_path, told).run(lambda row: None, lambda: False)
    model = program()
    plain, tuned = uir_tvm.compile(model), uir_tvm.compile(model, database=tmp_path)
    assert [node.attrs.packed for node in plain.kernel_graph.library_ops] == [True, True]
    assert [node.attrs.packed for node in tuned.kernel_graph.library_ops] == [False, False]
    x = torch.randn(16, 64)
    torch.testing.assert_close(torch.as_tensor(tuned(x)), torch.as_tensor(plain(x)))


def test_what_does_not_make_the_model_faster_is_not_taken(tmp_path: pathlib.Path) -> None:
    """A part that is faster by itself, as on a machine that is busy; it is not measured again either."""
    with Told({"unpacked": 0.5, "all choices": 1.01}) as told:
        made = search(tmp_path, told)
        made.run(lambda row: None, lambda: False)
    assert made.whole == (1.0, 1.01)
    product = next(iter(made.rows.values()))
    assert product.chosen == "" and "whole model" in product.failed["unpacked"]
    assert choices_of(ScheduleDatabase(tmp_path), key_of(TARGET)).chosen == {}
    with Told({}) as again:
        search(tmp_path, again).run(lambda row: None, lambda: False)
        assert again.asked == []


class Noted(Subject):
    """Notes what it builds."""

    @functools.cached_property
    def built(self) -> list[dict[str, str]]:
        """The choices, in order."""
        return []

    def graph(self, choices: Choices) -> KernelGraph:
        """As asked."""
        self.built.append(dict(choices.chosen))
        return super().graph(choices)


class Whole(Told):
    """As told; the whole model takes longer with each of some sites, and less with any other."""

    def __init__(self, bad: set[str]) -> None:
        super().__init__({"unpacked": 0.5, "own kernel": 0.5, "apart": 0.5})
        self.bad, self.subject = bad, Noted(None, TARGET, "nowhere")

    def confirm(self, jobs: Sequence[Segment]) -> list[Result]:  # type: ignore[override]
        """By the choices of the graphs that were built last."""
        if not jobs[0].kernel.startswith("the whole model"):
            return super().confirm(jobs)
        times = []
        for chosen in self.subject.built[-2:]:
            times.append(1.0 + sum(0.3 if site in self.bad else -0.1 for site in chosen))
        return [Result((seconds,)) for seconds in times]


@pytest.mark.parametrize("which", [0, 1])
def test_sites_are_kept_one_by_one(tmp_path: pathlib.Path, which: int) -> None:
    """Of two that gain by themselves the one that makes the whole model slower goes back."""
    mod = import_model(torch.export.export(Wide().eval(), (torch.randn(16, 64),)))
    asked = Choices()
    with Whole(set()) as told:
        Subject(mod, TARGET, tmp_path / "x").graph(asked)
        bad = [site for site in asked.sites if "unpacked" in asked.sites[site]][which]
        told.bad = {bad}
        told.subject = Noted(mod, TARGET, tmp_path)
        made = GraphSearch(told.subject, told, FAST)
        made.run(lambda row: None, lambda: False)
    kept = choices_of(ScheduleDatabase(tmp_path), key_of(TARGET)).chosen
    good = {site for site, row in made.rows.items() if row.options} - {bad}
    assert good and set(kept) == good, made.rows
    assert "whole model" in " ".join(made.rows[bad].failed.values())


def test_a_whole_model_that_cannot_be_timed_decides_nothing(tmp_path: pathlib.Path) -> None:
    """Its sites take the default now, and are measured again another time."""
    with Told({"unpacked": 0.5, "all choices": -1.0}) as told:
        made = search(tmp_path, told)
        made.run(lambda row: None, lambda: False)
    product, activation = made.rows.values()
    assert made.whole is None and product.chosen == "" and "planted" in product.failed["unpacked"]
    records = ScheduleDatabase(tmp_path).records(key_of(TARGET))
    assert set(records.sites()) == {activation.site}


def test_time_is_up(tmp_path: pathlib.Path) -> None:
    """What is half measured is not kept."""
    with Told({}) as told:
        made = search(tmp_path, told)
        made.run(lambda row: None, lambda: made.comparisons >= 2)
    assert made.comparisons == 2 and made.rows == {}


def test_parts_are_timed_and_compared(tmp_path: pathlib.Path) -> None:
    """The real thing in this process; a part that computes something else has no time."""
    made = search(tmp_path, LocalMeasurer())
    asked = Choices()
    graph = made.subject.graph(asked)
    part = difference(graph, made.subject.graph(Choices({next(iter(asked.sites)): "unpacked"})))
    assert part is not None and part.count == 1
    paths = [write(one, tmp_path) for one in (part.default, part.other)]
    default, other = compare([Segment("x", path, "uir-cpu", "cpu", settings=FAST) for path in paths])
    assert default.ok and other.ok and 0 < default.median < 1
    text = pathlib.Path(paths[1]).read_text()
    pathlib.Path(paths[1]).write_text(text.replace("relu", "tanh"))
    _, other = compare([Segment("x", path, "uir-cpu", "cpu", settings=FAST) for path in paths])
    assert other.outcome == "wrong" and "differ" in other.said


def test_whole_models_are_timed(tmp_path: pathlib.Path) -> None:
    """One that gives a tensor, no tuple of them: as it is, and with another option."""
    with LocalMeasurer() as measurer:
        made = search(tmp_path, measurer)
        asked = Choices()
        made._folder = tmp_path
        made.subject.graph(asked)
        seconds = made._whole("as asked", {}, {next(iter(asked.sites)): "unpacked"})
    assert seconds[2] == "" and 0 < seconds[0] < 1 and 0 < seconds[1] < 1


def test_a_model_of_products_alone_is_tuned(tmp_path: pathlib.Path) -> None:
    """There is something to gain where all is the library's: every product says what it takes."""
    summary = tune(program(), database=tmp_path, trials=8, settings=FAST)
    kernel = any("own kernel" in site.chosen for site in summary.sites)
    assert bool(summary.rows) == kernel or summary.sites[-1].chosen
    assert summary.sites and all(str(site) in summary.lines() for site in summary.sites)
    with pytest.raises(uir_tvm.errors.UirError, match="(no kernel to tune|No kernel is called)"):
        tune(program(), database=tmp_path, trials=1, kernels="nothing*")
