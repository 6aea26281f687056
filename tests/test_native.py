# SPDX-License-Identifier: Apache-2.0
"""Versions and the native library; ``import tvm`` alone."""

from __future__ import annotations

import importlib.metadata
import pathlib
import subprocess
import sys
import textwrap

import pytest
from uir_tvm import _native
from uir_tvm.errors import EnvironmentMismatchError
from uir_tvm.library.cpu import available

REAL = importlib.metadata.version


@pytest.mark.parametrize("package", list(_native.REQUIRED))
@pytest.mark.parametrize("found", ["0.1.15", None])
def test_a_wrong_version_is_said_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, package: str, found: str | None
) -> None:
    def version(name: str) -> str:
        if name != package:
            return REAL(name)
        if found is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(importlib.metadata, "version", version)
    with pytest.raises(EnvironmentMismatchError) as caught:
        _native.check_versions()
    message = str(caught.value)
    assert isinstance(caught.value, ImportError) and "\n" not in message
    assert message.startswith(f"uir_tvm needs {package} {_native.REQUIRED[package]}, but {found or 'none'}")
    assert all(f"{name}=={wanted}" in message for name, wanted in _native.REQUIRED.items())


def test_a_missing_library_is_said_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setattr(_native, "__file__", str(tmp_path / "_native.py"))
    with pytest.raises(EnvironmentMismatchError, match="is missing") as caught:
        _native.library_path()
    assert "\n" not in str(caught.value) and "pip install" in str(caught.value)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere nothing is read early")
def test_symbols_are_read_before_torch_is_loaded() -> None:
    """torch's libraries would be read too, for most of a second, when TVM raises the first error."""
    code = """
        import ctypes, pathlib, sys
        seen = []

        class Watch(ctypes.CDLL):
            def __getattr__(self, name):
                seen.append((name, "libtvm_compiler" in pathlib.Path("/proc/self/maps").read_text()))
                return super().__getattr__(name)

        class Torch:
            def find_spec(self, name, path, target=None):
                if name == "torch":
                    raise ImportError("asked after " + repr(seen))

        real, ctypes.CDLL = ctypes.CDLL, Watch
        sys.meta_path.insert(0, Torch())
        from uir_tvm import _native
        try:
            import torch
        except ImportError as error:
            assert str(error) == "asked after []", error
        _native._read_symbols()
        assert seen == [("TVMFFIBacktrace", True)], seen
        ctypes.CDLL = real
        _native.load()
        import tvm
        try:
            tvm.ir.Op.get("nothing")
        except AttributeError as error:
            frames, tb = [], error.__traceback__
            while tb is not None:
                frames.append(tb.tb_frame.f_code.co_filename)
                tb = tb.tb_next
            assert any(name.endswith("op.cc") for name in frames), frames
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_import_tvm_alone_knows_targets_and_primitives() -> None:
    """The package is not imported here: TVM finds it by its entry point."""
    # TVM would import torch, for seconds
    code = """
        import sys
        sys.modules["torch"] = None
        import tvm
        from tvm import te
        target = tvm.target.Target("uir-cpu")
        assert target.kind.name == "llvm" and "uir" in target.keys, target
        for name in ("map_to_units", "move_to_hierarchy", "group_reduce", "group_broadcast"):
            assert callable(getattr(tvm.s_tir.Schedule, name)), name
        x = te.placeholder((8, 16), name="x")
        y = te.compute((8, 16), lambda i, j: te.exp(x[i, j]), name="y")
        sch = tvm.s_tir.Schedule(te.create_prim_func([x, y]))
        sch.map_to_units("y", tile=(2, None))
        assert "uir.parallel" in sch.mod.script()
        print(tvm.get_global_func("uir.library.cpu.info")()["name"])
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    # A process that only loads compiled models must find the library that compiling found.
    assert run.stdout.split()[-1] == available().name
