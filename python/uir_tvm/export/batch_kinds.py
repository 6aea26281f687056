# SPDX-License-Identifier: Apache-2.0
"""What a candidate of a batch is built to, by the place where it is to run: one row for each."""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import attrs

from ..device.device_kernel import DeviceKernel
from ..errors import ToolchainError, UirError
from ..pipeline import KernelRecord
from ..runtime.tensors import TensorSpec
from ..target.place import Away
from ..verify.agreement import TVM_TOLERANCE, Reference, least_size
from .batch_runner.measuring import result
from .kernel_program import kernel_program
from .kinds import PROJECTS
from .write import write_program

#: The folder of a project that has what to check it with.
CHECK = "check"


@attrs.frozen
class BatchCandidate:
    """A candidate, as whoever sends it has it.

    Parameters
    ----------
    kernel : str
        Its name, for people.
    task : Hashable
        Candidates of one task share inputs and expected results.
    job : mapping
        It as plain data, for machines that compile it themselves.
    row : mapping
        What the manifest says of it: ``digest``, ``default`` (whether it is the kernel's own schedule) and
        ``settings`` (``repeats``, ``min_repeat_seconds``, ``timeout_seconds``).
    tolerance : mapping of str to float
        See `uir_tvm.verify.agreement.differences`.
    reference : callable
        The arguments and results of its task.
    compiled : callable
        What the pipeline makes of it; the row of a result where it makes nothing.
    """

    kernel: str
    task: Hashable
    job: Mapping[str, Any]
    row: Mapping[str, Any]
    tolerance: Mapping[str, float]
    reference: Callable[[], Reference]
    compiled: Callable[[], KernelRecord | Mapping[str, Any]]


#: What the manifest says of how a candidate is run (``artefact``), or of why it is not (``settled``).
Made = dict[str, Any]
#: Writes what a kernel takes and what it must give, below a name in the folder; rows of its parameters.
Data = Callable[[pathlib.Path, str, BatchCandidate], list[dict[str, Any]]]
#: Begins to build a candidate, below a name in the folder; another name is that of what belongs to its
#: kernel. What it gives may run beside that of other candidates, as compilers do, which are processes.
Build = Callable[[pathlib.Path, str, str, BatchCandidate, Away], Callable[[], Made]]


@attrs.frozen
class BatchKind:
    """How candidates of a batch are built and checked at a place.

    Parameters
    ----------
    files : tuple of str
        Of `batch_runner`, beside what is for every kind.
    build : callable
        See `Build`.
    data : callable, optional
        See `Data`; None: it needs none of the kernel's data as files.
    """

    files: tuple[str, ...]
    build: Build
    data: Data | None = None


def _ready(**artefact: Any) -> Made:
    return {"settled": None, "artefact": artefact}


def _settled(row: Mapping[str, Any]) -> Made:
    return {"settled": dict(row), "artefact": {}}


def _as_files(folder: pathlib.Path, below: str, candidate: BatchCandidate) -> list[dict[str, Any]]:
    """Little-endian files of all parameters before and after a call."""
    reference, table = candidate.reference(), {**TVM_TOLERANCE, **candidate.tolerance}
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
                floor = least_size(form[at], reference.sums)
                forms.append({"file": f"{stem}-after{number}.bin", "floor": floor})
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


def _cubin(
    folder: pathlib.Path, name: str, _task: str, candidate: BatchCandidate, away: Away
) -> Callable[[], Made]:
    """Machine code, and how its kernels are launched."""
    record, compiled = candidate.compiled(), away.compiled
    if not isinstance(record, KernelRecord):
        return lambda: _settled(record)
    assert compiled is not None, away.runner
    return lambda: _machine_code(compiled, record.lowered, folder / f"{name}.cubin")


def _machine_code(
    compiled: Callable[[Any], tuple[bytes, Mapping[str, Any]]], kernel: DeviceKernel, path: pathlib.Path
) -> Made:
    try:
        code, launches = compiled(kernel)
    except ToolchainError as error:
        return _settled(result("refused", str(error)))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(code)
    return _ready(cubin=f"{path.parent.name}/{path.name}", **launches)


def _project(
    folder: pathlib.Path, name: str, task: str, candidate: BatchCandidate, _away: Away
) -> Callable[[], Made]:
    """A project of the vendor's toolkit, with the kernel's inputs and results to check it with."""
    record = candidate.compiled()
    if not isinstance(record, KernelRecord):
        return lambda: _settled(record)
    made = _written(record, folder, name, task, candidate)
    return lambda: made


def _written(
    record: KernelRecord, folder: pathlib.Path, name: str, task: str, candidate: BatchCandidate
) -> Made:
    reference, kernel = candidate.reference(), record.lowered
    assert isinstance(kernel, DeviceKernel), record.name
    rows = list(zip(reference.names, reference.arguments, reference.results[0], strict=True))
    tensors = [TensorSpec(label, before.shape, str(before.dtype)) for label, before, _ in rows]
    program = kernel_program(kernel, candidate.kernel, tensors, reference.written)
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
        return _settled(result("refused", str(error)))
    return _ready(project=name, check=_shared(folder, name, task))


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


def _nothing(
    _folder: pathlib.Path, _name: str, _task: str, _candidate: BatchCandidate, _away: Away
) -> Callable[[], Made]:
    """The machine that measures compiles."""
    return _ready


#: Module of the runner -> how candidates are built for it.
KINDS: Mapping[str, BatchKind] = {
    "gpu": BatchKind(("gpu.py", "compare_elements.py"), _cubin, _as_files),
    "project": BatchKind(("project.py",), _project),
    "batch_jobs": BatchKind((), _nothing),
}
