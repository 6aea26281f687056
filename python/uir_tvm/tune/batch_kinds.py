# SPDX-License-Identifier: Apache-2.0
"""What a candidate of a batch is built to, by the place where it is to run: one row for each."""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..device.device_kernel import DeviceKernel
from ..errors import ToolchainError, UirError
from ..export.kernel_program import kernel_program
from ..export.kinds import PROJECTS
from ..export.write import write_program
from ..pipeline import KernelRecord
from ..runtime.tensors import TensorSpec
from ..target import registry
from . import evaluate
from .agreement import TOLERANCE, least_size
from .job import REFUSED, Job, Result
from .reference_results import Reference, reference_of

#: The folder of a project that has what to check it with.
CHECK = "check"
#: Writes what a kernel takes and what it must give; rows of its parameters for the manifest.
Data = Callable[[pathlib.Path, str, Reference, Job], list[dict[str, Any]]]
#: Writes what a job is built to: how to run it, or why there is nothing to run.
Finish = Callable[[], "Mapping[str, Any] | Result"]
#: Begins to build a job, below a name in the folder; another name is that of what belongs to its kernel. What
#: it gives may run beside that of other jobs, as compilers do, which are processes.
Build = Callable[[pathlib.Path, str, str, Job], Finish]


def _as_files(folder: pathlib.Path, below: str, reference: Reference, job: Job) -> list[dict[str, Any]]:
    """Little-endian files of all parameters before and after a call."""
    table = {**TOLERANCE, **job.settings.tolerance}
    rows = []
    for at, (name, before) in enumerate(zip(reference.names, reference.arguments, strict=True)):
        stem = f"{below}/{at:02d}"
        # NumPy's byte orders do not know bfloat16, whose machines are all little-endian
        (folder / f"{stem}-before.bin").write_bytes(before.tobytes())
        forms = []
        for number, form in enumerate(reference.results):
            same = any(form[at].tobytes() == other[at].tobytes() for other in reference.results[:number])
            if not same:
                (folder / f"{stem}-after{number}.bin").write_bytes(form[at].tobytes())
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


def _cubin(folder: pathlib.Path, name: str, _task: str, job: Job) -> Finish:
    """Machine code, and how its kernels are launched."""
    record = evaluate.compiled(job)
    if isinstance(record, Result):
        return lambda: record
    compiled = registry.place_of(evaluate.target_of(job)).away.compiled
    assert compiled is not None, job.place
    return lambda: _compiled(compiled, record.lowered, folder / f"{name}.cubin")


def _compiled(
    compiled: Callable[[Any], tuple[bytes, Mapping[str, Any]]], kernel: DeviceKernel, path: pathlib.Path
) -> Mapping[str, Any] | Result:
    try:
        code, launches = compiled(kernel)
    except ToolchainError as error:
        return Result(outcome=REFUSED, said=str(error))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(code)
    return {"cubin": f"{path.parent.name}/{path.name}", **launches}


def _project(folder: pathlib.Path, name: str, task: str, job: Job) -> Finish:
    """A project of the vendor's toolkit, with the kernel's inputs and results to check it with."""
    record = evaluate.compiled(job)
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


#: Module of the runner -> how candidates are built for it, and what it needs of their kernels as files.
BUILDERS: Mapping[str, tuple[Build, Data | None]] = {
    "gpu": (_cubin, _as_files),
    "project": (_project, None),
    "batch_jobs": (_nothing, None),
}
