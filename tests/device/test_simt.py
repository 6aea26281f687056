# SPDX-License-Identifier: Apache-2.0
"""Compiling CUDA text for the host model, and its errors."""

import pathlib

import numpy as np
import pytest
from uir_tvm.errors import DeviceModelError, ToolchainError
from uir_tvm.target.cuda import host_model as simt

ADD = """#include <cuda_runtime.h>
extern "C" __global__ void __launch_bounds__(64) add(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1.0f;
}
"""


@pytest.fixture
def cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.setenv("UIR_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_text_is_compiled_once(cache: pathlib.Path) -> None:
    first = simt.compile(ADD)
    built = first.stat().st_mtime_ns
    assert first.is_relative_to(cache) and first.with_suffix(".cu").read_text() == ADD
    assert simt.compile(ADD) == first and first.stat().st_mtime_ns == built
    assert simt.compile(ADD + "\n") != first


def test_text_that_does_not_compile(cache: pathlib.Path) -> None:
    with pytest.raises(ToolchainError) as caught:
        simt.compile(ADD.replace("x[i]", "z[i]"))
    assert ".cu:4" in caught.value.where and "'z'" in caught.value.log
    assert not list(cache.rglob("*.so"))


def test_no_compiler(cache: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(cache))
    with pytest.raises(ToolchainError, match=r"no g\+\+"):
        simt.compile(ADD)


def test_launch_reads_and_writes_arrays() -> None:
    x = np.arange(150, dtype=np.float32)
    y = np.zeros(150, np.float32)
    result = simt.launch(simt.compile(ADD), "add", [x, y, 150], grid=3, block=64).check()
    np.testing.assert_array_equal(y, x + 1)
    assert result.counters["global_loads"] == 150


@pytest.mark.parametrize(
    "change,said",
    [
        ({"kernel": "sub"}, "no kernel 'sub'"),
        ({"grid": 0}, "a grid of 0"),
        ({"block": 1025}, "1025 threads"),
        ({"shared_bytes": 1 << 30}, "of shared memory"),
    ],
)
def test_launches_that_no_device_takes(change: dict, said: str) -> None:
    shape = {"kernel": "add", "grid": 1, "block": 32, **change}
    with pytest.raises(DeviceModelError, match=said):
        simt.launch(simt.compile(ADD), args=[np.zeros(4, np.float32), np.zeros(4, np.float32), 4], **shape)


def test_findings_become_an_error_with_all_of_them() -> None:
    x = np.zeros(10, np.float32)
    result = simt.launch(simt.compile(ADD), "add", [x, x.copy(), 11], grid=1, block=32, names=("x", "y"))
    with pytest.raises(DeviceModelError, match="add, line 4, block 0, thread 10") as caught:
        result.check()
    assert caught.value.findings[0]["kind"] == "out-of-bounds"


def test_many_parameters() -> None:
    names = [f"p{i}" for i in range(24)]
    params = ", ".join(f"const int* {name}" for name in names)
    total = " + ".join(f"{name}[0] * {i + 1}" for i, name in enumerate(names))
    text = (
        f'extern "C" __global__ void k({params}, int* y, int scale) {{ y[threadIdx.x] = ({total}) * scale; }}'
    )
    arrays = [np.array([i], np.int32) for i in range(24)]
    y = np.zeros(32, np.int32)
    simt.launch(simt.compile(text), "k", [*arrays, y, 2], grid=1, block=32).check()
    assert (y == 2 * sum(i * (i + 1) for i in range(24))).all()
