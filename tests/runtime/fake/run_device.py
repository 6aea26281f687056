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
import threading
from typing import Any

import numpy as np
import tvm_ffi

SIZE = 128
EXT_DEV = 12


class Memory:
    """Tensors of ``ext_dev``, through tvm-ffi's own, as callers of executables write and read them."""

    def __init__(self, runtime: ctypes.CDLL) -> None:
        self.empty = tvm_ffi.get_global_func("runtime.TVMTensorAllocWithScope")
        self.write = tvm_ffi.get_global_func("uir.runtime.write_tensor")
        self.read = tvm_ffi.get_global_func("uir.runtime.read_tensor")

    def tensor(self, array: np.ndarray, device: int) -> Any:
        shape, where = tvm_ffi.Shape(list(array.shape)), tvm_ffi.device("ext_dev", device)
        made = self.empty(shape, tvm_ffi.dtype("float32"), where, None)
        given = array.copy()
        self.write(made, ctypes.c_void_p(given.ctypes.data), given.nbytes)
        given[...] = -1  # the caller's again: what was written stays
        return made

    def array(self, tensor: Any) -> np.ndarray:
        out = np.zeros(tuple(tensor.shape), "float32")
        self.read(tensor, ctypes.c_void_p(out.ctypes.data), out.nbytes)
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
        with tvm_ffi.use_raw_stream(tvm_ffi.device("ext_dev", device), case.get("stream", 0)):
            tensors = [memory.tensor(array, device) for array in (x, np.zeros(SIZE, "float32"))]
            module["affine"](*tensors)
            assert np.array_equal(memory.array(tensors[1]), 2 * x + 1)
        del tensors
    except Exception as error:  # the classes of our package are not known here
        out["error"] = str(error).replace("\x1f", "|")
    return {**out, "log": runtime.fake_log().decode().split("\n")[:-1]}


def workspaces(
    common: dict[str, Any], runtime: ctypes.CDLL, memory: Memory, code: bytes
) -> dict[str, list[str]]:
    """What the runtime was asked while a kernel with a workspace ran on some streams and threads."""
    module = tvm_ffi.get_global_func("uir.runtime.device_module")(
        metadata({}, common["kind"], common["arch"]), ["// text"], [{common["arch"]: code}]
    )
    tensors = [memory.tensor(np.zeros(SIZE, "float32"), 0) for _ in range(2)]

    def call(stream: int) -> None:
        with tvm_ffi.use_raw_stream(tvm_ffi.device("ext_dev", 0), stream):
            module["affine"](*tensors)

    def in_a_thread(stream: int) -> None:
        thread = threading.Thread(target=call, args=(stream,))
        thread.start()
        thread.join()

    def destroy(stream: int) -> None:
        tvm_ffi.get_global_func("runtime.Device_StreamFree")(tvm_ffi.device("ext_dev", 0), stream)

    def in_full_memory(stream: int) -> None:
        runtime.fake_full(1)
        call(stream)

    steps = {
        "first": lambda: call(1001),
        "again": lambda: call(1001),
        "another stream": lambda: call(1002),
        "another thread": lambda: in_a_thread(1001),
        "the stream goes": lambda: destroy(1001),
        "a stream of its address": lambda: call(1001),
        "full memory": lambda: in_full_memory(1003),
        "afterwards": lambda: call(1003),
    }
    logs = {}
    for name, step in steps.items():
        runtime.fake_reset(b"", 0)
        step()
        logs[name] = runtime.fake_log().decode().split("\n")[:-1]
    return logs


