# SPDX-License-Identifier: Apache-2.0
"""Compile every case without a GPU, and gather what is needed to run it on a machine that has no TVM."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile
from dataclasses import dataclass
from typing import Any

import torch

from . import bundle, models, operators
from .case import Case
from .ops import ExportOps

#: Folders of TVM's packages that nothing needs at run time.
LEFT_OUT = {
    "__pycache__",
    "3rdparty",
    "cmake",
    "cython",
    "frontend",
    "include",
    "lib64",
    "licenses",
    "src",
    "web",
}
LEFT_OUT_FILES = {"libtvm_compiler.so"}
#: Bytes that the folder may have: it travels to the GPU's machine.
LIMIT = 60 << 20


class Exported(torch.nn.Module):
    """A case as a module of tensors."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.case = case

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The case's results."""
        return self.case.call(ExportOps(), tensors)


def relax_of(case: Case) -> Any:
    """The case as a Relax module; the tensors that it is traced with are never written."""
    from uir_tvm.api import import_model

    tensors = tuple(torch.empty(spec.shape, dtype=getattr(torch, spec.dtype)) for spec in case.inputs)
    return import_model(torch.export.export(Exported(case), tensors))


def compile_case(case: Case, mod: Any, target: str, device: str, path: pathlib.Path) -> dict[str, Any]:
    """Export the case's module; what the compiler says of its kernels."""
    import uir_tvm

    start = time.perf_counter()
    options = uir_tvm.CompileOptions(device=device)
    exe = uir_tvm.compile(mod, target, name=case.name, options=options)
    exe.library.export_library(os.fspath(path))
    report = exe.report()
    return {
        "module": f"{bundle.MODULES}/{path.name}",
        "seconds": round(time.perf_counter() - start, 1),
        "kernels": [kernel.name for kernel in exe.info.kernels],
        "on_host": {kernel.name: kernel.fallback for kernel in exe.info.kernels if kernel.fallback},
        "code": {kernel.name: dict(kernel.code) for kernel in exe.info.kernels if kernel.code},
        "summary": {key: value for key, value in report.items() if isinstance(value, int | float | str)},
    }


