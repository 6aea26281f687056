# SPDX-License-Identifier: Apache-2.0
"""A saved model with code for all sizes, or several shapes: saved executables, and which is for what.

manifest.json   format, versions, name, target, the model's inputs with their symbols, what it asks of its
                sizes, how arguments are nested; for every executable of a shape its shapes, sizes, the
                inputs that it takes, its checksum; for every one of all sizes its conditions and the same
0.uir, 1.uir    saved executables (`artifact`), each as if it were a file of its own
all0.uir        one for all sizes that its conditions admit
all0.json       its kernels that are compiled for the sizes of a call, as functions with open sizes
"""

from __future__ import annotations

import json
import logging
import pathlib
import zipfile
from collections.abc import Mapping
from typing import Any

import tvm

from ..errors import ArtifactError, FrontendError, OpenSizeError, ShapeError
from ..shared_constants import SharedConstants
from ..sizes.symbolic_shapes import OpenSignature
from ..structure import Structure
from . import artifact
from .artifact_errors import damaged, no_file, unreadable
from .artifact_member import Member
from .executable import Executable
from .sized_executable import SizedExecutable
from .specialization import Specialization
from .specialized import SpecializedExecutable
from .stored_programs import StoredProgram, StoredPrograms, loaded_program, texts
from .symbolic_programs import SizedProgram

log = logging.getLogger(__name__)

#: What a manifest of this kind has, and others have not.
KIND = "specializations"
#: What of it serves all sizes.
WHOLE = "all sizes"


def save(exe: SpecializedExecutable, path: pathlib.Path) -> pathlib.Path:
    """Write what was compiled so far; the file appears whole or not at all.

    Raises
    ------
    ArtifactError
        The folder cannot be written, or no linker was found.
    """
    artifact.check_destination(path)
    parts: dict[str, bytes] = {}
    programs = _programs(exe, parts)
    rows = []
    for index, each in enumerate(exe.specializations):
        if programs and isinstance(each.executable, SizedExecutable):
            continue  # the program serves it
        name = f"{index}.uir"
        parts[name] = artifact.packed(*artifact.content(each.executable))
        rows.append(
            {
                "file": name,
                "shapes": {key: list(shape) for key, shape in each.shapes.items()},
                "sizes": dict(each.sizes),
                "inputs": list(each.inputs),
                "sha256": artifact.digest(parts[name]),
            }
        )
    manifest = {
        "format": artifact.FORMAT,
        "versions": artifact.versions(),
        "name": exe.info.name,
        "target": exe.info.target,
        "device": exe.info.device,
        "signature": exe.signature.to_json(),
        "structure": None if exe.structure is None else exe.structure.to_json(),
        "asserted": list(exe.asserted()) if programs else [],
        WHOLE: programs,
        KIND: rows,
    }
    artifact.write_zip(path, {artifact.MANIFEST: json.dumps(manifest, indent=1).encode(), **parts})
    return path


def _programs(exe: SpecializedExecutable, parts: dict[str, bytes]) -> list[dict[str, Any]]:
    """Rows for what serves all sizes, whose files are added to the parts."""
    rows: list[dict[str, Any]] = []
    made: dict[str, bytes] = {}
    try:
        exe.asserted()
        for index, each in enumerate(exe.wholes):
            kernels = [kernel.to_json() for kernel in each.stored_kernels()]
            files = {
                f"all{index}.uir": artifact.packed(*artifact.content(each.executable)),
                f"all{index}.json": json.dumps(kernels).encode(),
            }
            sums = {name: artifact.digest(data) for name, data in files.items()}
            rows.append({**each.described(), "files": list(files), "sha256": sums})
            made |= files
    except (ArtifactError, OpenSizeError) as error:
        if not exe.specializations:
            raise
        log.warning("%s is saved for the shapes that were compiled alone: %s", exe.info.name, error.what)
        return []
    parts |= made
    return rows


def load(path: str | pathlib.Path) -> Executable | SpecializedExecutable:
    """Read a saved model.

    Its code is unloaded when the executable and all that was taken of it are gone. The code of a model with
    several shapes is loaded shape by shape, when it is first called with one.

    Raises
    ------
    ArtifactError
        The file is missing, truncated or damaged, of another version of the format or of TVM, for another
        machine or instructions that this one has not; or a library, memory or room to load it is missing.
    """
    path = pathlib.Path(path)
    manifest = _manifest(path)
    return artifact.load(path) if manifest is None else _loaded(path, manifest)


def look_at(path: str | pathlib.Path) -> Executable | SpecializedExecutable:
    """Read what a saved model says of itself; none of its code is loaded before it is to run.

    Raises
    ------
    ArtifactError
        The file is missing, truncated or damaged, or of another version of the format or of TVM.
    """
    path = pathlib.Path(path)
    manifest = _manifest(path)
    return artifact.look_at(path) if manifest is None else _loaded(path, manifest)


def _manifest(path: pathlib.Path) -> dict[str, Any] | None:
    """The manifest of a model with several shapes; None for any other file."""
    if not path.is_file():
        raise no_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(archive.read(artifact.MANIFEST))
    except (*artifact.UNREADABLE, KeyError):
        return None  # the reader of executables says what is wrong with it
    if not isinstance(manifest, dict) or KIND not in manifest:
        return None
    artifact.check_versions(path, manifest)
    return manifest


def _loaded(path: pathlib.Path, manifest: Mapping[str, Any]) -> SpecializedExecutable:
    try:
        signature = OpenSignature.from_json(manifest["signature"])
        structure = manifest["structure"]
        symbols = signature.symbols
        with zipfile.ZipFile(path) as archive:
            programs = [_program(path, archive, row) for row in manifest[WHOLE]]
            exe = SpecializedExecutable(
                None,
                _sized,
                signature,
                None if structure is None else json.dumps(Structure.from_json(structure).to_json()),
                manifest["name"],
                manifest["target"],
                manifest["device"],
                programs=StoredPrograms(signature, texts(manifest["asserted"], symbols), programs),
            )
            for row in manifest[KIND]:
                made = artifact.look_at(_member(path, archive, row["file"], row["sha256"]))
                shapes = {name: tuple(shape) for name, shape in row["shapes"].items()}
                exe.add(Specialization(shapes, row["sizes"], made, tuple(row["inputs"]), "loaded"))
    except artifact.UNREADABLE as error:
        if isinstance(error, ArtifactError | ShapeError):
            raise
        raise unreadable(path, error) from error
    except (KeyError, TypeError, AttributeError, FrontendError, RecursionError) as error:
        raise damaged(path, error) from error
    return exe


def _member(path: pathlib.Path, archive: zipfile.ZipFile, name: str, digest: str) -> Member:
    """A part of the file, whose checksum is right."""
    data = archive.read(name)
    if artifact.digest(data) != digest:
        raise damaged(path, f"the checksum of {name} does not match")
    return Member(path, name, data)


def _program(path: pathlib.Path, archive: zipfile.ZipFile, row: Mapping[str, Any]) -> StoredProgram:
    """What serves all sizes that a row's conditions admit."""
    code, functions = (_member(path, archive, name, row["sha256"][name]) for name in row["files"])
    return loaded_program(row, json.loads(functions.data), artifact.look_at(code))


def _sized(module: tvm.IRModule | SizedProgram, constants: SharedConstants) -> Executable:
    """What a loaded model has for sizes: it compiles nothing."""
    assert isinstance(module, SizedProgram), "a loaded model compiles nothing"
    made: SizedExecutable = module.program.at(module.sizes)
    return made.standalone if module.alone else made
