# SPDX-License-Identifier: Apache-2.0
"""What a candidate of a batch is built to, by the place where it is to run: one row for each."""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np

from ..errors import ToolchainError, UirError
from ..export.kernel_program import kernel_program
from ..export.kinds import PROJECTS
from ..export.write import write_program
from ..hardware.presets.cuda import DEVICES
from ..pipeline import KernelRecord
from ..runtime.tensors import TensorSpec
from ..target.ascend import toolchain as ascend
from ..target.bang import toolchain as bang
from ..target.cuda import toolchain as cuda
from ..target.device_kernel import DeviceKernel
from ..target.place import MODEL
from . import work
from .agreement import TOLERANCE, least_size
from .job import REFUSED, Job, Result
from .reference import Reference, reference_of

#: The folder of a project that has what to check it with.
CHECK = "check"
#: Writes what a kernel takes and what it must give; rows of its parameters for the manifest.
Data = Callable[[pathlib.Path, str, Reference, Job], list[dict[str, Any]]]
#: Writes what a job is built to: how to run it, or why there is nothing to run.
Finish = Callable[[], "Mapping[str, Any] | Result"]
#: Begins to build a job, below a name in the folder; another name is that of what belongs to its kernel. What
#: it gives may run beside that of other jobs, as compilers do, which are processes.
Build = Callable[[pathlib.Path, str, str, Job], Finish]


@attrs.frozen
class Kind:
    """One kind of batch.

    Parameters
    ----------
    name : str
        The module of `batch_runner` that runs it.
    what : str
        Where it runs, for people.
    build : callable
    data : callable, optional
        Where the runner needs inputs and results as files beside the candidates.
    toolchain : callable, optional
        Where candidates are compiled here: by what; else the machine that measures says by what.
    build_seconds : float
        That building a candidate there may take.
    facts : callable
        What else the manifest says.
    """

    name: str
    what: str
    build: Build
    data: Data | None = None
    toolchain: Callable[[], str] | None = None
    build_seconds: float = 60.0
    facts: Callable[[], dict[str, Any]] = dict


def _as_files(folder: pathlib.Path, below: str, reference: Reference, job: Job) -> list[dict[str, Any]]:
    """Little-endian files of all parameters before and after a call."""
    table = {**TOLERANCE, **job.settings.tolerance}
    rows = []
    for at, (name, before) in enumerate(zip(reference.names, reference.arguments, strict=True)):
        stem = f"{below}/{at:02d}"
        _write(folder / f"{stem}-before.bin", before)
        forms = []
        for number, form in enumerate(reference.results):
            same = any(form[at].tobytes() == other[at].tobytes() for other in reference.results[:number])
            if not same:
                _write(folder / f"{stem}-after{number}.bin", form[at])
                forms.append({"file": f"{stem}-after{number}.bin", "floor": _floor(form[at], reference.sums)})
        written = reference.written[at]
        rows.append(
            {
                "name": name,
                "dtype": str(before.dtype),
                "bytes": before.nbytes,
                "before": f"{stem}-before.bin",
                "after": forms,
                "allowed": table.get(str(before.dtype), 0.0) if written else 0.0,
            }
        )
    return rows


def _floor(wanted: np.ndarray, sums: bool) -> float:
    return 0.0 if wanted.dtype.kind in "biu" else least_size(wanted.astype(np.float64), sums)


def _write(path: pathlib.Path, array: np.ndarray) -> None:
    plain = np.ascontiguousarray(array)
    # NumPy's byte orders do not know bfloat16, whose machines are all little-endian
    path.write_bytes(plain.tobytes())


def _cubin(folder: pathlib.Path, name: str, _task: str, job: Job) -> Finish:
    """A cubin, and how its kernels are launched."""
    record = work.compiled(job)
    if isinstance(record, Result):
        return lambda: record
    kernel = record.lowered
    assert isinstance(kernel, DeviceKernel), record.name
    return lambda: _compiled(kernel, folder, name)


