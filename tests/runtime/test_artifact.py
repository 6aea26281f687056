# SPDX-License-Identifier: Apache-2.0
"""Saved executables: the round trip, and every way in which a file can be wrong."""

from __future__ import annotations

import json
import os
import pathlib
import platform
import struct
import zipfile
from collections.abc import Callable

import numpy as np
import pytest
import uir_tvm
from uir_tvm.errors import ArtifactError
from uir_tvm.runtime import artifact, artifact_errors

from tests import tiny


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The tiny model's file."""
    return tiny.executable().save(tmp_path_factory.mktemp("saved") / "tiny.uir")


def rewrite(
    source: pathlib.Path, target: pathlib.Path, change: Callable[[dict[str, bytes]], None]
) -> pathlib.Path:
    """A copy of a saved executable with its parts changed."""
    with zipfile.ZipFile(source) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    change(parts)
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return target


def manifest_with(**fields: object) -> Callable[[dict[str, bytes]], None]:
    """A change of fields of the manifest."""

    def change(parts: dict[str, bytes]) -> None:
        parts[artifact.MANIFEST] = json.dumps(json.loads(parts[artifact.MANIFEST]) | fields).encode()

    return change


def test_round_trip(saved: pathlib.Path, capfd: pytest.CaptureFixture[str]) -> None:
    original, loaded = tiny.executable(), uir_tvm.load(saved)
    x = tiny.example()
    np.testing.assert_array_equal(loaded(x), original(x))
    assert loaded.info == original.info and loaded.report() == original.report()
    assert "call_dps_packed" in loaded.info.relax and "layer_norm" in loaded.info.relax
    assert capfd.readouterr().err == "", "TVM's notes about scopes stay off the terminal"


def test_loaded_kernel_graph_says_what_the_compiled_one_said(saved: pathlib.Path) -> None:
    compiled, loaded = tiny.executable().kernel_graph, uir_tvm.load(saved).kernel_graph
    assert loaded.to_json() == compiled.to_json() and loaded.summary() == compiled.summary()
    assert len(loaded.library_ops) == 1
    assert [node["kernel"] for node in loaded.custom_ops] == list(compiled.kernels)
    assert list(loaded.inputs) == ["x"] and loaded.tensors["x"]["shape"] == [tiny.ROWS, tiny.WIDTH]
    assert len(loaded.outputs) == 1 and len(loaded.nodes) == 2
    assert len(loaded.why_not) == len(compiled.why_not)


def test_a_loaded_executable_saves_again(saved: pathlib.Path, tmp_path: pathlib.Path) -> None:
    again = uir_tvm.load(uir_tvm.load(saved).save(tmp_path / "again.uir"))
    x = tiny.example()
    np.testing.assert_array_equal(again(x), tiny.executable()(x))


def test_the_file_may_go_once_loaded(saved: pathlib.Path, tmp_path: pathlib.Path) -> None:
    copy = tmp_path / "copy.uir"
    copy.write_bytes(saved.read_bytes())
    loaded = uir_tvm.load(copy)
    copy.unlink()
    assert loaded(tiny.example()).shape == (tiny.ROWS, tiny.WIDTH)


def mapped() -> int:
    """Libraries of models that are mapped into this process."""
    maps = pathlib.Path("/proc/self/maps").read_text().splitlines()
    return len({line.split()[4] for line in maps if f"/{artifact.LIBRARY}" in line})


def test_code_goes_with_the_executable(saved: pathlib.Path) -> None:
    """A server that loads one model after the other; results outlive their model."""
    before, x = mapped(), tiny.example()
    results = []
    for _ in range(3):
        loaded = uir_tvm.load(saved)
        results.append(loaded(x))
        assert mapped() == before + 1
        del loaded
        assert mapped() == before
    for result in results:
        np.testing.assert_array_equal(result, tiny.executable()(x))


