# SPDX-License-Identifier: Apache-2.0
"""The table of stages: dumps, dumps fed back, overrides, fallbacks."""

from __future__ import annotations

import gc
import pathlib
import re

import attrs
import numpy as np
import pytest
import tvm
import uir_tvm
from uir_tvm import pipeline
from uir_tvm.errors import ArtifactError, ParseError, UirError, VerifyError
from uir_tvm.igraph.parser import parse_igraph
from uir_tvm.optimize import FIRST, store_load_forwarding
from uir_tvm.options import CompileOptions
from uir_tvm.target import registry

from tests import tiny
from tests.schedule import functions

KERNEL = "layer_norm_softmax"


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Every stage of the tiny model."""
    folder = tmp_path_factory.mktemp("dumps")
    uir_tvm.compile(tiny.module(), name="tiny", options=CompileOptions(dump_dir=folder))
    return folder


def scaled_kernel(folder: pathlib.Path, suffix: str = ".igraph") -> pathlib.Path:
    """An override of one stage of ``y = x * 2`` in a folder of its own; returns its file."""
    uir_tvm.compile(doubling(), options=CompileOptions(dump_dir=folder))
    (tir,) = folder.glob("*.tir.json")
    path = folder / (tir.name.removesuffix(".tir.json") + suffix)
    for other in folder.iterdir():
        if other != path:
            other.unlink()
    return path


def doubling() -> tvm.IRModule:
    """y = x * 2."""
    return tiny.elementwise(lambda x: x * tvm.relax.const(2.0), ((3, 8), "float32"))


def test_every_stage_is_dumped(dumps: pathlib.Path) -> None:
    assert sorted(path.name for path in dumps.iterdir()) == [
        f"{KERNEL}.igraph",
        f"{KERNEL}.opt.igraph",
        f"{KERNEL}.source.txt",
        f"{KERNEL}.tir.json",
        "tiny.relax.json",
        "tiny.relax.txt",
    ]
    assert parse_igraph((dumps / f"{KERNEL}.igraph").read_text()).name == KERNEL
    assert "T.Ramp" in (dumps / f"{KERNEL}.source.txt").read_text()


def test_dump_of_the_model_compiles(dumps: pathlib.Path) -> None:
    x = tiny.example()
    exe = uir_tvm.compile(dumps / "tiny.relax.json")
    np.testing.assert_allclose(exe(x), tiny.expected(x), atol=tiny.TOLERANCE)


@pytest.mark.parametrize("suffix", [".tir.json", ".igraph", ".opt.igraph"])
def test_dump_of_a_kernel_compiles(dumps: pathlib.Path, suffix: str) -> None:
    exe = uir_tvm.compile(dumps / f"{KERNEL}{suffix}")
    assert exe.report()["kernels_without_igraph"] == []
    shape = (tiny.ROWS, tiny.WIDTH)
    x = tiny.example()
    inputs = [x, np.ones(tiny.WIDTH, "float32"), np.zeros(tiny.WIDTH, "float32")]
    got = exe(*[a.reshape(spec.shape) for a, spec in zip(inputs, exe.info.inputs, strict=True)])
    y = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    e = np.exp(y)
    np.testing.assert_allclose(got.reshape(shape), e / e.sum(1, keepdims=True), atol=tiny.TOLERANCE)


@pytest.mark.parametrize("suffix", [".igraph", ".opt.igraph"])
@pytest.mark.parametrize("by", ["option", "environment"])
def test_an_edited_igraph_takes_the_place(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, by: str, suffix: str
) -> None:
    path = scaled_kernel(tmp_path, suffix)
    text, count = re.subn(r"\[2\.0\]", "[5.0]", path.read_text())
    assert count >= 1
    path.write_text(text)
    if by == "environment":
        monkeypatch.setenv("UIR_OVERRIDE_DIR", str(tmp_path))
        options = CompileOptions()
    else:
        options = CompileOptions(override_dir=tmp_path)
    x = np.arange(24, dtype="float32").reshape(3, 8)
    np.testing.assert_array_equal(uir_tvm.compile(doubling(), options=options)(x), 5 * x)


def test_dump_folder_of_the_environment(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UIR_DUMP_DIR", str(tmp_path / "new"))
    uir_tvm.compile(doubling(), name="doubling")
    assert (tmp_path / "new" / "doubling.relax.json").is_file()


def test_a_scheduled_function_takes_the_place(tmp_path: pathlib.Path) -> None:
    uir_tvm.compile(doubling(), options=CompileOptions(dump_dir=tmp_path))
    for path in tmp_path.iterdir():
        if not path.name.endswith(".tir.json"):
            path.unlink()
    target = registry.resolve("uir-cpu").target
    (path,) = tmp_path.iterdir()
    func = tvm.ir.load_json(path.read_text())
    with pipeline.recording(CompileOptions(override_dir=tmp_path)) as records:
        pipeline.compile_kernel(func, target, path.name.removesuffix(".tir.json"))
    (record,) = records.values()
    assert record.overridden == ("tir",) and record.igraph is not None


def refused(folder: pathlib.Path, kind: type[UirError]) -> UirError:
    """The error of an override that is refused."""
    with pytest.raises(kind) as caught:
        uir_tvm.compile(doubling(), options=CompileOptions(override_dir=folder))
    return caught.value


def test_an_override_that_does_not_parse(tmp_path: pathlib.Path) -> None:
    """It ends the compilation: the user's own text must not be dropped for TVM's lowering."""
    path = scaled_kernel(tmp_path)
    path.write_text(path.read_text() + "\nnonsense")
    error = refused(tmp_path, ParseError)
    assert error.where.startswith(f"{path}, line ")


@pytest.mark.parametrize("suffix", [".igraph", ".opt.igraph"])
def test_an_override_that_breaks_a_rule(tmp_path: pathlib.Path, suffix: str) -> None:
    path = scaled_kernel(tmp_path, suffix)
    path.write_text(path.read_text().replace("dram, fp32, 24, in", "dram, fp32, 23, in"))
    error = refused(tmp_path, VerifyError)
    assert str(path) in error.where and "witness" in error.where


def test_an_override_that_is_no_dump(tmp_path: pathlib.Path) -> None:
    path = scaled_kernel(tmp_path)
    path.rename(tmp_path / path.name.replace(".igraph", ".tir.json")).write_text("{}")
    assert "--dump" in refused(tmp_path, ArtifactError).remedy


def test_an_igraph_that_breaks_a_rule_is_no_model(tmp_path: pathlib.Path) -> None:
    path = scaled_kernel(tmp_path)
    path.write_text(path.read_text().replace("dram, fp32, 24, in", "dram, fp32, 23, in"))
    with pytest.raises(VerifyError):
        uir_tvm.compile(path)


def test_an_igraph_that_updates_in_place(tmp_path: pathlib.Path) -> None:
    """What an iGraph updates is given and returned; the caller's tensor stays as it is."""
    path = scaled_kernel(tmp_path)
    path.write_text(path.read_text().replace("24, out", "24, inout"))
    exe = uir_tvm.compile(path)
    given = [np.random.default_rng(0).standard_normal(24).astype("float32") for _ in range(2)]
    before = given[1].copy()
    assert [spec.shape for spec in exe.info.inputs] == [(24,), (24,)]
    np.testing.assert_allclose(exe(*given), uir_tvm.compile(scaled_kernel(tmp_path))(given[0]))
    np.testing.assert_array_equal(given[1], before)


