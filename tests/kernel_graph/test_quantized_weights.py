# SPDX-License-Identifier: Apache-2.0
"""Quantised tensors in the kernel graph: one operator with its epilogue, nothing unpacked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
import uir_tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax
from uir_tvm.kernel_graph import KernelGraph, build
from uir_tvm.library.work import work_of
from uir_tvm.quantized import Packing, dequantized, pack
from uir_tvm.quantized_calls import dequantize_call

from tests.device_targets import DEVICE_TARGETS, DeviceTarget, name_of

Q4_1, Q4_0, Q8 = Packing(4, 32, 0, "float16", True), Packing(4, 32, 8, "float16"), Packing(8, 32, 128)
#: Sums of 64 products up to some hundreds, in float32.
NEAR = 5e-4
Emit = Callable[[relax.BlockBuilder, Any, list[Any]], Any]


def tensor(packing: Packing, rows: int, columns: int, seed: int = 0) -> tuple[Any, ...]:
    """Codes, scales and offsets, and the values that they stand for."""
    rng = np.random.default_rng(seed)
    parts = [pack(rng.integers(0, 1 << packing.bits, (rows, columns)), packing)]
    for _ in range(1 + packing.offsets):
        parts.append(rng.standard_normal((rows, columns // packing.group)).astype(packing.scale_dtype))
    whole = (*parts, None)[:3]
    return parts, dequantized(*whole, packing)


def module(
    x: tuple[tuple[Any, ...], str],
    weights: list[tuple[Packing, list[np.ndarray]]],
    emit: Emit,
    dtype: str = "float32",
) -> tvm.IRModule:
    """``main(x)`` of what is emitted of x and the quantised tensors, which are constants."""
    builder = relax.BlockBuilder()
    param = relax.Var("x", relax.TensorType(*x))
    with builder.function("main", [param]):
        with builder.dataflow():
            made = [
                builder.emit(dequantize_call(builder, packing, *map(relax.const, parts), dtype=dtype))
                for packing, parts in weights
            ]
            out = builder.emit_output(emit(builder, param, made))
        builder.emit_func_output(out)
    return builder.get()


def linear(builder: relax.BlockBuilder, x: Any, weights: list[Any]) -> Any:
    return builder.emit(relax.op.matmul(x, builder.emit(relax.op.permute_dims(weights[0]))))


def whole_weights(graph: KernelGraph, elements: int) -> list[str]:
    """Floats of at least so many elements among the graph's tensors: unpacked weights."""
    tensors = [tensor for node in graph.nodes for tensor in (*node.inputs, *node.outputs)]
    return [t.name for t in tensors if t.dtype.startswith("float") and np.prod(t.shape) >= elements]


@pytest.mark.parametrize("packing", [Q4_1, Q4_0, Q8], ids=str)
def test_a_product_is_one_operator_with_its_epilogue(packing: Packing) -> None:
    parts, values = tensor(packing, 48, 64)
    bias = np.arange(48, dtype=np.float32)

    def emit(builder: relax.BlockBuilder, x: Any, weights: list[Any]) -> Any:
        out = builder.emit(relax.op.add(linear(builder, x, weights), relax.const(bias)))
        return builder.emit(relax.op.nn.silu(out))

    mod = module(((1, 3, 64), "float32"), [(packing, parts)], emit)
    graph = build(mod, "uir-cpu")
    (node,) = graph.nodes
    assert node.ops == ("library.matmul", "add", "silu") and node.function.endswith("quantized_matmul")
    assert node.bytes_read == packing.nbytes(48, 64) + 3 * 64 * 4 + 48 * 4
    moved = node.bytes_read + node.outputs[0].bytes
    assert 4 * work_of(node.kind, node.attrs.to_json()).elements == moved, "what --explain counts"
    assert not whole_weights(graph, 48 * 64)
    x = np.random.default_rng(1).standard_normal((1, 3, 64)).astype(np.float32) / 16
    want = x @ values.T.astype(np.float64) + bias
    got = np.asarray(uir_tvm.compile(mod)(x))
    np.testing.assert_allclose(got, want / (1 + np.exp(-want)), rtol=1e-5, atol=NEAR)


