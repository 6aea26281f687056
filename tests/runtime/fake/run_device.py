# SPDX-License-Identifier: Apache-2.0
"""Runs kernels on the stand-in for a vendor's runtime, in a process of its own: a runtime is loaded once.

``run_device.py`` reads {"kind", "arch", "describe", "cases"} as JSON from standard input and writes what
became of each case, as JSON.  It loads TVM's runtime library and ours, and neither of the Python packages.
"""

from __future__ import annotations

import ctypes
import json
import pathlib
import sys
from typing import Any

import numpy as np
import tvm_ffi

SIZE = 128
EXT_DEV = 12


class Memory:
    """What TVM's device API does for tensors of ``ext_dev``, through tvm-ffi's own tensors."""

    def __init__(self, runtime: ctypes.CDLL) -> None:
        self.empty = tvm_ffi.get_global_func("runtime.TVMTensorAllocWithScope")
        self.copy_from = tvm_ffi.get_global_func("runtime.TVMTensorCopyFromBytes")
        self.copy_to = tvm_ffi.get_global_func("runtime.TVMTensorCopyToBytes")

    def tensor(self, array: np.ndarray, device: int) -> Any:
        shape, where = tvm_ffi.Shape(list(array.shape)), tvm_ffi.device("ext_dev", device)
        made = self.empty(shape, tvm_ffi.dtype("float32"), where, None)
        self.copy_from(made, ctypes.c_void_p(array.ctypes.data), array.nbytes)
        return made

    def array(self, tensor: Any) -> np.ndarray:
        out = np.zeros(tuple(tensor.shape), "float32")
        self.copy_to(tensor, ctypes.c_void_p(out.ctypes.data), out.nbytes)
        return out


def metadata(case: dict[str, Any], kind: str, arch: str) -> str:
    both = {"grid": 2, "block": 1, "shared_bytes": 0, "cooperative": False, "core": ""}
    launches = [
        {**both, "name": "twice", "params": ["x", "half"]},
        {**both, "name": case.get("second", "plus_one"), "params": ["half", "y"]},
    ]
    params = [{"name": name, "bytes": 4 * SIZE, "role": "inout"} for name in ("x", "y")]
    kernel = {
        "entry": "affine",
        "kind": case.get("kind", kind),
        "arch": arch,
        "saved": [],
        "params": params,
        "workspace": [{"name": "half", "bytes": 4 * SIZE}],
    }
    return json.dumps({"kernels": [{**kernel, "launches": launches}]})


def run(
    case: dict[str, Any], common: dict[str, Any], runtime: ctypes.CDLL, memory: Memory, code: bytes
) -> dict[str, Any]:
    """One call of a module: what the runtime was asked, and whether 2 x + 1 came out; or the error."""
    runtime.fake_reset(case.get("failing", "").encode(), case.get("code", 0))
    binaries = {common["arch"]: code} if case.get("compiled", True) else {}
    described = metadata(case, common["kind"], common["arch"])
    device = case.get("device", 0)
    out: dict[str, Any] = {}
    try:
        module = tvm_ffi.get_global_func("uir.runtime.device_module")(described, ["// text"], [binaries])
        x = np.arange(SIZE, dtype="float32")
        tensors = [memory.tensor(array, device) for array in (x, np.zeros(SIZE, "float32"))]
        with tvm_ffi.use_raw_stream(tvm_ffi.device("ext_dev", device), case.get("stream", 0)):
            module["affine"](*tensors)
            assert np.array_equal(memory.array(tensors[1]), 2 * x + 1)
        del tensors
    except Exception as error:  # the classes of our package are not known here
        out["error"] = str(error).replace("\x1f", "|")
    return {**out, "log": runtime.fake_log().decode().split("\n")[:-1]}


def main() -> None:
    runtime_path, ours, fake, kernels = sys.argv[1:]
    ctypes.CDLL(runtime_path, ctypes.RTLD_GLOBAL)
    tvm_ffi.load_module(ours)
    runtime = ctypes.CDLL(fake, ctypes.RTLD_GLOBAL)
    runtime.fake_log.restype = ctypes.c_char_p
    common = json.load(sys.stdin)
    described = dict(tvm_ffi.get_global_func(common["describe"])())
    memory, code = Memory(runtime), pathlib.Path(kernels).read_bytes()
    outcomes = {
        name: run(case, common, runtime, memory, code) for name, case in common["cases"].items()
    }
    described = {str(key): str(value) for key, value in described.items()}
    chosen = str(tvm_ffi.get_global_func("uir.runtime.ext_dev.chosen")())
    try:
        tvm_ffi.get_global_func("uir.runtime.ext_dev.choose")("model")
        other = ""
    except Exception as error:
        other = str(error).replace("\x1f", "|")
    json.dump({"described": described, "cases": outcomes, "chosen": chosen, "other": other}, sys.stdout)


if __name__ == "__main__":
    main()