def test_dump_folder_that_cannot_be_written(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match="cannot be written"):
        uir_tvm.compile(doubling(), options=CompileOptions(dump_dir=tmp_path / "file"))


def test_what_no_stage_takes_is_left_to_tvm() -> None:
    target = registry.resolve("uir-cpu").target
    record = pipeline.compile_kernel(functions.empty, target, "empty")
    assert record.fallback and record.igraph is None
    assert record.lowered is functions.empty or record.lowered.same_as(functions.empty)


def kernel_record(folder: pathlib.Path, options: CompileOptions) -> pipeline.KernelRecord:
    """The tiny model's kernel through the stages."""
    func = tvm.ir.load_json((folder / f"{KERNEL}.tir.json").read_text())
    with pipeline.recording(options):
        return pipeline.compile_kernel(func, registry.resolve("uir-cpu").target, KERNEL)


def test_the_target_gets_the_optimised_graph(dumps: pathlib.Path) -> None:
    record = kernel_record(dumps, CompileOptions())
    first = [row.name for row in FIRST]
    assert [step.name for step in record.steps] == [*first, *registry.get("uir-cpu").passes]
    extracted = record.steps[0].graph_before
    assert extracted is not record.igraph and record.steps[len(first)].graph_before is record.igraph
    assert record.optimized is record.products["optimize"].graph and not record.products["optimize"].faults