def test_products_of_one_matrix_are_one() -> None:
    tensors = [tensor(Q4_1, rows, 64, rows) for rows in (48, 16, 16)]

    def emit(builder: relax.BlockBuilder, x: Any, weights: list[Any]) -> Any:
        products = [linear(builder, x, [weight]) for weight in weights]
        return builder.emit(relax.op.concat(products, -1))

    mod = module(((5, 64), "float32"), [(Q4_1, parts) for parts, _ in tensors], emit)
    graph = build(mod, "uir-cpu")
    (node,) = graph.library_ops
    assert node.attrs.n == 80
    x = np.random.default_rng(1).standard_normal((5, 64)).astype(np.float32)
    want = x @ np.concatenate([values for _, values in tensors]).T.astype(np.float64)
    np.testing.assert_allclose(np.asarray(uir_tvm.compile(mod)(x)), want, rtol=1e-5, atol=NEAR)


@pytest.mark.parametrize("mode", ["fast", "clip", "wrap"])
def test_rows_are_taken_before_they_are_unpacked(mode: str) -> None:
    parts, values = tensor(Q4_1, 4096, 64)

    def emit(builder: relax.BlockBuilder, x: Any, weights: list[Any]) -> Any:
        return builder.emit(relax.op.take(weights[0], x, 0, mode))

    mod = module(((2, 3), "int64"), [(Q4_1, parts)], emit)
    graph = build(mod, "uir-cpu")
    assert not whole_weights(graph, 4096 * 64) and graph.fused_bytes < 8192
    rows = np.array([[5, 4095, 0], [17, 17, 2]])
    np.testing.assert_array_equal(np.asarray(uir_tvm.compile(mod)(rows)), values[rows])


@pytest.mark.parametrize("packing", [Q4_1, Q8], ids=str)
@pytest.mark.parametrize("device", DEVICE_TARGETS[1:], ids=name_of)
def test_devices_unpack_rows_by_vectors(device: DeviceTarget, packing: Packing) -> None:
    """No scalar code touches codes: it takes some tens of cycles for each of them."""
    parts, values = tensor(packing, 96, 256)

    def emit(builder: relax.BlockBuilder, x: Any, weights: list[Any]) -> Any:
        return builder.emit(relax.op.take(weights[0], x, 0))

    exe = uir_tvm.compile(module(((1, 5), "int64"), [(packing, parts)], emit), target=device.target())
    rows = np.array([[3, 95, 3, 0, 64]])
    np.testing.assert_array_equal(np.asarray(exe(rows)), values[rows])
    notes = [note for kernel in exe.info.kernels for part in kernel.code["printer"].values() for note in part]
    assert notes and not [note for note in notes if "uint8" in note and "scalar code" in note]


def test_one_tensor_may_be_embedding_and_head() -> None:
    parts, values = tensor(Q4_1, 96, 64)

    def emit(builder: relax.BlockBuilder, x: Any, weights: list[Any]) -> Any:
        return linear(builder, builder.emit(relax.op.take(weights[0], x, 0)), weights)

    mod = module(((1, 4), "int64"), [(Q4_1, parts)], emit)
    assert not whole_weights(build(mod, "uir-cpu"), 96 * 64)
    rows = np.array([[3, 95, 3, 0]])
    got = np.asarray(uir_tvm.compile(mod)(rows))
    np.testing.assert_allclose(got, values[rows] @ values.T, rtol=1e-5, atol=NEAR)


def test_any_number_of_rows_by_one_executable() -> None:
    parts, values = tensor(Q4_1, 48, 64)
    n = tvm.tirx.Var("n", "int64")
    exe = uir_tvm.compile(module(((1, n, 64), "float32"), [(Q4_1, parts)], linear))
    for rows in (1, 4, 29):
        x = np.random.default_rng(rows).standard_normal((1, rows, 64)).astype(np.float32)
        np.testing.assert_allclose(np.asarray(exe(x)), x @ values.T, rtol=1e-5, atol=NEAR)
    (program,) = exe.report()["programs"]
    assert program["library"] == 1 and program["shapes"] == 3


def test_half_precision_computes_in_float32_and_rounds_once() -> None:
    parts, values = tensor(Q4_0, 48, 64)
    mod = module(((3, 64), "float16"), [(Q4_0, parts)], linear, "float16")
    assert len(build(mod, "uir-cpu").library_ops) == 1
    x = np.random.default_rng(1).standard_normal((3, 64)).astype(np.float16)
    want = x.astype(np.float64) @ values.T.astype(np.float64)
    np.testing.assert_allclose(np.asarray(uir_tvm.compile(mod)(x)), want, rtol=2**-10, atol=NEAR)


def other(builder: relax.BlockBuilder, x: Any, weights: list[Any]) -> Any:
    return builder.emit(relax.op.add(weights[0], x))


