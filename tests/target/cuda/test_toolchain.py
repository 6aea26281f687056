# SPDX-License-Identifier: Apache-2.0
"""CUDA sources become cubins on this machine, without a GPU, and the compiler's figures are read right."""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import importlib.util
import pathlib
import stat
from typing import Any

import pytest
from uir_tvm.errors import ToolchainError
from uir_tvm.target.cuda import find_toolchain, toolchain
from uir_tvm.target.cuda.cubin import Cubin, KernelFigures, read_figures, read_warnings

SOURCE = r"""
#include <cuda_fp16.h>
#include <stdint.h>
#include <cooperative_groups.h>
extern "C" __global__ void __launch_bounds__(128)
scale(const __half* __restrict__ x, float* __restrict__ y, int64_t n) {
  extern __shared__ __align__(1024) unsigned char smem[];
  __shared__ float kept[256];
  int i = blockIdx.x * 128 + threadIdx.x;
  float v = i < n ? __half2float(x[i]) : 0.0f;
  v += __shfl_xor_sync(0xffffffffu, v, 16);
  kept[threadIdx.x] = v;
  reinterpret_cast<float*>(smem)[threadIdx.x] = v;
  cooperative_groups::this_grid().sync();
  y[i] = kept[threadIdx.x ^ 1] + reinterpret_cast<float*>(smem)[threadIdx.x ^ 2];
}
extern "C" __global__ void dynamic(float* y) {
  float a[100];
  for (int i = 0; i < 100; ++i) a[i] = y[i * threadIdx.x];
  int unused;
  y[blockIdx.x] = a[threadIdx.x % 100];
}
"""

#: Spills: 300 values live at once in a kernel that may use 32 registers.
SPILLING = r"""
extern "C" __global__ void __launch_bounds__(1024, 2) crowded(const float* x, float* y) {
  float a[300];
#pragma unroll
  for (int i = 0; i < 300; ++i) a[i] = x[i * 1024 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 300; ++i) y[(299 - i) * 1024 + threadIdx.x] = a[i] * a[(i * 7 + 3) % 300];
}
"""

LOG = """\
k.cu(21): warning #177-D: variable "unused" was declared but never referenced

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

ptxas info    : 5918 bytes gmem, 8304 bytes cmem[4]
ptxas info    : Compiling entry function 'g' for 'sm_80'
ptxas info    : Function properties for g
ptxas         .     800 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 32 registers, used 2 barriers, 1040 bytes smem, 360 bytes cmem[0]
ptxas info    : Compile time = 71.052 ms
ptxas info    : Function properties for _Z6helperf
    64 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 13 registers
"""


