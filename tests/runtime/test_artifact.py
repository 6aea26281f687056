# SPDX-License-Identifier: Apache-2.0
"""Saved executables: the round trip, and every way in which a file can be wrong."""

from __future__ import annotations

import json
import os
import pathlib
import zipfile
from collections.abc import Callable

import numpy as np
import pytest
import uir_tvm
from uir_tvm.errors import ArtifactError
from uir_tvm.runtime import artifact

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
    "no library in it": lambda saved, path: rewrite(
        saved,
        path,
        lambda parts: (
            [
                parts.update({artifact.LIBRARY: b"not ELF"}),
                manifest_with(sha256={name: artifact._digest(parts[name]) for name in artifact.PARTS})(parts),
            ]
            and None
        ),
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_file(saved: pathlib.Path, tmp_path: pathlib.Path, kind: str) -> None:
    path = tmp_path / "broken.uir"
    BROKEN[kind](saved, path)
    with pytest.raises(ArtifactError) as caught:
        uir_tvm.load(path)
    assert "broken.uir" in caught.value.what and "compile the model" in caught.value.remedy


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
    assert "No space left" in caught.value.need
    assert [p.name for p in tmp_path.iterdir()] == ["tiny.uir"] and path.read_text() == "the old file"
