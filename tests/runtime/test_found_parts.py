# SPDX-License-Identifier: Apache-2.0
"""Parts of tensors between places that the model finds: nothing is decided by what stands for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import uir_tvm
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn
from uir_tvm.errors import SizeError

ROWS, WIDTH = 6, 3


class Parts(nn.Module):
    """What is computed of a tensor and of how many rows a mask keeps."""

    def __init__(self, part: Callable[[Tensor, Any], Any]) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Tensor, mask: Tensor) -> Any:
        n = mask.sum().item()
        torch._check(n >= 0)
        torch._check(n <= ROWS)
        return self.part(x, n)


class Kept(Parts):
    def forward(self, x: Tensor, mask: Tensor) -> Any:
        return self.part(x[mask], None)


def _given(kept: int) -> tuple[Tensor, Tensor]:
    torch.manual_seed(kept)
    return torch.randn(ROWS, WIDTH), torch.arange(ROWS) < kept


def _split(x: Tensor, n: Any) -> tuple[Tensor, Tensor]:
    first, second = torch.split(x, [n, ROWS - n])
    return first * 2, second + 1


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(Parts(lambda x, n: (x[n:] * 2, x[:n].sum(0))), id="both"),
        pytest.param(Parts(lambda x, n: x.narrow(0, n, ROWS - n) * 2), id="narrow"),
        pytest.param(Parts(_split), id="split"),
        pytest.param(Parts(lambda x, n: x[: ROWS - n] * 2), id="up to the rest"),
        pytest.param(Kept(lambda y, n: (y[:2], y[1:], y[-3:])), id="of what is found"),
    ],
)
def test_whatever_is_found_one_program_serves_it(model: nn.Module) -> None:
    """Where the first row of a part is a found one, or its last: all, some, and none."""
    exe = uir_tvm.compile(model, args=_given(4))
    for kept in (3, 0, ROWS, 1):
        found, wanted = (
            each if isinstance(each, tuple) else (each,)
            for each in (exe(*_given(kept)), model(*_given(kept)))
        )
        for got, want in zip(found, wanted, strict=True):
            torch.testing.assert_close(got, want)
    (program,) = exe.report()["programs"]
    assert exe.compiled == 1 and program["conditions"] == []


@pytest.mark.parametrize(
    ("choose", "where"),
    [
        (lambda y, _: y[-1], "select.int of 1 element along axis 0"),
        (lambda y, _: y.median(0).values, "median.dim along axis 0"),
    ],
    ids=["last", "median"],
)
def test_one_of_what_is_found(choose: Callable[[Tensor, Any], Tensor], where: str) -> None:
    """By its place from the end, or at a place that is computed; of nothing as other choices are refused."""
    model = Kept(choose)
    exe = uir_tvm.compile(model, args=_given(4))
    for kept in (3, 1, ROWS):
        torch.testing.assert_close(exe(*_given(kept)), model(*_given(kept)))
    with pytest.raises(SizeError, match="finds u0 = 0 while it runs") as caught:
        exe(*_given(0))
    assert caught.value.need == "u0 >= 1" and where in caught.value.where
    assert exe.compiled == 1


@pytest.mark.parametrize(("start", "end"), [("n", "rows"), ("zero", "n"), ("rest", "rows")])
def test_slices_of_onnx(start: str, end: str) -> None:
    """Slice from, and up to, how many elements NonZero finds, and from as far before the end."""
    nodes = [
        helper.make_node("NonZero", ["mask"], ["places"]),
        helper.make_node("Shape", ["places"], ["n"], start=1, end=2),
        helper.make_node("Sub", ["rows", "n"], ["rest"]),
        helper.make_node("Slice", ["x", start, end], ["part"]),
        helper.make_node("Neg", ["part"], ["y"]),
    ]
    known = {name: numpy_helper.from_array(np.array([n]), name) for name, n in (("rows", ROWS), ("zero", 0))}
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, WIDTH]),
        helper.make_tensor_value_info("mask", TensorProto.BOOL, [ROWS]),
    ]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["some", WIDTH])
    graph = helper.make_graph(nodes, "parts", inputs, [result], list(known.values()))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    exe, x = uir_tvm.compile(model), np.random.default_rng(3).random((ROWS, WIDTH), np.float32)
    for kept in (3, 0, ROWS):
        ends = {"n": kept, "rows": ROWS, "zero": 0, "rest": ROWS - kept}
        np.testing.assert_array_equal(exe(x, np.arange(ROWS) < kept), -x[ends[start] : ends[end]])
    (program,) = exe.report()["programs"]
    assert exe.compiled == 1 and program["conditions"] == []
