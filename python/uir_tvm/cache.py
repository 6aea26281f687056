# SPDX-License-Identifier: Apache-2.0
"""What compilers made, kept between processes: in folders of this user's alone, proven before it is used.

cache = Cache("simt")
path = cache.find(key, ".so") or cache.keep(key, made, ".so")

Code that is loaded because a file of its name exists is code of whoever could write there, or half of a file
after a crash.  So folders are made with mode 0700 and their owner is checked, and every file ends with the
digests of what it was made of and of what it holds (compilers and loaders read over the end of such files).
A folder that cannot be trusted, read or written is not used: what is needed then lies in a temporary one.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import logging
import os
import pathlib
import shutil
import tempfile
import threading
from collections.abc import Iterator

import attrs

from . import environment
from .errors import ToolchainError

log = logging.getLogger(__name__)

#: Stands before the two digests at the end of a file.
MAGIC = b"\nuirkept1"
#: Bytes of that end.
SEAL = len(MAGIC) + 2 * hashlib.sha256().digest_size
PRIVATE = 0o700
#: Permissions of group and others, and theirs to write.
OTHERS, OTHERS_WRITE = 0o077, 0o022


@attrs.frozen
class Cache:
    """The files of one kind.

    Parameters
    ----------
    name : str
        Of their folder below `environment.cache_dir`.
    """

    name: str

    def find(self, key: bytes, suffix: str) -> pathlib.Path | None:
        """The file that was kept for a key; None where there is none, or one that is not as it was written.

        Parameters
        ----------
        key : bytes
            All that the content depends on.
        suffix : str
            End of the file's name.
        """
        for folder in self._readable():
            path = folder / f"{_stem(key)}{suffix}"
            with contextlib.suppress(OSError):
                proof = _proof(path)
                if proof in _PROVEN or _content(path, key) is not None:
                    _PROVEN.add(proof)
                    return path
        return None

    def read(self, key: bytes, suffix: str) -> bytes | None:
        """The content that was kept for a key, None where `find` finds none."""
        for folder in self._readable():
            with contextlib.suppress(OSError):
                if (content := _content(folder / f"{_stem(key)}{suffix}", key)) is not None:
                    return content
        return None

    def used(self, key: bytes, suffix: str) -> None:
        """Let a file be the last that `trim` takes."""
        for folder in self._readable():
            with contextlib.suppress(OSError):
                os.utime(folder / f"{_stem(key)}{suffix}")

    def path(self) -> pathlib.Path:
        """Its folder; ToolchainError where the user has none."""
        try:
            return _root() / self.name
        except OSError as error:
            raise _no_room(error) from error

    def size(self) -> int:
        """Bytes of its files."""
        with contextlib.suppress(OSError):
            return sum(each.stat().st_size for each in self.path().iterdir())
        return 0

    def trim(self, limit: int) -> None:
        """Take away the files that were used least lately, until the others take at most so many bytes."""
        with contextlib.suppress(OSError), self._using_own() as folder:
            rows = [(each.stat(), each) for each in folder.iterdir()]
            found = sorted(rows, key=lambda row: row[0].st_mtime_ns)
            total = sum(state.st_size for state, _ in found)
            for state, path in found:
                if total <= limit:
                    break
                path.unlink(missing_ok=True)
                total -= state.st_size

    def keep(self, key: bytes, content: bytes, suffix: str) -> pathlib.Path:
        """Write a file, whole or not at all, where `find` finds it; at least until this process ends.

        Raises
        ------
        ToolchainError
            Neither the cache's folder nor that for temporary files can be written.
        """
        name = f"{_stem(key)}{suffix}"
        return self._write(name, content + _seal(key, content))

    def remember(self, key: bytes, content: bytes, suffix: str) -> None:
        """`keep` for later processes alone: where the cache's folder cannot be written, nothing is kept."""
        with contextlib.suppress(OSError), self._using_own() as folder:
            _replace(folder / f"{_stem(key)}{suffix}", content + _seal(key, content))

    def keep_text(self, key: bytes, text: str, suffix: str) -> pathlib.Path:
        """Write a text for a compiler or a person, without digests: a file that differs is replaced.

        Raises
        ------
        ToolchainError
            As `keep`.
        """
        name = f"{_stem(key)}{suffix}"
        for folder in self._readable():
            with contextlib.suppress(OSError):
                if (folder / name).read_bytes() == text.encode():
                    return folder / name
        return self._write(name, text.encode())

    def _write(self, name: str, content: bytes) -> pathlib.Path:
        with contextlib.suppress(OSError), self._using_own() as folder:
            return _replace(folder / name, content)
        try:
            return _replace(_temporary_folder() / self.name / name, content)
        except OSError as error:
            raise _no_room(error) from error

    @contextlib.contextmanager
    def _using_own(self) -> Iterator[pathlib.Path]:
        """The cache's folder, made where it is not; what goes wrong there is said once."""
        try:
            folder = _root() / self.name
            folder.parent.mkdir(PRIVATE, parents=True, exist_ok=True)
            folder.mkdir(PRIVATE, exist_ok=True)
            if why := _distrust(folder):
                raise PermissionError(1, why, os.fspath(folder))
            yield folder
        except OSError as error:
            _warn(f"the cache of what compilers make is not written: {error}; {REMEDY}")
            raise

    def _readable(self) -> Iterator[pathlib.Path]:
        """Folders in which files of this process may lie."""
        with contextlib.suppress(OSError):
            folder = _root() / self.name
            if why := _distrust(folder):
                _warn(f"the cache {folder} is not used: {why}; {REMEDY}")
            else:
                yield folder
        if (made := _TEMPORARY.get(os.getpid())) is not None:
            yield made / self.name


