# SPDX-License-Identifier: Apache-2.0
"""Sizes that data decide: the model finds them while it runs, and is compiled once for all of them."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import uir_tvm
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn
from torch.export import Dim
from uir_tvm.errors import OpenSizeError, ShapeError, SizeError
from uir_tvm.options import CompileOptions

ROWS, WIDTH = 20, 16
TOLERANCE = 1e-5


class Chosen(nn.Module):
    """Two layers of the rows that a mask keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Linear(WIDTH, 32), nn.Linear(32, 4)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        rows = x[torch.nonzero(mask).squeeze(1)]
        return torch.softmax(self.narrow(torch.relu(self.wide(rows))), -1)


class Masked(nn.Module):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return x[mask] * 2 + 1


class Elements(nn.Module):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return torch.masked_select(x, mask[:, None].expand(-1, WIDTH)).exp()


class Prefix(nn.Module):
    """As many rows as a tensor says."""

    def forward(self, x: Tensor, count: Tensor) -> Tensor:
        n = count.item()
        torch._check(n >= 0)
        torch._check(n <= x.shape[0])
        return x[:n].sum(1)


class Largest(nn.Module):
    def forward(self, x: Tensor, count: Tensor) -> Tensor:
        k = count.item()
        torch._check(k >= 1)
        torch._check(k <= WIDTH)
        return torch.topk(x, k, dim=-1)[0]


class Distinct(nn.Module):
    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        values, places = torch.unique((x[:, 0] * 3 * mask).to(torch.int64), return_inverse=True)
        return values * 2, places


def _given(kept: int, rows: int = ROWS) -> tuple[Tensor, Tensor]:
    torch.manual_seed(kept)
    return torch.randn(rows, WIDTH), torch.arange(rows) < kept


def _counted(count: int) -> tuple[Tensor, Tensor]:
    return _given(count)[0], torch.tensor(count)


def _equal(found: Any, wanted: Any) -> None:
    for got, want in zip(*((v if isinstance(v, tuple) else (v,)) for v in (found, wanted)), strict=True):
        assert got.shape == want.shape and got.dtype == want.dtype
        torch.testing.assert_close(got, want, rtol=TOLERANCE, atol=TOLERANCE)


SELECTIONS = [Chosen(), Masked(), Elements(), Distinct()]


@pytest.mark.parametrize("model", SELECTIONS, ids=lambda m: type(m).__name__)
def test_selections_are_compiled_once(model: nn.Module) -> None:
    """Whatever is kept: nothing, one row, some, all."""
    exe = uir_tvm.compile(model.eval(), args=_given(3))
    for kept in (3, 0, 1, 7, ROWS):
        with torch.no_grad():
            _equal(exe(*_given(kept)), model(*_given(kept)))
    report = exe.report()
    assert exe.compiled == 1 and report["imported_by_shape"] == ""
    (program,) = report["programs"]
    assert program["kernels_by_sizes"] == [] and "outside_kernels" in report and report["outside_kernels"]


@pytest.mark.parametrize("model", [Prefix(), Largest()], ids=lambda m: type(m).__name__)
def test_numbers_in_tensors_are_sizes(model: nn.Module) -> None:
    exe = uir_tvm.compile(model, args=_counted(3))
    for count in (3, 1, 8, WIDTH):
        _equal(exe(*_counted(count)), model(*_counted(count)))
    assert exe.compiled == 1
    with pytest.raises(SizeError, match=f"u0 = {ROWS + 1}") as caught:
        exe(_given(0)[0], torch.tensor(ROWS + 1))
    assert "u0 <= " in caught.value.need
    with pytest.raises(SizeError, match="is -1"):
        exe(_given(0)[0], torch.tensor(-1))


class Indexed(nn.Module):
    """A row of those that are kept, whose number is no size of anything."""

    def forward(self, x: Tensor, mask: Tensor, place: Tensor) -> Tensor:
        kept, row = x[mask], place.item()
        torch._check(row >= 0)
        torch._check(row < kept.shape[0], lambda: "a row that is kept")
        return kept[row] * 2


