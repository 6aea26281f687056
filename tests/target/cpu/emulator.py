# SPDX-License-Identifier: Apache-2.0
"""Kernels of uir-cpu for a processor of AArch64, run here: cross-compiled, linked with a driver, emulated."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Sequence

import numpy as np
import tvm
import tvm_ffi
from tvm_ffi import libinfo
from uir_tvm.igraph import IGraph
from uir_tvm.igraph.dtypes import dtype_of, numpy_of
from uir_tvm.runtime.kernel import signature_of
from uir_tvm.target.registry import TARGETS

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
DRIVER = pathlib.Path(__file__).with_name("kernel_driver.c")
#: Why kernels cannot be run so on this machine; empty where they can.
MISSING = ", ".join(tool for tool in (COMPILER, EMULATOR) if shutil.which(tool) is None)
REASON = f"needs {MISSING} (Debian: gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)"


def compiled_for_its_processor(graph: IGraph) -> tvm.runtime.Executable:
    """A graph's function ``kernel``, compiled for the processor of its hardware model."""
    spec = TARGETS["uir-cpu"]
    lowered = spec.lower(graph, signature_of(graph))
    target = tvm.target.Target(spec.place().target_config(graph.hardware))
    return tvm.compile(tvm.IRModule({"kernel": lowered}), target=target)


def run_emulated(graph: IGraph, *arrays: np.ndarray) -> list[np.ndarray]:
    """What `uir_tvm.runtime.kernel.run_igraph` gives on uir-cpu, of a graph for a processor of AArch64.

    Vectors of SVE are as long as those of the graph's hardware model.
    """
    remaining = iter(arrays)
    tensors = [
        np.zeros(p.size, numpy_of(p.dtype)) if p.role == "out" else np.ascontiguousarray(next(remaining))
        for p in graph.params
    ]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        compiled_for_its_processor(graph).mod.write_to_file(str(folder / "kernel.o"))
        _run([*_compile(), str(folder / "kernel.o"), "-lm", "-o", str(folder / "driver")])
        (folder / "tensors").write_bytes(_described(graph, tensors))
        length = f"max,sve-default-vector-length={graph.hardware.vector_bytes}"
        command = [EMULATOR, "-cpu", length, str(folder / "driver")]
        _run([*command, str(folder / "tensors"), str(folder / "results")])
        return _results(graph, tensors, (folder / "results").read_bytes())


def _compile() -> list[str]:
    includes = [libinfo.find_include_path(), libinfo.find_dlpack_include_path()]
    return [COMPILER, "-static", "-O1", *(f"-I{path}" for path in includes), str(DRIVER)]


def _described(graph: IGraph, tensors: Sequence[np.ndarray]) -> bytes:
    parts = [np.int64(len(tensors)).tobytes()]
    for pointer, array in zip(graph.params, tensors, strict=True):
        dtype = tvm_ffi.dtype(dtype_of(pointer.dtype).tvm)
        numbers = np.array([dtype.type_code, dtype.bits, array.size], np.int64)
        parts += [numbers.tobytes(), array.tobytes()]
    return b"".join(parts)


def _results(graph: IGraph, tensors: Sequence[np.ndarray], found: bytes) -> list[np.ndarray]:
    out, at = [], 0
    for pointer, array in zip(graph.params, tensors, strict=True):
        if pointer.role != "in":
            out.append(np.frombuffer(found[at : at + array.nbytes], array.dtype))
        at += array.nbytes
    return out


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stderr}"
