# SPDX-License-Identifier: Apache-2.0
"""Operators without a converter: PyTorch computes them at run time, as nodes of the kernel graph."""

from __future__ import annotations

import importlib.util
import json
import pathlib
from typing import Any

import pytest
import torch
import uir_tvm
from click.testing import CliRunner
from torch import Tensor, nn
from uir_tvm.cli import main
from uir_tvm.errors import ArtifactError, FrontendError, UnsupportedOperatorError
from uir_tvm.frontend.torch_opaque import obstacle

X = torch.linspace(0.1, 3, 24).reshape(3, 8)


class Special(nn.Module):
    """Two unknown operators among known ones: a view as operand, two results, complex numbers between."""

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        most, where = torch.cummax(x.t(), 1)
        spectrum = torch.fft.rfft(x * 2)
        return torch.digamma(x.t() + 3) * 2, most.exp(), where, spectrum.abs(), torch.fft.irfft(spectrum * 3)


@pytest.fixture(scope="module")
def executable() -> Any:
    return uir_tvm.compile(Special(), args=(X,))


def test_results_are_pytorchs(executable: Any) -> None:
    for got, want in zip(executable(X), Special()(X), strict=True):
        assert got.dtype == want.dtype
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


def test_the_report_says_which_and_why(executable: Any) -> None:
    rows = {row["operator"]: row for row in executable.report()["opaque"]}
    assert "special function" in rows["aten::digamma.default"]["reason"]
    assert rows["aten::mul.Tensor"]["reason"] == "computes with complex numbers"
    assert len(executable.kernel_graph.opaque_ops) == sum(row["count"] for row in rows.values())
    kinds = [node["type"] for node in json.loads(executable.kernel_graph.to_json())["nodes"]]
    assert {"custom", "opaque"} == set(kinds)
    assert any("PyTorch" in border.reason for border in executable.kernel_graph.why_not)


def test_strict_refuses() -> None:
    with pytest.raises(UnsupportedOperatorError, match="digamma") as caught:
        uir_tvm.compile(Special(), args=(X,), strict=True)
    assert "converters=" in caught.value.remedy and "digamma.default" in caught.value.operators


def test_saved_models_say_that_torch_is_needed(
    executable: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = executable.save(tmp_path / "special.uir")
    torch.testing.assert_close(uir_tvm.load(path)(X)[0], Special()(X)[0])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ArtifactError, match="torch is not installed"):
        uir_tvm.load(path)


def test_an_operator_that_nobody_registered_is_named(executable: Any) -> None:
    from uir_tvm.runtime import opaque

    with pytest.raises(ArtifactError, match="does not know the operator nobody::f.default"):
        opaque.check([{"operator": "nobody::f.default"}], "model")


def test_check_counts_what_needs_torch(tmp_path: pathlib.Path) -> None:
    class Digamma(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.digamma(x) + 1

    path = str(tmp_path / "special.pt2")
    torch.export.save(torch.export.export(Digamma(), (X,)), path)
    for options, code in (([], 9), (["--allow-torch"], 0)):
        found = CliRunner().invoke(main, ["check", path, "--json", *options])
        data = json.loads(found.output)
        assert found.exit_code == code and data["counts"] == {"igraph": 1, "torch": 1}
    (row,) = [row for row in data["rows"] if row["place"] == "torch"]
    assert (
        row["operators"] == "aten::digamma.default" and "special function" in row["reason"] and row["remedy"]
    )


def test_what_pytorch_cannot_take_over_is_refused() -> None:
    """An operator that writes into its argument."""
    library = torch.library.Library("uir_test_writes", "FRAGMENT")
    library.define("double_(Tensor(a!) x) -> ()")
    library.impl("double_", lambda x: x.mul_(2) and None, "CPU")
    library.impl("double_", lambda x: None, "Meta")

    class Doubled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = x + 1
            torch.ops.uir_test_writes.double_(y)
            return y * 3

    with pytest.raises(UnsupportedOperatorError, match="auto_functionalized"):
        uir_tvm.compile(Doubled(), args=(X,))


def test_complex_results_are_refused() -> None:
    """They would be pairs of floats, which nobody expects."""

    class Spectrum(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.fft.rfft(x)

    with pytest.raises(FrontendError, match="is complex"):
        uir_tvm.compile(Spectrum(), args=(X,))


def test_obstacles_are_said() -> None:
    program = torch.export.export(Special(), (X,))
    nodes = {node.name: node for node in program.graph.nodes}
    assert not obstacle(nodes["digamma"])
    assert obstacle(nodes["x"]) == "is no operator of a library"


@pytest.mark.parametrize("target", ["uir-cuda", "uir-ascend", "uir-bang"])
def test_beside_kernels_of_a_device(target: str) -> None:
    """PyTorch computes its operators on the host, between kernels of the device."""
    executable = uir_tvm.compile(Special(), args=(X,), target=target)
    for got, want in zip(executable(X), Special()(X), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
    assert executable.report()["opaque"] and any(not k.fallback for k in executable.info.kernels)
