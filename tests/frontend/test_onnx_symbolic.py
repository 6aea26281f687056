# SPDX-License-Identifier: Apache-2.0
"""ONNX models that leave sizes open are read once for all sizes, with the shape arithmetic of exporters."""

from __future__ import annotations

import io
import os
import warnings
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
import torch
import tvm
import uir_tvm
from onnx.reference import ReferenceEvaluator
from torch import Tensor, nn
from uir_tvm.kernel_graph import assemble
from uir_tvm.runtime.symbolic_programs import SymbolicPrograms

from tests.asked import in_turn

from ..kernel_graph.programs import run_graph
from ..runtime.test_symbolic_programs import Bert, Gpt, Lstm, expect_close, ids, mask

TARGET = tvm.target.Target("uir-cpu")
#: Shapes of each model.
SHAPES = 10 if os.environ.get("UIR_TEST_ALL") else 3


def programs() -> SymbolicPrograms:
    return SymbolicPrograms(lambda module, space: uir_tvm.kernel_graph.group(module, TARGET, space))


def opened(model: onnx.ModelProto) -> Any:
    """The model that the front end hands on."""
    with pytest.raises(uir_tvm.errors.DynamicShapeError) as caught:
        uir_tvm.frontend.from_onnx(model)
    return caught.value.model


def results(made: SymbolicPrograms, model: Any, args: list[np.ndarray]) -> list[np.ndarray]:
    """What the one program computes of arguments."""
    shapes = {each.name: arg.shape for each, arg in zip(model.signature.inputs, args, strict=True)}
    found = made.of(model, shapes)
    assert found is not None, made.why_not
    return run_graph(assemble(found.grouped(), TARGET), args)