def test_a_file_is_looked_at_without_its_code(saved: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one for another processor; the code comes when it is to run."""
    with monkeypatch.context() as patched:
        patched.setattr(artifact, "_code", lambda *_: pytest.fail("its code is loaded"))
        looked, compiled = artifact.look_at(saved), tiny.executable()
        assert looked.info == compiled.info and looked.report() == compiled.report()
    assert looked.report(explain=True).keys() == compiled.report(explain=True).keys()
    np.testing.assert_array_equal(looked(tiny.example()), compiled(tiny.example()))


def test_permissions_follow_the_umask(saved: pathlib.Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    assert saved.stat().st_mode & 0o777 == 0o666 & ~mask


BROKEN: dict[str, Callable[[pathlib.Path, pathlib.Path], pathlib.Path | None]] = {
    "missing": lambda saved, path: None,
    "empty": lambda saved, path: path.write_bytes(b"") and None,
    "no zip": lambda saved, path: path.write_bytes(b"nothing of ours") and None,
    "truncated": lambda saved, path: path.write_bytes(saved.read_bytes()[:-1000]) and None,
    "half": lambda saved, path: path.write_bytes(saved.read_bytes()[: saved.stat().st_size // 2]) and None,
    "part missing": lambda saved, path: rewrite(
        saved, path, lambda parts: parts.pop(artifact.LIBRARY) and None
    ),
    "library changed": lambda saved, path: rewrite(
        saved, path, lambda parts: parts.update({artifact.LIBRARY: parts[artifact.LIBRARY][:-1] + b"!"})
    ),
    "texts changed": lambda saved, path: rewrite(
        saved, path, lambda parts: parts.update({artifact.RELAX: b"other"})
    ),
    "manifest no JSON": lambda saved, path: rewrite(
        saved, path, lambda parts: parts.update({artifact.MANIFEST: b"{"})
    ),
    "manifest a list": lambda saved, path: rewrite(
        saved, path, lambda parts: parts.update({artifact.MANIFEST: b"[]"})
    ),
    "manifest without info": lambda saved, path: rewrite(saved, path, manifest_with(info={})),
    "other checksums": lambda saved, path: rewrite(saved, path, manifest_with(sha256={})),
    "no library in it": lambda saved, path: rewrite(saved, path, with_library(b"not ELF")),
}


def with_library(library: bytes) -> Callable[[dict[str, bytes]], None]:
    """A change of the library, with its checksum."""

    def change(parts: dict[str, bytes]) -> None:
        parts[artifact.LIBRARY] = library
        manifest_with(sha256={name: artifact.digest(parts[name]) for name in artifact.PARTS})(parts)

    return change


def of_machine(number: int) -> Callable[[dict[str, bytes]], None]:
    """The library says that it is for another machine."""

    def change(parts: dict[str, bytes]) -> None:
        library = bytearray(parts[artifact.LIBRARY])
        struct.pack_into("<H", library, artifact_errors.MACHINE_AT, number)
        with_library(bytes(library))(parts)

    return change


#: Of another machine than this.
OTHER = 62 if platform.machine() == "aarch64" else 183

BROKEN |= {
    "another zip": lambda saved, path: rewrite(
        saved, path, lambda parts: parts.pop(artifact.MANIFEST) and None
    ),
    "another machine": lambda saved, path: rewrite(saved, path, of_machine(OTHER)),
    "half a library": lambda saved, path: rewrite(
        saved, path, lambda parts: with_library(parts[artifact.LIBRARY][:3000])(parts)
    ),
}

#: What is wrong with a file -> what is said of it: each by its own name.
SAID = {
    "missing": "There is no file",
    "empty": "is empty",
    "no zip": "is no executable of uir_tvm",
    "another zip": "is no executable of uir_tvm",
    "truncated": "is truncated",
    "half": "is truncated",
    "part missing": "is damaged",
    "library changed": "is damaged",
    "texts changed": "is damaged",
    "manifest no JSON": "is damaged",
    "manifest a list": "is damaged",
    "manifest without info": "is damaged",
    "other checksums": "is damaged",
    "no library in it": "is damaged",
    "another machine": "another kind of machine",
    "half a library": "is damaged",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_file(saved: pathlib.Path, tmp_path: pathlib.Path, kind: str) -> None:
    path = tmp_path / "broken.uir"
    BROKEN[kind](saved, path)
    with pytest.raises(ArtifactError) as caught:
        uir_tvm.load(path)
    assert "broken.uir" in caught.value.what and "compile the model" in caught.value.remedy
    assert SAID[kind] in caught.value.what


#: What a loader says -> words of what the user reads.
LOADER = {
    "libdnnl.so.3: cannot open shared object file: No such file or directory": ("a library", "libdnnl.so.3"),
    "/lib/libc.so.6: version `GLIBC_2.38' not found (required by model.so)": ("newer system", "GLIBC_2.38"),
    "model.so: undefined symbol: TVMFFINew": ("no library of this process", "TVMFFINew"),
    "Function ffi.Module.load_from_bytes.cuda not found": ("of a kind", "TVM's runtime for cuda"),
    "model.so: cannot map zero-fill pages: Cannot allocate memory": ("memory", "more free memory"),
    "model.so: failed to map segment from shared object": ("temporary files", "code may run"),
    "model.so: failed to map segment from shared object: Operation not permitted": ("temporary", "may run"),
    "something else": ("does not load", "what the model was compiled with"),
}


@pytest.mark.parametrize("said", LOADER)
def test_what_a_loader_says_is_told_apart(
    saved: pathlib.Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError(f"Failed to load\n{said}")

    monkeypatch.setattr(artifact.tvm_ffi, "load_module", refuse)
    with pytest.raises(ArtifactError) as caught:
        uir_tvm.load(saved)
    what, need = LOADER[said]
    assert what in caught.value.what and need in caught.value.need and caught.value.remedy
    assert said == caught.value.limit


def test_no_room_and_no_memory_are_not_the_files_fault(
    saved: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patched:
        patched.setattr("tempfile.TemporaryDirectory", full)
        with pytest.raises(ArtifactError, match="cannot be unpacked") as caught:
            uir_tvm.load(saved)
    assert "TMPDIR" in caught.value.remedy

    def exhausted(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(zipfile.ZipFile, "read", exhausted)
    with pytest.raises(ArtifactError, match="memory") as caught:
        uir_tvm.load(saved)
    assert "compile" not in caught.value.remedy


def test_a_file_that_may_not_be_read(saved: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, os.strerror(13), str(saved))

    monkeypatch.setattr(zipfile, "ZipFile", refuse)
    with pytest.raises(ArtifactError, match="cannot be read") as caught:
        uir_tvm.load(saved)
    assert "Permission denied" in caught.value.limit and "permissions" in caught.value.remedy
    with pytest.raises(ArtifactError, match="is a folder"):
        uir_tvm.load(saved.parent)


@pytest.mark.parametrize(
    "fields",
    [{"format": artifact.FORMAT + 1}, {"versions": {}}, {"versions": {"uir_tvm": "9.9", "apache-tvm": "1"}}],
)
def test_another_version(saved: pathlib.Path, tmp_path: pathlib.Path, fields: dict[str, object]) -> None:
    """Known by the manifest alone: another version may have other parts."""
    with pytest.raises(ArtifactError, match="another version") as caught:
        uir_tvm.load(rewrite(saved, tmp_path / "old.uir", manifest_with(**fields)))
    assert uir_tvm.__version__ in caught.value.need and caught.value.limit.startswith("the file has ")


def test_instructions_that_this_machine_lacks(saved: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Loading it would end the process at the first such instruction."""
    path = rewrite(saved, tmp_path / "wide.uir", manifest_with(instructions=["avx2", "avx1024"]))
    with pytest.raises(ArtifactError, match="another processor") as caught:
        uir_tvm.load(path)
    assert artifact.look_at(path).info == tiny.executable().info
    assert "avx1024" in caught.value.limit and "uir targets" in caught.value.remedy


def test_no_folder_to_write_in(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ArtifactError, match="no folder"):
        tiny.executable().save(tmp_path / "absent" / "tiny.uir")
    with pytest.raises(ArtifactError, match="is a folder"):
        tiny.executable().save(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_compiler(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nowhere/c++")
    with pytest.raises(ArtifactError, match="cannot be linked") as caught:
        tiny.executable().save(tmp_path / "tiny.uir")
    assert "g++" in caught.value.remedy and "/nowhere/c++" in caught.value.limit
    assert list(tmp_path.iterdir()) == []


def test_compiler_that_fails(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/bin/false")
    with pytest.raises(ArtifactError, match="could not be linked"):
        tiny.executable().save(tmp_path / "tiny.uir")
    assert list(tmp_path.iterdir()) == []


def test_disk_full_leaves_the_old_file(
    saved: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tiny.uir"
    path.write_text("the old file")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(ArtifactError, match="cannot be written") as caught:
        uir_tvm.load(saved).save(path)
    assert "No space left" in caught.value.limit
    assert [p.name for p in tmp_path.iterdir()] == ["tiny.uir"] and path.read_text() == "the old file"
