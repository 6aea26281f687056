# SPDX-License-Identifier: Apache-2.0
"""Executables for a device: where they run, what they say of it, what a saved one needs."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import zipfile

import numpy as np
import pytest
import torch
import tvm
import uir_tvm
from uir_tvm import CompileOptions
from uir_tvm.errors import DeviceError, TargetError
from uir_tvm.runtime.executable import Executable
from uir_tvm.runtime.tensors import Likeness, from_tvm, to_tvm
from uir_tvm.target.cuda import places, toolchain

from tests import tiny
from tests.device_targets import DEVICE_TARGETS, DeviceTarget, name_of
from tests.without_torch import program

MODEL = CompileOptions(device="model")

#: Runs a saved model with TVM's runtime libraries alone; nothing of the compiler may be loaded.
PROGRAM = """
import sys
import numpy as np
import tvm, uir_tvm
assert tvm.base._RUNTIME_ONLY and "tvm_compiler" not in tvm.base._LOADED_LIBS
exe = uir_tvm.load(sys.argv[1])
np.save(sys.argv[3], exe(np.load(sys.argv[2])))
assert "uir_tvm.schedule.attach" not in sys.modules and "uir_tvm.integration" not in sys.modules
"""


@pytest.fixture(scope="module", params=DEVICE_TARGETS, ids=name_of)
def row(request: pytest.FixtureRequest) -> DeviceTarget:
    """Each target that has a device."""
    return request.param


@pytest.fixture(scope="module")
def compiled(row: DeviceTarget) -> Executable:
    """The tiny model on the host model of a device."""
    return uir_tvm.compile(tiny.module(), f"{row.name}:{row.model}", name="tiny", options=MODEL)


def test_the_caller_sees_no_device(compiled: Executable) -> None:
    x = tiny.example()
    np.testing.assert_allclose(compiled(x), tiny.expected(x), atol=tiny.TOLERANCE)
    got = compiled(torch.from_numpy(x))
    assert isinstance(got, torch.Tensor) and got.device.type == "cpu"
    np.testing.assert_allclose(got.numpy(), tiny.expected(x), atol=tiny.TOLERANCE)


def test_the_report_says_where_it_runs(compiled: Executable, row: DeviceTarget) -> None:
    report = compiled.report()
    assert (report["target"], report["device"]) == (f"{row.name}:{row.model}", "model")
    assert report["kernels_without_igraph"] == []
    (kernel,) = compiled.info.kernels
    assert row.mark in kernel.texts["source"]
    (launch,) = kernel.code["launches"]
    assert launch["block"] >= 1 and launch["grid"] >= 1


def test_raw_tensors_lie_on_its_device(compiled: Executable) -> None:
    x = tiny.example()
    got = compiled.run_tvm(tvm.runtime.tensor(x, compiled.device))
    assert got.device == compiled.device == tvm.ext_dev(0)


def test_saved_and_loaded_here_and_with_the_runtime_alone(
    compiled: Executable, tmp_path: pathlib.Path
) -> None:
    x = tiny.example()
    file = compiled.save(tmp_path / "tiny.uir")
    wanted = compiled(x)
    loaded = uir_tvm.load(file)
    np.testing.assert_array_equal(loaded(x), wanted)
    assert loaded.info.device == "model" and loaded.info.kernels == compiled.info.kernels
    np.save(tmp_path / "x.npy", x)
    # no compiler either: what is saved holds the code
    nothing = {"PATH": str(tmp_path), "UIR_CACHE_DIR": str(tmp_path)}
    environment = {**os.environ, "TVM_USE_RUNTIME_LIB": "1", **nothing}
    command = program(PROGRAM, file, tmp_path / "x.npy", tmp_path / "y.npy")
    subprocess.run(command, env=environment, check=True, timeout=300)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), wanted)


def test_the_manifest_says_what_the_code_is_for(
    compiled: Executable, row: DeviceTarget, tmp_path: pathlib.Path
) -> None:
    with zipfile.ZipFile(compiled.save(tmp_path / "tiny.uir")) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    assert manifest["device"] == {"model": row.model, "arch": row.arch}
    assert manifest["info"]["device"] == "model"


def test_compiled_for_a_gpu_where_there_is_none(tmp_path: pathlib.Path) -> None:
    """It compiles, with cubin, and is saved and loaded; a call says what is missing."""
    if not places.absent():
        pytest.skip("there is a GPU")
    if toolchain.available() is None:
        pytest.skip("there is no compiler for CUDA sources")
    exe = uir_tvm.compile(tiny.module(), "uir-cuda:a100", name="tiny", options=CompileOptions(device="gpu"))
    (kernel,) = exe.info.kernels
    assert kernel.fallback == "" and kernel.code["compiler"]["arch"] == "sm_80"
    loaded = uir_tvm.load(exe.save(tmp_path / "tiny.uir"))
    for made in (exe, loaded):
        with pytest.raises(DeviceError, match="cannot run here") as caught:
            made(tiny.example())
        assert "a gpu, for which uir-cuda" in caught.value.need and caught.value.limit == places.absent()


def test_a_device_that_a_target_has_not() -> None:
    with pytest.raises(TargetError, match="uir-cpu does not run on 'gpu'"):
        uir_tvm.compile(tiny.module(), "uir-cpu", options=CompileOptions(device="gpu"))


def test_the_environment_names_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UIR_DEVICE", "model")
    assert CompileOptions().device == "model"
    monkeypatch.delenv("UIR_DEVICE")
    assert CompileOptions().device == "auto"


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int64", "bool"])
def test_tensors_go_to_the_device_and_back(dtype: str) -> None:
    value = torch.arange(24).reshape(4, 6).to(getattr(torch, dtype))
    there = to_tvm(value, tvm.ext_dev(0))
    assert there.device == tvm.ext_dev(0)
    assert torch.equal(from_tvm(there, Likeness.of([value])), value)
    # a TVM tensor of another device is copied, one of this device is taken as it is
    assert to_tvm(there, tvm.ext_dev(0)) is there
    np.testing.assert_array_equal(to_tvm(there).numpy(), there.numpy())


def test_stages_are_dumped_with_the_source(row: DeviceTarget, tmp_path: pathlib.Path) -> None:
    options = CompileOptions(device="model", dump_dir=tmp_path)
    exe = uir_tvm.compile(tiny.module(), row.name, options=options)
    (kernel,) = exe.info.kernels
    assert (tmp_path / f"{kernel.name}{row.suffix}").read_text() == kernel.texts["source"]
