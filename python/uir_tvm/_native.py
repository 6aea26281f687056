# SPDX-License-Identifier: Apache-2.0
"""Load TVM and the native library, and say in one sentence when they do not fit together."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import importlib.util
import os
import pathlib
import sys
from collections.abc import Iterator

from . import garbage
from .errors import NATIVE, EnvironmentMismatchError

#: The only pair known to work: with tvm-ffi 0.1.15 TVM's save_json crashes, 0.1.13 does not load.
REQUIRED = {"apache-tvm": "0.27.0.post1", "apache-tvm-ffi": "0.1.14.post1"}

#: Errors of Python that keep their class on their way through TVM's C++, as those of `NATIVE` do: without,
#: Ctrl-C within a pass comes out as a RuntimeError without a word.
HANDED_ON = (KeyboardInterrupt, MemoryError, RecursionError)


def check_versions() -> None:
    """Raise `EnvironmentMismatchError` unless the installed TVM and tvm-ffi are the required pair."""
    for package, wanted in REQUIRED.items():
        try:
            found = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found = "none"
        if found != wanted:
            pins = " ".join(f"{name}=={version}" for name, version in REQUIRED.items())
            raise EnvironmentMismatchError(
                f"uir_tvm needs {package} {wanted}, but {found} is installed: run `pip install {pins}`."
            )


def library_path() -> pathlib.Path:
    """Where libuir_tvm.so lies: beside this file once installed.

    Raises
    ------
    EnvironmentMismatchError
        The library was not built.
    """
    path = pathlib.Path(__file__).with_name("libuir_tvm.so")
    if not path.is_file():
        raise EnvironmentMismatchError(
            f"The native library {path.name} is missing beside {path.parent}: "
            "build it with `pip install -e .` in the source tree."
        )
    return path


def runtime_only() -> bool:
    """Whether TVM came without its compiler (``TVM_USE_RUNTIME_LIB=1``), to run compiled models alone."""
    from tvm import base

    return bool(base._RUNTIME_ONLY)


_loaded = False


def load(*, torch: bool = True) -> None:
    """Check the versions, then load TVM and the native library (once per process).

    ``import tvm`` may itself call this, through the autoload entry point.

    Parameters
    ----------
    torch : bool
        Whether TVM may import torch, which it does wherever torch is installed, and which takes longer than
        all else.  Processes of our own that import no program of torch go without: TVM then knows neither
        torch's dtypes nor its streams, and torch can still be imported afterwards.
    """
    global _loaded
    if _loaded:
        return
    check_versions()
    _read_symbols()
    with garbage.unsearched() if torch else _quickly():
        import tvm  # noqa: F401  (its libraries must be loaded first)
        import tvm_ffi

    if _loaded:
        return
    _loaded = True
    try:
        tvm_ffi.load_module(os.fspath(library_path()))
    except (OSError, RuntimeError) as error:
        raise EnvironmentMismatchError(
            f"The native library does not load with this TVM; rebuild it with `pip install -e .` ({error})."
        ) from error
    for error_class in (*NATIVE, *HANDED_ON):
        tvm_ffi.register_error(error_class.__name__, error_class)


def _read_symbols() -> None:
    """Let tvm-ffi read now the symbols that it names the frames of errors by.

    It reads those of all libraries of the process when the first error is raised, which happens while TVM is
    imported: with torch's libraries it takes 0.9 s, with TVM's alone 0.3 s.  Frames of libraries that are
    loaded later have no names.
    """
    if not sys.platform.startswith("linux") or "tvm_ffi" in sys.modules or "torch" in sys.modules:
        return
    names = ["tvm_ffi", "tvm_runtime", "tvm_compiler"]
    if os.environ.get("TVM_USE_RUNTIME_LIB") == "1":
        names.remove("tvm_compiler")
    found = [importlib.util.find_spec(package) for package in ("tvm_ffi", "tvm")]
    places = [place for spec in found if spec for place in spec.submodule_search_locations or ()]
    every = [pathlib.Path(place, "lib", f"lib{name}.so") for name in names for place in places]
    paths = [path for path in every if path.is_file()]
    if len(paths) != len(names) or "TVM_LIBRARY_PATH" in os.environ:
        return  # TVM loads them from elsewhere
    with contextlib.suppress(OSError):
        # not for others to link with: `import tvm` loads them so, behind torch's
        ffi, *_ = [ctypes.CDLL(os.fspath(path)) for path in paths]
        ffi.TVMFFIBacktrace.restype = ctypes.c_void_p
        ffi.TVMFFIBacktrace(None, 0, None, 1)


@contextlib.contextmanager
def _quickly() -> Iterator[None]:
    """Import without torch, unless it is there already, and without looking for garbage: there is none."""
    hidden = "torch" not in sys.modules
    if hidden:
        sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        with garbage.unsearched():
            yield
    finally:
        if hidden:
            del sys.modules["torch"]
        garbage.spare()