class Even(nn.Module):
    def forward(self, x: Tensor, count: Tensor) -> Tensor:
        n = count.item()
        torch._check(n % 2 == 0)
        return x * n


def test_what_is_asserted_of_numbers_that_are_no_sizes_is_checked() -> None:
    """Of an index by the rows that are found, and of a remainder: the error names the line of the model."""
    exe, model = uir_tvm.compile(Indexed(), args=(*_given(3), torch.tensor(1))), Indexed()
    for kept, row in ((3, 2), (7, 6), (1, 0)):
        args = (*_given(kept), torch.tensor(row))
        _equal(exe(*args), model(*args))
    with pytest.raises(SizeError, match="u0 = 3, u1 = 3") as caught:
        exe(*_given(3), torch.tensor(3))
    assert caught.value.need == "u1 < u0" and "place.item()" in caught.value.where
    exe = uir_tvm.compile(Even(), args=_counted(4))
    _equal(exe(*_counted(6)), Even()(*_counted(6)))
    with pytest.raises(SizeError) as caught:
        exe(*_counted(5))
    assert caught.value.need == "Mod(u0, 2) == 0"


class EvenOrMany(nn.Module):
    def forward(self, x: Tensor, count: Tensor) -> Tensor:
        n = count.item()
        torch._check((n % 2 == 0) | (n > 6))
        return x * n


def test_one_of_several_conditions_is_enough() -> None:
    """Conditions that a model joins by "or" are checked as one."""
    exe = uir_tvm.compile(EvenOrMany(), args=_counted(4))
    for count in (2, 7, 8):
        _equal(exe(*_counted(count)), EvenOrMany()(*_counted(count)))
    with pytest.raises(SizeError) as caught:
        exe(*_counted(5))
    assert "u0 > 6" in caught.value.need and " or " in caught.value.need


def test_open_and_found_sizes_together() -> None:
    n, model = Dim("n", min=2, max=100), Masked()
    exe = uir_tvm.compile(model, args=_given(3), dynamic_shapes=({0: n}, {0: n}))
    for kept, rows in ((3, 20), (5, 9), (0, 8), (1, 40), (33, 33)):
        _equal(exe(*_given(kept, rows)), model(*_given(kept, rows)))
    assert exe.compiled == 1


@pytest.mark.parametrize("target", ["uir-cuda", "uir-ascend", "uir-bang"])
def test_found_sizes_on_devices(target: str) -> None:
    """On the host models of devices."""
    model = Masked()
    exe = uir_tvm.compile(model, target, args=_given(3), options=CompileOptions(device="model"))
    for kept in (3, 0, 1, ROWS):
        _equal(exe(*_given(kept)), model(*_given(kept)))
    assert exe.compiled == 1


def _onnx(node: str, outputs: list[str], **attributes: Any) -> onnx.ModelProto:
    """A node whose result has a size that is found, and a kernel on its first result."""
    inputs = {"NonZero": ["x"], "Unique": ["x"], "Compress": ["x", "mask"]}[node]
    kind = TensorProto.FLOAT if node != "NonZero" else TensorProto.INT64
    given = {"x": ([ROWS, 3], TensorProto.FLOAT), "mask": ([ROWS], TensorProto.BOOL)}
    two = numpy_helper.from_array(np.array(2, np.float32 if kind == TensorProto.FLOAT else np.int64), "two")
    nodes = [
        helper.make_node(node, inputs, outputs, **attributes),
        helper.make_node("Mul", [outputs[0], "two"], ["y"]),
    ]
    infos = [helper.make_tensor_value_info(name, given[name][1], given[name][0]) for name in inputs]
    ranks = {"NonZero": 2, "Compress": 2, "Unique": 2 if attributes else 1}
    results = [helper.make_tensor_value_info("y", kind, [None] * ranks[node])]
    more = filter(None, outputs[1:])
    results += [helper.make_tensor_value_info(name, TensorProto.INT64, [None]) for name in more]
    graph = helper.make_graph(nodes, "found", infos, results, [two])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("node", "outputs", "attributes"),
    [
        ("NonZero", ["v"], {}),
        ("Compress", ["v"], {"axis": 0}),
        ("Unique", ["v", "", "inverse", "counts"], {}),
        ("Unique", ["v", "first"], {"axis": 0}),
    ],
)
def test_operators_of_onnx(node: str, outputs: list[str], attributes: dict[str, Any]) -> None:
    """As ONNX's reference implementation has them, for several numbers of elements."""
    from onnx.reference import ReferenceEvaluator

    model = _onnx(node, outputs, **attributes)
    exe, reference = uir_tvm.compile(model), ReferenceEvaluator(model)
    for seed in (0, 1, 2):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, seed + 2, (ROWS, 3)).astype(np.float32)
        feeds = {"x": x} | ({"mask": rng.random(ROWS) < 0.2 * seed} if node == "Compress" else {})
        found = exe(*feeds.values())
        wanted = reference.run(None, feeds)
        for got, want in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
            np.testing.assert_array_equal(got, want)
    assert exe.compiled == 1 and list(exe.report()["outside_kernels"]) == [node]


