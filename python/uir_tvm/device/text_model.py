# SPDX-License-Identifier: Apache-2.0
"""Compile a device's text for its host model: by g++, as it is, with headers that stand for the vendor's."""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
import shutil
import subprocess
from collections.abc import Callable

import attrs

from ..cache import Cache, out_of_room, scratch
from ..errors import EnvironmentMismatchError, ToolchainError

__all__ = ["LIMIT", "TextModel", "compiler", "library"]

#: How kernels are linked: the models' library is loaded already when they are.
#: Standard libraries are loaded with it, and linking against them takes longer than all the rest of it.
LINKED = ("-luir_device", "-nodefaultlibs", "-lgcc")
#: Ends of the names of a header and of its compiled form, as g++ looks for it.
HEADER, COMPILED_HEADER = ".h", ".h.gch"
OBJECT = ".o"
#: Seconds that one compilation may take.
LIMIT = 600


def library() -> pathlib.Path:
    """The library of all host models, which compiled kernels are linked against.

    Raises
    ------
    EnvironmentMismatchError
        It was not built.
    """
    path = pathlib.Path(__file__).parent.with_name("libuir_device.so")
    if not path.is_file():
        raise EnvironmentMismatchError(
            f"The native library {path.name} is missing in {path.parent}: "
            "build it with `pip install -e .` in the source tree."
        )
    return path


def compiler() -> str:
    """The path of g++.

    Raises
    ------
    ToolchainError
        There is none.
    """
    found = shutil.which("g++")
    if found is None:
        raise ToolchainError(
            "There is no g++, with which the host models of devices compile kernels.",
            where="PATH",
            need="GCC 11 or newer with its C++ compiler",
            remedy="install it (Debian: apt-get install g++), or run on the device",
        )
    return found


