# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers of PyTorch and ONNX: right on every target, one call of the library where there is one."""

from __future__ import annotations

import io
from typing import Any

import onnx
import pytest
import torch
import uir_tvm
from torch import nn
from torch.export import Dim
from uir_tvm import frontend
from uir_tvm.errors import UnsupportedOperatorError
from uir_tvm.frontend.recurrence import LONGEST, expand, is_recurrence
from uir_tvm.target.registry import TARGETS

from tests.asked import ALL, asked

#: Sums of float32 in another order, a few steps long.
CLOSE: dict[str, float] = {"rtol": 1e-5, "atol": 2e-6}
LAYERS = (nn.LSTM, nn.GRU, nn.RNN)


def layer(kind: Any, inputs: int = 5, hidden: int = 7, **options: Any) -> Any:
    torch.manual_seed(3)
    return kind(inputs, hidden, **options).eval()


class Rows(nn.Module):
    """A recurrent layer without its last states."""

    def __init__(self, steps: nn.Module) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.steps(x)[0]


def calls(mod: Any) -> int:
    """How many recurrences a module's main has."""
    return sum(is_recurrence(b.value) for block in mod["main"].body.blocks for b in block.bindings)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_first": True},
        {"bias": False},
        {"num_layers": 2, "bidirectional": True},
        {"num_layers": 2, "dropout": 0.5},
    ],
    ids=lambda options: " ".join(options) or "plain",
)
def test_layers_of_torch(kind: Any, options: dict[str, Any]) -> None:
    """Every option, with the states that come out; each direction of each layer is one call."""
    module, x = layer(kind, **options), torch.randn(4, 3, 5)
    executable = uir_tvm.compile(module, args=(x,))
    torch.testing.assert_close(executable(x), module(x), **CLOSE)
    directions = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    kinds = [node.kind for node in executable.kernel_graph.library_ops]
    assert kinds.count("recurrence") == directions


@pytest.mark.parametrize("kind", LAYERS)
def test_sequences_of_any_length(kind: Any) -> None:
    """Compiled once; PyTorch's own export would fix the length, and does so again afterwards."""
    module = Rows(layer(kind, num_layers=2, bidirectional=True, batch_first=True))
    shapes = ({0: Dim("n", max=8), 1: Dim("length", max=64)},)
    executable: Any = uir_tvm.compile(module, args=(torch.randn(3, 4, 5),), dynamic_shapes=shapes)
    for batch, length in ((3, 4), (1, 1), (2, 37), (8, 2)):
        x = torch.randn(batch, length, 5)
        torch.testing.assert_close(executable(x), module(x), **CLOSE)
    (made,) = executable.report()["programs"]
    assert made["kernels_by_sizes"] == [] and made["shapes"] == 4
    with pytest.raises(torch._dynamo.exc.UserError), pytest.warns():
        torch.export.export(module, (torch.randn(3, 4, 5),), dynamic_shapes=shapes)


def test_what_is_no_recurrence_is_compiled_for_each_length() -> None:
    """Its steps are unrolled, as many as there are."""
    module, shapes = layer(nn.LSTM, proj_size=3), ({0: Dim("length", max=64)},)
    executable: Any = uir_tvm.compile(module, args=(torch.randn(4, 2, 5),), dynamic_shapes=shapes)
    for length in (4, 7):
        x = torch.randn(length, 2, 5)
        torch.testing.assert_close(executable(x)[0], module(x)[0], **CLOSE)
    assert executable.report()["compiled"] == 2 and executable.report()["imported_by_shape"]


#: One kind on all targets, the others where the library has them; all with ``UIR_TEST_ALL=1``.
PLACES = [
    (kind, target) for kind in LAYERS for target in TARGETS if kind is nn.LSTM or target == "uir-cpu" or ALL
]