class Rows(nn.Module):
    """A fully convolutional network."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(8, 5, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


#: name -> model, inputs for sizes, open axes of each input, symbols.
MODELS: dict[str, tuple[Any, Any, Any, tuple[str, ...]]] = {
    "bert": (
        Bert,
        lambda n, length: (ids(n, length), mask(n, length)),
        {"ids": {0: "n", 1: "length"}, "mask": {0: "n", 1: "length"}},
        ("n", "length"),
    ),
    "gpt": (Gpt, lambda length: (ids(1, length),), {"ids": {1: "length"}}, ("length",)),
    "lstm": (Lstm, lambda n: (torch.randn(n, 5, 8),), {"x": {0: "n"}}, ("n",)),
    "lstm of any length": (
        Lstm,
        lambda n, length: (torch.randn(n, length, 8),),
        {"x": {0: "n", 1: "length"}},
        ("n", "length"),
    ),
    "convolutions": (
        Rows,
        lambda n, height, width: (torch.randn(n, 3, height, width),),
        {"x": {0: "n", 2: "height", 3: "width"}},
        ("n", "height", "width"),
    ),
}


def exported(name: str, dynamo: bool) -> tuple[nn.Module, onnx.ModelProto, Any, tuple[str, ...]]:
    torch.manual_seed(0)
    make, inputs, axes, symbols = MODELS[name]
    module = make().eval().requires_grad_(False)
    example, file = inputs(*(4, 9, 11)[: len(symbols)]), io.BytesIO()
    shapes: Any = {"dynamic_axes": axes}
    if dynamo:
        dims = {symbol: torch.export.Dim(symbol, min=2, max=48) for symbol in symbols}
        each = [{axis: dims[symbol] for axis, symbol in given.items()} for given in axes.values()]
        shapes = {"dynamic_shapes": tuple(each)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, example, file, input_names=list(axes), dynamo=dynamo, **shapes)
    return module, onnx.load_from_string(file.getvalue()), inputs, symbols


#: An exporter of each model in turn, both with ``UIR_TEST_ALL=1``; that of graphs of torch.export may fix the
#: length of a recurrence.
EXPORTED = in_turn(
    MODELS, (False, True), always=0, may=lambda name, dynamo: not (dynamo and "length" in name)
)


@pytest.mark.parametrize("name, dynamo", EXPORTED)
def test_one_reading_serves_many_shapes(name: str, dynamo: bool) -> None:
    """The graphs of all shapes (ten with ``UIR_TEST_ALL=1``) come of one program, and are right."""
    module, proto, inputs, symbols = exported(name, dynamo)
    model, made = opened(proto), programs()
    assert set(model.signature.symbols) == set(symbols), model.signature.inputs
    rng = np.random.default_rng(1)
    for _ in range(SHAPES):
        args = inputs(*map(int, rng.choice(np.arange(4, 40), len(symbols), False)))
        (result,) = results(made, model, [arg.numpy() for arg in args])
        expect_close(result, module(*args))
    assert len(made.programs) == 1 and made.programs[0].uses == SHAPES and not made.why_not


#: name -> inputs, results and nodes of a graph in ONNX's text; sizes at which it is compared.
GRAPHS: dict[str, tuple[str, list[tuple[int, ...]]]] = {
    "heads apart and together": (
        """(float[n, m, 12] x) => (float[p, q, r] y) {
            shape = Shape(x)  zero = Constant<value_int = 0>()  one = Constant<value_int = 1>()
            n_ = Gather<axis = 0>(shape, zero)  m_ = Gather<axis = 0>(shape, one)
            at = Constant<value_ints = [0]>()  four = Constant<value_ints = [4]>()
            three = Constant<value_ints = [3]>()  wide = Constant<value_ints = [12]>()
            n1 = Unsqueeze(n_, at)  m1 = Unsqueeze(m_, at)
            apart = Concat<axis = 0>(n1, m1, four, three)
            heads = Reshape(x, apart)  turned = Transpose<perm = [0, 2, 1, 3]>(heads)
            e = Exp(turned)  back = Transpose<perm = [0, 2, 1, 3]>(e)
            whole = Concat<axis = 0>(n1, m1, wide)  y = Reshape(back, whole) }""",
        [(2, 3), (5, 5), (7, 2)],
    ),
    "slices with computed ends": (
        """(float[n, m] x, float[64, 64] table) => (float[p, q] y) {
            two = Constant<value_ints = [2]>()  zero = Constant<value_ints = [0]>()
            one = Constant<value_ints = [1]>()  axes = Constant<value_ints = [0, 1]>()
            start = Constant<value_ints = [0, 0]>()
            shape = Shape(x)  part = Slice(table, start, shape, axes)
            last = Constant<value_ints = [-1]>()  end = Constant<value_ints = [9223372036854775807]>()
            tail = Slice(x, last, end, one)  sum = Add(x, part)  y = Mul(sum, tail) }""",
        [(2, 3), (64, 5), (9, 64)],
    ),
    "positions": (
        """(float[n, m] x) => (float[p, q] y)
        <float[70] table = {TABLE}> {
            zero = Constant<value_int = 0>()  one = Constant<value_int = 1>()
            m_ = Shape<start = 1, end = 2>(x)  none = Constant<value_ints = [0]>()  m0 = Squeeze(m_, none)
            places = Range(zero, m0, one)  taken = Gather(table, places)  y = Add(x, taken) }""",
        [(2, 3), (4, 70), (6, 11)],
    ),
    "shapes by masks": (
        """(float[n, m] x, float[1, 8] row) => (float[p, q, 8] y) {
            given = Constant<value_ints = [-1, -1, 1]>()  one = Constant<value_ints = [1]>()
            shape = Shape(x)  full = Concat<axis = 0>(shape, one)
            rank = Shape(given)  ones = ConstantOfShape<value = int64[1] {1}>(rank)
            minus = Constant<value_int = -1>()  marks = Mul(ones, minus)  open = Equal(given, marks)
            target = Where(open, full, given)  wide = Expand(row, target)
            at = Constant<value_ints = [2]>()  deep = Unsqueeze(x, at)  y = Mul(deep, wide) }""",
        [(2, 3), (5, 4)],
    ),
    "sizes computed": (
        """(float[n, m] x) => (float[p, q] y, float[q] z) {
            shape = Shape(x)  product = ReduceProd<keepdims = 1>(shape)  two = Constant<value_ints = [2]>()
            pair = Mul(two, product)  half = Div(pair, two)  minus = Constant<value_ints = [-1]>()
            sized = Cast<to = 6>(half)  again = Cast<to = 7>(sized)
            target = Concat<axis = 0>(minus, again)  row = Reshape(x, target)  y = Neg(row)
            flat = Flatten<axis = 0>(x)  none = Constant<value_ints = [0]>()  first = Squeeze(flat, none)
            more = ConstantOfShape<value = float[1] {2.5}>(again)  z = Sub(first, more) }""",
        [(2, 3), (5, 4)],
    ),
    "parts and ends": (
        """(float[n, m] x) => (float[p, q] y, float[p] z, float[q] first) {
            shape = Shape(x)  at = Constant<value_ints = [1]>()  m_ = Gather(shape, at)
            rest = Sub(m_, at)  sizes = Concat<axis = 0>(at, rest)
            a, b = Split<axis = 1>(x, sizes)  y = Mul(a, b)
            minus = Constant<value_int = -1>()  z = Gather<axis = 1>(x, minus)
            zero = Constant<value_int = 0>()  first = Gather<axis = 0>(x, zero) }""",
        [(2, 3), (5, 4)],
    ),
    "triangle": (
        """(float[n, m] x) => (float[p, q] y) {
            shape = Shape(x)  ones = ConstantOfShape<value = float[1] {1}>(shape)
            lower = Trilu<upper = 0>(ones)  y = Mul(x, lower) }""",
        [(4, 4), (9, 9), (3, 7)],
    ),
    "repeated": (
        """(float[n, m] x) => (float[p, q] y) {
            counts = Constant<value_ints = [2, 1]>()  twice = Tile(x, counts)
            pads = Constant<value_ints = [0, 1, 0, 2]>()  wide = Pad(twice, pads)  y = Relu(wide) }""",
        [(2, 3), (5, 4)],
    ),
    "a size among floats": (
        """(float[n, 4] x) => (float[p, 4] y) {
            shape = Shape(x)  none = Constant<value_int = 0>()  n_ = Gather(shape, none)
            f = Cast<to = 1>(n_)  y = Div(x, f) }""",
        [(3,), (5,)],
    ),
    "normalised": (
        """(float[n, m] x) => (float[p, q] y, float[p, 1] z) {
            a = Softmax<axis = 1>(x)  y = LogSoftmax<axis = 0>(x)
            b = ReduceLogSumExp<axes = [1]>(a)  z = Identity(b) }""",
        [(2, 3), (5, 4)],
    ),
}


def parsed(text: str, opset: int = 17) -> onnx.ModelProto:
    table = ", ".join(f"{number / 8}" for number in range(70))
    head = f'<ir_version: 9, opset_import: ["": {opset}]> graph '
    return onnx.parser.parse_model(head + text.replace("TABLE", table))


def arguments(model: Any, sizes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(sum(sizes))
    shapes = model.signature.shapes(dict(zip(model.signature.symbols, sizes, strict=True)))
    return [rng.uniform(-2, 2, shape).astype(np.float32) for shape in shapes.values()]


@pytest.mark.parametrize("name", GRAPHS)
def test_shapes_are_computed_of_open_sizes(name: str) -> None:
    text, cases = GRAPHS[name]
    proto = parsed(text)
    model, made = opened(proto), programs()
    for sizes in cases:
        args = arguments(model, sizes)
        feeds = {each.name: arg for each, arg in zip(model.signature.inputs, args, strict=True)}
        want = ReferenceEvaluator(proto).run(None, feeds)
        for got, right in zip(results(made, model, args), want, strict=True):
            assert got.shape == right.shape, sizes
            np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-5)
    assert not made.why_not and len(made.programs) <= len(cases)


def test_a_size_that_a_program_excludes_gets_another() -> None:
    """The table has 64 rows: a slice of 70 is all of them."""
    text = """(float[n] x, float[64] table) => (float[p] y, float[q] z) {
        zero = Constant<value_ints = [0]>()  size = Shape(x)  part = Slice(table, zero, size)
        y = Neg(part)  z = Exp(x) }"""
    model, made = opened(parsed(text)), programs()
    for size, most in ((9, 1), (17, 1), (64, 2), (70, 3), (90, 3)):
        args = arguments(model, (size,))
        got, _ = results(made, model, args)
        np.testing.assert_array_equal(got, -args[1][:size])
        assert len(made.programs) <= most
    assert len(made.programs) > 1


#: What is not read for all sizes -> the graph, and a word of the reason.
BY_SHAPE: dict[str, tuple[str, str]] = {
    "resize": (
        """(float[1, 2, n, 4] x) => (float[1, 2, p, q] y) {
            scales = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>()
            y = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric">(x, , scales) }""",
        "Resize",
    ),
    "steps of an open length": (
        """(float[n, 1, 3] x, float[1, 12, 3] w, float[1, 12, 4] r) => (float[p, 1, 1, 4] y) {
            y = GRU<hidden_size = 4>(x, w, r) }""",
        "step by step",
    ),
}