def test_what_is_saved_finds_sizes_too(tmp_path: pathlib.Path) -> None:
    """One file for all of them; what needs a number for each says so."""
    n, model = Dim("n", min=2, max=100), Chosen().eval()
    exe = uir_tvm.compile(model, args=_given(3), dynamic_shapes=({0: n}, {0: n}))
    exe(*_given(3))
    loaded = uir_tvm.load(exe.save(tmp_path / "found.uir"))
    for kept, rows in ((3, 20), (0, 9), (1, 33)):
        with torch.no_grad():
            _equal(loaded(*_given(kept, rows)), model(*_given(kept, rows)))
    with pytest.raises(OpenSizeError, match="finds u0 while it runs"):
        exe.report(explain=True)


class Extremes(nn.Module):
    """One of the elements along each axis that a mask decides, by several operators."""

    def __init__(self, choose: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.choose = choose

    def forward(self, x: Tensor, mask: Tensor) -> Any:
        return self.choose(x[mask])


@pytest.mark.parametrize(
    ("operator", "choose"),
    [
        ("max.default", lambda x: x.max()),
        ("max.dim", lambda x: tuple(x.max(0))),
        ("amin.default", lambda x: x.amin(0)),
        ("argmin.default", lambda x: x.argmin()),
    ],
)
def test_a_choice_among_nothing_is_an_error_that_names_it(operator: str, choose: Any) -> None:
    """As PyTorch has it, where the least number would be a result of its own."""
    exe = uir_tvm.compile(Extremes(choose), args=_given(3))
    for kept in (3, 1):
        _equal(exe(*_given(kept)), choose(_given(kept)[0][:kept]))
    with pytest.raises(SizeError, match="finds u0 = 0 while it runs") as caught:
        exe(*_given(0))
    assert caught.value.need == "u0 >= 1" and f"{operator} along axis 0" in caught.value.where
    assert exe.compiled == 1


def test_a_choice_of_onnx_among_nothing_is_an_error() -> None:
    """ONNX Runtime refuses ArgMax, and has the least number for ReduceMax."""
    model = _onnx("Compress", ["v"], axis=0)
    del model.graph.node[1], model.graph.output[:]
    model.graph.node.append(helper.make_node("ArgMax", ["v"], ["place"], axis=0, keepdims=0))
    model.graph.node.append(helper.make_node("ReduceMax", ["v"], ["most"], axes=[0], keepdims=0))
    for name, kind in (("most", TensorProto.FLOAT), ("place", TensorProto.INT64)):
        model.graph.output.append(helper.make_tensor_value_info(name, kind, [3]))
    x, none = np.ones((ROWS, 3), np.float32), np.zeros(ROWS, bool)
    with pytest.raises(SizeError, match="finds found_0 = 0") as caught:
        uir_tvm.compile(model)(x, none)
    assert caught.value.where == "argmax along axis 0"
    del model.graph.node[1], model.graph.output[1]
    np.testing.assert_array_equal(uir_tvm.compile(model)(x, none), np.full(3, -np.inf))


@pytest.mark.parametrize("found", [False, True], ids=["open", "found"])
def test_more_elements_than_there_are_are_refused(found: bool) -> None:
    """What TopK of an open size would read behind the others is memory that nothing wrote."""
    rows: Any = ROWS if found else "n"
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 3])]
    nodes = [helper.make_node("TopK", ["rows" if found else "x", "three"], ["y", "places"], axis=0)]
    if found:
        inputs.append(helper.make_tensor_value_info("mask", TensorProto.BOOL, [ROWS]))
        nodes.insert(0, helper.make_node("Compress", ["x", "mask"], ["rows"], axis=0))
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 3])
    three = numpy_helper.from_array(np.array([3]), "three")
    graph = helper.make_graph(nodes, "largest", inputs, [result], [three])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    exe, x = uir_tvm.compile(model), np.random.default_rng(3).random((ROWS, 3), np.float32)
    for count in (5, 3, 2, 0):
        given = (x, np.arange(ROWS) < count) if found else (x[:count],)
        if count >= 3:
            np.testing.assert_array_equal(exe(*given), -np.sort(-x[:count], 0)[:3])
        else:
            with pytest.raises(SizeError):
                exe(*given)


