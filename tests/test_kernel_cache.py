# SPDX-License-Identifier: Apache-2.0
"""Kernels that were compiled before are found again, by all that they depend on and nothing else."""

from __future__ import annotations

import os
import pathlib
import subprocess
from typing import Any

import attrs
import numpy as np
import pytest
import tvm
import uir_tvm
from click.testing import CliRunner
from tvm import te, tirx
from uir_tvm import CompileOptions, kernel_cache, pipeline
from uir_tvm.cli import main
from uir_tvm.doctor import checkup
from uir_tvm.heroes import HEROES
from uir_tvm.igraph.iops import IOPS
from uir_tvm.schedules import RECIPES
from uir_tvm.stages import KernelRecord, StageContext

from .without_torch import program

CPU = tvm.target.Target("uir-cpu")


@pytest.fixture(autouse=True)
def own_folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("UIR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UIR_KERNEL_CACHE", "disk")
    monkeypatch.setenv("UIR_EQUIVALENCE", "none")
    monkeypatch.setattr(kernel_cache, "_KEPT", type(kernel_cache._KEPT)())
    monkeypatch.setattr(kernel_cache, "_writes", 0)
    return tmp_path / "cache" / "kernels"


def function(rows: int = 24, factor: float = 2.0) -> tirx.PrimFunc:
    x = te.placeholder((rows, 40), name="x")
    made = te.create_prim_func([x, te.compute((rows, 40), lambda i, j: te.tanh(x[i, j]) * factor, name="y")])
    return made.with_attr("global_symbol", "twice")


def compiled(func: tirx.PrimFunc | None = None, target: Any = CPU, **options: Any) -> KernelRecord:
    with pipeline.recording(CompileOptions(**options)):
        return pipeline.compile_kernel(func or function(), target)


def texts(record: KernelRecord) -> dict[str, str]:
    return {stage.name: stage.dump(record.products[stage.name]) for stage in pipeline.STAGES}


@pytest.mark.parametrize("target", ["uir-cpu", "uir-cuda", "uir-ascend", "uir-bang"])
def test_what_is_found_is_what_was_made(target: str) -> None:
    made = compiled(target=tvm.target.Target(target))
    assert made.kept == "" and not made.fallback
    again = compiled(target=tvm.target.Target(target))
    kernel_cache.forget()
    read = compiled(target=tvm.target.Target(target))
    assert (again.kept, read.kept) == ("memory", "disk")
    for record in (again, read):
        assert texts(record) == texts(made)
        assert (record.name, record.hero, record.recipe, record.num_phases) == (
            made.name,
            made.hero,
            made.recipe,
            made.num_phases,
        )
        assert [step.to_json() for step in record.steps] == [step.to_json() for step in made.steps]
        assert record.attempts == made.attempts and not record.fallback


def test_what_was_read_is_lowered_once() -> None:
    """A process that finds a kernel on disk keeps what the target makes of it, not the graph alone."""
    compiled()
    kernel_cache.forget()
    read, again = compiled(), compiled()
    assert (read.kept, again.kept) == ("disk", "memory")
    assert again.lowered is not None and again.lowered.same_as(read.lowered)
    assert "source" in read.seconds and "source" not in again.seconds


def context(target: Any = CPU, **options: Any) -> StageContext:
    from uir_tvm.schedule.hardware_of import model_of_target

    return StageContext(target, model_of_target(target), CompileOptions(**options))


def key(func: tirx.PrimFunc | None = None, label: str = "twice", of: StageContext | None = None) -> bytes:
    found = kernel_cache.key_of(func or function(), label, of or context())
    assert found is not None
    return found


def test_each_part_of_the_key_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    other = context(tvm.target.Target("uir-cuda")).hardware
    keys = {
        "same": key(),
        "shape": key(function(rows=25)),
        "number": key(function(factor=3.0)),
        "attribute": key(function().with_attr("uir.hero", "elementwise")),
        "name": key(label="thrice"),
        "verify": key(of=context(verify=False)),
        "fast math": key(of=context(fast_math=True)),
        "passes": key(of=context(passes=("coalesce_moves",))),
        "toolkit": key(of=context(cann="9.0" if CompileOptions().cann != "9.0" else "9.1")),
        "target": key(of=context(tvm.target.Target("uir-cuda"))),
        "hardware": key(of=attrs.evolve(context(), hardware=other)),
    }
    with monkeypatch.context() as patch:
        patch.setattr(kernel_cache, "package_digest", lambda: "other files")
        keys["package"] = key()
    with monkeypatch.context() as patch:
        patch.setattr(tvm, "__version__", "0.0")
        keys["TVM"] = key()
    assert len(set(keys.values())) == len(keys)
    assert key() == keys["same"] == key(of=context(fuse=False, cuda_graph=True, device="model"))


def test_the_digest_is_of_every_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "module.py").write_text("one")
    monkeypatch.setattr(kernel_cache, "__file__", str(tmp_path / "kernel_cache.py"))
    digests = {kernel_cache.package_digest.__wrapped__()}
    for name, text in (("part/module.py", "two"), ("native.so", "code"), ("part/other.py", "")):
        (tmp_path / name).write_text(text)
        digests.add(kernel_cache.package_digest.__wrapped__())
    assert len(digests) == 4


