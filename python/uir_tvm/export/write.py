# SPDX-License-Identifier: Apache-2.0
"""Write a project: texts of its kind, weights, and inputs and outputs to check it with."""

from __future__ import annotations

import contextlib
import pathlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
import tvm
from tvm.runtime.vm import VirtualMachine

from ..errors import ArtifactError, ExportError, NotCompiledError
from ..kernel_graph.to_relax import WEIGHTS
from ..runtime.executable import Executable
from ..runtime.specialized import SpecializedExecutable
from ..runtime.tensors import check_inputs, random_inputs
from ..sizes.symbolic_shapes import Sizes
from ..target import registry
from ..whole_files import beside, writing
from .device_program import HostProgram, HostStep, KernelStep, LibraryStep
from .files import input_files, output_files, weight_files
from .host_program import host_program
from .kinds import PROJECTS, ProjectKind
from .open_export import OpenExport

#: Folders of a project.
CHECK_INPUTS, CHECK_OUTPUTS = "check/inputs", "check/outputs"
#: Sizes of the data to check with, where the model leaves some open.
CHECK_SIZES = "check/sizes.txt"


@attrs.frozen
class Project:
    """What was written.

    Parameters
    ----------
    path : Path
        Its folder.
    files : mapping of str to int
        Bytes of every file, by its name in the folder.
    launches, library_calls, on_host : int
        Of one run: launches of kernels, calls of the library, functions of the host.
    sizes : tuple of str
        What it takes at a run.
    """

    path: pathlib.Path
    files: Mapping[str, int]
    launches: int
    library_calls: int
    on_host: int
    sizes: tuple[str, ...] = ()


def write_project(
    exe: Executable | SpecializedExecutable,
    directory: str | pathlib.Path,
    *,
    inputs: Sequence[Any] | None = None,
    check: bool = True,
) -> Project:
    """Write a compiled model as a project that the vendor's toolkit builds.

    The files depend on the executable and the inputs alone: a project that is written twice is the same, byte
    by byte. Nothing of the toolkit is needed to write it.

    Parameters
    ----------
    exe : Executable or SpecializedExecutable
        Compiled for a target of `PROJECTS`. The project of a model that leaves sizes open takes them at a
        run. An executable of some sizes by code for all of them is compiled for these alone.
    directory : str or Path
        A folder that does not exist, or is empty; it appears whole or not at all.
    inputs : sequence of numpy.ndarray, optional
        Inputs to check the project with; default: random ones.
    check : bool
        Whether to store these inputs, and what the executable makes of them here. On a host model that
        takes time.

    Raises
    ------
    ExportError
        The target has no projects; kernels run on the host; the folder is not empty; of a model that leaves
        sizes open, what exists for the sizes of a call alone.
    ArtifactError
        The folder cannot be written.
    ShapeError
        Inputs that the model does not take.
    NotCompiledError
        No code serves all sizes; or it was loaded, and is to be compiled for some alone.
    """
    directory = pathlib.Path(directory)
    kind = kind_of(exe)
    _check_directory(directory)
    if isinstance(exe, SpecializedExecutable):
        return _write_open(OpenExport.of(exe), kind, directory, inputs, check)
    exe = _alone(exe)
    program = host_program(exe)
    weights = weights_of(exe) if program.weights else []
    if inputs is not None:
        check_inputs(inputs, exe.info.inputs)
    if not check:
        return write_program(program, kind, directory, weights)
    given = random_inputs(exe.info.inputs) if inputs is None else inputs
    return write_program(program, kind, directory, weights, given, exe.flat(*given))


def _alone(exe: Executable) -> Executable:
    """An executable for one shape."""
    try:
        return exe.standalone
    except NotCompiledError as error:
        raise NotCompiledError(
            error.what,
            need=error.need,
            limit=error.limit,
            remedy=f"export it without sizes: the project takes them when it runs; or {error.remedy}",
        ) from error


def _write_open(
    model: OpenExport, kind: ProjectKind, directory: pathlib.Path, inputs: Sequence[Any] | None, check: bool
) -> Project:
    """Write a model that leaves sizes open."""
    program = host_program(model.executable, model.open)
    weights = weights_of(model.executable) if program.weights else []
    if not check:
        return write_program(program, kind, directory, weights)
    sizes, given, results = model.check_data(inputs, program.open)
    return write_program(program, kind, directory, weights, given, results, sizes)


