# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX Runtime's domain: what they mean, computed by NumPy."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import uir_tvm
from onnx import TensorProto, helper, numpy_helper
from uir_tvm.errors import QuantizationError, UnsupportedOperatorError
from uir_tvm.frontend.onnx.mat_mul_n_bits import unpacked


def _model(node: onnx.NodeProto, inputs: dict, outputs: dict, constants: dict) -> onnx.ModelProto:
    def info(name: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    graph = helper.make_graph(
        [node],
        "microsoft",
        [info(*item) for item in inputs.items()],
        [info(*item) for item in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_weights_of_few_bits(bits: int, zeros: bool) -> None:
    """Each number is scale * (bits - zero point), by blocks; the last block is not full."""
    rng = np.random.default_rng(bits)
    count, length, block = 16, 40, 16
    blocks, per_byte = -(-length // block), 8 // bits
    packed = rng.integers(0, 256, (count, blocks, block // per_byte)).astype(np.uint8)
    scales = rng.random((count, blocks)).astype(np.float32)
    offsets = rng.integers(0, 256, (count, -(-blocks // per_byte))).astype(np.uint8)
    names = ["A", "B", "s", *(["z"] if zeros else [])]
    node = helper.make_node(
        "MatMulNBits", names, ["Y"], domain="com.microsoft", K=length, N=count, bits=bits, block_size=block
    )
    constants = {"B": packed, "s": scales, **({"z": offsets} if zeros else {})}
    model = _model(node, {"A": (3, length)}, {"Y": (3, count)}, constants)
    weight = np.zeros((count, length), np.float32)
    for row in range(count):
        for k in range(length):
            inside = k % block
            number = packed[row, k // block, inside // per_byte] >> (bits * (inside % per_byte))
            group = k // block
            zero = offsets[row, group // per_byte] >> (bits * (group % per_byte))
            mask = 2**bits - 1
            weight[row, k] = scales[row, group] * (
                int(number & mask) - (int(zero & mask) if zeros else 2 ** (bits - 1))
            )
    a = rng.standard_normal((3, length)).astype(np.float32)
    exe = uir_tvm.compile(model, "uir-cpu")
    np.testing.assert_allclose(exe(a), a @ weight.T, rtol=1e-4, atol=1e-4)
    assert exe.report()["constant_bytes"] < weight.nbytes / 2, "the weight is unpacked"


ORDERS = {
    "in turn": lambda length, groups: np.arange(length) % groups,
    "back": lambda length, groups: (np.arange(length) // 16)[::-1],
    "one": lambda length, groups: np.full(length, 1),
    "uneven": lambda length, groups: np.minimum(np.arange(length) ** 2 // 500, groups - 1),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_inputs_with_groups_in_another_order(bits: int, order: str) -> None:
    """A group index puts every input into any group; the weight stays packed, as large as its codes."""
    rng = np.random.default_rng(bits)
    count, length, block = 16, 70, 16
    groups, per_byte = -(-length // block), 8 // bits
    packed = rng.integers(0, 256, (count, groups, block // per_byte)).astype(np.uint8)
    scales = rng.random((count, groups)).astype(np.float32)
    zeros = rng.integers(0, 256, (count, -(-groups // per_byte))).astype(np.uint8)
    index = ORDERS[order](length, groups).astype(np.int32)
    names = ["A", "B", "s", "z", "g", "bias"]
    bias = rng.standard_normal(count).astype(np.float32)
    constants = {"B": packed, "s": scales, "z": zeros, "g": index, "bias": bias}
    node = helper.make_node(
        "MatMulNBits", names, ["Y"], domain="com.microsoft", K=length, N=count, bits=bits, block_size=block
    )
    model = _model(node, {"A": (2, 3, length)}, {"Y": (2, 3, count)}, constants)
    codes = unpacked(packed, bits).reshape(count, -1)[:, :length]
    points = unpacked(zeros, bits)
    weight = (codes - points[:, index]) * scales[:, index]
    a = rng.standard_normal((2, 3, length)).astype(np.float32)
    exe = uir_tvm.compile(model, "uir-cpu")
    np.testing.assert_allclose(exe(a), a @ weight.T + bias, rtol=1e-4, atol=1e-4 * 2**bits)
    columns = length + groups * block  # at most: each group is whole blocks
    least = count * columns * max(bits, 4) // 8 + 2 * count * (columns // block) * 4
    others = 8 * columns + 4 * count
    assert exe.report()["constant_bytes"] <= least + others


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"K": 0}, "K=0"),
        ({"block_size": 0}, "block_size=0"),
        ({"N": 5}, "B of MatMulNBits has 256 elements"),
        ({"s": np.ones((8, 3), np.float32)}, "scales of MatMulNBits has 24"),
        ({"z": np.ones((8, 2), np.uint8)}, "zero points of MatMulNBits has 16"),
        ({"g": np.zeros(63, np.int32)}, "g_idx of MatMulNBits has 63"),
        ({"g": np.full(64, 2, np.int32)}, "groups 2 to 2"),
        ({"s": np.full((8, 2), np.nan, np.float32)}, "the scale is nan"),
    ],
)
def test_parts_that_do_not_fit(change: dict, match: str) -> None:
    constants = {
        "B": np.zeros((8, 2, 16), np.uint8),
        "s": np.ones((8, 2), np.float32),
        "z": np.ones((8, 1), np.uint8),
        "g": np.repeat(np.arange(2, dtype=np.int32), 32),
    }
    told = {"N": 8, "K": 64, "bits": 4, "block_size": 32}
    told |= {name: value for name, value in change.items() if name in told}
    constants |= {name: value for name, value in change.items() if name in constants}
    node = helper.make_node("MatMulNBits", ["A", *constants], ["Y"], domain="com.microsoft", **told)
    with pytest.raises(QuantizationError, match=match) as caught:
        uir_tvm.compile(_model(node, {"A": (3, 64)}, {"Y": (3, 8)}, constants), "uir-cpu")
    assert caught.value.where and caught.value.need


@pytest.mark.parametrize("zeros", ["none", "one", "each", "floats"])
@pytest.mark.parametrize("bits", [4, 8])
def test_weights_of_whole_blocks_stay_packed(bits: int, zeros: str) -> None:
    """They are what they mean, and no unpacked weight is in the kernel graph of any target."""
    rng = np.random.default_rng(bits)
    count, length, block = 24, 64, 32
    groups, per_byte = length // block, 8 // bits
    packed = rng.integers(0, 256, (count, groups, block // per_byte)).astype(np.uint8)
    scales = rng.random((count, groups)).astype(np.float32)
    points = np.full((count, groups), 2.0 ** (bits - 1))
    constants, names = {"B": packed, "s": scales}, ["A", "B", "s"]
    if zeros != "none":
        names.append("z")
        width = -(-groups // per_byte)
        of_bytes = {"one": np.full((count, width), 0x77), "each": rng.integers(0, 256, (count, width))}
        if zeros == "floats":
            points = rng.random((count, groups)).astype(np.float32) * 4
            constants["z"] = points
        else:
            stored = of_bytes[zeros].astype(np.uint8)
            constants["z"] = stored
            points = unpacked(stored, bits)[:, :groups]
    node = helper.make_node(
        "MatMulNBits", names, ["Y"], domain="com.microsoft", K=length, N=count, bits=bits, block_size=block
    )
    model = _model(node, {"A": (3, length)}, {"Y": (3, count)}, constants)
    codes = unpacked(packed, bits).reshape(count, groups, block)
    weight = (scales[..., None] * (codes - points[..., None])).reshape(count, length)
    a = rng.standard_normal((3, length)).astype(np.float32)
    exe = uir_tvm.compile(model, "uir-cpu")
    np.testing.assert_allclose(exe(a), a @ weight.T, rtol=1e-5, atol=1e-4 * 2**bits)
    scales_bytes = 2 * scales.nbytes if zeros in ("each", "floats") else scales.nbytes
    least = -(-count // 16) * 16 / count * (packed.nbytes + scales_bytes)
    assert exe.report()["constant_bytes"] == least


def test_computed_weights_of_few_bits_are_refused() -> None:
    node = helper.make_node("MatMulNBits", ["A", "A", "A"], ["Y"], domain="com.microsoft", K=4, N=4)
    with pytest.raises(UnsupportedOperatorError, match="weights that are computed"):
        uir_tvm.compile(_model(node, {"A": (4, 4)}, {"Y": (4, 4)}, {}), "uir-cpu")


def _quantised(x: np.ndarray) -> tuple[np.ndarray, np.float32]:
    """DynamicQuantizeLinear: numbers minus their zero point, and the step."""
    low, high = min(0.0, x.min()), max(0.0, x.max())
    step = np.float32((high - low) / 255)
    zero = np.clip(np.rint(-low / step), 0, 255)
    return np.clip(np.rint(x / step) + zero, 0, 255) - zero, step


def test_an_lstm_of_bytes() -> None:
    """Both products take bytes: their operands are quantised anew at each step, all at once."""
    rng = np.random.default_rng(0)
    steps, batch, size, hidden = 3, 2, 5, 4
    weight = rng.integers(-100, 100, (1, size, 4 * hidden)).astype(np.int8)
    recurrence = rng.integers(-100, 100, (1, hidden, 4 * hidden)).astype(np.int8)
    bias = (0.1 * rng.standard_normal((1, 8 * hidden))).astype(np.float32)
    scales = {"ws": np.array([0.002], np.float32), "rs": np.array([0.004], np.float32)}
    zeros = {"wz": np.array([1], np.int8), "rz": np.array([-3], np.int8)}
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        ["X", "W", "R", "B", "", "", "", "", "ws", "wz", "rs", "rz"],
        ["Y"],
        domain="com.microsoft",
        hidden_size=hidden,
    )
    constants = {"W": weight, "R": recurrence, "B": bias, **scales, **zeros}
    model = _model(node, {"X": (steps, batch, size)}, {"Y": (steps, 1, batch, hidden)}, constants)
    x = rng.standard_normal((steps, batch, size)).astype(np.float32)

    def product(value: np.ndarray, matrix: np.ndarray, scale: str, zero: str) -> np.ndarray:
        numbers, step = _quantised(value)
        return numbers @ (matrix[0].astype(int) - zeros[zero]) * step * scales[scale]

    def sigmoid(value: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-value))

    given = product(x.reshape(-1, size), weight, "ws", "wz").reshape(steps, batch, -1)
    h, c, wanted = np.zeros((batch, hidden)), np.zeros((batch, hidden)), []
    for time in range(steps):
        # a state of zeros has no range, and adds nothing
        added = product(h, recurrence, "rs", "rz") if h.any() else 0
        i, o, f, g = np.split(given[time] + added + bias[0, : 4 * hidden] + bias[0, 4 * hidden :], 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        wanted.append(h)
    found = np.asarray(uir_tvm.compile(model, "uir-cpu")(x))[:, 0]
    np.testing.assert_allclose(found, wanted, atol=1e-5)
