# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while a model compiles or runs: KeyboardInterrupt; the command then exits with 130 and no word."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, NoReturn

import attrs
import numpy as np
import pytest
import tvm
import uir_tvm
from click.testing import CliRunner
from tvm import relax
from uir_tvm import api
from uir_tvm.cli import main
from uir_tvm.device import compilers
from uir_tvm.options import CompileOptions
from uir_tvm.runtime.modelled import recording

from tests import tiny

ROOT = pathlib.Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def as_in_a_terminal() -> Iterator[None]:
    """Shells start what runs in the background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def ctrl_c(*_: Any) -> None:
    """What the terminal sends; Python raises it at one of the next instructions."""
    os.kill(os.getpid(), signal.SIGINT)


def test_while_kernels_compile() -> None:
    """Deep in TVM's passes, whose C++ hands errors on; the next compilation works."""
    mod = tiny.module()

    def progress(stage: str, done: int, *_: Any) -> None:
        if stage == "kernels" and done:
            ctrl_c()

    with pytest.raises(KeyboardInterrupt):
        uir_tvm.compile(mod, progress=progress)
    x = tiny.example()
    np.testing.assert_allclose(uir_tvm.compile(mod)(x), tiny.expected(x), atol=tiny.TOLERANCE)


def test_while_a_model_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernels are compiled for the host model when they first run, by a call from C++."""
    exe = uir_tvm.compile(tiny.module(), "uir-cuda", options=CompileOptions(device="model"))
    with monkeypatch.context() as patched:
        kind = attrs.evolve(compilers.DEVICES["cuda"], compilers={"simt": ctrl_c})
        patched.setattr(compilers, "DEVICES", {"cuda": kind})
        with pytest.raises(KeyboardInterrupt):
            exe(tiny.example())
    x = tiny.example()
    np.testing.assert_allclose(exe(x), tiny.expected(x), atol=tiny.TOLERANCE)


def test_between_launches_on_a_host_model() -> None:
    """It takes long for what a device does at once, and does not go on to the end."""

    def layers(x: tvm.ir.Expr) -> tvm.ir.Expr:
        for axis in (0, 1) * 5:
            x = relax.op.nn.softmax(x, axis=axis)
        return x

    mod = tiny.elementwise(layers, ((128, 128), "float32"))
    exe = uir_tvm.compile(mod, "uir-bang", options=CompileOptions(device="model"))
    x = np.ones((128, 128), "float32")
    exe(x)
    start = time.perf_counter()
    with recording() as whole:
        exe(x)
    timer = threading.Timer((time.perf_counter() - start) / 4, ctrl_c)
    with recording() as part, pytest.raises(KeyboardInterrupt):
        timer.start()
        exe(x)
    assert len(part.times.launches) < len(whole.times.launches)


def test_other_errors_of_python_keep_their_class() -> None:
    def progress(stage: str, done: int, *_: Any) -> None:
        if stage == "kernels" and done:
            raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        uir_tvm.compile(tiny.module(), progress=progress)


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_the_command_ends_quietly(
    flags: list[str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "compile", interrupted)
    model = tiny.relax_dump(tmp_path)
    done = CliRunner().invoke(main, ["compile", str(model), *flags])
    assert done.exit_code == 130 and done.output.strip() == ""
    assert list(tmp_path.iterdir()) == [model]


def test_the_command_ends_quietly_while_it_is_imported() -> None:
    code = (
        "import sys, types\n"
        "class Interrupted(types.ModuleType):\n"
        "    def __getattr__(self, name): raise KeyboardInterrupt\n"
        "sys.modules['uir_tvm.cli'] = Interrupted('uir_tvm.cli')\n"
        "sys.modules['uir_tvm'] = types.ModuleType('uir_tvm')\n"
        "import uir_command; uir_command.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, cwd=ROOT / "python"
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