@pytest.mark.parametrize(
    "ask", [lambda x: (x > 0).all(0), lambda x: (x > 9).any(), lambda x: x.std(0)], ids=["all", "any", "std"]
)
def test_what_nothing_decides_is_asked_of_what_is_found(ask: Any) -> None:
    """Nothing is all, nothing is any, the deviation of one or none is NaN."""
    exe = uir_tvm.compile(Extremes(ask), args=_given(3))
    for kept in (3, 0, 1, ROWS):
        torch.testing.assert_close(exe(*_given(kept)), ask(_given(kept)[0][:kept]), equal_nan=True)
    assert exe.compiled == 1


def _scattered(x: Tensor, mask: Tensor) -> Tensor:
    return x.masked_scatter(mask[:, None], x[mask] * 2)


def _put(x: Tensor, mask: Tensor) -> Tensor:
    y = x.clone()
    y[mask] = x[mask] * 2
    return y


def _added(x: Tensor, mask: Tensor) -> Tensor:
    y = x.clone()
    y[mask] += 1
    return y


def _put_at_places(x: Tensor, mask: Tensor) -> Tensor:
    places, y = torch.nonzero(mask).squeeze(1), x.clone()
    y[places] = x[places] * 2
    return y


def _joined(x: Tensor, mask: Tensor) -> Tensor:
    return torch.cat([x[mask] * 2, x[:1]]).reshape(-1)


class Does(nn.Module):
    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return self.function(x, mask)


@pytest.mark.parametrize("write", [_scattered, _put, _added, _put_at_places, _joined])
def test_what_is_found_is_written_where_it_was(write: Callable[[Tensor, Tensor], Tensor]) -> None:
    """By a mask or by places, or put before other rows: nothing, one row, some, all."""
    exe = uir_tvm.compile(Does(write), args=_given(3))
    for kept in (3, 0, 1, ROWS):
        x, mask = _given(kept)
        _equal(exe(x, mask.flip(0)), write(x, mask.flip(0)))
    assert exe.compiled == 1 and exe.report()["imported_by_shape"] == ""


class Unknown(nn.Module):
    """An operator that no kernel has, on as many elements as are found, and a kernel."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return torch.special.digamma(x[mask].abs() + 1) * 2


def test_pytorch_computes_what_has_no_kernel_for_any_size() -> None:
    exe = uir_tvm.compile(Unknown(), args=_given(3))
    for kept in (3, 0, ROWS):
        _equal(exe(*_given(kept)), Unknown()(*_given(kept)))
    assert exe.compiled == 1
    assert sorted(exe.report()["outside_kernels"]) == ["aten::digamma.default", "aten::index.Tensor"]


def test_a_model_that_is_not_read_for_all_sizes_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: Any) -> Any:
        raise OpenSizeError("planted")

    monkeypatch.setattr("uir_tvm.frontend.torch.find_sizes", refuse)
    exe = uir_tvm.compile(Masked(), args=_given(3))
    with pytest.raises(ShapeError, match="depends on data") as caught:
        exe(*_given(3))
    assert caught.value.limit == "not compiled for all sizes: planted"