def _compiled(kernel: DeviceKernel, folder: pathlib.Path, name: str) -> Mapping[str, Any] | Result:
    try:
        cubin = cuda.compile(kernel.source, kernel.arch, name=f"{kernel.name}.cu")
    except ToolchainError as error:
        return Result(outcome=REFUSED, said=str(error))
    path = folder / f"{name}.cubin"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(cubin.data)
    # arguments are positions among the parameters, in the function's order, and the workspaces after them
    order = [row.name for row in kernel.params] + [row.name for row in kernel.workspace]
    launches = [
        {**launch.to_json(), "params": [order.index(name) for name in launch.params]}
        for launch in kernel.launches
    ]
    return {
        "cubin": f"{name}.cubin",
        "arch": cubin.arch,
        "launches": launches,
        "workspace": [row.nbytes for row in kernel.workspace],
    }


def _project(folder: pathlib.Path, name: str, task: str, job: Job) -> Finish:
    """A project of the vendor's toolkit, with the kernel's inputs and results to check it with."""
    record = work.compiled(job)
    made = record if isinstance(record, Result) else _written(record, folder, name, task, job)
    return lambda: made


def _written(
    record: KernelRecord, folder: pathlib.Path, name: str, task: str, job: Job
) -> Mapping[str, Any] | Result:
    reference = reference_of(job.func, job.seed)
    kernel = record.lowered
    assert isinstance(kernel, DeviceKernel), record.name
    rows = list(zip(reference.names, reference.arguments, reference.results[0], strict=True))
    tensors = [TensorSpec(label, before.shape, str(before.dtype)) for label, before, _ in rows]
    program = kernel_program(kernel, job.kernel, tensors, reference.written)
    reads = {spec.name for spec, _ in program.inputs}
    gives = {spec.name for spec, _ in program.outputs}
    (folder / name).parent.mkdir(exist_ok=True)
    try:
        write_program(
            program,
            PROJECTS[kernel.kind],
            folder / name,
            inputs=[before for label, before, _ in rows if label in reads],
            outputs=[after for label, _, after in rows if label in gives],
        )
    except UirError as error:
        return Result(outcome=REFUSED, said=str(error))
    return {"project": name, "check": _shared(folder, name, task)}


def _shared(folder: pathlib.Path, name: str, task: str) -> str:
    """Where a project finds what it is checked with: with its kernel, unless it differs from the others'."""
    own, others = folder / name / CHECK, folder / task / CHECK
    if not others.exists():
        others.parent.mkdir(parents=True, exist_ok=True)
        own.rename(others)
        return task
    if _files(own) != _files(others):
        return name
    shutil.rmtree(own)
    return task


def _files(folder: pathlib.Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.bin")}


def _nothing(_folder: pathlib.Path, _name: str, _task: str, _job: Job) -> Finish:
    """The machine that measures compiles."""
    return dict


def _models() -> dict[str, Any]:
    rows = [{"name": row.name, "arch": row.arch, "sms": row.sms} for row in DEVICES.values()]
    return {"models": rows}


def _npu() -> dict[str, Any]:
    return {
        "toolchain": {
            "names": list(ascend.NAMES),
            "variables": ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"],
            "roots": list(ascend.PLACES),
            "within": list(ascend.WITHIN),
        }
    }


def _mlu() -> dict[str, Any]:
    return {
        "toolchain": {
            "names": ["cncc"],
            "variables": ["NEUWARE_HOME"],
            "roots": list(bang.PLACES),
            "within": ["bin"],
        }
    }


_GPU = Kind(
    "gpu",
    "a GPU of NVIDIA: Python 3.8 and the driver",
    _cubin,
    _as_files,
    lambda: str(cuda.find()),
    0.0,
    _models,
)
_HERE = "a machine with this version of uir_tvm"
#: Place -> what its batches are.
KINDS: Mapping[str, Kind] = {
    "gpu": _GPU,
    "npu": Kind("project", "an Atlas A2: Python 3.8 and the CANN toolkit", _project, None, None, 600.0, _npu),
    "mlu": Kind("project", "an MLU: Python 3.8 and Neuware", _project, None, None, 600.0, _mlu),
    "cpu": Kind("jobs", _HERE, _nothing, build_seconds=120.0),
    MODEL: Kind("jobs", _HERE, _nothing, build_seconds=120.0),
}