def test_passes_are_the_users_choice(dumps: pathlib.Path) -> None:
    record = kernel_record(dumps, CompileOptions(passes=("dead", "load_cse")))
    assert [step.name for step in record.steps[len(FIRST) :]] == ["dead", "load_cse"]
    none = kernel_record(dumps, CompileOptions(passes=()))
    assert len(none.steps) == len(FIRST) and none.optimized is none.igraph and not none.fallback


def test_a_pass_that_is_refused_is_left_out(
    dumps: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The kernel still goes through the graph before it, and both log and record say so."""
    monkeypatch.setattr(store_load_forwarding, "run", lambda graph: graph.replace(body=[]))
    with caplog.at_level("WARNING", logger="uir_tvm"):
        record = kernel_record(dumps, CompileOptions(passes=("store_load_forwarding",)))
    assert not record.fallback and record.optimized is record.igraph
    (step,) = record.products["optimize"].faults
    assert step is record.steps[-1] and step.fault.startswith("Nothing writes the output")
    assert "store_load_forwarding" in caplog.text and KERNEL in caplog.text
    assert "# store_load_forwarding: refused" in str(record.products["optimize"])


def test_the_report_says_what_passes_did(monkeypatch: pytest.MonkeyPatch) -> None:
    options = CompileOptions(passes=("store_load_forwarding", "allocate"))
    report = uir_tvm.compile(tiny.module(), options=options).report()
    changed = report["kernels_changed_by_pass"]
    assert list(changed) == [*(row.name for row in FIRST), "store_load_forwarding", "allocate"]
    assert changed["load_cse"] == 1 and changed["store_load_forwarding"] == 0 and changed["allocate"] == 1
    assert report["passes_refused"] == []
    monkeypatch.setattr(store_load_forwarding, "run", lambda graph: graph.replace(body=[]))
    (refused,) = uir_tvm.compile(tiny.module(), options=options).report()["passes_refused"]
    assert (refused["kernel"], refused["pass"]) == (KERNEL, "store_load_forwarding")
    assert "writes" in refused["reason"]


@pytest.mark.parametrize("entry", ["compile_kernel", "try_kernel", "compile_scheduled"])
def test_no_garbage_is_sought_while_a_kernel_goes_through_the_stages(
    entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no compilation of a model stands around it, as when a schedule is measured."""
    seen: list[bool] = []

    def watched(stage: pipeline.Stage) -> pipeline.Stage:
        def make(record: pipeline.KernelRecord, context: pipeline.StageContext) -> object:
            seen.append(gc.isenabled())
            return stage.make(record, context)

        return attrs.evolve(stage, make=make)

    target, func = registry.resolve("uir-cpu").target, functions.elementwise()
    scheduled = pipeline.compile_kernel(func, target).products["tir"]
    monkeypatch.setattr(pipeline, "STAGES", tuple(map(watched, pipeline.STAGES)))
    given = (scheduled,) if entry == "compile_scheduled" else ()
    made = getattr(pipeline, entry)(func, target, *given)
    assert made.refusal is None and len(seen) >= 4 and not any(seen)
    assert gc.isenabled()