def tokens(
    common: dict[str, Any], runtime: ctypes.CDLL, memory: Memory, code: bytes
) -> dict[int, list[list[str]]]:
    """What the runtime was asked by three steps alike, of so many calls of a kernel each.

    As a token of a language model: two inputs to the device, calls on one queue, one result to the host.
    """
    module = tvm_ffi.get_global_func("uir.runtime.device_module")(
        metadata({}, common["kind"], common["arch"]), ["// text"], [{common["arch"]: code}]
    )
    state = [memory.tensor(np.zeros(SIZE, "float32"), 0) for _ in range(2)]
    logs: dict[int, list[list[str]]] = {}
    for calls in (1, 40):
        logs[calls] = []
        for step in range(3):
            runtime.fake_reset(b"", 0)
            given = [memory.tensor(np.full(SIZE, step, "float32"), 0) for _ in range(2)]
            for _ in range(calls):
                module["affine"](given[0], state[0])
                module["affine"](state[0], state[1])
            assert memory.array(state[1])[0] == 4 * step + 3
            logs[calls].append(runtime.fake_log().decode().split("\n")[:-1])
    return logs


def writes(lock: bytes, runtime: ctypes.CDLL, memory: Memory) -> dict[str, list[str]]:
    """What the runtime was asked for writes that page-locked memory has room for, and for others."""
    floats = {"small": 9 * [15 << 10], "large": [(16 << 10) + 1], "none": [SIZE, SIZE]}
    logs = {}
    for stream, (name, sizes) in enumerate(floats.items(), 3001):
        runtime.fake_reset(lock if name == "none" else b"", 1)
        with tvm_ffi.use_raw_stream(tvm_ffi.device("ext_dev", 0), stream):
            arrays = [np.arange(size, dtype="float32") + k for k, size in enumerate(sizes)]
            made = [memory.tensor(array, 0) for array in arrays]
            logs[name] = runtime.fake_log().decode().split("\n")[:-1]
            for array, tensor in zip(arrays, made, strict=True):
                assert np.array_equal(memory.array(tensor), array), name
    return logs


def other_copies(runtime: ctypes.CDLL, memory: Memory) -> list[str]:
    """What the runtime was asked when TVM itself wrote and read, on a queue."""
    write, read = (tvm_ffi.get_global_func(f"runtime.TVMTensorCopy{way}Bytes") for way in ("From", "To"))
    given, found = np.arange(SIZE, dtype="float32"), np.zeros(SIZE, "float32")
    runtime.fake_reset(b"", 0)
    with tvm_ffi.use_raw_stream(tvm_ffi.device("ext_dev", 0), 4001):
        made = memory.tensor(found, 0)
        runtime.fake_reset(b"", 0)
        write(made, ctypes.c_void_p(given.ctypes.data), given.nbytes)
        read(made, ctypes.c_void_p(found.ctypes.data), found.nbytes)
    assert np.array_equal(given, found)
    return runtime.fake_log().decode().split("\n")[:-1]


def main() -> None:
    runtime_path, ours, fake, kernels = sys.argv[1:]
    ctypes.CDLL(runtime_path, ctypes.RTLD_GLOBAL)
    tvm_ffi.load_module(ours)
    runtime = ctypes.CDLL(fake, ctypes.RTLD_GLOBAL)
    runtime.fake_log.restype = ctypes.c_char_p
    common = json.load(sys.stdin)
    described = dict(tvm_ffi.get_global_func(common["describe"])())
    memory, code = Memory(runtime), pathlib.Path(kernels).read_bytes()
    outcomes = {name: run(case, common, runtime, memory, code) for name, case in common["cases"].items()}
    streams = workspaces(common, runtime, memory, code)
    steps = tokens(common, runtime, memory, code)
    written = writes(common["lock"].encode(), runtime, memory)
    of_tvm = other_copies(runtime, memory)
    described = {str(key): str(value) for key, value in described.items()}
    chosen = str(tvm_ffi.get_global_func("uir.runtime.ext_dev.chosen")())
    try:
        tvm_ffi.get_global_func("uir.runtime.ext_dev.choose")("model")
        other = ""
    except Exception as error:
        other = str(error).replace("\x1f", "|")
    answer = {"described": described, "cases": outcomes, "chosen": chosen, "other": other, "streams": streams}
    answer |= {"tokens": steps, "writes": written, "of TVM": of_tvm}
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