def compile_stock(mod: Any, arch: str, path: pathlib.Path) -> dict[str, Any]:
    """Stock TVM's module of the same Relax: its default pipeline for CUDA, scheduled by dlight."""
    import tvm

    host = {"kind": "llvm"}
    limits = {"max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "thread_warp_size": 32}
    target = tvm.target.Target({"kind": "cuda", "arch": arch, **limits, "host": host})
    with target:
        tvm.compile(mod, target).export_library(os.fspath(path))
    return {"module": f"{bundle.MODULES}/{path.name}"}


@dataclass(frozen=True)
class Plan:
    """What is built.

    Parameters
    ----------
    small : bool
        The sizes of the host model.
    device : str
        ``gpu`` or ``model``.
    target, arch : str
        For us and for stock TVM.
    python : str
        Version of the Python that will run it, such as ``3.12``.
    only : tuple of str
        Names of cases; empty: all.
    stock : bool
        Whether stock TVM's modules are made too.
    """

    small: bool
    device: str
    target: str
    arch: str
    python: str
    only: tuple[str, ...] = ()
    stock: bool = True


def build(folder: pathlib.Path, plan: Plan) -> int:
    """Fill the folder, emptied first if `build` made it; returns how many cases failed."""
    if folder.exists() and any(folder.iterdir()) and not (folder / bundle.CASES).is_file():
        raise bundle.MissingError(f"{folder} is not empty, and no folder of artefacts: name another")
    shutil.rmtree(folder, ignore_errors=True)
    (folder / bundle.MODULES).mkdir(parents=True)
    rows: dict[str, Any] = {}
    failed = 0
    for case in (*operators.cases(plan.small), *models.cases(plan.small)):
        if plan.only and case.name not in plan.only:
            continue
        row: dict[str, Any] = {}
        try:
            mod = relax_of(case)
            path = folder / bundle.MODULES / f"{case.name}.so"
            row = compile_case(case, mod, plan.target, plan.device, path)
        except Exception as error:
            failed += 1
            row = {"error": f"{type(error).__name__}: {error}"[:2000]}
            traceback.print_exc()
        if plan.stock and plan.device == "gpu" and case.group == "operator" and "error" not in row:
            try:
                row["stock"] = compile_stock(
                    mod, plan.arch, folder / bundle.MODULES / f"{case.name}.stock.so"
                )
            except Exception as error:
                row["stock"] = {"error": f"{type(error).__name__}: {error}"[:500]}
        rows[case.name] = row
        print(f"{case.name}: {row.get('error', '') or str(row['seconds']) + ' s'}", flush=True)
    written = {"small": plan.small, "device": plan.device, "target": plan.target, "cases": rows}
    (folder / bundle.CASES).write_text(json.dumps(written, indent=1, default=str))
    copy_runtime(folder, plan.python)
    copy_benchmark(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / 2**20:.1f} MiB, {len(rows) - failed} of {len(rows)} cases")
    if size > LIMIT:
        print(
            f"that is more than {LIMIT >> 20} MiB: leave cases out with --only, or stock TVM with --no-stock"
        )
    return failed


def _left_out(path: pathlib.Path) -> bool:
    return path.name in LEFT_OUT and path.is_dir()


def _copy(source: pathlib.Path, target: pathlib.Path) -> None:
    """A package without what nothing needs at run time."""

    def ignore(where: str, names: list[str]) -> set[str]:
        folder = pathlib.Path(where)
        return {
            name
            for name in names
            if name in LEFT_OUT_FILES or name.endswith(".pyi") or _left_out(folder / name)
        }

    shutil.copytree(source, target, ignore=ignore)


def copy_runtime(folder: pathlib.Path, python: str) -> None:
    """TVM's packages and our libraries; tvm_ffi's extension is built for one version of Python."""
    import uir_tvm
    from uir_tvm._native import REQUIRED, library_path

    runtime = folder / bundle.RUNTIME
    runtime.mkdir()
    spec = importlib.util.find_spec("tvm")
    assert spec is not None and spec.origin is not None
    _copy(pathlib.Path(spec.origin).parent, runtime / "tvm")
    if python == f"{sys.version_info.major}.{sys.version_info.minor}":
        spec = importlib.util.find_spec("tvm_ffi")
        assert spec is not None and spec.origin is not None
        _copy(pathlib.Path(spec.origin).parent, runtime / "tvm_ffi")
    else:
        _fetch_ffi(runtime, f"apache-tvm-ffi=={REQUIRED['apache-tvm-ffi']}", python)
    assert uir_tvm.__file__ is not None
    for library in library_path().parent.glob("libuir*.so"):
        shutil.copy2(library, runtime)


def _fetch_ffi(runtime: pathlib.Path, package: str, python: str) -> None:
    """The wheel of tvm_ffi for another Python, unpacked."""
    with tempfile.TemporaryDirectory() as scratch:
        platforms = [f"--platform=manylinux_2_{n}_x86_64" for n in (28, 27, 24, 17)]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        subprocess.run(
            [*command, f"--python-version={python}", *platforms, "-d", scratch, package], check=True
        )
        (wheel,) = pathlib.Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(pathlib.Path(scratch) / "wheel")
        _copy(pathlib.Path(scratch) / "wheel" / "tvm_ffi", runtime / "tvm_ffi")


def copy_benchmark(folder: pathlib.Path) -> None:
    """This program, so that the folder needs nothing beside itself."""
    here = pathlib.Path(__file__).resolve().parent
    shutil.copytree(here, folder / "gpu", ignore=shutil.ignore_patterns("__pycache__", "build.py"))
    shutil.copy2(here.parents[1] / "scripts" / "gpu_bench.py", folder)
