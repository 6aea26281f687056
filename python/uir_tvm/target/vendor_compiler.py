# SPDX-License-Identifier: Apache-2.0
"""A vendor's compiler that makes a shared object of printed text: found, called, its results kept by hash."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence

import attrs

from ..cache import Cache, out_of_room, scratch
from ..dump_files import file_name
from ..errors import ToolchainError

#: Seconds that one compilation may take.
LIMIT = 600


@attrs.frozen
class Tool:
    """The compiler: its path, and the first line of what it says of its version."""

    path: pathlib.Path
    version: str

    def __str__(self) -> str:
        return f"{self.path.name} ({self.version})"


@attrs.define(eq=False)
class VendorCompiler:
    """One vendor's compiler.

    Parameters
    ----------
    language : str
        What it compiles, for messages.
    folder : str
        Where results are kept below the cache's folder.
    names : tuple of str
        Names of the program, best first.
    roots : callable
        Folders of toolkits, best first: those that the environment names, then the usual places.
    within : tuple of str
        Folders of the program within a toolkit, best first; they may be patterns.
    searched : str
        Where it was looked for, for messages.
    need, remedy : str
        What a user needs who has none, and what to do.
    public : str
        What a toolkit needs that refuses a text.
    """

    language: str
    folder: str
    names: tuple[str, ...]
    roots: Callable[[], Sequence[pathlib.Path]]
    within: tuple[str, ...]
    searched: Callable[[], str]
    need: str
    remedy: str
    public: str
    _looked: tuple[Tool | None, tuple[str, ...]] | None = attrs.field(default=None, init=False)

    def find(self) -> Tool:
        """The first one that runs: of a toolkit, or in PATH.

        Raises
        ------
        ToolchainError
            There is none; what was found but does not run is named.
        """
        found, refused = self._look()
        if found is None:
            raise ToolchainError(
                f"No compiler for {self.language} was found.",
                where="; ".join(refused) or self.searched(),
                need=self.need,
                remedy=self.remedy,
            )
        return found

    def available(self) -> Tool | None:
        """`find`, or None where there is no compiler."""
        return self._look()[0]

    def forget(self) -> None:
        """Look again next time (the environment changed)."""
        self._looked = None

    def compile(
        self, text: str, name: str, key: Sequence[str], command: Callable[[pathlib.Path, str, str], list[str]]
    ) -> bytes:
        """Compile a text; the result is kept (`uir_tvm.cache`) by the compiler, the text and ``key``.

        Parameters
        ----------
        text : str
            The source.
        name : str
            What the source is called in messages.
        key : sequence of str
            What else the result depends on: flags, an architecture.
        command : callable
            The compiler's path, names of source and result -> the command line.

        Raises
        ------
        ToolchainError
            No compiler, or a source that does not compile.
        """
        tool, name = self.find(), file_name(name)
        cache, what = Cache(self.folder), "\0".join([str(tool), *key, name, text]).encode()
        if (kept := cache.read(what, ".so")) is not None:
            return kept
        with scratch("uir-kernel-") as place:
            (place / name).write_text(text)
            self._run(command(tool.path, name, "kernel.so"), place, name)
            code = (place / "kernel.so").read_bytes()
        cache.remember(what, code, ".so")
        return code

    def _run(self, line: list[str], folder: pathlib.Path, name: str) -> None:
        try:
            # in the folder, so that messages name the source alone
            done = subprocess.run(
                line, cwd=folder, capture_output=True, text=True, errors="replace", timeout=LIMIT, check=False
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise ToolchainError(
                f"{line[0]} does not run.", where=str(error), remedy="install the toolkit again"
            ) from error
        if done.returncode:
            if (full := out_of_room(done.stdout + done.stderr)) is not None:
                raise full
            raise ToolchainError(
                f"{pathlib.Path(line[0]).name} refuses {name}.",
                need=self.public,
                remedy="see the attribute log for all that it wrote; report the kernel",
                log=done.stdout + done.stderr,
            )

    def _candidates(self) -> Iterator[pathlib.Path]:
        for root in self.roots():
            for name in self.names:
                for folder in self.within:
                    yield from sorted(root.glob(f"{folder}/{name}"))
        for name in self.names:
            if found := shutil.which(name):
                yield pathlib.Path(found)

    def _look(self) -> tuple[Tool | None, tuple[str, ...]]:
        """The first compiler that runs, and why others before it do not."""
        if self._looked is None:
            self._looked = self._search()
        return self._looked

    def _search(self) -> tuple[Tool | None, tuple[str, ...]]:
        refused: list[str] = []
        for path in dict.fromkeys(self._candidates()):
            if not path.is_file():
                continue
            try:
                done = subprocess.run(
                    [os.fspath(path), "--version"], capture_output=True, text=True, timeout=60, check=True
                )
                return Tool(path, (done.stdout.strip() or "no version").splitlines()[0]), tuple(refused)
            except (OSError, subprocess.SubprocessError) as error:
                refused.append(f"{path}: {error}")
        return None, tuple(refused)
