# SPDX-License-Identifier: Apache-2.0
"""The front door for PyTorch: modules with their own arguments and results, users' operators, `supports`."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any, NamedTuple

import pytest
import torch
import uir_tvm
from torch import Tensor, nn
from uir_tvm.errors import ArtifactError, FrontendError, ShapeError, UnsupportedOperatorError

X = torch.linspace(-2, 2, 12).reshape(3, 4)


@dataclasses.dataclass
class Found:
    """A result as a dataclass that nobody registered."""

    score: Tensor
    note: object = None


class Pair(NamedTuple):
    """A result as a named tuple."""

    left: Tensor
    right: Tensor


class Nested(nn.Module):
    """Containers in, containers out."""

    def forward(self, x: Tensor, pair: dict[str, Any], mask: Tensor | None = None, scale: int = 2) -> object:
        y = x * scale + pair["a"]
        z = y if mask is None else y * mask
        return {"z": z, "n": None, "k": 3, "l": [y + 1, (pair["b"][0],)], "f": Found(y - 1), "p": Pair(y, z)}


def nested(x: Tensor) -> dict[str, Any]:
    """The second argument of `Nested`."""
    return {"a": x, "b": [x * 3]}


def same(got: Any, want: Any) -> None:
    """Equal in structure, types and numbers."""
    assert type(got) is type(want)
    if isinstance(want, dict):
        assert list(got) == list(want)
        for key in want:
            same(got[key], want[key])
    elif isinstance(want, list | tuple):
        assert len(got) == len(want)
        for left, right in zip(got, want, strict=True):
            same(left, right)
    elif dataclasses.is_dataclass(want):
        same(vars(got), vars(want))
    elif isinstance(want, Tensor):
        torch.testing.assert_close(got, want)
    else:
        assert got == want


@pytest.fixture(scope="module")
def executable() -> Any:
    return uir_tvm.compile(Nested(), args=(X,), kwargs={"pair": nested(X), "mask": X})


def test_a_module_keeps_its_own_call(executable: Any) -> None:
    want = Nested()(X + 1, nested(X), X)
    same(executable(X + 1, nested(X), X), want)
    same(executable(mask=X, pair=nested(X), x=X + 1), want)
    same(executable.flat(X + 1, X, X * 3, X)[0], want["z"])


def test_a_saved_module_keeps_its_own_call(
    executable: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the process has not met its classes, whose modules it then imports."""
    path = executable.save(tmp_path / "nested.uir")
    monkeypatch.setattr("uir_tvm.structure.LIVE", {})
    loaded = uir_tvm.load(path)
    same(loaded(X, nested(X), X), Nested()(X, nested(X), X))
    monkeypatch.setattr("uir_tvm.structure.LIVE", {})
    monkeypatch.delattr(f"{__name__}.Found")
    with pytest.raises(ArtifactError, match="class .*Found cannot be made"):
        loaded(X, nested(X), X)


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((X,), {}, "'pair' is missing"),
        ((X, [X, X], X), {}, "'pair' is nested in another way"),
        ((X, {"a": X, "b": [X, X]}, X), {}, r"pair\['b'\]. is nested"),
        ((X, nested(X), X), {"mask": X}, "given twice"),
        ((X, nested(X), X), {"other": 1}, "no argument 'other'"),
        ((X, nested(X), X, 2, 1), {}, "5 were given"),
        ((X, nested(X), X[:2]), {}, "wrong shape"),
    ],
)
def test_another_call_is_refused(executable: Any, args: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        executable(*args, **kwargs)


def test_constants_of_the_call_are_checked() -> None:
    exe = uir_tvm.compile(Nested(), args=(X, nested(X)), kwargs={"mask": None, "scale": 5})
    same(exe(X, nested(X), scale=5), Nested()(X, nested(X), scale=5))
    with pytest.raises(ShapeError, match="another constant.*\n.*5\n.*given 4"):
        exe(X, nested(X), scale=4)
    with pytest.raises(ShapeError, match="another constant"):
        exe(X, nested(X), mask=X)


def test_a_module_without_arguments_is_refused() -> None:
    with pytest.raises(FrontendError, match="without example inputs"):
        uir_tvm.compile(nn.Linear(4, 2))


@pytest.fixture(scope="module")
def library() -> Any:
    """A user's library with two operators, one of which has ATen's name."""
    with torch.library._scoped_library("uir_test", "DEF") as found:
        found.define("add(Tensor x, Tensor y) -> Tensor")
        found.impl("add", lambda x, y: x * y, "CompositeExplicitAutograd")
        found.define("halves(Tensor x) -> (Tensor, Tensor)")
        found.impl("halves", lambda x: (x / 2, -x / 2), "CompositeExplicitAutograd")
        yield torch.ops.uir_test


class Custom(nn.Module):
    """Uses the user's library."""

    def forward(self, x: Tensor) -> Tensor:
        left, right = torch.ops.uir_test.halves(torch.ops.uir_test.add(x, x))
        return left + right * 3


def test_users_operators_by_converters(library: Any) -> None:
    from tvm import relax

    def add(node: torch.fx.Node, importer: Any) -> relax.Var:
        return importer.block_builder.emit(relax.op.multiply(*(importer.env[arg] for arg in node.args)))

    halves = uir_tvm.InTorch(lambda x: (x / 2, -x / 2))
    converters = {"uir_test::add": add, "uir_test::halves.default": halves}
    exe = uir_tvm.compile(Custom(), args=(X,), converters=converters)
    torch.testing.assert_close(exe(X), Custom()(X))
    with pytest.raises(FrontendError, match="knows no operator"):
        uir_tvm.compile(Custom(), args=(X,), converters={"uir_test::none": add})
    with pytest.raises(FrontendError, match="converter of 'uir_test::add' is a str"):
        uir_tvm.compile(Custom(), args=(X,), converters={"uir_test::add": "add"})


def test_users_operators_are_named_with_their_library(library: Any) -> None:
    with pytest.raises(UnsupportedOperatorError, match="uir_test::add.default, uir_test::halves.default"):
        uir_tvm.frontend.from_torch(Custom(), (X,))


def test_supports_says_where_everything_runs() -> None:
    found = uir_tvm.supports(nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8)), args=(X,))
    assert found and found.counts == {"igraph": 1, "library": 1}
    assert {row.operators for row in found.rows if row.place == "igraph"} == {"nn.layer_norm"}


def test_supports_says_what_is_refused() -> None:
    class Branches(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x if x.sum() > 0 else -x

    found = uir_tvm.supports(Branches(), args=(X,))
    assert not found and found.counts == {"refused": 1} and found.error is not None
    assert "torch.export cannot export" in found.rows[0].reason and found.rows[0].remedy