@attrs.frozen
class TextModel:
    """How a kind of device's text is compiled.

    Parameters
    ----------
    name : str
        Of the model's folder in ``src/device``, and of that in which compiled kernels are kept.
    header : str
        A header of the model that texts include.
    prelude : str
        What stands before every text, and is compiled once: reading it takes longer than most texts.
    suffix : str
        End of the name of a file that holds text.
    flags : tuple of str
        For g++.
    language : str
        What the text is, for errors.
    hooks : str
        A header whose functions every kernel's library holds, if any: they are compiled once.
    rewrite : callable, optional
        Makes of a text what g++ takes, line by line; for syntax that no header can stand for.
    """

    name: str
    header: str
    prelude: str
    suffix: str
    flags: tuple[str, ...]
    language: str
    hooks: str = ""
    rewrite: Callable[[str], str] | None = None

    def headers(self) -> pathlib.Path:
        """The folder of the model's headers: in the source tree, or beside the package in an installed wheel.

        Raises
        ------
        EnvironmentMismatchError
            It is in neither.
        """
        package = pathlib.Path(__file__).resolve().parents[1]
        source = package.parents[1] / "src" / "device" / self.name / "include"
        for folder in (source, package / f"{self.name}_include"):
            if (folder / self.header).is_file():
                return folder
        raise EnvironmentMismatchError(
            f"The headers of the host model are missing in {package}: install it again."
        )

    def compile(self, source: str, *, limit: float = LIMIT) -> pathlib.Path:
        """Compile a text; the result is kept, and found again by its hash.

        Parameters
        ----------
        source : str
            As the printer emits it.
        limit : float
            Seconds that the compiler may take.

        Returns
        -------
        pathlib.Path
            A shared object that exports the kernels; the text lies beside it.

        Raises
        ------
        ToolchainError
            There is no g++, or it refuses the text; ``log`` is what it wrote.
        EnvironmentMismatchError
            The model's library or headers are missing.
        """
        gxx, include, model = compiler(), self.headers(), library()
        surroundings = _surroundings(gxx, str(include), self.flags)
        cache, key = Cache(self.name), surroundings + source.encode()
        if (found := cache.find(key, ".so")) is not None:
            return found
        prelude = self._prelude(cache, gxx, include, surroundings, limit)
        objects = [self._hooks(cache, gxx, include, surroundings, limit)] if self.hooks else []
        text = cache.keep_text(key, self.rewrite(source) if self.rewrite else source, self.suffix)
        with scratch("uir-model-") as folder:
            built, linked = folder / "kernel.o", folder / "kernel.so"
            flags = (*self.flags, f"-I{include}", "-include", str(prelude))
            self._run([gxx, *flags, "-x", "c++", "-c", str(text), "-o", str(built)], text, limit)
            # Without the flags: a sanitizer's own library must stay out.
            joined = list(map(str, (built, *objects)))
            self._run([gxx, "-shared", *joined, "-o", str(linked), f"-L{model.parent}", *LINKED], text, limit)
            return cache.keep(key, linked.read_bytes(), ".so")

    def _prelude(
        self, cache: Cache, gxx: str, include: pathlib.Path, surroundings: bytes, limit: float
    ) -> pathlib.Path:
        """The header that stands before every text; its compiled form lies beside it, as g++ looks for it."""
        key = b"prelude" + surroundings
        compiled = cache.find(key, COMPILED_HEADER)
        if compiled is None:
            with scratch("uir-model-") as folder:
                header, made = folder / "prelude.h", folder / "prelude.gch"
                header.write_text(self._prelude_text())
                line = [gxx, *self.flags, f"-I{include}", "-x", "c++-header", str(header), "-o", str(made)]
                self._run(line, header, limit)
                compiled = cache.keep(key, made.read_bytes(), COMPILED_HEADER)
        # g++ reads it where it does not take the compiled form
        plain = compiled.with_suffix("")
        if not plain.is_file() or plain.read_text() != self._prelude_text():
            cache.keep_text(key, self._prelude_text(), HEADER)
        return plain

    def _hooks(
        self, cache: Cache, gxx: str, include: pathlib.Path, surroundings: bytes, limit: float
    ) -> pathlib.Path:
        """The object that every kernel is linked with; lines are told of texts alone."""
        key = b"hooks" + surroundings
        if (found := cache.find(key, OBJECT)) is not None:
            return found
        with scratch("uir-model-") as folder:
            text, made = folder / "hooks.cc", folder / "hooks.o"
            text.write_text(f'#include "{self.hooks}"\n')
            self._run(
                [gxx, *self.flags, "-g0", f"-I{include}", "-c", str(text), "-o", str(made)], text, limit
            )
            return cache.keep(key, made.read_bytes(), OBJECT)

    def _prelude_text(self) -> str:
        return f'#include "{self.prelude}"\n'

    def _run(self, command: list[str], text: pathlib.Path, limit: float) -> None:
        """Run the compiler; its messages come in English, so that errors are found in them."""
        environment = {**os.environ, "LC_ALL": "C"}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=limit, check=False, env=environment
            )
        except subprocess.TimeoutExpired as error:
            raise ToolchainError(
                f"g++ did not finish in {limit:.0f} seconds.",
                where=str(text),
                remedy="unroll less, or raise the limit",
            ) from error
        if done.returncode != 0:
            if (full := out_of_room(done.stderr)) is not None:
                raise full
            raise ToolchainError(
                "The text does not compile for the host model.",
                need=f"{self.language} of the constructs that the printer emits",
                remedy="see the attribute log for all that g++ wrote",
                log=done.stderr,
            )


@functools.cache
def _surroundings(compiler_path: str, headers_path: str, flags: tuple[str, ...]) -> bytes:
    """A digest of all that a compiled kernel depends on but its text."""
    digest = hashlib.sha256(repr((flags, LINKED)).encode())
    version = subprocess.run([compiler_path, "--version"], capture_output=True, timeout=LIMIT, check=False)
    digest.update(version.stdout)
    for path in sorted(pathlib.Path(headers_path).rglob("*.h")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.digest()
