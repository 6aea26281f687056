# SPDX-License-Identifier: Apache-2.0
"""Candidates that are cubins, on a GPU of NVIDIA: the driver's API by ctypes, and nothing else.

Signatures and numbers are those of cuda.h of CUDA 13; a function of several versions is named by the first
one that has the signature, so that older drivers have it too.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compare_elements import compare
from measuring import Refused, confirm, measure

LIBRARY = "libcuda.so.1"
HANDLE = ctypes.c_void_p
#: CUdeviceptr.
ADDRESS = ctypes.c_uint64
OUT = ctypes.POINTER
DIMS = [ctypes.c_uint] * 6
#: Function -> types of its arguments; all return CUresult.
SIGNATURES = {
    "cuInit": [ctypes.c_uint],
    "cuDriverGetVersion": [OUT(ctypes.c_int)],
    "cuDeviceGetCount": [OUT(ctypes.c_int)],
    "cuDeviceGet": [OUT(ctypes.c_int), ctypes.c_int],
    "cuDeviceGetName": [ctypes.c_char_p, ctypes.c_int, ctypes.c_int],
    "cuDeviceGetAttribute": [OUT(ctypes.c_int), ctypes.c_int, ctypes.c_int],
    "cuDevicePrimaryCtxRetain": [OUT(HANDLE), ctypes.c_int],
    "cuCtxSetCurrent": [HANDLE],
    "cuModuleLoadData": [OUT(HANDLE), ctypes.c_char_p],
    "cuModuleUnload": [HANDLE],
    "cuModuleGetFunction": [OUT(HANDLE), HANDLE, ctypes.c_char_p],
    "cuFuncSetAttribute": [HANDLE, ctypes.c_int, ctypes.c_int],
    "cuMemAlloc_v2": [OUT(ADDRESS), ctypes.c_size_t],
    "cuMemFree_v2": [ADDRESS],
    "cuMemcpyHtoD_v2": [ADDRESS, ctypes.c_char_p, ctypes.c_size_t],
    "cuMemcpyDtoH_v2": [ctypes.c_char_p, ADDRESS, ctypes.c_size_t],
    "cuLaunchKernel": [HANDLE, *DIMS, ctypes.c_uint, HANDLE, OUT(HANDLE), OUT(HANDLE)],
    "cuLaunchCooperativeKernel": [HANDLE, *DIMS, ctypes.c_uint, HANDLE, OUT(HANDLE)],
    "cuStreamCreate": [OUT(HANDLE), ctypes.c_uint],
    "cuStreamBeginCapture_v2": [HANDLE, ctypes.c_int],
    "cuStreamEndCapture": [HANDLE, OUT(HANDLE)],
    "cuStreamSynchronize": [HANDLE],
    "cuGraphInstantiateWithFlags": [OUT(HANDLE), HANDLE, ctypes.c_uint64],
    "cuGraphLaunch": [HANDLE, HANDLE],
    "cuGraphExecDestroy": [HANDLE],
    "cuGraphDestroy": [HANDLE],
    "cuEventCreate": [OUT(HANDLE), ctypes.c_uint],
    "cuEventRecord": [HANDLE, HANDLE],
    "cuEventSynchronize": [HANDLE],
    "cuEventElapsedTime": [OUT(ctypes.c_float), HANDLE, HANDLE],
    "cuEventDestroy_v2": [HANDLE],
    "cuGetErrorName": [ctypes.c_int, OUT(ctypes.c_char_p)],
    "cuGetErrorString": [ctypes.c_int, OUT(ctypes.c_char_p)],
}
#: CUdevice_attribute.
MULTIPROCESSORS, MAJOR, MINOR, COOPERATIVE, SHARED_OPTIN = 16, 75, 76, 95, 97
#: CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
MAX_SHARED = 8
#: Shared memory that a kernel may use without asking for it.
SHARED_WITHOUT_OPTIN = 48 * 1024
#: CU_STREAM_CAPTURE_MODE_THREAD_LOCAL.
CAPTURE = 1
#: Runs of a candidate in a graph, and replays of that between two events, at most.
MOST_RUNS, MOST_REPLAYS = 100, 1000


class DriverError(Exception):
    """What the driver says of a call."""


class CudaDriver:
    """The functions of the driver, by their names."""

    def __init__(self, path: str) -> None:
        try:
            self.library = ctypes.CDLL(path)
        except OSError as error:
            raise DriverError(f"there is no driver of NVIDIA: {error}") from None
        for name, types in SIGNATURES.items():
            function = getattr(self.library, name)
            function.argtypes, function.restype = types, ctypes.c_int

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function.

        Raises
        ------
        DriverError
            It does not succeed.
        """
        status = getattr(self.library, name)(*arguments)
        if status:
            raise DriverError(f"{name} failed: {self._words(status)}")

    def _words(self, status: int) -> str:
        texts = []
        for function in (self.library.cuGetErrorName, self.library.cuGetErrorString):
            text = ctypes.c_char_p()
            if function(status, ctypes.byref(text)) == 0 and text.value:
                texts.append(text.value.decode())
        return ": ".join(texts) or f"error {status}"

    def number(self, name: str, *arguments: Any) -> int:
        """What a function writes to an integer that it takes first."""
        value = ctypes.c_int()
        self.call(name, ctypes.byref(value), *arguments)
        return value.value

    def handle(self, name: str, *arguments: Any) -> Any:
        """What a function writes to a handle that it takes first."""
        value = HANDLE()
        self.call(name, ctypes.byref(value), *arguments)
        return value

    def handle_at_end(self, name: str, *arguments: Any) -> Any:
        """What a function writes to a handle that it takes last."""
        value = HANDLE()
        self.call(name, *arguments, ctypes.byref(value))
        return value