#: A product of four warps whose sums are touched before it is waited for.
SERIALISED = r"""
#include <cstdint>
extern "C" __global__ void __launch_bounds__(128) k(float* y, uint64_t a, uint64_t b, int n) {
  float d[4] = {0, 0, 0, 0};
  for (int i = 0; i < n; ++i) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile(
        "{\n .reg .pred p;\n setp.ne.b32 p, 1, 0;\n"
        " wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, p, 1, 1, 0, 0;\n}"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b + i));
    d[0] += 1.0f;
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  for (int i = 0; i < 4; ++i) y[4 * threadIdx.x + i] = d[i];
}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A cache of the test's own, so that what another left cannot answer."""
    monkeypatch.setenv("UIR_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(params=["nvcc", "nvrtc"])
def tool(request: pytest.FixtureRequest) -> Any:
    try:
        return toolchain.find(request.param)
    except ToolchainError as error:
        if request.param == "nvcc" and _installed("nvidia-cuda-nvcc"):
            raise
        pytest.skip(str(error))


def _installed(package: str) -> bool:
    try:
        return bool(importlib.metadata.version(package))
    except importlib.metadata.PackageNotFoundError:
        return False


@pytest.fixture
def looked_again() -> Any:
    """What the search found under a changed environment is forgotten afterwards."""
    toolchain.forget()
    yield
    toolchain.forget()


def test_figures_of_every_entry_function() -> None:
    """Each entry function has its own figures; those of a called function belong to none."""
    assert read_figures(LOG) == (
        KernelFigures("g", 32, 12, 16, 800, shared_bytes=1040, constant_bytes=360, barriers=2),
        KernelFigures("k", 13),
    )
    assert read_warnings(LOG) == (LOG.splitlines()[0],)


@pytest.mark.parametrize("arch", toolchain.ARCHITECTURES)
def test_compile(tool: Any, arch: str) -> None:
    """An ELF image with figures that the source forces: local memory, shared memory, one warning."""
    cubin = toolchain.compile(SOURCE, arch, tool=tool)
    assert cubin.data[:4] == b"\x7fELF" and cubin.arch == arch
    assert {figures.name for figures in cubin.report} == {"scale", "dynamic"}
    assert cubin["dynamic"].stack == 400 and cubin["dynamic"].spill_stores == 0
    assert cubin["scale"].shared_bytes >= 1024 and cubin["scale"].stack == 0
    assert 8 <= cubin["scale"].registers <= 64
    assert cubin.spills == ("dynamic",)
    assert len(cubin.warnings) == 1 and "unused" in cubin.warnings[0]


def test_products_that_do_not_overlap_end_the_build(tool: Any) -> None:
    """ptxas calls it a potential loss of performance among its remarks; no schedule was chosen for that."""
    with pytest.raises(ToolchainError, match="one after the other") as caught:
        toolchain.compile(SERIALISED, "sm_90a", tool=tool)
    assert "serialized" in caught.value.where and "wgmma=False" in caught.value.remedy
    said = "ptxas info    : (C7519) warpgroup.arrive is injected in around line 74 by compiler"
    assert read_warnings(said) == (said,)


def test_spills_are_seen(tool: Any) -> None:
    figures = toolchain.compile(SPILLING, "sm_80", tool=tool)["crowded"]
    assert figures.registers <= 32 and figures.spill_stores > 0 and figures.spill_loads > 0 and figures.spills


def test_a_second_time_comes_from_the_cache(tool: Any, cache: pathlib.Path, monkeypatch: Any) -> None:
    """The same source, architecture and flags run no compiler; a change of any does."""
    source = 'extern "C" __global__ void one(int* y) { y[0] = VALUE; }'
    flag = "-DVALUE=1"
    first = toolchain.compile(source, "sm_80", tool=tool, flags=[flag])
    ran: list[str] = []

    def refuse(*args: Any) -> Any:
        ran.append(args[2])
        raise ToolchainError("ran")

    monkeypatch.setitem(toolchain._COMPILERS, tool.kind, refuse)
    assert toolchain.compile(source, "sm_80", tool=tool, flags=[flag]) == first
    for arch, changed, flags in (
        ("sm_90a", source, [flag]),
        ("sm_80", source + " ", [flag]),
        ("sm_80", source, ["-DVALUE=2"]),
    ):
        with pytest.raises(ToolchainError):
            toolchain.compile(changed, arch, tool=tool, flags=flags)
    assert ran == ["sm_90a", "sm_80", "sm_80"]
    for kept in (cache / "cubin").glob("*.cubin"):
        kept.write_bytes(kept.read_bytes()[:-1])
    with pytest.raises(ToolchainError):
        toolchain.compile(source, "sm_80", tool=tool, flags=[flag])


def test_several_architectures(tool: Any) -> None:
    source = 'extern "C" __global__ void one(int* y) { y[0] = 1; }'
    cubins = toolchain.compile_all(source, ("sm_90a", "sm_80"), tool=tool)
    assert [cubin.arch for cubin in cubins] == ["sm_90a", "sm_80"]
    assert cubins[0].data != cubins[1].data


def test_a_source_that_does_not_compile(tool: Any) -> None:
    """The error names the place, and keeps the log."""
    with pytest.raises(ToolchainError) as caught:
        toolchain.compile("__global__ void f() {\n  int x = y;\n}", "sm_80", tool=tool, name="bad.cu")
    assert "bad.cu(2)" in caught.value.where and '"y" is undefined' in caught.value.log


@pytest.mark.parametrize("arch", ["sm_12", "hopper"])
def test_an_unknown_architecture(tool: Any, arch: str) -> None:
    with pytest.raises(ToolchainError, match="architecture"):
        toolchain.compile("", arch, tool=tool)


def test_description_round_trip() -> None:
    cubin = Cubin("sm_80", b"\x7fELF", (KernelFigures("k", 13, stack=4),), ("w",), "nvcc 13.0.88")
    assert Cubin.from_json(cubin.to_json(), cubin.data) == cubin
    assert Cubin.from_bytes(cubin.to_bytes()) == cubin
    assert cubin["k"].spills
    with pytest.raises(KeyError):
        cubin["other"]


def _program(path: pathlib.Path, text: str) -> pathlib.Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_what_cannot_be_used_is_named(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, looked_again: None
) -> None:
    """An old nvcc, one that does not run and a missing one are refused, each with its reason."""
    old = _program(tmp_path / "old" / "bin" / "nvcc", "echo 'Cuda compilation tools, release 11.2, V11.2.67'")
    broken = _program(tmp_path / "broken" / "nvcc", "exit 1")
    monkeypatch.setattr(find_toolchain, "_nvcc_paths", lambda: iter([old, broken, tmp_path / "none"]))
    monkeypatch.setattr(find_toolchain, "_nvrtc_paths", lambda: iter([tmp_path / "libnvrtc.so"]))
    assert toolchain.available() is None
    with pytest.raises(ToolchainError) as caught:
        toolchain.compile("", "sm_80")
    where = caught.value.where
    assert "11.2.67 is older" in where and "does not run" in where and "no such file" in where
    assert "does not load" in where and "pip install" in caught.value.remedy


def test_pip_packages_that_are_not_all_there(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, looked_again: None
) -> None:
    """pip's nvcc without its headers is refused with the packages that lack."""
    root = tmp_path / "nvidia" / "cu13"
    nvcc = _program(root / "bin" / "nvcc", "echo 'Cuda compilation tools, release 13.0, V13.0.88'")
    monkeypatch.setattr(find_toolchain, "_wheel_roots", lambda: iter([root]))
    assert "nvidia-nvvm nvidia-cuda-runtime" in str(find_toolchain._probe_nvcc(nvcc))
    headers = ("cuda_runtime.h", "crt/host_config.h", "cccl/nv/target")
    for file in ("nvvm/bin/cicc", *(f"include/{header}" for header in headers)):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).touch()
    found = find_toolchain._probe_nvcc(nvcc)
    assert isinstance(found, find_toolchain.CudaTool) and found.version == "13.0.88"
    assert found.include == (root / "include" / "cccl",)


@pytest.mark.parametrize("spec", [None, importlib.machinery.ModuleSpec("nvidia", None)])
def test_without_pip_packages_there_is_no_folder_of_theirs(
    monkeypatch: pytest.MonkeyPatch, spec: importlib.machinery.ModuleSpec | None
) -> None:
    """None is installed, or a module of that name is no package."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    assert list(find_toolchain._wheel_roots()) == []


def test_the_environment_comes_first(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, looked_again: None
) -> None:
    nvcc = _program(tmp_path / "bin" / "nvcc", "echo 'Cuda compilation tools, release 12.9, V12.9.1'")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert toolchain.find("nvcc") == toolchain.CudaTool("nvcc", nvcc, "12.9.1")
