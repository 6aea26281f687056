# SPDX-License-Identifier: Apache-2.0
"""Runs kernels on the stand-in for the driver, in a process of its own: a driver is loaded once.

``run.py`` reads cases as JSON from standard input and writes what became of each, as JSON.  It loads TVM's
runtime library and ours, and neither of the Python packages.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any

import numpy as np
import tvm_ffi

SIZE = 128
CUDA = 2


class _OnGpu:
    """A NumPy array whose DLPack capsule names a GPU."""

    def __init__(self, array: np.ndarray, ordinal: int) -> None:
        self.array, self.ordinal = array, ordinal

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.ordinal

    def __dlpack__(self, **_: Any) -> Any:
        capsule = self.array.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        address = pointer(capsule, b"dltensor")
        # DLTensor: data (8 bytes), device type, device id
        ctypes.c_int32.from_address(address + 8).value = CUDA
        ctypes.c_int32.from_address(address + 12).value = self.ordinal
        return capsule


def run(case: dict[str, Any], driver: ctypes.CDLL) -> dict[str, Any]:
    """Two calls of one module: what the driver was asked, and whether 2 x + 1 came out; or the error."""
    driver.fake_reset(*case.get("arch", [9, 0]), case.get("fail", 0))
    driver.fake_resident(case.get("resident", 1))
    # the caller's own context; a driver's are addresses
    driver.fake_make_current(case.get("context"))
    both = {"grid": 2, "block": 64, "cooperative": case.get("cooperative", False)}
    launches = [
        {**both, "name": "twice", "shared_bytes": case.get("shared", 0), "params": ["x", "half"]},
        {**both, "name": case.get("second", "plus_one"), "shared_bytes": 0, "params": ["half", "y"]},
    ]
    params = [{"name": name, "bytes": 4 * SIZE, "role": "inout"} for name in ("x", "half", "y")]
    kernel = {"entry": "affine", "arch": "sm_90a", "saved": [], "params": params, "workspace": []}
    metadata = json.dumps({"kernels": [{**kernel, "launches": launches}]})
    binaries = {arch: f"code for {arch}".encode() for arch in case.get("binaries", ["sm_80", "sm_90a"])}
    ordinal = case.get("ordinal", 0)
    try:
        module = tvm_ffi.get_global_func("uir.runtime.device_module")(metadata, ["// text"], [binaries])
        for _ in range(2):
            x = np.arange(SIZE, dtype="float32")
            arrays = [x, np.zeros(SIZE, "float32"), np.zeros(SIZE, "float32")]
            with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", ordinal), case.get("stream", 0)):
                module["affine"](*[tvm_ffi.from_dlpack(_OnGpu(a, ordinal)) for a in arrays])
            assert np.array_equal(arrays[2], 2 * x + 1)
    except Exception as error:  # the classes of our package are not known here
        return {"error": str(error).replace("\x1f", "|"), **asked(driver)}
    found = asked(driver)
    del module
    return {**found, "gone": asked(driver)["log"][len(found["log"]) :], "context": driver.fake_current()}


def asked(driver: ctypes.CDLL) -> dict[str, Any]:
    """What the driver was asked, and whose context is current."""
    return {"log": driver.fake_log().decode().split("\n")[:-1], "context": driver.fake_current()}


def main() -> None:
    runtime, ours, fake = sys.argv[1:]
    ctypes.CDLL(runtime, ctypes.RTLD_GLOBAL)
    tvm_ffi.load_module(ours)
    driver = ctypes.CDLL(fake)
    driver.fake_log.restype = ctypes.c_char_p
    driver.fake_current.restype, driver.fake_make_current.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    described = tvm_ffi.get_global_func("uir.runtime.cuda.describe")()
    gpus = [[str(row["name"]), str(row["arch"]), int(row["sms"])] for row in described["devices"]]
    outcomes = {name: run(case, driver) for name, case in json.load(sys.stdin).items()}
    json.dump({"error": str(described["error"]), "gpus": gpus, "cases": outcomes}, sys.stdout)


if __name__ == "__main__":
    main()
