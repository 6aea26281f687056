# SPDX-License-Identifier: Apache-2.0
"""Candidates for NPUs and MLUs: a project each, which runs here against stand-ins of the vendors' libraries.

A machine with a device has ``./run.sh``; here the runner's ``--run`` names a program that builds the project
for the host model instead.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import attrs
import pytest
import tvm
from uir_tvm.tune.batch import Batch, export_batch, load_batch
from uir_tvm.tune.job import LOST, OK, REFUSED, WRONG, Job, Settings, trace_json
from uir_tvm.tune.key import TOOLCHAIN, expected

from . import kernels

#: Few samples of few runs: every one starts a program.
SETTINGS = Settings(repeats=2, min_repeat_seconds=1e-6, timeout_seconds=60.0)
#: Target -> place, kind of hardware, module that builds its projects here.
DEVICES = {
    "uir-ascend:910b2": ("npu", "ascend", "uir_tvm.target.ascend.project_on_model"),
    "uir-bang:mlu370-x4": ("mlu", "bang", "uir_tvm.target.bang.project_on_model"),
}

#: What takes the place of run.sh: python SCRIPT MODULE OPTIONS..., in the project's folder.
WRAPPER = """
import importlib, os, pathlib, sys
program = pathlib.Path("../../built", pathlib.Path.cwd().name, "model")
if not program.exists():
    build = importlib.import_module(sys.argv[1]).build
    build(".", program.parent, objects="../../objects")
os.execv(program, [str(program), *sys.argv[2:]])
"""


def jobs(target: str) -> list[Job]:
    """The default schedule, another one, and one that no device takes."""
    place, kind, _ = DEVICES[target]
    func = kernels.kernel(target=target.partition(":")[0])
    text = str(tvm.ir.save_json(func))
    default = Job("relu", text, target, place, settings=SETTINGS)
    trace = trace_json(kernels.scheduled(func, 40, kind, 4).trace)
    other = attrs.evolve(default, begun=text, trace=trace)
    foreign = [[["GetSBlock", [], ["nowhere", "main"], ["b0"]]], []]
    return [default, other, attrs.evolve(other, trace=foreign)]


@pytest.mark.parametrize("target", DEVICES)
def test_there_and_back(target: str, tmp_path: pathlib.Path) -> None:
    """Built, checked and timed there; times are those of the machine's toolchain."""
    place, _, module = DEVICES[target]
    # building takes longest: several candidates on one device are enough
    given = jobs(target) if place == "npu" else jobs(target)[::2]
    batch = export_batch(given, tmp_path / "batch")
    assert [result.outcome for result in batch.results] == [*[LOST] * (len(given) - 1), REFUSED]
    assert batch.key == expected(target, place) and TOOLCHAIN not in batch.key.versions
    assert not list(batch.folder.glob("candidates/*/check")), "inputs and results are there once"
    wrapper = tmp_path / "wrapper.py"
    wrapper.write_text(WRAPPER)
    code, said = run(batch, "--run", f"{sys.executable} {wrapper} {module}")
    assert code == 0, said
    found = load_batch(batch.folder)
    assert [result.outcome for result in found.results] == [*[OK] * (len(given) - 1), REFUSED], said
    assert all(len(result.seconds) == 2 for result in found.results[:-1])
    assert found.key.versions[TOOLCHAIN] == "unknown", "nobody compares such times with those of a device"


def test_a_wrong_candidate(tmp_path: pathlib.Path) -> None:
    """What its own program says of it; it is not timed. One that does not build is refused."""
    batch = export_batch(jobs("uir-ascend:910b2")[:2], tmp_path / "batch")
    script = tmp_path / "program.sh"
    script.write_text(
        'case "$PWD" in *0000) echo "BAD  y: largest difference 3 (element 7), limit 1e-4"; exit 1;; esac\n'
        "echo no toolkit >&2; exit 3\n"
    )
    code, said = run(batch, "--run", f"bash {script}")
    assert code == 0, said
    wrong, refused = load_batch(batch.folder).results
    assert wrong.outcome == WRONG and wrong.said == "y: largest difference 3 (element 7), limit 1e-4"
    assert refused.outcome == REFUSED and refused.said == "it does not build: no toolkit"


def test_without_the_toolkit(tmp_path: pathlib.Path) -> None:
    """It is named, and nothing is noted as measured."""
    batch = export_batch(jobs("uir-ascend:910b2")[:1], tmp_path / "batch")
    code, said = run(batch)
    assert code == 2 and "there is no bisheng or ccec here" in said
    assert load_batch(batch.folder).remaining == 1


def run(batch: Batch, *arguments: str) -> tuple[int, str]:
    """Exit code, and what it prints."""
    command = [sys.executable, str(batch.folder / "run.py"), *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr
