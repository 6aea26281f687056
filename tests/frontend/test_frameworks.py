# SPDX-License-Identifier: Apache-2.0
"""Frameworks that are not installed: named, with what brings them, wherever a model of theirs comes in."""

from __future__ import annotations

import importlib
import importlib.abc
import pathlib
import sys
from collections.abc import Callable

import pytest
import uir_tvm
from click.testing import CliRunner
from uir_tvm import cli, frontend
from uir_tvm.errors import FrontendError, MissingPackageError

#: Framework -> end of a file of it, and the front end's function.
FRAMEWORKS = {"torch": (".pt2", "from_torch"), "onnx": (".onnx", "from_onnx")}


class Hidden(importlib.abc.MetaPathFinder):
    """As if a package were not installed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == self.name:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


@pytest.fixture(params=FRAMEWORKS)
def absent(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A framework that cannot be imported while a test runs."""
    name = request.param
    for module in [m for m in sys.modules if m.startswith(f"uir_tvm.frontend.{name}")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.delattr(frontend, name, raising=False)
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [Hidden(name), *sys.meta_path])
    return name


def says_what_to_install(name: str, call: Callable[[], object]) -> None:
    said = f"need the package {name}, which is not installed"
    with pytest.raises(MissingPackageError, match=said) as caught:
        call()
    assert caught.value.remedy == f"pip install 'uir_tvm[{name}]'"
    assert isinstance(caught.value, FrontendError) and isinstance(caught.value, ImportError)


def test_a_framework_that_is_not_installed(absent: str, tmp_path: pathlib.Path) -> None:
    end, function = FRAMEWORKS[absent]
    path = tmp_path / f"model{end}"
    path.write_bytes(b"not looked at")
    says_what_to_install(absent, lambda: uir_tvm.compile(path))
    says_what_to_install(absent, lambda: getattr(frontend, function))
    # a file that is not there is said first: installing would not help
    with pytest.raises(FrontendError, match="There is no file"):
        uir_tvm.compile(tmp_path / f"none{end}")


@pytest.mark.parametrize("command", ["compile", "tune"])
def test_the_command_says_so_too(absent: str, command: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / f"model{FRAMEWORKS[absent][0]}"
    path.write_bytes(b"not looked at")
    more = ["--database", str(tmp_path / "tuned")] if command == "tune" else []
    result = CliRunner().invoke(cli.main, [command, str(path), *more])
    assert result.exit_code == FrontendError.exit_code, result.output
    assert f"pip install 'uir_tvm[{absent}]'" in result.stderr and "no fault of yours" not in result.stderr
    assert [found.name for found in tmp_path.iterdir() if found.suffix == ".uir"] == []


def test_one_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is installed lacks a name that the importer takes."""

    def failing(module: str, package: str) -> None:
        raise ImportError("cannot import name 'graph_signature' from 'torch.export'", name="torch.export")

    monkeypatch.setattr(importlib, "import_module", failing)
    with pytest.raises(MissingPackageError, match="need the package torch, which does not fit") as caught:
        frontend.export_torch  # noqa: B018  (importing is what fails)
    assert "graph_signature" in caught.value.limit


def test_a_fault_of_our_own_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(module: str, package: str) -> None:
        raise ModuleNotFoundError("No module named 'uir_tvm.frontend.onnx'", name="uir_tvm.frontend.onnx")

    monkeypatch.setattr(importlib, "import_module", failing)
    with pytest.raises(ModuleNotFoundError) as caught:
        frontend.from_onnx  # noqa: B018  (importing is what fails)
    assert not isinstance(caught.value, MissingPackageError)
