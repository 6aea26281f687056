# SPDX-License-Identifier: Apache-2.0
"""Saved executables: one zip file with a manifest, the library and the texts of every stage.

manifest.json   format, versions, target, inputs, outputs, checksums
model.so        the Relax VM executable with its constants
kernels.json    hero, recipe, stage texts of every kernel
graph.json      the kernel graph without its constants (null where a single kernel was compiled)
relax.txt       the Relax function that calls the kernels and the library
state.bin       the initial values of the state that are not zeros, one after the other
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import json
import os
import pathlib
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import tvm
import tvm_ffi
from tvm.support.cc import get_cc

from .._native import REQUIRED
from ..errors import ArtifactError, last_line
from ..hardware import instructions
from ..sizes.saved_sizes import from_texts, in_texts
from ..state_spec import StateSpec
from ..target import registry
from ..whole_files import replacing
from . import opaque
from .artifact_errors import (
    another_kind,
    check_library,
    damaged,
    no_file,
    unloadable,
    unreadable,
)
from .artifact_member import Member, Source
from .executable import Executable
from .executable_state import initial_of, stored_of
from .linker import linker_for
from .model_info import KernelInfo, ModelInfo
from .quiet import without_scope_notes
from .saved_graph import SavedGraph
from .tensors import TensorSpec

#: Changes whenever a reader of the last version could not read the file.
FORMAT = 5
MANIFEST, LIBRARY, KERNELS = "manifest.json", "model.so", "kernels.json"
GRAPH, RELAX, STATE = "graph.json", "relax.txt", "state.bin"
#: The parts beside the manifest, which holds the checksum of each.
PARTS = (KERNELS, GRAPH, RELAX, STATE, LIBRARY)
#: What reading a zip raises; RuntimeError: a part is encrypted, or packed as this Python does not know.
UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, MemoryError, RuntimeError, ValueError)
#: The fields of `ModelInfo` that are parts of their own.
APART = ("kernels", "relax")


def check_destination(path: pathlib.Path) -> None:
    """Refuse a path that `save` could not write, before hours of compilation are spent.

    Raises
    ------
    ArtifactError
        There is no such folder, it cannot be written, the path is a folder, or there is no linker.
    """
    if not path.parent.is_dir():
        raise ArtifactError(
            f"There is no folder {path.parent}.", need="an existing folder", remedy="create it first"
        )
    if path.is_dir():
        raise ArtifactError(f"{path} is a folder.", need="the name of a file", remedy=f"{path / 'model.uir'}")
    if not os.access(path.parent, os.W_OK):
        raise ArtifactError(
            f"{path} cannot be written.",
            need=f"write permission in {path.parent}",
            remedy="name another folder",
        )
    compiler = get_cc()
    if compiler is None or shutil.which(compiler.split()[0]) is None:
        raise ArtifactError(
            "The executable cannot be linked.",
            need="a C++ compiler",
            limit=f"CXX is {compiler}" if compiler else "none is in PATH",
            remedy="install g++ or clang++, or set CXX",
        )


def save(exe: Executable, path: pathlib.Path) -> pathlib.Path:
    """Write an executable; the file appears whole or not at all.

    Raises
    ------
    ArtifactError
        The folder cannot be written, or no linker was found.
    """
    check_destination(path)
    manifest, parts = content(exe)
    write_zip(path, {MANIFEST: json.dumps(manifest, indent=1).encode(), **parts})
    return path


def packed(manifest: Mapping[str, Any], parts: Mapping[str, bytes]) -> bytes:
    """What `save` writes, as bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(MANIFEST, json.dumps(manifest, indent=1))
        for name, data in parts.items():
            archive.writestr(name, data)
    return file.getvalue()


