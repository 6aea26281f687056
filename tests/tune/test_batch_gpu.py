# SPDX-License-Identifier: Apache-2.0
"""Candidates for a GPU, out and back in: cubins of nvcc, and the runner on a stand-in of NVIDIA's driver.

What runs is the folder alone, in a process that knows neither this package nor this environment.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import pathlib
import shutil
import subprocess
import sys

import pytest
import tvm
from uir_tvm.errors import ArtifactError
from uir_tvm.export import batch_runner
from uir_tvm.export.batch_runner import results as lines
from uir_tvm.target.cuda import toolchain
from uir_tvm.tune.batch import Batch, export_batch, load_batch
from uir_tvm.tune.job import CRASHED, LOST, OK, REFUSED, TIMEOUT, WRONG, Job, Settings, trace_json
from uir_tvm.tune.key import key_of

from . import kernels

TARGET = "uir-cuda:h200"
HERE = pathlib.Path(__file__).parent
#: Few samples; not long, as a candidate hangs.
SETTINGS = Settings(repeats=3, min_repeat_seconds=1e-4, timeout_seconds=1.5)
#: Blocks of the candidates: each another number, and not that of the default schedule.
GROUPS = (2, 3, 4, 6)

pytestmark = pytest.mark.skipif(toolchain.available() is None, reason="there is no compiler for CUDA sources")


def jobs() -> list[Job]:
    """The default schedule of a kernel, others, and one whose trace is of another kernel."""
    func = kernels.kernel(target="uir-cuda")
    text = str(tvm.ir.save_json(func))
    made = [Job("relu", text, TARGET, "gpu", settings=SETTINGS)]
    for groups in GROUPS:
        trace = trace_json(kernels.scheduled(func, 40, "cuda", groups).trace)
        made.append(Job("relu", text, TARGET, "gpu", text, trace, settings=SETTINGS))
    foreign = [[["GetSBlock", [], ["nowhere", "main"], ["b0"]]], []]
    return [*made, Job("relu", text, TARGET, "gpu", text, foreign, settings=SETTINGS)]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Batch:
    """A batch that nothing is done to."""
    return export_batch(jobs(), tmp_path_factory.mktemp("batches") / "exported")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The stand-in."""
    library = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    flags = ["-O2", "-shared", "-fPIC", "-Wall", "-Werror"]
    subprocess.run(["gcc", *flags, "-o", library, HERE / "fake_driver.c"], check=True)
    return library


@pytest.fixture
def batch(exported: Batch, tmp_path: pathlib.Path) -> pathlib.Path:
    """A copy of it, as sent to another machine."""
    return pathlib.Path(shutil.copytree(exported.folder, tmp_path / "batch"))