@pytest.mark.parametrize("name", BY_SHAPE)
def test_what_needs_numbers_is_imported_for_each_shape(name: str) -> None:
    text, said = BY_SHAPE[name]
    proto = parsed(text)
    exe = uir_tvm.compile(proto)
    for size in (3, 5):
        args = arguments(exe, (size,))
        names = [value.name for value in proto.graph.input]
        (want,) = ReferenceEvaluator(proto).run(None, dict(zip(names, args, strict=True)))
        np.testing.assert_allclose(exe(*args), want, rtol=1e-5, atol=1e-5)
    report = exe.report()
    assert report["imported_by_shape"] and said in report["imported_by_shape"], report["imported_by_shape"]


def test_an_executable_says_what_it_was_made_of() -> None:
    """Names of inputs that are none of Python's, and of sizes that mean something there."""
    proto = parsed("(float[n, 4] x) => (float[n, 4] y) { y = Tanh(x) }")
    proto.graph.input[0].name = proto.graph.node[0].input[0] = "input.1"
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "in"
    exe = uir_tvm.compile(proto)
    assert exe.signature.symbols == ("s_in",)
    for size in (1, 5, 7, 0, 5):
        x = np.random.default_rng(size).normal(size=(size, 4)).astype(np.float32)
        np.testing.assert_allclose(exe(x), np.tanh(x), rtol=1e-5, atol=1e-6)
    report = exe.report()
    (made,) = report["programs"]
    assert made["conditions"] == ["1 <= s_in"] and made["shapes"] == 3
    assert report["imported_by_shape"] == "" and report["compiled"] == 2