@contextlib.contextmanager
def new_folder(directory: pathlib.Path) -> Iterator[pathlib.Path]:
    """A folder to write, which appears under its name whole or not at all.

    Parameters
    ----------
    directory : Path
        It must not exist, or be empty.

    Raises
    ------
    ExportError
        It is not empty.
    ArtifactError
        It cannot be written.
    """
    _check_directory(directory)
    partial = beside(directory)
    with writing(directory, ArtifactError):
        try:
            partial.mkdir()
            yield partial
            if directory.is_dir():
                directory.rmdir()
            partial.rename(directory)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def write_program(
    program: HostProgram,
    kind: ProjectKind,
    directory: str | pathlib.Path,
    weights: Sequence[np.ndarray] = (),
    inputs: Sequence[Any] | None = None,
    outputs: Sequence[Any] = (),
    sizes: Sizes | None = None,
) -> Project:
    """Write a host program, and what it launches, as a project.

    Parameters
    ----------
    directory : str or Path
        As for `write_project`.
    weights : sequence of ndarray
        In the order of the program's.
    inputs, outputs : sequence of numpy.ndarray, optional
        What to check the project with.
    sizes : mapping of str to int, optional
        Those of inputs and outputs, of a program that leaves some open.

    Raises
    ------
    ExportError
        The folder is not empty; a dtype that no file of the project can hold.
    ArtifactError
        The folder cannot be written.
    """
    directory = pathlib.Path(directory)
    with new_folder(directory) as partial:
        _write_texts(partial, dict(kind.texts(program)), kind)
        _write_weights(partial, weights, program)
        if inputs is not None:
            _write_check(partial, program, inputs, outputs, sizes or {})
    files = {
        path.relative_to(directory).as_posix(): path.stat().st_size
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
    steps = list(program.steps())
    launches, calls, on_host = (
        sum(isinstance(step, kind) for step in steps) for kind in (KernelStep, LibraryStep, HostStep)
    )
    return Project(directory, files, launches, calls, on_host, program.open.names)


def kind_of(exe: Executable | SpecializedExecutable) -> ProjectKind:
    """The kind of project of an executable's target.

    Raises
    ------
    ExportError
        There is none.
    """
    spec = registry.get(exe.info.target.partition(":")[0])
    if spec.kind not in PROJECTS:
        raise ExportError(
            f"`{exe.info.name}` is compiled for {spec.name}, which has no projects.",
            need="an executable for " + " or ".join(kind.target for kind in PROJECTS.values()),
            remedy=f"run it as it is (uir run FILE), or compile the model with --target "
            f"{next(iter(PROJECTS.values())).target}",
        )
    return PROJECTS[spec.kind]


def weights_of(exe: Executable) -> list[np.ndarray]:
    """The constants of an executable, in the order of `kernel_graph.to_relax.graph_constants`.

    Raises
    ------
    ExportError
        It was compiled by a version that did not keep them.
    """
    machine = VirtualMachine(exe.library, [tvm.cpu()])
    try:
        function = machine[WEIGHTS]
    except (AttributeError, ValueError, RuntimeError, KeyError) as error:
        raise ExportError(
            f"`{exe.info.name}` does not give its weights away.",
            need="an executable that this version compiled",
            remedy="compile the model again",
        ) from error
    return [np.from_dlpack(_plain(tensor)) for tensor in function()]


def _plain(tensor: tvm.runtime.Tensor) -> Any:
    """A tensor whose dtype NumPy knows, of the same bytes."""
    bits = tvm.DataType(tensor.dtype).bits
    narrow = str(tensor.dtype).startswith(("bfloat", "float8")) or str(tensor.dtype) == "bool"
    return tensor._create_view(tensor.shape, dtype=f"uint{max(bits, 8)}") if narrow else tensor


def _check_directory(directory: pathlib.Path) -> None:
    if directory.is_dir() and any(directory.iterdir()):
        raise ExportError(
            f"{directory} exists and is not empty.",
            need="a folder that does not exist, or an empty one",
            remedy="name another, or delete it",
        )
    if directory.exists() and not directory.is_dir():
        raise ExportError(f"{directory} is a file.", need="the name of a folder", remedy="name another")
    if not directory.parent.is_dir():
        raise ExportError(f"There is no folder {directory.parent}.", remedy="create it first")


def _write_texts(folder: pathlib.Path, texts: Mapping[str, str], kind: ProjectKind) -> None:
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if name in kind.executables else 0o644)


def _write_weights(folder: pathlib.Path, arrays: Sequence[np.ndarray], program: HostProgram) -> None:
    if not program.weights:
        return
    (folder / "weights").mkdir()
    files = weight_files(program)
    assert len(arrays) == len(files), (len(arrays), len(files))
    for (buffer, name), array in zip(files.items(), arrays, strict=True):
        assert array.nbytes == program.buffers[buffer].nbytes, (buffer, array.shape)
        np.ascontiguousarray(array).tofile(folder / name)


def _write_check(
    folder: pathlib.Path, program: HostProgram, inputs: Sequence[Any], results: Sequence[Any], sizes: Sizes
) -> None:
    assert set(sizes) == set(program.open.names), (sizes, program.open.names)
    for below, names, arrays in (
        (CHECK_INPUTS, input_files(program), inputs),
        (CHECK_OUTPUTS, output_files(program), results),
    ):
        (folder / below).mkdir(parents=True)
        for name, array in zip(names, arrays, strict=True):
            _array(array).tofile(folder / below / name)
    if sizes:
        (folder / CHECK_SIZES).write_text("".join(f"{name}={size}\n" for name, size in sizes.items()))


def _array(value: Any) -> np.ndarray:
    """Whatever an executable takes or returns as a contiguous array."""
    if hasattr(value, "detach"):
        import torch

        value = value.detach().cpu().contiguous()
        value = value.view(torch.uint16) if value.dtype == torch.bfloat16 else value
    return np.ascontiguousarray(value)