def arch_runs(code: str, major: int, minor: int) -> bool:
    """Whether code of an architecture such as sm_90a runs on a device of a compute capability.

    A suffix asks for that capability exactly; otherwise a later minor version does.
    """
    digits = code[3:].rstrip("af")
    same = int(digits[:-1]) == major
    return same and (int(digits[-1]) <= minor if digits == code[3:] else int(digits[-1]) == minor)


def model_of(models: Sequence[Mapping[str, Any]], name: str, arch: str, sms: int) -> str:
    """The hardware model of a GPU: of its architecture, and of its name or size if there is one."""
    alike = [row for row in models if row["arch"].rstrip("af") == arch]
    named = [row for row in alike if row["name"] in name.lower()]
    sized = [row for row in alike if row["sms"] == sms]
    return next((row["name"] for row in [*named, *sized, *alike]), "")


class Machine:
    """A GPU, and the memory of one task at a time."""

    def __init__(self, folder: str, manifest: dict[str, Any], options: Any) -> None:
        self.folder, self.manifest = folder, manifest
        self.driver = driver = CudaDriver(options.library or LIBRARY)
        driver.call("cuInit", 0)
        count = driver.number("cuDeviceGetCount")
        if options.device >= count:
            raise DriverError(f"there is no GPU {options.device}: this machine has {count}")
        self.device = driver.number("cuDeviceGet", options.device)
        driver.call("cuCtxSetCurrent", driver.handle("cuDevicePrimaryCtxRetain", self.device))
        self.events = [driver.handle("cuEventCreate", 0) for _ in range(2)]
        self.stream = driver.handle("cuStreamCreate", 0)
        self.task = -1
        self.memory: list[Any] = []

    def describe(self) -> dict[str, Any]:
        """The GPU, as results name it."""
        name = ctypes.create_string_buffer(256)
        self.driver.call("cuDeviceGetName", name, 256, self.device)
        text = name.value.decode(errors="replace")
        arch = f"sm_{self.attribute(MAJOR)}{self.attribute(MINOR)}"
        model = model_of(self.manifest["models"], text, arch, self.attribute(MULTIPROCESSORS))
        version = self.driver.number("cuDriverGetVersion")
        return {
            "name": text,
            "hardware": model,
            "arch": arch,
            "driver": f"CUDA {version // 1000}.{version % 1000 // 10}",
        }

    def attribute(self, number: int) -> int:
        """An attribute of the GPU, by its number."""
        return self.driver.number("cuDeviceGetAttribute", number, self.device)

    def measure(self, candidate: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a candidate."""
        return measure(self.prepare, candidate)

    def confirm(self, candidates: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Results of candidates that are timed in turns."""
        return confirm(self.prepare, candidates)

    def prepare(self, candidate: Mapping[str, Any]) -> tuple[Any, str]:
        """Load a candidate, run it, compare; what times it, or a text that says what is wrong."""
        artefact = candidate["artefact"]
        if not arch_runs(artefact["arch"], self.attribute(MAJOR), self.attribute(MINOR)):
            raise Refused(f"it is code for {artefact['arch']}")
        self._hold(candidate["task"])
        loaded = _Loaded(self, artefact, self._read(artefact["cubin"]))
        self._fill()
        loaded.launch()
        self.driver.call("cuStreamSynchronize", self.stream)
        faults = list(filter(None, map(self._fault, self._params(), self.memory)))
        if faults:
            loaded.free()
            return None, "; ".join(faults)
        return loaded, ""

    def _read(self, name: str) -> bytes:
        with open(os.path.join(self.folder, name), "rb") as file:
            return file.read()

    def _hold(self, number: int) -> None:
        """Memory for the parameters of a task."""
        if self.task == number:
            return
        for address in self.memory:
            self.driver.call("cuMemFree_v2", address)
        self.task = number
        self.memory = [self.allocate(param["bytes"]) for param in self._params()]

    def _params(self) -> Sequence[Mapping[str, Any]]:
        return self.manifest["tasks"][self.task]["params"]

    def allocate(self, nbytes: int) -> Any:
        """Some bytes of the GPU's memory."""
        address = ADDRESS()
        self.driver.call("cuMemAlloc_v2", ctypes.byref(address), max(1, nbytes))
        return address

    def _fill(self) -> None:
        for param, address in zip(self._params(), self.memory):
            data = self._read(param["before"])
            self.driver.call("cuMemcpyHtoD_v2", address, data, len(data))

    def _fault(self, param: Mapping[str, Any], address: Any) -> str:
        got = ctypes.create_string_buffer(param["bytes"])
        self.driver.call("cuMemcpyDtoH_v2", got, address, param["bytes"])
        forms = [(self._read(form["file"]), form["floor"]) for form in param["after"]]
        return compare(param["name"], param["dtype"], got.raw, forms, param["allowed"])

    def seconds(self, queue: Callable[[], None], count: int) -> float:
        """What it takes to do so often what is queued, by the GPU's own clock."""
        start, stop = self.events
        self.driver.call("cuEventRecord", start, self.stream)
        for _ in range(count):
            queue()
        self.driver.call("cuEventRecord", stop, self.stream)
        self.driver.call("cuEventSynchronize", stop)
        elapsed = ctypes.c_float()
        self.driver.call("cuEventElapsedTime", ctypes.byref(elapsed), start, stop)
        return elapsed.value * 1e-3


class _Loaded:
    """A candidate on the GPU: its functions, their arguments, workspaces of its own."""

    def __init__(self, machine: Machine, artefact: Mapping[str, Any], image: bytes) -> None:
        self.machine, self.driver = machine, machine.driver
        self.graph, self.runs, self.replays = None, 1, 1
        #: What is to be said of its times.
        self.note = ""
        self.module = self.driver.handle("cuModuleLoadData", image)
        self.workspaces = [machine.allocate(nbytes) for nbytes in artefact["workspace"]]
        addresses = [*machine.memory, *self.workspaces]
        self.launches = [self._launch(row, addresses) for row in artefact["launches"]]

    def _launch(self, row: Mapping[str, Any], addresses: Sequence[Any]) -> tuple[str, tuple[Any, ...], Any]:
        """A function, and the arguments of its launch."""
        function = self.driver.handle("cuModuleGetFunction", self.module, row["name"].encode())
        if row["shared_bytes"] > SHARED_WITHOUT_OPTIN:
            limit = self.machine.attribute(SHARED_OPTIN)
            if row["shared_bytes"] > limit:
                asked = f"{row['name']} needs {row['shared_bytes']} bytes of shared memory"
                raise Refused(f"{asked}, the GPU has {limit}")
            self.driver.call("cuFuncSetAttribute", function, MAX_SHARED, row["shared_bytes"])
        if row["cooperative"] and not self.machine.attribute(COOPERATIVE):
            raise Refused(f"{row['name']} waits for all blocks, which the GPU cannot launch at once")
        values = [addresses[position] for position in row["params"]]
        # an argument is the address of its value; `values` keeps these alive
        pointers = (HANDLE * max(1, len(values)))(*[ctypes.addressof(value) for value in values])
        name = "cuLaunchCooperativeKernel" if row["cooperative"] else "cuLaunchKernel"
        extra = [] if row["cooperative"] else [None]
        dims = [row["grid"], 1, 1, row["block"], 1, 1, row["shared_bytes"], self.machine.stream]
        return name, (function, *dims, pointers, *extra), values

    def launch(self) -> None:
        """Queue one run of the kernel, of all its launches."""
        for name, arguments, _ in self.launches:
            self.driver.call(name, *arguments)

    def sample(self, least: float) -> float:
        """Mean seconds of as many runs as take so long."""
        if self.graph is None and not self.note:
            self._capture(least)
        seconds = self.machine.seconds(self._queue, self.replays)
        return seconds / (self.replays * self.runs)

    def _queue(self) -> None:
        """Queue some runs: Python queues single launches more slowly than short kernels end."""
        if self.graph is None:
            self.launch()
        else:
            self.driver.call("cuGraphLaunch", self.graph, self.machine.stream)

    def _capture(self, least: float) -> None:
        """Have runs in a graph, where the driver takes them."""
        self.machine.seconds(self.launch, 1)
        once = max(1e-7, self.machine.seconds(self.launch, 3) / 3)
        self.runs = min(MOST_RUNS, max(1, math.ceil(least / once)))
        stream = self.machine.stream
        try:
            self.driver.call("cuStreamBeginCapture_v2", stream, CAPTURE)
            for _ in range(self.runs):
                self.launch()
            graph = self.driver.handle_at_end("cuStreamEndCapture", stream)
            self.graph = self.driver.handle("cuGraphInstantiateWithFlags", graph, 0)
            self.driver.call("cuGraphDestroy", graph)
        except DriverError as error:
            self.note, self.runs = f"timed by single launches: {error}", 1
        self.machine.seconds(self._queue, 1)
        once = max(1e-7, self.machine.seconds(self._queue, 1))
        self.replays = min(MOST_REPLAYS, max(1, round(least / once)))

    def free(self) -> None:
        """Give back what it has."""
        if self.graph is not None:
            self.driver.call("cuGraphExecDestroy", self.graph)
        for address in self.workspaces:
            self.driver.call("cuMemFree_v2", address)
        self.driver.call("cuModuleUnload", self.module)
