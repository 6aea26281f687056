# SPDX-License-Identifier: Apache-2.0
"""Equivalence within the compiler: what is compared, and what becomes of a kernel that differs."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
from click.testing import CliRunner
from tvm.relax import op
from uir_tvm import pipeline
from uir_tvm.cli import main
from uir_tvm.errors import EquivalenceError, UirError
from uir_tvm.igraph import IGraph, IOp, map_iops
from uir_tvm.optimize import FIRST
from uir_tvm.options import CompileOptions
from uir_tvm.schedules.demo import from_relax
from uir_tvm.target.registry import TARGETS
from uir_tvm.verify.compared import Comparer
from uir_tvm.verify.equivalent import Equivalence

TARGET = TARGETS["uir-cpu"].target()


def function() -> Any:
    return from_relax(lambda x: op.nn.softmax(x, axis=-1), [(6, 40)], lambda x: x).func


def compiled(options: CompileOptions) -> pipeline.KernelRecord:
    with pipeline.recording(options):
        return pipeline.compile_kernel(function(), TARGET, "softmax")


def without_shift(graph: IGraph) -> IGraph:
    """exp(x + max) for exp(x - max): the same softmax by the laws of exp, until exp overflows."""

    def visit(iop: IOp) -> IOp:
        if iop.op == "binary" and iop.name == "sub":
            return IOp(iop.op, "add", iop.dtype, iop.targets, iop.sources, iop.attrs)
        return iop

    changed = graph.replace(body=map_iops(graph.body, visit))
    assert changed != graph
    return changed


def test_extraction_and_passes_are_compared() -> None:
    record = compiled(CompileOptions(equivalence="sampled"))
    what = [name for name, _ in record.equivalence]
    assert what[0] == "igraph"
    # the first passes belong to what `igraph` compares
    later = record.steps[len(FIRST) :]
    assert len(what) == 1 + sum(step.changed for step in later)
    assert all(found.method == "field+values" for _, found in record.equivalence)
    # passes keep every bit
    assert all(found.exact == (name != "igraph") for name, found in record.equivalence)
    assert compiled(CompileOptions(equivalence="none")).equivalence == []


def test_full_runs_everything() -> None:
    record = compiled(CompileOptions(equivalence="full"))
    assert all(found.units == "all units" for _, found in record.equivalence)


def undecided(*args: Any, **rest: Any) -> Equivalence:
    return Equivalence((), 0, "all units", 0, 1, False, 0.0, "field not used: no reason at all")


def test_full_takes_no_answer_for_no(
    monkeypatch: pytest.MonkeyPatch, differences: list[EquivalenceError]
) -> None:
    """What no method decides passes a sample, and not ``full``."""
    graph = compiled(CompileOptions()).igraph
    assert graph is not None
    monkeypatch.setattr("uir_tvm.verify.compared.equivalent", undecided)
    notes: list[Any] = []
    Comparer("sampled", notes).compare("igraph", graph, graph)
    assert len(notes) == 1
    with pytest.raises(EquivalenceError, match="not decided"):
        Comparer("full", notes).compare("igraph", graph, graph)
    assert len(notes) == 1
    assert "not decided" in compiled(CompileOptions(equivalence="full")).fallback
    differences.clear()


def test_a_kernel_that_is_extracted_wrongly_is_left_to_tvm(
    monkeypatch: pytest.MonkeyPatch, differences: list[EquivalenceError]
) -> None:
    import uir_tvm.extract as package

    original = package.extract
    monkeypatch.setattr(package, "extract", lambda *a, **k: without_shift(original(*a, **k)))
    record = compiled(CompileOptions(equivalence="sampled"))
    assert "computes another" in record.fallback and record.igraph is None
    # by its own recipe, and by every other that fits, the scalar one being the last
    assert len(differences) > 1
    differences.clear()
    assert not compiled(CompileOptions(equivalence="none")).fallback


def test_a_pass_that_changes_the_meaning_is_refused(differences: list[EquivalenceError]) -> None:
    graph = compiled(CompileOptions()).igraph
    assert graph is not None
    notes: list[Any] = []
    check = Comparer("sampled", notes).after_passes(graph, None, fast_math=False).kept
    assert check is not None
    check(graph)
    with pytest.raises(EquivalenceError):
        check(without_shift(graph))
    assert len(notes) == len(differences) == 1
    differences.clear()


def test_fast_math_is_compared_on_values() -> None:
    graph = compiled(CompileOptions()).igraph
    assert graph is not None
    notes: list[Any] = []
    check = Comparer("sampled", notes).after_passes(graph, None, fast_math=True).kept
    assert check is not None
    check(graph)
    assert notes[0][1].methods == ("values",)


def test_an_override_that_differs_ends_the_compilation(
    tmp_path: pathlib.Path, differences: list[EquivalenceError]
) -> None:
    graph = compiled(CompileOptions()).igraph
    assert graph is not None
    (tmp_path / "softmax.igraph").write_text(str(without_shift(graph)))
    with pytest.raises(EquivalenceError, match="computes another"):
        compiled(CompileOptions(equivalence="sampled", override_dir=tmp_path))
    differences.clear()
    assert compiled(CompileOptions(equivalence="none", override_dir=tmp_path)).igraph is not None


def test_the_level_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UIR_EQUIVALENCE", "full")
    assert CompileOptions().equivalence == "full"
    monkeypatch.delenv("UIR_EQUIVALENCE")
    assert CompileOptions().equivalence == "none"
    monkeypatch.setenv("UIR_EQUIVALENCE", "most")
    with pytest.raises(UirError, match="'most' is no level"):
        CompileOptions()


@pytest.mark.parametrize(
    ("arguments", "level"),
    [([], "none"), (["--verify"], "sampled"), (["--no-verify"], "none"), (["--equivalence", "full"], "full")],
)
def test_the_command_line_sets_the_level(
    arguments: list[str], level: str, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.delenv("UIR_EQUIVALENCE", raising=False)
    seen = []

    def record(*args: Any, options: CompileOptions, **rest: Any) -> Any:
        seen.append(options.equivalence)
        raise UirError("enough")

    monkeypatch.setattr("uir_tvm.api.compile", record)
    CliRunner().invoke(main, ["compile", str(tmp_path / "m.onnx"), *arguments])
    assert seen == [level]
