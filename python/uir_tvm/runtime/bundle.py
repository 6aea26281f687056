# SPDX-License-Identifier: Apache-2.0
"""A saved model with the code of several shapes: a zip file of saved executables, and which is for what.

manifest.json   format, versions, name, target, the model's inputs with their symbols, how arguments are
                nested, and for every executable its shapes, sizes, the inputs that it takes, its checksum
0.uir, 1.uir    saved executables (`artifact`), each as if it were a file of its own
"""

from __future__ import annotations

import json
import pathlib
import zipfile
from collections.abc import Mapping
from typing import Any

import tvm

from ..errors import ArtifactError, ShapeError
from ..shared_constants import SharedConstants
from ..structure import Structure
from ..symbolic_shapes import OpenSignature
from . import artifact
from .artifact_errors import damaged, no_file, unreadable
from .artifact_member import Member
from .executable import Executable
from .specialization import Specialization
from .specialized import SpecializedExecutable

#: What a manifest of this kind has, and others have not.
KIND = "specializations"


def save(exe: SpecializedExecutable, path: pathlib.Path) -> pathlib.Path:
    """Write what was compiled so far; the file appears whole or not at all.

    Raises
    ------
    ArtifactError
        The folder cannot be written, or no linker was found.
    """
    artifact.check_destination(path)
    parts: dict[str, bytes] = {}
    rows = []
    for index, each in enumerate(exe.specializations):
        name = f"{index}.uir"
        manifest, inner = artifact.content(each.executable)
        parts[name] = artifact.packed(manifest, inner)
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
        KIND: rows,
    }
    artifact.write_zip(path, {artifact.MANIFEST: json.dumps(manifest, indent=1).encode(), **parts})
    return path


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
        exe = SpecializedExecutable(
            None,
            _no_compiler,
            signature,
            None if structure is None else json.dumps(Structure.from_json(structure).to_json()),
            manifest["name"],
            manifest["target"],
            manifest["device"],
        )
        with zipfile.ZipFile(path) as archive:
            for row in manifest[KIND]:
                data = archive.read(row["file"])
                if artifact.digest(data) != row["sha256"]:
                    raise damaged(path, f"the checksum of {row['file']} does not match")
                member = Member(path, row["file"], data)
                shapes = {name: tuple(shape) for name, shape in row["shapes"].items()}
                made = artifact.look_at(member)
                exe.add(Specialization(shapes, row["sizes"], made, tuple(row["inputs"]), "loaded"))
    except artifact.UNREADABLE as error:
        if isinstance(error, ArtifactError | ShapeError):
            raise
        raise unreadable(path, error) from error
    except (KeyError, TypeError, AttributeError) as error:
        raise damaged(path, error) from error
    return exe


def _no_compiler(module: tvm.IRModule, constants: SharedConstants) -> Executable:
    raise AssertionError("a loaded model compiles nothing")
