# SPDX-License-Identifier: Apache-2.0
"""The folder of artefacts, without TVM: what is in it, and how it is loaded.

FOLDER/cases.json            what was compiled, by case
FOLDER/modules/*.so          exported modules, with cubins
FOLDER/runtime/tvm, tvm_ffi  TVM's Python packages with its runtime libraries alone
FOLDER/runtime/libuir*.so    our launcher, library operators and host model
FOLDER/gpu_bench.py, gpu/    this benchmark
"""

from __future__ import annotations

import ctypes
import glob
import importlib.util
import json
import os
import pathlib
import sys
from typing import Any

CASES, MODULES, RUNTIME = "cases.json", "modules", "runtime"
#: The function that only our native library has.
OURS = "uir.library.cuda.matmul"


class MissingError(Exception):
    """Something that a run needs is not here; the message says what to do."""


def read_cases(folder: pathlib.Path) -> dict[str, Any]:
    """What `build` wrote of each case."""
    path = folder / CASES
    if not path.is_file():
        raise MissingError(f"{path} is missing: make the artefacts with `gpu_bench.py build {folder}`")
    return json.loads(path.read_text())


def _preload_cuda() -> None:
    """libcudart where only pip has it: TVM's CUDA runtime is linked against its name."""
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or ()) if spec else []
    found = [path for root in roots for path in sorted(glob.glob(f"{root}/*/lib/libcudart.so.13"))]
    for name in (*found, "libcudart.so.13"):
        try:
            ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
            return
        except OSError:
            continue


def load_runtime(folder: pathlib.Path, gpu: bool) -> Any:
    """Import the TVM of the folder; returns the package.

    Raises
    ------
    MissingError
        The runtime libraries or, with ``gpu``, TVM's CUDA runtime do not load.
    """
    runtime = folder / RUNTIME
    sys.path.insert(0, os.fspath(runtime))
    os.environ["TVM_USE_RUNTIME_LIB"] = "1"
    # Entry points of what else is installed would bring other versions.
    os.environ["TVM_DEVICE_BACKEND_AUTOLOAD"] = "0"
    try:
        import tvm
        import tvm_ffi
    except ImportError as error:
        raise MissingError(f"TVM's runtime does not load from {runtime}: {error}") from error
    if not pathlib.Path(tvm.__file__).is_relative_to(runtime.resolve()):
        raise MissingError(f"another TVM was imported: {tvm.__file__}")
    if gpu:
        _preload_cuda()
        library = pathlib.Path(tvm.__file__).parent / "lib" / "libtvm_runtime_cuda.so"
        try:
            ctypes.CDLL(os.fspath(library), mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise MissingError(f"TVM's CUDA runtime does not load: {error}") from error
    if tvm_ffi.get_global_func(OURS, allow_missing=True) is None:
        tvm_ffi.load_module(os.fspath(runtime / "libuir_tvm.so"))
    _name_libraries(tvm_ffi)
    return tvm


def _name_libraries(tvm_ffi: Any) -> None:
    """Where pip put cuBLASLt and cuDNN; torch loads the same ones."""
    set_path = tvm_ffi.get_global_func("uir.library.cuda.set_path")
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        for name, pattern in (("cublasLt", "libcublasLt.so.1[23]"), ("cudnn", "libcudnn.so.9")):
            for path in sorted(glob.glob(f"{root}/*/lib/{pattern}"))[-1:]:
                set_path(name, path)


class Module:
    """One exported module: a function of tensors on the device."""

    def __init__(self, tvm: Any, path: pathlib.Path, gpu: bool) -> None:
        from tvm.runtime.vm import VirtualMachine

        self._tvm = tvm
        self._gpu = gpu
        self.device = tvm.cuda(0) if gpu else tvm.ext_dev(0)
        self._vm = VirtualMachine(tvm.runtime.load_module(os.fspath(path)), self.device)
        self.main = self._vm["main"]

    def to_device(self, tensor: Any) -> Any:
        """A torch tensor as one of TVM: the same memory on a GPU, a copy on the host model."""
        plain = self._tvm.runtime.from_dlpack(tensor.contiguous())
        if self._gpu:
            return plain
        copy = self._tvm.runtime.empty(plain.shape, plain.dtype, self.device)
        return copy.copyfrom(plain)

    def to_torch(self, result: Any) -> list[Any]:
        """The results as torch tensors."""
        import torch

        results = [result] if isinstance(result, self._tvm.runtime.Tensor) else list(result)
        if self._gpu:
            return [torch.from_dlpack(tensor) for tensor in results]
        return [torch.from_dlpack(tensor.copyto(self._tvm.cpu())) for tensor in results]