def content(exe: Executable) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Manifest and parts of an executable.

    Raises
    ------
    ArtifactError
        No linker was found, or the file that it was loaded from is gone.
    """
    exe = exe.standalone
    if exe.source is not None:
        # What was loaded is linked already, and TVM cannot write it out again.
        return _read_zip(exe.source)
    graph = exe.kernel_graph.to_json() if exe.kernel_graph is not None else "null"
    target = registry.resolve(exe.info.target, exe.info.device).target
    parts = {
        KERNELS: json.dumps([_in_words(k) for k in exe.info.kernels], indent=1).encode(),
        GRAPH: graph.encode(),
        RELAX: exe.info.relax.encode(),
        STATE: stored_of(exe.info.state, exe.initial),
        LIBRARY: _linked(exe.library, linker_for(registry.host_of(target))),
    }
    manifest = {
        "format": FORMAT,
        "versions": versions(),
        "instructions": instructions.used_by(registry.host_of(target)),
        "device": _device(target),
        "info": in_texts(attrs.asdict(exe.info, filter=lambda a, _: a.name not in APART)),
        "sha256": {name: digest(data) for name, data in parts.items()},
    }
    return manifest, parts


def _in_words(kernel: KernelInfo) -> dict[str, Any]:
    return {**attrs.asdict(kernel), "texts": dict(kernel.texts), "passes": list(kernel.passes)}


def _device(target: tvm.target.Target) -> dict[str, str]:
    """What the code is for: hardware model, and architecture where it has a name for that."""
    # schedules need TVM's compiler, which a machine that only loads may lack
    from ..schedule.hardware_of import model_of_target

    hw = model_of_target(target)
    return {"model": str(hw.name), "arch": str(hw.figures.get("arch", hw.figures.get("mcpu", "")))}


def _linked(module: tvm.runtime.Module, compiler: str | None) -> bytes:
    """The module as a shared library, linked by a compiler (default: this machine's)."""
    with tempfile.TemporaryDirectory() as scratch:
        library = pathlib.Path(scratch) / LIBRARY
        try:
            with without_scope_notes():
                module.export_library(os.fspath(library), **({"cc": compiler} if compiler else {}))
        except (RuntimeError, OSError, ValueError) as error:
            raise ArtifactError(
                "The executable could not be linked.",
                need=last_line(error),
                remedy="install what is missing; linking itself needs a C++ compiler (g++ or clang++)",
            ) from error
        return library.read_bytes()


def write_zip(path: pathlib.Path, parts: Mapping[str, bytes]) -> None:
    """The file under another name beside it, then renamed: whole or not at all."""
    with (
        replacing(path, ArtifactError) as partial,
        zipfile.ZipFile(partial, "x", zipfile.ZIP_STORED) as archive,
    ):
        for name, data in parts.items():
            archive.writestr(name, data)


def load(path: str | pathlib.Path | Member) -> Executable:
    """Read a saved executable.

    Its code is unloaded when the executable and all that was taken of it are gone.

    Raises
    ------
    ArtifactError
        The file is missing, truncated or damaged, of another version of the format or of TVM, for another
        machine or instructions that this one has not; or a library, memory or room to load it is missing.
    """
    path = path if isinstance(path, Member) else pathlib.Path(path)
    manifest, parts = _read_zip(path)
    exe = _described(path, manifest, parts)
    opaque.check_torch(exe.info.graph.get("opaque", ()), exe.info.name)
    exe.library = _code(path, manifest, parts[LIBRARY])
    return exe


def look_at(path: str | pathlib.Path | Member) -> Executable:
    """Read what a saved executable says of itself; none of its code is loaded before it is to run.

    So a file can be looked at that is not trusted, or is for another machine.

    Raises
    ------
    ArtifactError
        The file is missing, truncated or damaged, or of another version of the format or of TVM.
    """
    path = path if isinstance(path, Member) else pathlib.Path(path)
    return _described(path, *_read_zip(path))


def _described(path: Source, manifest: Mapping[str, Any], parts: Mapping[str, bytes]) -> Executable:
    from .. import autoload

    autoload.register()
    try:
        kernels, graph = json.loads(parts[KERNELS]), parts[GRAPH].decode()
        model = _info(manifest["info"], kernels, parts[RELAX].decode())
        saved_graph = SavedGraph(graph) if graph != "null" else None
        initial = initial_of(model.state, parts[STATE])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise damaged(path, error) from error
    source = path.absolute()
    return Executable(
        None, model, saved_graph, source=source, load=lambda: load(source).library, initial=initial
    )


def _code(path: Source, manifest: Mapping[str, Any], library: bytes) -> tvm.runtime.Module:
    check_library(path, library)
    _check_instructions(path, manifest)
    try:
        with tempfile.TemporaryDirectory() as scratch, without_scope_notes():
            file = pathlib.Path(scratch) / LIBRARY
            file.write_bytes(library)
            # The file may go once it is mapped. By default the module would stay to the end of the process.
            return tvm_ffi.load_module(os.fspath(file), keep_module_alive=False)
    except Exception as error:  # also what TVM's C++ throws of a library that it cannot load
        raise unloadable(path, error) from error


def _info(info: Mapping[str, Any], kernels: Sequence[Mapping[str, Any]], relax_text: str) -> ModelInfo:
    def specs(key: str) -> tuple[TensorSpec, ...]:
        return tuple(TensorSpec(s["name"], tuple(from_texts(s["shape"])), s["dtype"]) for s in info[key])

    return ModelInfo(
        name=info["name"],
        target=info["target"],
        inputs=specs("inputs"),
        outputs=specs("outputs"),
        kernels=tuple(KernelInfo(**k) for k in kernels),
        graph=from_texts(info["graph"]),
        seconds=info["seconds"],
        relax=relax_text,
        device=info["device"],
        structure=info.get("structure"),
        state=tuple(StateSpec(**from_texts(each)) for each in info["state"]),
        positions=tuple(map(from_texts, info["positions"])),
    )


def _read_zip(path: Source) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Manifest and parts; versions are checked first: another version may have other parts."""
    if not path.is_file():
        raise no_file(path)
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            names = set(archive.namelist())
            if min((each.header_offset for each in archive.infolist()), default=0):
                # half of a file with code for several shapes ends with the table of contents of one of them
                raise damaged(path, "it does not begin with its first part")
            if MANIFEST not in names:
                raise another_kind(path, f"it is a zip without {MANIFEST}")
            manifest = json.loads(archive.read(MANIFEST))
            if not isinstance(manifest, dict):
                raise damaged(path, f"{MANIFEST} is no mapping")
            check_versions(path, manifest)
            if lacking := [name for name in PARTS if name not in names]:
                raise damaged(path, "it lacks " + ", ".join(lacking))
            parts = {name: archive.read(name) for name in PARTS}
    except ArtifactError:
        raise
    except UNREADABLE as error:
        raise unreadable(path, error) from error
    sums = manifest.get("sha256")
    for name, data in parts.items():
        if not isinstance(sums, dict) or digest(data) != sums.get(name):
            raise damaged(path, f"the checksum of {name} does not match")
    return manifest, parts


def check_versions(path: Source, manifest: dict[str, Any]) -> None:
    ours = {"format": FORMAT, **versions()}
    theirs = {"format": manifest.get("format"), **dict(manifest.get("versions", {}))}
    wrong = [f"{key} {theirs.get(key)}" for key in ours if theirs.get(key) != ours[key]]
    if wrong:
        raise ArtifactError(
            f"{path} was saved by another version.",
            need=", ".join(f"{k} {v}" for k, v in ours.items()),
            limit="the file has " + ", ".join(wrong),
            remedy="compile the model again with this version",
        )


def _check_instructions(path: Source, manifest: Mapping[str, Any]) -> None:
    """Refuse code that would end the process with an illegal instruction."""
    lacking = instructions.missing(manifest.get("instructions", ()))
    if lacking:
        raise ArtifactError(
            f"{path} was compiled for another processor.",
            need="the instructions " + ", ".join(manifest["instructions"]),
            limit="this machine lacks " + ", ".join(lacking),
            remedy="compile the model here, or for a hardware model of both machines (see `uir targets`)",
        )


def versions() -> dict[str, str]:
    from .. import __version__

    return {"uir_tvm": __version__, **{name: importlib.metadata.version(name) for name in REQUIRED}}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
