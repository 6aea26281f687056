# SPDX-License-Identifier: Apache-2.0
"""Control flow of PyTorch: the same as eager, compiled as one graph where it is known, else at the call."""

from __future__ import annotations

import collections
import itertools
from typing import Any

import pytest
import torch
import uir_tvm
from torch import nn
from torch._higher_order_ops import map as torch_map
from torch._higher_order_ops import scan, while_loop
from torch._higher_order_ops.associative_scan import associative_scan
from uir_tvm.errors import UnsupportedOperatorError, ValueNeededError
from uir_tvm.frontend import from_torch
from uir_tvm.runtime import Executable, SpecializedExecutable

from tests.asked import asked

CLOSE: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-6}
Pair = collections.namedtuple("Pair", "left right")


class Function(nn.Module):
    """A function as a module, with weights that it closes over."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.function, self.linear = function, nn.Linear(3, 3)

    def forward(self, *args: Any) -> Any:
        return self.function(self, *args)


def branch(module: Function, x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda x: module.linear(x).sin(), lambda x: x.cos() * 2, (x,))


def nested(module: Function, x: torch.Tensor) -> torch.Tensor:
    """A branch within a branch, what is read later, and a branch that hands on what it is given."""
    doubled = x * 2

    def inner(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.max() > 2, lambda x: x - 1, lambda x: module.linear(x), (x,))

    first = torch.cond(x.sum() > 0, inner, lambda x: x.cos(), (x,))
    return torch.cond(first.sum() > 0, lambda x: x.clone(), lambda x: x * 3, (first,)) + doubled


def until(module: Function, x: torch.Tensor) -> Any:
    """As many rounds as the data ask for; a dictionary and a named tuple are carried."""
    return while_loop(
        lambda i, state: state["y"].left.sum() < 20,
        lambda i, state: (i + 1, {"y": Pair(state["y"].left.abs() + 1, module.linear(state["y"].right))}),
        (torch.tensor(0), {"y": Pair(x, x * 2)}),
    )


def counted(module: Function, x: torch.Tensor) -> Any:
    """A loop whose rounds follow from constants."""
    _, result = while_loop(
        lambda i, x: i < 4, lambda i, x: (i + 1, module.linear(x) + i), (torch.tensor(0), x)
    )
    return result


def branch_in_loop(module: Function, x: torch.Tensor) -> Any:
    def body(i: torch.Tensor, x: torch.Tensor) -> Any:
        return i + 1, torch.cond(x.sum() > 3, lambda x: x * 0.5, lambda x: x + 1, (x,))

    return while_loop(lambda i, x: i < 5, body, (torch.tensor(0), x))[1]


def cumulated(module: Function, x: torch.Tensor) -> Any:
    return scan(lambda c, a: (c + a.sin(), (module.linear(c) * 2, a.cos())), torch.zeros(3), x)


def mapped(module: Function, x: torch.Tensor, y: torch.Tensor) -> Any:
    return torch_map(lambda a, y: a * y + 1, x, y)


def combined(module: Function, x: torch.Tensor) -> Any:
    return associative_scan(lambda a, b: a * b + a, x, 0, combine_mode="generic")


KNOWN = {"counted": counted, "cumulated": cumulated, "combined": combined}
OPEN = {"branch": branch, "nested": nested, "until": until, "branch_in_loop": branch_in_loop}


def check(function: Any, *inputs: Any, target: str = "uir-cpu") -> Any:
    """Compile, and compare with eager."""
    module = Function(function).eval()
    executable = uir_tvm.compile(module, args=inputs, target=target)
    torch.testing.assert_close(executable(*inputs), module(*inputs), **CLOSE)
    return module, executable


@pytest.mark.parametrize("name", KNOWN)
def test_known_rounds_are_one_graph(name: str) -> None:
    """`scan`, and a loop over a counter, are compiled as a whole, also for `from_torch`."""
    x = torch.randn(5, 3)
    module, executable = check(KNOWN[name], x)
    assert isinstance(executable, Executable)
    assert from_torch(module, (x,)) is not None


def test_map() -> None:
    x, y = torch.randn(4, 3), torch.randn(3)
    _, executable = check(mapped, x, y)
    assert isinstance(executable, Executable)


@pytest.mark.parametrize("name", OPEN)
def test_what_is_computed_decides_at_the_call(name: str) -> None:
    """Whatever the data say, in turn; what was gone before compiles nothing."""
    x = torch.rand(4, 3)
    module, executable = check(OPEN[name], x)
    assert isinstance(executable, SpecializedExecutable)
    for value in (x - 5, x * 0.1, x * 9, x - 0.5):
        torch.testing.assert_close(executable(value), module(value), **CLOSE)
    count = executable.compiled
    for value in (x, x - 5, x * 9):
        torch.testing.assert_close(executable(value), module(value), **CLOSE)
    assert executable.compiled == count


def test_rounds_share_what_is_compiled() -> None:
    """A long loop has no more executables than a short one."""
    x = torch.zeros(4, 3)
    _, executable = check(until, x)
    count = executable.compiled
    executable(x - 9)
    executable(x + 1)
    assert executable.compiled == count <= 4


#: One kind of control flow on each device, as importers and runtimes are the same for all; else all on all.
ELSEWHERE = asked(
    [(branch, "uir-cuda"), (counted, "uir-ascend"), (cumulated, "uir-bang")],
    list(itertools.product((branch, counted, cumulated), ("uir-cuda", "uir-ascend", "uir-bang"))),
)


@pytest.mark.parametrize(("function", "target"), ELSEWHERE)
def test_other_targets(function: Any, target: str) -> None:
    check(function, torch.rand(2, 3), target=target)


def test_what_a_graph_alone_cannot_be() -> None:
    """`from_torch` hands on the model; weights as inputs, and symbolic sizes, are refused."""
    module, x = Function(branch).eval(), torch.rand(4, 3)
    with pytest.raises(ValueNeededError, match="cond goes by a value that is computed") as caught:
        from_torch(module, (x,))
    assert caught.value.model is not None
    with pytest.raises(UnsupportedOperatorError, match="symbolic sizes"):
        from_torch(module, (x,), dynamic_shapes=(({0: torch.export.Dim("n", min=2)},),))
    found = uir_tvm.supports(module, args=(x,))
    assert found and [row.place for row in found.rows] == ["call"]


def test_a_loop_without_end_is_refused() -> None:
    def forever(module: Function, x: torch.Tensor) -> Any:
        return while_loop(lambda i, x: i > -1, lambda i, x: (i + 1, x + 1), (torch.tensor(0), x))

    with pytest.raises(UnsupportedOperatorError, match="while_loop has .* rounds"):
        uir_tvm.compile(Function(forever), args=(torch.rand(2),))


def test_results_beside_tensors() -> None:
    """A constant, an input, and a constant tensor come back in their places."""

    def several(module: Function, x: torch.Tensor) -> Any:
        made = torch.cond(x.sum() > 0, lambda x: (x + 1, x * 2), lambda x: (x - 1, x * 3), (x,))
        return {"made": made, "number": 3, "same": x}

    module, x = Function(several).eval(), torch.rand(2, 3)
    executable = uir_tvm.compile(module, args=(x,))
    got, want = executable(x), module(x)
    assert got["number"] == 3
    torch.testing.assert_close(got["made"], want["made"], **CLOSE)
    torch.testing.assert_close(got["same"], x)


def test_torch_compile() -> None:
    """Dynamo hands on the graph with its branches."""
    module, x = Function(branch).eval(), torch.rand(4, 3)
    backend = uir_tvm.TorchBackend(target="uir-cpu", strict=True)
    with torch.no_grad():
        compiled = torch.compile(module, backend=backend)
        for value in (x, x - 3):
            torch.testing.assert_close(compiled(value), module(value), **CLOSE)
    assert not backend.eager