def run(batch: pathlib.Path, *arguments: object, **environment: str) -> tuple[int, str]:
    """Exit code, and what it prints."""
    command = [sys.executable, batch / "run.py", *arguments]
    done = subprocess.run(
        list(map(str, command)),
        cwd="/",
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


def launches(batch: Batch) -> list[list[dict[str, object]]]:
    """Of every candidate that was built."""
    rows = json.loads((batch.folder / lines.MANIFEST).read_text())["candidates"]
    return [row["artefact"]["launches"] for row in rows if row["artefact"]]


def grids(batch: Batch) -> list[int]:
    """Of every candidate that was built; each by itself, or the modes of the stand-in would not tell them."""
    found = [int(str(row["grid"])) for (row,) in launches(batch)]
    assert len(set(found)) == len(found), found
    return found


def test_a_batch_is_built_here(exported: Batch) -> None:
    """Nothing is measured yet, but for what the compiler refuses; times will be of this toolchain's code."""
    assert exported.key == key_of(TARGET, "gpu")
    assert [result.outcome for result in exported.results] == [LOST] * 5 + [REFUSED]
    assert exported.remaining == 5 and not exported.machine and not exported.confirmed
    assert "does not apply" in exported.results[5].said
    assert exported.jobs == tuple(jobs())
    assert len(grids(exported)) == 5


def test_there_and_back(
    exported: Batch, batch: pathlib.Path, driver: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Kernels are found in the cubins by name and launched as they are meant; times come in their order."""
    log = tmp_path / "log"
    code, said = run(batch, "--library", driver, FAKE_LOG=str(log))
    assert code == 0, said
    found = load_batch(batch)
    want = [12e-6 / grid for grid in grids(exported)]
    assert [result.median for result in found.results[:5]] == pytest.approx(want)
    assert all(len(result.seconds) == 3 and not result.said for result in found.results[:5])
    assert found.machine["name"] == "NVIDIA H200" and found.key == exported.key

    best = min(range(5), key=lambda number: want[number])
    ((pair, confirmed),) = found.confirmed.items()
    assert pair == (0, best) and [result.median for result in confirmed] == pytest.approx(
        [want[0], want[best]]
    )

    launched = {tuple(line.split()) for line in log.read_text().splitlines()}
    assert launched == {
        tuple(map(str, (row["name"], row["grid"], row["block"], row["shared_bytes"], 0)))
        for (row,) in launches(exported)
    }
    log.unlink()
    code, said = run(batch, "--library", driver, FAKE_LOG=str(log))
    assert code == 0 and "0 to be measured" in said and not log.exists(), "nothing is measured twice"


def test_candidates_that_are_no_good(exported: Batch, batch: pathlib.Path, driver: pathlib.Path) -> None:
    """Wrong results, an abort, a kernel that never ends, a launch that fails: each is its own result."""
    first, *rest = grids(exported)
    modes = " ".join(
        f"{mode}:{grid}" for mode, grid in zip(("wrong", "crash", "hang", "fail"), rest, strict=True)
    )
    code, said = run(batch, "--library", driver, FAKE_MODES=modes)
    assert code == 0, said
    good, *bad, refused = load_batch(batch).results
    assert good.outcome == OK and good.median == pytest.approx(12e-6 / first)
    assert [result.outcome for result in bad] == [WRONG, CRASHED, TIMEOUT, CRASHED]
    assert "1 of 960 elements" in bad[0].said and "element 480 is" in bad[0].said
    assert "signal 6" in bad[1].said and "no result after 3 s" in bad[2].said
    assert "CUDA_ERROR_LAUNCH_FAILED" in bad[3].said
    assert refused.outcome == REFUSED
    assert not load_batch(batch).confirmed, "nothing is faster than the default"


def test_a_run_that_was_cut_short_carries_on(batch: pathlib.Path, driver: pathlib.Path) -> None:
    """What is measured is taken in, without the line at which power was lost; the rest is measured."""
    assert run(batch, "--library", driver)[0] == 0
    whole = load_batch(batch).results
    path = batch / lines.RESULTS
    text = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(text[:3]) + text[3][:40])
    found = load_batch(batch)
    assert [result.outcome for result in found.results] == [OK, OK, LOST, LOST, LOST, REFUSED]
    code, said = run(batch, "--library", driver)
    assert code == 0 and "3 to be measured" in said
    assert load_batch(batch).results == whole


def test_a_driver_without_graphs(exported: Batch, batch: pathlib.Path, driver: pathlib.Path) -> None:
    """Launches are timed one by one, and the result says so."""
    assert run(batch, "--library", driver, FAKE_NO_GRAPHS="1")[0] == 0
    first, *_ = load_batch(batch).results
    assert first.median == pytest.approx(12e-6 / grids(exported)[0])
    assert "single launches: cuStreamBeginCapture_v2 failed" in first.said


def test_without_a_gpu(batch: pathlib.Path) -> None:
    """A dry run checks files; a real one says what is missing, and leaves nothing."""
    code, said = run(batch, "--dry-run")
    assert code == 0 and "6 candidates of 1 kernels, 5 to be measured" in said
    code, said = run(batch, "--library", "/nowhere/libcuda.so.1")
    assert code == 2 and "there is no driver of NVIDIA" in said
    assert not (batch / lines.RESULTS).exists()
    code, said = run(batch, "--help")
    assert code == 0 and "--dry-run" in said and "results.jsonl" in said


def test_another_gpu_is_refused(batch: pathlib.Path, driver: pathlib.Path) -> None:
    """Its code would run on an H100 too, whose times are others."""
    code, said = run(batch, "--library", driver, FAKE_NAME="NVIDIA H100 80GB HBM3")
    assert code == 2 and "are for h200; here is h100" in said


def test_files_that_were_changed_are_not_run(batch: pathlib.Path, driver: pathlib.Path) -> None:
    cubin = next((batch / "candidates").iterdir())
    cubin.write_bytes(cubin.read_bytes()[:-1])
    code, said = run(batch, "--library", driver)
    assert code == 2 and f"{cubin.name} was changed, or is not whole" in said


#: File -> what is done to its text -> words of the refusal.
EDITS = {
    "faster": (lines.RESULTS, lambda text: text.replace('"seconds": [', '"seconds": [1e-9, ', 1), "line 2"),
    "other batch": (lines.RESULTS, lambda text: text, "another batch"),
    "no results": (lines.RESULTS, lambda text: "[]\n", "line 1: it is no line of results"),
    "manifest": (lines.MANIFEST, lambda text: text.replace('"default": false', '"default": true'), "changed"),
    "cut manifest": (lines.MANIFEST, lambda text: text[:-9], "cannot be read"),
    "jobs": ("jobs.json", lambda text: text.replace('"seed": 0', '"seed": 1', 1), "jobs.json was changed"),
}


@pytest.mark.parametrize("case", EDITS)
def test_what_was_edited_is_refused(batch: pathlib.Path, driver: pathlib.Path, case: str) -> None:
    """By the import, and by the runner where it concerns it."""
    name, edit, words = EDITS[case]
    manifest = lines.read_manifest(str(batch))
    identity = "0" * 64 if case == "other batch" else manifest["id"]
    row = {"seconds": [1e-6], "outcome": OK, "said": ""}
    lines.append(str(batch / lines.RESULTS), {"batch": identity, "machine": {"hardware": "h200"}})
    lines.append(str(batch / lines.RESULTS), {"batch": identity, "candidate": 1, "result": row})
    (batch / name).write_text(edit((batch / name).read_text()))
    with pytest.raises(ArtifactError) as caught:
        load_batch(batch)
    assert words in str(caught.value) and caught.value.remedy
    code, said = run(batch, "--library", driver)
    assert code == 2 and "error:" in said


def test_the_binding_agrees_with_the_toolkit(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every signature and every number of `gpu.py`, where nvcc is at hand, which finds its cuda.h."""
    tool = toolchain.available()
    if tool is None or tool.kind != "nvcc":
        pytest.skip("there is no nvcc")
    monkeypatch.syspath_prepend(str(pathlib.Path(batch_runner.__file__).parent))
    monkeypatch.delitem(sys.modules, "gpu", raising=False)  # other programs have modules of that name
    gpu = importlib.import_module("gpu")
    monkeypatch.delitem(sys.modules, "gpu")
    source = tmp_path / "check.cc"
    source.write_text(_PRELUDE + "".join(_checks(gpu)))
    included = [f"-I{folder}" for folder in tool.include]
    command = [tool.path, "-std=c++17", *included, "-c", source, "-o", tmp_path / "check.o"]
    subprocess.run(list(map(str, command)), check=True)


_PRELUDE = """
#include <cuda.h>
#include <cstddef>
#include <type_traits>
// Handles are pointers on both sides, enumerations integers of their size.
template <typename A, typename B>
constexpr bool kAlike = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
template <typename Ours, typename Theirs>
struct Same : std::false_type {};
template <typename R, typename... A, typename S, typename... B>
struct Same<R (*)(A...), S (*)(B...)>
    : std::bool_constant<sizeof...(A) == sizeof...(B) && kAlike<R, S> && (kAlike<A, B> && ...)> {};
"""
#: ctypes -> C.
_NAMES = {
    ctypes.c_int: "int",
    ctypes.c_uint: "unsigned",
    ctypes.c_uint64: "unsigned long long",
    ctypes.c_size_t: "size_t",
    ctypes.c_void_p: "void*",
    ctypes.c_char_p: "char*",
}
#: Name in `gpu.py` -> in cuda.h.
_NUMBERS = {
    "MULTIPROCESSORS": "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT",
    "MAJOR": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR",
    "MINOR": "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR",
    "COOPERATIVE": "CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH",
    "SHARED_OPTIN": "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "MAX_SHARED": "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES",
    "CAPTURE": "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL",
}


def _checks(gpu: object) -> list[str]:
    """Assertions about every function and number."""
    found = []
    for name, types in gpu.SIGNATURES.items():  # type: ignore[attr-defined]
        # all that is no value is a pointer
        listed = ", ".join(_NAMES.get(one, "void*") for one in types)
        found.append(f'static_assert(Same<int (*)({listed}), decltype(&{name})>::value, "{name}");\n')
    found += [f"static_assert({getattr(gpu, ours)} == {theirs});\n" for ours, theirs in _NUMBERS.items()]
    return found