REMEDY = "set UIR_CACHE_DIR to a folder of your own with room"

_LOCK = threading.Lock()
#: Process -> its folder for what the cache cannot hold: after a fork each has one.
_TEMPORARY: dict[int, pathlib.Path] = {}
#: Files that were found to be as they were written: path, inode, size, time of the last change.
_PROVEN: set[tuple[str, int, int, int]] = set()
_SAID: set[str] = set()


@contextlib.contextmanager
def scratch(prefix: str) -> Iterator[pathlib.Path]:
    """A folder for what a compiler reads and writes, gone afterwards.

    Raises
    ------
    ToolchainError
        There is no place for temporary files.
    """
    try:
        folder = tempfile.TemporaryDirectory(prefix=prefix)
    except OSError as error:
        raise _no_room(error) from error
    with folder as name:
        yield pathlib.Path(name)


def out_of_room(log_text: str) -> ToolchainError | None:
    """The error for a compiler that failed since a disk is full, by what it wrote; else None."""
    if os.strerror(28) not in log_text:
        return None
    return ToolchainError(
        "A compiler has no room for its files.",
        need=f"room in {tempfile.gettempdir()}",
        remedy="free some, or set TMPDIR to another folder",
        log=log_text,
    )


def _no_room(error: OSError) -> ToolchainError:
    return ToolchainError(
        "There is no place for what compilers make.",
        where=str(error),
        need="a folder for temporary files that can be written, with room",
        remedy="free some room, or set TMPDIR and UIR_CACHE_DIR to other folders",
    )


def _root() -> pathlib.Path:
    try:
        return environment.cache_dir()
    except RuntimeError as error:  # a user without a home
        raise FileNotFoundError(2, str(error)) from error


def _temporary_folder() -> pathlib.Path:
    """This process's own, gone when it ends."""
    with _LOCK:
        process = os.getpid()
        if process not in _TEMPORARY:
            _TEMPORARY[process] = pathlib.Path(tempfile.mkdtemp(prefix="uir-cache-"))
            atexit.register(_remove_temporary)
        return _TEMPORARY[process]


def _remove_temporary() -> None:
    if (folder := _TEMPORARY.pop(os.getpid(), None)) is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _distrust(folder: pathlib.Path) -> str:
    """Why others may have put files there; empty where they cannot, or where there is no such folder.

    A folder of this user's that others may enter, as older versions made them, is closed to them.
    """
    if not hasattr(os, "geteuid"):
        return ""
    try:
        found = folder.stat()
    except OSError:
        return ""
    if found.st_uid == os.geteuid() and found.st_mode & OTHERS:
        with contextlib.suppress(OSError):
            folder.chmod(PRIVATE)
            found = folder.stat()
    return _others_may_write(found)


def _others_may_write(found: os.stat_result) -> str:
    if found.st_uid not in (os.geteuid(), 0):
        return f"it belongs to another user ({found.st_uid})"
    return "others may write there" if found.st_mode & OTHERS_WRITE else ""


def _stem(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()[:32]


def _seal(key: bytes, content: bytes) -> bytes:
    """The end of a file: what it was made of, and what it holds."""
    return MAGIC + hashlib.sha256(key).digest() + hashlib.sha256(content).digest()


def _content(path: pathlib.Path, key: bytes) -> bytes | None:
    """What a file holds without its end; None where the digests say that it is not what was written."""
    with path.open("rb") as file:
        why = _others_may_write(os.fstat(file.fileno())) if hasattr(os, "geteuid") else ""
        whole = file.read() if not why else b""
    content, seal = whole[:-SEAL], whole[-SEAL:]
    if seal == _seal(key, content):
        return content
    if why:
        _warn(f"{path} is not used: {why}")
    else:
        log.info("%s is made anew: it is not as it was written", path)
    return None


def _proof(path: pathlib.Path) -> tuple[str, int, int, int]:
    found = path.stat()
    return os.fspath(path), found.st_ino, found.st_size, found.st_mtime_ns


def _replace(path: pathlib.Path, content: bytes) -> pathlib.Path:
    """Under a name of its own first: another process may write the same, and a disk may be full."""
    path.parent.mkdir(PRIVATE, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
    return path


def _warn(what: str) -> None:
    """Once in a process."""
    if what not in _SAID:
        _SAID.add(what)
        log.warning("%s", what)