@pytest.mark.parametrize(("kind", "target"), PLACES)
def test_every_target(kind: Any, target: str) -> None:
    """With states given, and two directions: steps are kernels where no library has them.

    A device is given the steps as operators, by what `test_steps_one_by_one` tests of each kind.
    """
    module, x = layer(kind, bidirectional=True), torch.randn(3, 2, 5)
    state = torch.randn(2, 2, 7)
    given = (x, (state, state * 2) if kind is nn.LSTM else state)
    executable = uir_tvm.compile(module, args=given, target=target)
    torch.testing.assert_close(executable(*given), module(*given), **CLOSE)


@pytest.mark.parametrize("dtype", asked([torch.float16], [torch.float64, torch.float16, torch.bfloat16]))
def test_other_dtypes(dtype: torch.dtype) -> None:
    """What the library does not take is steps; half types round every step."""
    module, x = layer(nn.LSTM).to(dtype), torch.randn(3, 2, 5).to(dtype)
    executable = uir_tvm.compile(module, args=(x,))
    close = {"rtol": 0, "atol": {torch.float64: 1e-12, torch.float16: 3e-3, torch.bfloat16: 2e-2}[dtype]}
    torch.testing.assert_close(executable(x), module(x), **close)


def test_relu_and_what_is_no_recurrence() -> None:
    """An RNN of ReLU is one; a projection of the states is not, and is taken apart as PyTorch does it."""
    x = torch.randn(4, 2, 5)
    for module in (layer(nn.RNN, nonlinearity="relu"), layer(nn.LSTM, proj_size=3)):
        torch.testing.assert_close(uir_tvm.compile(module, args=(x,))(x), module(x), **CLOSE)
    assert calls(frontend.from_torch(layer(nn.RNN, nonlinearity="relu"), (x,))) == 1
    assert calls(frontend.from_torch(layer(nn.LSTM, proj_size=3), (x,))) == 0


def test_weights_that_are_arguments() -> None:
    """`torch.compile` passes weights: the library packs them at the call."""
    module, x = layer(nn.LSTM), torch.randn(4, 2, 5)
    backend = uir_tvm.TorchBackend(target="uir-cpu", strict=True)
    with torch.no_grad():
        got = torch.compile(module, backend=backend)(x)
    torch.testing.assert_close(got, module(x), **CLOSE)
    assert not backend.eager


def test_saved_and_loaded(tmp_path: Any) -> None:
    """A packed weight is the same for every CPU."""
    module, x = layer(nn.GRU), torch.randn(4, 2, 5)
    uir_tvm.compile(module, args=(x,)).save(tmp_path / "model.uir")
    torch.testing.assert_close(uir_tvm.load(tmp_path / "model.uir")(x), module(x), **CLOSE)


@pytest.mark.parametrize("kind", LAYERS)
def test_layers_of_onnx(kind: Any) -> None:
    """ONNX has the gates in another order; both directions and the last states."""
    module, x = layer(kind, bidirectional=True), torch.randn(4, 3, 5)
    buffer = io.BytesIO()
    torch.onnx.export(module, (x,), buffer, dynamo=False, verbose=False)
    model = onnx.load_from_string(buffer.getvalue())
    assert calls(frontend.from_onnx(model)) == 2
    got = uir_tvm.compile(model)(x)
    rows, states = module(x)
    want = [rows, *(states if isinstance(states, tuple) else [states])]
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(torch.as_tensor(one), other, **CLOSE)


def test_steps_one_by_one() -> None:
    """`expand` leaves no call, and refuses what would be too many operators."""
    x = torch.randn(4, 3, 5)
    for kind in LAYERS:
        mod = frontend.from_torch(layer(kind), (x,))
        assert (calls(mod), calls(expand(mod))) == (1, 0)
    assert calls(expand(mod, lambda call: True)) == 1
    long = frontend.from_torch(layer(nn.RNN, 1, 1), (torch.randn(LONGEST + 1, 1, 1),))
    with pytest.raises(UnsupportedOperatorError, match="1025 steps"):
        expand(long)