@pytest.mark.parametrize(
    ("body", "second"),
    [
        ("z = Add(x, y)", "float[?, 4] y"),
        ("z = MatMul(x, y)", "float[4, ?] y"),
        ("z = Concat<axis=1>(x, y)", "float[?, 2] y"),
        ("t = Transpose<perm=[1, 0]>(x) z = MatMul(t, y)", "float[?, 2] y"),
    ],
)
def test_sizes_without_names_that_must_agree(body: str, second: str) -> None:
    """What a model adds, joins or multiplies has one size, though no name says so."""
    head = '<ir_version: 8, opset_import: ["" : 17]>'
    model = onnx.parser.parse_model(f"{head} g (float[?, 4] x, {second}) => (float[?, ?] z) {{ {body} }}")
    executable = uir_tvm.compile(model)
    for size in (4, 9, 4):
        shapes = [[size, 4], [size if dim == "?" else int(dim) for dim in second[6:-3].split(", ")]]
        args = [np.random.default_rng(size).standard_normal(shape).astype(np.float32) for shape in shapes]
        want = ReferenceEvaluator(model).run(None, {"x": args[0], "y": args[1]})[0]
        np.testing.assert_allclose(np.asarray(executable(*args)), want, rtol=1e-5, atol=1e-5)
    report = executable.report()
    assert len(report["programs"]) == 1, report["imported_by_shape"]


def test_one_name_may_be_two_sizes() -> None:
    proto = parsed("(float[n] x, float[n] y) => (float[p] a, float[q] b) { a = Exp(x) b = Neg(y) }")
    exe = uir_tvm.compile(proto)
    for first, second in ((3, 3), (4, 6)):
        x, y = np.ones(first, np.float32), np.ones(second, np.float32)
        a, b = exe(x, y)
        np.testing.assert_allclose(a, np.exp(x), rtol=1e-6)
        np.testing.assert_array_equal(b, -y)
    (made,) = exe.report()["programs"]
    assert made["shapes"] == 1


def test_some_sizes_may_be_fixed() -> None:
    module, proto, inputs, _ = exported("bert", dynamo=False)
    exe = uir_tvm.compile(proto, sizes={"n": 2})
    assert exe.signature.symbols == ("length",)
    args = inputs(2, 6)
    expect_close(exe(*args), module(*args))
    assert exe.report()["imported_by_shape"] == "" and len(exe.report()["programs"]) == 1
