# SPDX-License-Identifier: Apache-2.0
"""Saved executables: one zip file with a manifest, the library and the texts of every stage.

manifest.json   format, versions, target, inputs, outputs, checksums
model.so        the Relax VM executable with its constants
kernels.json    hero, recipe, stage texts of every kernel
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import pathlib
import tempfile
import zipfile
from typing import Any

import attrs
import tvm

from .._native import REQUIRED
from ..errors import ArtifactError
from .executable import Executable, KernelInfo, ModelInfo
from .tensors import TensorSpec

#: Changes whenever a reader of the last version could not read the file.
FORMAT = 1
MANIFEST, LIBRARY, KERNELS = "manifest.json", "model.so", "kernels.json"


def save(exe: Executable, path: pathlib.Path) -> pathlib.Path:
    """Write an executable; the file appears whole or not at all.

    Raises
    ------
    ArtifactError
        The folder cannot be written, or no linker was found.
    """
    if not path.parent.is_dir():
        raise ArtifactError(
            f"There is no folder {path.parent}.", need="an existing folder", remedy="create it first"
        )
    with tempfile.TemporaryDirectory() as scratch:
        library = pathlib.Path(scratch) / LIBRARY
        try:
            exe.library.export_library(os.fspath(library))
        except (RuntimeError, OSError, ValueError) as error:
            raise ArtifactError(
                "The executable could not be linked.",
                need=str(error).splitlines()[-1],
                remedy="install a C++ compiler (g++ or clang++)",
            ) from error
        kernels = json.dumps([attrs.asdict(k) for k in exe.info.kernels], indent=1).encode()
        manifest = {
            "format": FORMAT,
            "versions": _versions(),
            "info": attrs.asdict(exe.info, filter=lambda a, _: a.name != "kernels"),
            "sha256": {LIBRARY: _digest(library.read_bytes()), KERNELS: _digest(kernels)},
        }
        _write_zip(path, manifest, library, kernels)
    return path


def _write_zip(path: pathlib.Path, manifest: dict[str, Any], library: pathlib.Path, kernels: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        with zipfile.ZipFile(name, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(MANIFEST, json.dumps(manifest, indent=1))
            archive.writestr(KERNELS, kernels)
            archive.write(library, LIBRARY)
        os.replace(name, path)
    except OSError as error:
        raise ArtifactError(
            f"{path} cannot be written.", need=str(error), remedy="name another file"
        ) from error
    finally:
        pathlib.Path(name).unlink(missing_ok=True)


def load(path: str | pathlib.Path) -> Executable:
    """Read a saved executable.

    Raises
    ------
    ArtifactError
        The file is missing, corrupted, or of another version of the format or of TVM.
    """
    path = pathlib.Path(path)
    manifest, kernels, library = _read_zip(path)
    _check_versions(path, manifest)
    info = manifest["info"]

    def specs(key: str) -> tuple[TensorSpec, ...]:
        return tuple(TensorSpec(s["name"], tuple(s["shape"]), s["dtype"]) for s in info[key])

    model = ModelInfo(
        name=info["name"],
        target=info["target"],
        inputs=specs("inputs"),
        outputs=specs("outputs"),
        kernels=tuple(KernelInfo(**k) for k in kernels),
        graph=info["graph"],
        seconds=info["seconds"],
    )
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch) / LIBRARY
        file.write_bytes(library)
        # The file may go once it is mapped.
        module = tvm.runtime.load_module(os.fspath(file))
    return Executable(module, model)


def _read_zip(path: pathlib.Path) -> tuple[dict[str, Any], list[dict[str, Any]], bytes]:
    if not path.is_file():
        raise ArtifactError(
            f"There is no file {path}.", remedy="compile the model first: uir compile MODEL -o FILE"
        )
    try:
        with zipfile.ZipFile(path) as archive:
            manifest = json.loads(archive.read(MANIFEST))
            kernels, library = archive.read(KERNELS), archive.read(LIBRARY)
        for name, data in ((KERNELS, kernels), (LIBRARY, library)):
            if _digest(data) != manifest["sha256"][name]:
                raise ValueError(f"checksum of {name} does not match")
        return manifest, json.loads(kernels), library
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, EOFError) as error:
        raise ArtifactError(
            f"{path} is corrupted or no executable of uir_tvm.",
            need=str(error),
            remedy="compile the model again: uir compile MODEL -o FILE",
        ) from error


def _check_versions(path: pathlib.Path, manifest: dict[str, Any]) -> None:
    ours = {"format": FORMAT, **_versions()}
    theirs = {"format": manifest.get("format"), **manifest.get("versions", {})}
    wrong = [f"{key} {theirs.get(key)}" for key in ours if theirs.get(key) != ours[key]]
    if wrong:
        raise ArtifactError(
            f"{path} was saved by another version.",
            need=", ".join(f"{k} {v}" for k, v in ours.items()),
            limit="the file has " + ", ".join(wrong),
            remedy="compile the model again with this version",
        )


def _versions() -> dict[str, str]:
    from .. import __version__

    return {"uir_tvm": __version__, **{name: importlib.metadata.version(name) for name in REQUIRED}}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
