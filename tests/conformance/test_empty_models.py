# SPDX-License-Identifier: Apache-2.0
"""Models with a batch of 0: empty in, empty out, or an error that names what has no meaning."""

from __future__ import annotations

import functools
from typing import Any

import attrs
import numpy as np
import onnx
import pytest
import torch
import uir_tvm
from torch.export import Dim
from uir_tvm.errors import ShapeError
from uir_tvm.target.registry import TARGETS

from tests.models.open_models import OPEN_MODELS, OpenModel, to_onnx

#: Models whose operators all have a meaning, with the sizes of a call without a batch.
EMPTY = {"vit": (0,), "convolutions": (0, 12, 16), "steps": (0,)}
#: Those of PyTorch's that ask for a number in a reshape (``view(0, 5, -1, 16)``), with the operators' names.
REFUSED = {"minilm": (0, 5), "gpt2": (0,)}
ROUTES = ("static torch", "open torch", "static onnx", "open onnx")


@pytest.fixture(autouse=True)
def models(monkeypatch: pytest.MonkeyPatch) -> None:
    """The LSTM with an open batch in the place of its length too; all through the faster exporter to ONNX."""
    for name, case in OPEN_MODELS.items():
        monkeypatch.setitem(OPEN_MODELS, name, attrs.evolve(case, script=True))
    steps = attrs.evolve(
        OPEN_MODELS["lstm"],
        sizes=lambda scale: {"batch": (0, 8)},
        inputs=lambda scale, n: (torch.randn(5, n, 16),),
        axes=({1: "batch"},),
    )
    monkeypatch.setitem(OPEN_MODELS, "steps", steps)


def made(case: OpenModel) -> torch.nn.Module:
    torch.manual_seed(0)
    return case.module("small").eval().requires_grad_(False)


@functools.cache
def exported(name: str) -> onnx.ModelProto:
    return to_onnx(name, made(OPEN_MODELS[name]), "small")


def compiled(name: str, route: str, sizes: tuple[int, ...], target: str) -> Any:
    """The model for these sizes (``static``), or with its first size open."""
    case = OPEN_MODELS[name]
    module, kind = made(case), route.partition(" ")[0]
    options = uir_tvm.CompileOptions() if target == "uir-cpu" else uir_tvm.CompileOptions(device="model")
    if route.endswith("onnx"):
        model = exported(name)
        given = case.inputs("small", *sizes)
        names = [each.name for each in model.graph.input]
        shapes = {each: tuple(x.shape) for each, x in zip(names, given, strict=True)}
        return uir_tvm.compile(model, target, shapes=shapes if kind == "static" else None, options=options)
    if kind == "static":
        return uir_tvm.compile(module, target, args=case.inputs("small", *sizes), options=options)
    first = next(iter(case.sizes("small")))
    open_ = Dim(first, min=0, max=8 if name != "gpt2" else 16)
    axes = tuple({axis: open_ for axis, size in each.items() if size == first} for each in case.axes)
    given = case.inputs("small", 5, *sizes[1:])
    return uir_tvm.compile(module, target, args=given, dynamic_shapes=axes, options=options)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", EMPTY)
def test_nothing_in_nothing_out(name: str, route: str) -> None:
    given = OPEN_MODELS[name].inputs("small", *EMPTY[name])
    want = made(OPEN_MODELS[name])(*given)
    got = compiled(name, route, EMPTY[name], "uir-cpu")(*given)
    assert want.numel() == 0
    assert (tuple(got.shape), got.dtype) == (tuple(want.shape), want.dtype)


@pytest.mark.parametrize("target", [target for target in TARGETS if target != "uir-cpu"])
def test_on_host_models(target: str) -> None:
    given = OPEN_MODELS["steps"].inputs("small", 0)
    for route in ("static torch", "open torch"):
        assert compiled("steps", route, (0,), target)(*given).shape == (5, 0, 8)


@pytest.mark.parametrize("name", REFUSED)
def test_the_operator_is_named(name: str) -> None:
    """PyTorch refuses these calls too."""
    given = OPEN_MODELS[name].inputs("small", *REFUSED[name])
    with pytest.raises(RuntimeError, match="ambiguous"):
        made(OPEN_MODELS[name])(*given)
    with pytest.raises(ShapeError) as raised:
        compiled(name, "open torch", REFUSED[name], "uir-cpu")(*given)
    assert "view" in raised.value.where and "ambiguous" in raised.value.need


@pytest.mark.parametrize(
    ("target", "want"), [([0, -1, 2], (0, 3, 2)), ([-1, 3], (0, 3)), ([2, 0, -1], (2, 6, 0))]
)
def test_reshape_of_nothing(target: list[int], want: tuple[int, ...]) -> None:
    """ONNX: a 0 is the operand's size, and cancels; -1 is what is left."""
    assert uir_tvm.compile(reshaping(target))(np.zeros((0, 6), "float32")).shape == want


@pytest.mark.parametrize(
    ("target", "attributes", "need"),
    [
        ([0, -1, 2], {"allowzero": 1}, "any size would do for the -1"),
        ([5, 0], {}, "0 elements do not fill a shape of 30"),
    ],
)
def test_reshape_without_a_meaning(target: list[int], attributes: dict[str, int], need: str) -> None:
    model = reshaping(target, **attributes)
    with pytest.raises(ShapeError, match=need) as raised:
        uir_tvm.compile(model)(np.zeros((0, 6), "float32"))
    assert "Reshape" in raised.value.where


def reshaping(target: list[int], **attributes: int) -> onnx.ModelProto:
    sizes = ["a", "b", "c"][: len(target)]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Reshape", ["x", "target"], ["y"], **attributes)],
        "reshaping",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ("n", 6))],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, sizes)],
        [onnx.numpy_helper.from_array(np.array(target), "target")],
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9)


def test_no_steps_are_no_recurrence() -> None:
    """What PyTorch says of a length of 0, in place of what taking the layer apart fails of."""
    module = made(OPEN_MODELS["lstm"])
    with pytest.raises(uir_tvm.errors.FrontendError, match="sequence length to be larger than 0"):
        uir_tvm.compile(module, args=(torch.randn(0, 2, 16),))


@pytest.mark.parametrize("layer", ["LSTM", "GRU", "RNN"])
def test_layers_without_a_batch(layer: str) -> None:
    """Both directions, two layers, the batch first: rows and last states are empty, each in its shape."""
    module = getattr(torch.nn, layer)(4, 3, 2, bidirectional=True, batch_first=True).eval()
    x = torch.zeros(0, 5, 4)
    rows, last = module(x)
    got_rows, got_last = uir_tvm.compile(module, args=(x,))(x)
    last, got_last = (each if isinstance(each, tuple) else (each,) for each in (last, got_last))
    assert np.shape(got_rows) == tuple(rows.shape) == (0, 5, 6)
    assert [np.shape(each) for each in got_last] == [tuple(each.shape) for each in last]
