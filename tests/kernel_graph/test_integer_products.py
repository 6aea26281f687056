# SPDX-License-Identifier: Apache-2.0
"""Products of bytes in Relax become operators of integers, with as much of what follows as they end with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
import uir_tvm
from tvm import relax
from uir_tvm.kernel_graph import build
from uir_tvm.quantized import Packing
from uir_tvm.quantized_calls import dequantize_call

RNG = np.random.default_rng(3)
CODES = RNG.integers(0, 256, (24, 32)).astype(np.uint8)
SCALES = (RNG.random((24, 1)) * 0.01 + 0.01).astype(np.float32)
X = RNG.integers(0, 256, (5, 32)).astype(np.uint8)
ZERO, SCALE = 9, np.float32(0.125)

Emit = Callable[[Any], Any]


def number(value: float, dtype: str = "float32") -> Any:
    return relax.const(value, dtype)


def module(follow: Callable[[Emit, Any], Any], zero: int = 128, scales: np.ndarray = SCALES) -> tvm.IRModule:
    """follow(scale * (x - zero point) by a weight), of bytes x [5, 32]."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((5, 32), "uint8"))
    op = relax.op
    packing = Packing(8, 32 // scales.shape[1], zero)
    with builder.function("main", [x]):
        with builder.dataflow():
            emit = builder.emit
            centred = emit(op.subtract(emit(op.astype(x, "int32")), number(ZERO, "int32")))
            real = emit(op.multiply(emit(op.astype(centred, "float32")), number(SCALE)))
            weight = emit(dequantize_call(builder, packing, relax.const(CODES), relax.const(scales)))
            product = emit(op.matmul(real, emit(op.permute_dims(weight))))
            out = builder.emit_output(follow(emit, product))
        builder.emit_func_output(out)
    return builder.get()


def nothing(emit: Emit, product: Any) -> Any:
    return product


def biased(emit: Emit, product: Any) -> Any:
    moved = emit(relax.op.add(product, relax.const(np.arange(24, dtype=np.float32))))
    return emit(relax.op.nn.relu(moved))


def quantised(emit: Emit, product: Any) -> Any:
    op = relax.op
    real = emit(op.divide(biased(emit, product), number(2.0)))
    whole = emit(op.add(emit(op.round(real)), number(3.0)))
    whole = emit(op.minimum(emit(op.maximum(whole, number(0.0))), number(255.0)))
    return emit(op.astype(whole, "uint8"))


def unbounded(emit: Emit, product: Any) -> Any:
    """A cast that no bounds stand before: it stays by itself."""
    return emit(relax.op.astype(emit(relax.op.round(product)), "uint8"))


def _exact() -> np.ndarray:
    rows = (X.astype(np.int64) - ZERO) @ (CODES.astype(np.int64) - 128).T
    return rows * (SCALES[:, 0].astype(np.float64) * SCALE)


FOLLOWING: dict[str, tuple[Callable[[Emit, Any], Any], str, Callable[[np.ndarray], np.ndarray]]] = {
    "floats": (nothing, "float32", lambda y: y),
    "bias and relu": (biased, "float32", lambda y: np.maximum(y + np.arange(24), 0)),
    "bytes": (
        quantised,
        "uint8",
        lambda y: np.clip(np.rint(np.maximum(y + np.arange(24), 0) / 2) + 3, 0, 255),
    ),
}


@pytest.mark.parametrize("name", FOLLOWING)
def test_what_follows_is_part_of_the_product(name: str) -> None:
    follow, dtype, wanted = FOLLOWING[name]
    graph = build(module(follow), "uir-cpu")
    (node,) = graph.nodes
    assert (node.kind, node.outputs[0].dtype) == ("integer_product", dtype)
    assert [(each.taken, each.reason) for each in graph.integers] == [(True, "")]
    got = np.asarray(uir_tvm.compile(module(follow), "uir-cpu")(X)).astype(np.float64)
    exact = wanted(_exact())
    # float32 rounds a factor and a product; a byte moves by one where a number is close to a half
    least = 1.0 if dtype == "uint8" else 1e-5 * np.abs(exact).max()
    assert np.abs(got - exact).max() <= least
    assert (np.rint(got) == np.rint(exact)).mean() > 0.95


def test_what_has_no_bounds_is_no_part_of_it() -> None:
    graph = build(module(unbounded), "uir-cpu")
    kinds = [getattr(node, "kind", node.ops) for node in graph.nodes]
    assert kinds[0] == "integer_product" and graph.nodes[0].outputs[0].dtype == "float32"
    assert len(kinds) == 2


def test_weights_that_need_nine_bits() -> None:
    """Codes of 0 to 255 with a zero point of 3 are numbers of -3 to 252."""
    made = module(nothing, zero=3)
    (node,) = build(made, "uir-cpu").nodes
    assert node.attrs.wide
    rows = (X.astype(np.int64) - ZERO) @ (CODES.astype(np.int64) - 3).T
    exact = rows * (SCALES[:, 0].astype(np.float64) * SCALE)
    got = np.asarray(uir_tvm.compile(made, "uir-cpu")(X))
    np.testing.assert_allclose(got, exact, rtol=1e-5)


def test_scales_within_an_output_are_no_integer_product() -> None:
    scales = (np.repeat(SCALES, 2, 1) * np.array([1, 2], np.float32)).astype(np.float32)
    graph = build(module(nothing, scales=scales), "uir-cpu")
    (decision,) = graph.integers
    assert not decision.taken and "scales of the weight differ within an output" in decision.reason
    assert "integer_product" not in [getattr(node, "kind", "") for node in graph.nodes]


#: Libraries that multiply int8, and the type of their sums.
MATRICES = {"uir-cuda": "int32", "uir-ascend": "int32", "uir-bang": "float32"}


@pytest.mark.parametrize("target", MATRICES)
@pytest.mark.parametrize("name", FOLLOWING)
def test_libraries_of_int8_have_the_rest_in_kernels(name: str, target: str) -> None:
    """The sums are the library's, of int8; what follows is one kernel, what gives bytes a sign another."""
    follow, dtype, _ = FOLLOWING[name]
    graph = build(module(follow), target)
    kinds = [getattr(node, "kind", "kernel") for node in graph.nodes]
    assert kinds == ["kernel", "integer_matmul", "kernel"]
    product = graph.nodes[1]
    assert [tensor.dtype for tensor in product.inputs[:2]] == ["int8", "int8"]
    assert (product.outputs[0].dtype, graph.nodes[2].outputs[0].dtype) == (MATRICES[target], dtype)


def test_sizes_are_multiples_of_what_the_library_takes() -> None:
    """30 numbers and 21 outputs become 32 and 24 where it takes multiples of four, with zeros."""
    rng, builder = np.random.default_rng(4), relax.BlockBuilder()
    op, weight = relax.op, relax.const(rng.integers(-128, 128, (30, 21)).astype(np.int32))
    x = relax.Var("x", relax.TensorType((5, 30), "int8"))
    with builder.function("main", [x]):
        with builder.dataflow():
            product = builder.emit(op.matmul(builder.emit(op.astype(x, "int32")), weight))
            out = builder.emit_output(product)
        builder.emit_func_output(out)
    sizes = {}
    for target in MATRICES:
        nodes = build(builder.get(), target).nodes
        (product,) = [node for node in nodes if getattr(node, "kind", "") == "integer_matmul"]
        sizes[target] = (product.attrs.m, product.attrs.n, product.attrs.k, product.inputs[1].shape)
    plain = (5, 21, 30, (21, 30))
    assert sizes == {"uir-cuda": (5, 24, 32, (24, 32)), "uir-ascend": plain, "uir-bang": plain}


@pytest.mark.parametrize("target", MATRICES)
def test_what_libraries_of_int8_do_not_take(target: str) -> None:
    (decision,) = build(module(nothing, zero=3), target).integers
    assert not decision.taken and "more than 8 bits" in decision.reason


def test_zero_points_are_of_the_type_of_the_bytes() -> None:
    """A byte with a sign minus 200 has more values than sums were reckoned with, and no zeros to pad with."""
    builder, op = relax.BlockBuilder(), relax.op
    x = relax.Var("x", relax.TensorType((5, 4), "int8"))
    with builder.function("main", [x]):
        with builder.dataflow():
            moved = builder.emit(op.subtract(builder.emit(op.astype(x, "int32")), number(200, "int32")))
            out = builder.emit_output(op.matmul(moved, relax.const(np.ones((4, 8), np.int32))))
        builder.emit_func_output(out)
    (decision,) = build(builder.get(), "uir-cuda").integers
    assert not decision.taken and decision.reason == "the zero point 200 is none of int8"


def convolution(channels: int, outputs: int, size: int, window: int) -> tvm.IRModule:
    """A convolution of bytes, in int32."""
    builder, op = relax.BlockBuilder(), relax.op
    weight = RNG.integers(-128, 128, (outputs, channels, window, window)).astype(np.int32)
    x = relax.Var("x", relax.TensorType((1, channels, size, size), "int8"))
    with builder.function("main", [x]):
        with builder.dataflow():
            wide = builder.emit(op.astype(x, "int32"))
            made = builder.emit(op.nn.conv2d(wide, relax.const(weight), strides=2, padding=window // 2))
            out = builder.emit_output(made)
        builder.emit_func_output(out)
    return builder.get()


@pytest.mark.parametrize(
    ("channels", "outputs", "size", "window", "taken"),
    [
        (64, 256, 64, 3, True),
        (3, 64, 256, 7, False),
        (64, 32, 64, 3, False),
        (64, 64, 16, 3, False),
        (3, 8, 8, 1, True),
    ],
)
def test_windows_are_written_where_that_pays(
    channels: int, outputs: int, size: int, window: int, taken: bool
) -> None:
    """Of few channels, and of few products, they are not; single pixels are no windows."""
    (decision,) = build(convolution(channels, outputs, size, window), "uir-ascend").integers
    assert decision.taken == taken
    assert taken or "takes longer than bytes save" in decision.reason


#: So many products of 255 by 255 are the most that 32 bits hold.
HELD = (2**31 - 1) // 255**2


def long_product(length: int, zero: int | None) -> tvm.IRModule:
    """Bytes [1, length] by a constant weight of 255s, in float32; without a zero point it is an input."""
    builder, op = relax.BlockBuilder(), relax.op
    given = [relax.Var("x", relax.TensorType((1, length), "uint8"))]
    if zero is None:
        given.append(relax.Var("zero", relax.TensorType((1,), "uint8")))
    codes, scales = np.full((8, length), 255, np.uint8), np.full((8, 1), 1, np.float32)
    with builder.function("main", given):
        with builder.dataflow():
            emit = builder.emit
            point = number(zero, "int32") if zero is not None else emit(op.astype(given[1], "int32"))
            centred = emit(op.subtract(emit(op.astype(given[0], "int32")), point))
            weight = emit(
                dequantize_call(builder, Packing(8, length, 0), relax.const(codes), relax.const(scales))
            )
            real = emit(op.astype(centred, "float32"))
            out = builder.emit_output(op.matmul(real, emit(op.permute_dims(weight))))
        builder.emit_func_output(out)
    return builder.get()


@pytest.mark.parametrize(
    ("length", "zero", "taken"),
    [
        (HELD, 0, True),
        (HELD + 1, 0, False),
        (HELD + 1, 127, True),
        (HELD, None, True),
        (HELD + 1, None, False),
    ],
)
def test_sums_that_may_leave_32_bits_are_of_floats(length: int, zero: int | None, taken: bool) -> None:
    """Length and zero point decide; one that is computed may be any byte."""
    (decision,) = build(long_product(length, zero), "uir-cpu").integers
    assert decision.taken == taken
    if not taken:
        assert decision.reason == f"its sums may be as great as {length * 255**2}, which 32 bits do not hold"


@pytest.mark.parametrize("length", [HELD, HELD + 1])
def test_the_greatest_sums_are_right(length: int) -> None:
    """One product more than 32 bits hold would be negative."""
    made = np.asarray(
        uir_tvm.compile(long_product(length, 0), "uir-cpu")(np.full((1, length), 255, np.uint8))
    )
    np.testing.assert_allclose(made, length * 255.0**2, rtol=1e-4)