def test_what_is_not_kept(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = (
        {"kernel_cache": "off"},
        {"dump_dir": tmp_path},
        {"override_dir": tmp_path},
        {"equivalence": "full"},
    )
    for options in others:
        assert kernel_cache.key_of(function(), "twice", context(**options)) is None
    recipe = next(iter(RECIPES))

    def mine(*_: Any) -> None: ...

    monkeypatch.setitem(HEROES, "mine", "nothing")
    with monkeypatch.context() as patch:
        patch.setattr(RECIPES, "_recipes", [*RECIPES, attrs.evolve(recipe, hero="mine", schedule=mine)])
        assert kernel_cache.key_of(function(), "twice", context()) is None
    with monkeypatch.context() as patch:
        row = next(iter(IOPS.values()))
        field = next(f.name for f in attrs.fields(type(row)) if callable(getattr(row, f.name)))
        patch.setitem(IOPS, "mine", attrs.evolve(row, **{field: mine}))
        assert kernel_cache.key_of(function(), "twice", context()) is None
    assert kernel_cache.key_of(function(), "twice", context()) is not None


def test_what_is_refused_is_refused_alike() -> None:
    """A record that was refused, and is found again, says why as at the first time."""
    n = tvm.tirx.Var("n", "int64")
    x = te.placeholder((8,), name="x", dtype="int64")
    made = te.create_prim_func([x, te.compute((8,), lambda i: x[i] + n, name="y"), n])
    first, again = (compiled(made.with_attr("global_symbol", "more")) for _ in range(2))
    assert (first.kept, again.kept) == ("", "memory")
    assert first.fallback and again.fallback == first.fallback
    assert again.refusal is not None and not again.refusal.is_fault


def test_a_fault_is_met_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("a fault")

    monkeypatch.setattr("uir_tvm.extract.extract", broken)
    assert compiled(faults="fall back").fallback and compiled(faults="fall back").kept == ""
    with pytest.raises(KeyError):
        compiled(faults="raise")


def test_memory_alone(own_folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [compiled(kernel_cache="memory").kept for _ in range(2)] == ["", "memory"]
    assert not own_folder.exists()
    monkeypatch.setattr(kernel_cache, "MOST_IN_MEMORY", 1)
    compiled(function(rows=3), kernel_cache="memory")
    assert compiled(kernel_cache="memory").kept == ""


@pytest.mark.parametrize("damage", ["short", "other", "empty", "sealed"])
def test_a_damaged_file_is_written_again(own_folder: pathlib.Path, damage: str) -> None:
    made = compiled()
    (file,) = own_folder.iterdir()
    whole = file.read_bytes()
    if damage == "sealed":  # whole, but of no use: as another version might have written it
        func = function()
        kernel_cache.FOLDER.remember(key(func), b'{"name": "twice"}', kernel_cache.SUFFIX)
    else:
        file.write_bytes({"short": whole[: len(whole) // 2], "other": whole[::-1], "empty": b""}[damage])
    kernel_cache.forget()
    record = compiled()
    assert record.kept == "" and texts(record) == texts(made)
    kernel_cache.forget()
    assert compiled().kept == "disk"


def test_a_folder_that_cannot_be_written(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("UIR_CACHE_DIR", str(tmp_path / "file"))
    assert [compiled().kept for _ in range(2)] == ["", "memory"]


def test_the_least_used_go_first(own_folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_cache, "WRITES", 1)
    compiled(function(rows=3))
    compiled(function(rows=4))
    first, second = sorted(own_folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    os.utime(first, ns=(1, 1))
    os.utime(second, ns=(2, 2))
    kernel_cache.forget()
    assert compiled(function(rows=3)).kept == "disk" and first.stat().st_mtime_ns > 2
    room = sum(path.stat().st_size for path in own_folder.iterdir())
    monkeypatch.setattr(kernel_cache.environment, "kernel_cache_bytes", lambda: room)
    compiled(function(rows=5))
    assert first.exists() and not second.exists()
    assert kernel_cache.FOLDER.size() <= room


OTHER = """
import sys, tvm, uir_tvm
exe = uir_tvm.compile(tvm.ir.load_json(open(sys.argv[1]).read()), name="other")
print(exe.report()["kernel_cache"])
"""


def test_processes_share_what_was_compiled(own_folder: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Two at once make the same file; this one finds it."""
    (tmp_path / "twice.json").write_text(tvm.ir.save_json(function()))
    words = program(OTHER, tmp_path / "twice.json")
    both = [subprocess.Popen(words, text=True, stdout=subprocess.PIPE) for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in both]
    assert all(process.returncode == 0 for process in both), said
    assert len(list(own_folder.iterdir())) == 1
    found = uir_tvm.compile(function(), name="other").report()["kernel_cache"]
    assert found == {"memory": 0, "disk": 1, "made": 0}


def test_executables_say_what_was_found(own_folder: pathlib.Path) -> None:
    x = np.linspace(-2, 2, 24 * 40, dtype=np.float32).reshape(24, 40)
    for found in ({"memory": 0, "disk": 0, "made": 1}, {"memory": 1, "disk": 0, "made": 0}):
        exe = uir_tvm.compile(function())
        np.testing.assert_allclose(exe(x), 2 * np.tanh(x), rtol=1e-5, atol=1e-6)
        assert exe.report()["kernel_cache"] == found
    loaded = uir_tvm.load(exe.save(own_folder.parent / "twice.uir"))
    assert loaded.report()["kernel_cache"]["memory"] == 1


def test_the_command_line_says_where(own_folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled()
    (row,) = [row for row in checkup() if row["check"] == "kernel cache"]
    assert str(own_folder) in row["detail"] and "of 512 MiB" in row["detail"] and row["state"] == "ok"
    monkeypatch.setenv("UIR_KERNEL_CACHE", "off")
    assert [row["detail"] for row in checkup() if row["check"] == "kernel cache"] == ["off"]
    said = CliRunner().invoke(main, ["compile", "--help"]).output
    assert "--kernel-cache" in said and "UIR_KERNEL_CACHE_MB" in said
