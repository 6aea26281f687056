# SPDX-License-Identifier: Apache-2.0
"""What compilers made is kept in folders of one user's, and used only as it was written."""

from __future__ import annotations

import logging
import os
import pathlib
import stat
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import pytest
from uir_tvm import cache as kept
from uir_tvm.cache import Cache
from uir_tvm.errors import ToolchainError
from uir_tvm.target.bang import host_model as bang
from uir_tvm.target.cuda import host_model as simt

KEY, CONTENT = b"compiler\0text", b"\x7fELF and so on" * 50
ADD = """
extern "C" __global__ void add(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1.0f;
}
"""


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """The cache's folder, not made yet; nothing of it is known in this process."""
    monkeypatch.setenv("UIR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(kept, "_PROVEN", set())
    monkeypatch.setattr(kept, "_SAID", set())
    monkeypatch.setattr(kept, "_TEMPORARY", {})
    yield tmp_path / "cache"
    kept._remove_temporary()


def mode(path: pathlib.Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def damage(path: pathlib.Path, content: bytes) -> None:
    path.write_bytes(content)
    os.utime(path, ns=(1, 1))


@pytest.mark.parametrize("mask", [0, 0o022, 0o077])
def test_folders_are_this_users_alone(folder: pathlib.Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        path = Cache("simt").keep(KEY, CONTENT, ".so")
    finally:
        os.umask(before)
    assert mode(folder) == mode(folder / "simt") == 0o700 and mode(path) == 0o600
    assert path.parent == folder / "simt" and path.read_bytes().startswith(CONTENT)


def test_what_was_kept_is_found_by_all_that_it_depends_on(folder: pathlib.Path) -> None:
    cache = Cache("simt")
    assert cache.find(KEY, ".so") is None and cache.read(KEY, ".so") is None and not folder.exists()
    path = cache.keep(KEY, CONTENT, ".so")
    assert cache.find(KEY, ".so") == path and cache.read(KEY, ".so") == CONTENT
    assert cache.find(KEY + b"1", ".so") is None and Cache("bang").find(KEY, ".so") is None


@pytest.mark.parametrize(
    "change",
    [
        lambda whole: b"",
        lambda whole: whole[:-1],
        lambda whole: whole[: len(whole) // 2],
        lambda whole: CONTENT,
        lambda whole: b"\x7fELF by another hand" + whole,
        lambda whole: whole[:3] + b"?" + whole[4:],
        lambda whole: b"evil" + kept._seal(b"another text", b"evil"),
    ],
)
@pytest.mark.parametrize("known", [True, False])
def test_what_is_not_as_it_was_written_is_as_none(folder: pathlib.Path, change: Any, known: bool) -> None:
    """Also where this process has found it right before."""
    cache = Cache("simt")
    path = cache.keep(KEY, CONTENT, ".so")
    assert not known or cache.find(KEY, ".so") == path
    damage(path, change(path.read_bytes()))
    assert cache.find(KEY, ".so") is None and cache.read(KEY, ".so") is None
    cache.keep(KEY, CONTENT, ".so")
    assert cache.find(KEY, ".so") == path and cache.read(KEY, ".so") == CONTENT


def test_folders_of_older_versions_are_closed(folder: pathlib.Path) -> None:
    """A file there that others could write is not taken, one that they could only read is."""
    cache = Cache("simt")
    path = cache.keep(KEY, CONTENT, ".so")
    path.parent.chmod(0o755)
    assert cache.find(KEY, ".so") == path and mode(path.parent) == 0o700
    path.chmod(0o666)
    os.utime(path, ns=(1, 1))
    assert cache.find(KEY, ".so") is None


def test_a_folder_of_another_user_is_not_used(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its files may be whatever that user likes, digests included."""
    caplog.set_level(logging.WARNING)
    cache = Cache("simt")
    path = cache.keep(KEY, CONTENT, ".so")
    if os.geteuid() == 0:
        os.chown(path.parent, 12345, 12345)
    else:
        user = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: user)
    assert cache.find(KEY, ".so") is None and cache.read(KEY, ".so") is None
    other = cache.keep(KEY, CONTENT, ".so")
    assert not other.is_relative_to(folder)
    assert "belongs to another user" in caplog.text and "UIR_CACHE_DIR" in caplog.text


#: Cache folder -> why nothing can be written there.
BLOCKED = {"no folder can be made": "/proc/self/none/cache", "a file": __file__}


@pytest.mark.parametrize("where", BLOCKED)
def test_a_cache_that_cannot_be_written(
    folder: pathlib.Path, where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What is needed lies in a folder of this process's alone, and is found there; it is said once."""
    caplog.set_level(logging.WARNING)
    monkeypatch.setenv("UIR_CACHE_DIR", BLOCKED[where])
    cache = Cache("simt")
    cache.remember(KEY, CONTENT, ".so")
    assert cache.read(KEY, ".so") is None
    path = cache.keep(KEY, CONTENT, ".so")
    assert cache.find(KEY, ".so") == path and cache.read(KEY, ".so") == CONTENT
    assert mode(path.parent) == mode(path.parent.parent) == 0o700
    assert len(caplog.records) == 1 and "UIR_CACHE_DIR" in caplog.text
    kept._remove_temporary()
    assert not path.parent.parent.exists()


def full(*_: Any, **__: Any) -> NoReturn:
    raise OSError(28, os.strerror(28))


@pytest.fixture
def full_cache(folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk without room for files below the cache's folder."""
    stock = kept._replace

    def replace(path: pathlib.Path, content: bytes) -> pathlib.Path:
        return full() if path.is_relative_to(folder) else stock(path, content)

    monkeypatch.setattr(kept, "_replace", replace)


def test_kernels_run_with_a_full_cache(
    full_cache: None, folder: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Compiled once in the process, for all that."""
    caplog.set_level(logging.WARNING)
    path = simt.compile(ADD)
    x, y = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    simt.launch(path, "add", [x, y, 64], grid=1, block=64).check()
    np.testing.assert_array_equal(y, x + 1)
    assert simt.compile(ADD) == path and not list(folder.rglob("*.so"))
    assert "No space left" in caplog.text


def test_no_room_at_all_is_said(full_cache: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.mkdtemp", full)
    with pytest.raises(ToolchainError, match="no place") as caught:
        Cache("simt").keep(KEY, CONTENT, ".so")
    assert "TMPDIR" in caught.value.remedy
    with pytest.raises(ToolchainError, match="no place"), kept.scratch("uir-"):
        pass
    assert kept.out_of_room("as: can't write: No space left on device\n") is not None
    assert kept.out_of_room("error: 'x' was not declared") is None


def test_damaged_kernels_and_headers_are_made_anew(folder: pathlib.Path) -> None:
    """A truncated shared object and a truncated compiled header, as a crash or a full disk leaves them."""
    path = simt.compile(ADD)
    (header,) = (folder / "simt").glob("*.gch")
    whole = path.read_bytes(), header.read_bytes()
    damage(path, whole[0][: len(whole[0]) // 2])
    damage(header, whole[1][: len(whole[1]) // 2])
    kept._PROVEN.clear()
    assert simt.compile(ADD) == path
    # no two compiled headers are the same, byte by byte
    assert path.read_bytes() == whole[0] and header.stat().st_size > 0.9 * len(whole[1])
    x, y = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    simt.launch(path, "add", [x, y, 64], grid=1, block=64).check()
    np.testing.assert_array_equal(y, x + 1)


def test_damaged_hooks_of_a_model_are_made_anew(folder: pathlib.Path) -> None:
    """The object that all kernels of MLUs hold: without it scalar code could not be linked."""
    text = "#include <bang.h>\n__mlu_entry__ void k(float *x) {{ x[0] = {}; }}\n"
    bang.compile(text.format("1.0f"))
    (hooks,) = (folder / "bang").glob("*.o")
    whole = hooks.read_bytes()
    damage(hooks, whole[:-100])
    kept._PROVEN.clear()
    path = bang.compile(text.format("2.0f"))
    assert hooks.read_bytes() == whole
    x = np.zeros(1, "float32")
    bang.launch(path, "k", [x]).check()
    assert x[0] == 2