def straight(builder: relax.BlockBuilder, x: Any, weights: list[Any]) -> Any:
    return builder.emit(relax.op.matmul(x, weights[0]))


def by_columns(builder: relax.BlockBuilder, x: Any, weights: list[Any]) -> Any:
    return builder.emit(relax.op.take(weights[0], builder.emit(relax.op.astype(x, "int64")), 1))


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.sampled_from([Q4_1, Q4_0, Q8, Packing(4, 6, 3), Packing(8, 2, 1, "float16", True)]), st.booleans())
def test_packings_and_readers_that_no_library_takes_compute_the_same(packing: Packing, product: bool) -> None:
    columns = packing.group * 2
    parts, values = tensor(packing, 10, columns)
    x = np.random.default_rng(1).standard_normal((10, columns)).astype(np.float32)
    mod = module(((10, columns), "float32"), [(packing, parts)], linear if product else other)
    want = x @ values.T.astype(np.float64) if product else values + x
    np.testing.assert_allclose(np.asarray(uir_tvm.compile(mod)(x)), want, rtol=1e-5, atol=NEAR)


@pytest.mark.parametrize("emit", [straight, by_columns])
def test_other_readings_compute_the_same(emit: Emit) -> None:
    parts, values = tensor(Q4_1, 10, 64)
    x = np.random.default_rng(1).integers(0, 10, (2, 10)).astype(np.float32)
    got = np.asarray(uir_tvm.compile(module(((2, 10), "float32"), [(Q4_1, parts)], emit))(x))
    want = x @ values.astype(np.float64) if emit is straight else values[:, x.astype(int)]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=NEAR)


def test_weights_that_are_inputs() -> None:
    parts, values = tensor(Q4_1, 10, 64)
    builder = relax.BlockBuilder()
    types = [relax.TensorType(part.shape, part.dtype.name) for part in parts]
    params = [relax.Var(f"w{at}", type_) for at, type_ in enumerate(types)]
    params.append(relax.Var("x", relax.TensorType((3, 64), "float32")))
    with builder.function("main", params):
        with builder.dataflow():
            weight = builder.emit(dequantize_call(builder, Q4_1, *params[:3]))
            out = builder.emit_output(linear(builder, params[3], [weight]))
        builder.emit_func_output(out)
    x = np.random.default_rng(1).standard_normal((3, 64)).astype(np.float32)
    got = np.asarray(uir_tvm.compile(builder.get())(*parts, x))
    np.testing.assert_allclose(got, x @ values.T, rtol=1e-5, atol=NEAR)


@pytest.mark.parametrize("device", DEVICE_TARGETS, ids=name_of)
def test_devices_unpack_on_chip(device: DeviceTarget) -> None:
    parts, values = tensor(Q4_1, 48, 64)
    bias = np.arange(48, dtype=np.float32)

    def emit(builder: relax.BlockBuilder, x: Any, weights: list[Any]) -> Any:
        out = builder.emit(relax.op.add(linear(builder, x, weights), relax.const(bias)))
        return builder.emit(relax.op.nn.relu(out))

    mod = module(((1, 3, 64), "float32"), [(Q4_1, parts)], emit)
    graph = build(mod, device.target())
    (node,) = graph.custom_ops
    assert node.ops == ("uir.packed_product", "add", "nn.relu") and len(graph.nodes) == 1
    assert node.bytes_read == Q4_1.nbytes(48, 64) + 3 * 64 * 4 + 48 * 4 and not whole_weights(graph, 48 * 64)
    x = np.random.default_rng(1).standard_normal((1, 3, 64)).astype(np.float32)
    exe = uir_tvm.compile(mod, target=device.target())
    assert exe.report()["kernels_through_igraph"] == 1
    want = np.maximum(x @ values.T.astype(np.float64) + bias, 0)
    np.testing.assert_allclose(np.asarray(exe(x)), want, rtol=1e-5, atol=NEAR)


def test_a_device_takes_any_number_of_rows() -> None:
    device = DEVICE_TARGETS[1]
    parts, values = tensor(Q4_1, 48, 64)
    n = tvm.tirx.Var("n", "int64")
    mod = module(((1, n, 64), "float32"), [(Q4_1, parts)], linear)
    exe = uir_tvm.compile(mod, target=device.target())
    for rows in (1, 5):
        x = np.random.default_rng(rows).standard_normal((1, rows, 64)).astype(np.float32)
        np.testing.assert_allclose(np.asarray(exe(x)), x @ values.T, rtol=1e-5, atol=NEAR)
