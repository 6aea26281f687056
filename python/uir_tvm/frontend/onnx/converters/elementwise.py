# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators where TVM's converters lose a flag or an edge case."""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from .node import Converter, OnnxNode, number


def is_inf(node: OnnxNode) -> list[Any]:
    """IsInf: of the signs that its flags ask for."""
    infinite = relax.op.isinf(node.input(0))
    zero = number(0, node.dtype())
    positive, negative = node.attributes["detect_positive"], node.attributes["detect_negative"]
    if positive and negative:
        return [infinite]
    if not positive and not negative:
        shape, _ = node.result()
        return [relax.op.zeros(shape, "bool")]
    side = (relax.op.greater if positive else relax.op.less)(node.input(0), zero)
    return [relax.op.logical_and(infinite, side)]


def mod(node: OnnxNode) -> list[Any] | None:
    """Mod: of C's sign with fmod, of the divisor's without; infinite divisors keep what is smaller."""
    dtype = node.dtype()
    if not dtype.startswith(("float", "bfloat")):
        operator = relax.op.mod if node.attributes.get("fmod", 0) else relax.op.floor_mod
        return [operator(node.input(0), node.input(1))]
    data, divisor = node.inputs
    zero = number(0, dtype)
    rest = node.emit(relax.op.mod(data, divisor))
    # x mod inf is x, of x's sign
    endless = relax.op.logical_and(relax.op.isinf(divisor), relax.op.isfinite(data))
    rest = node.emit(relax.op.where(endless, data, rest))
    if node.attributes.get("fmod", 0):
        return [rest]
    signs = relax.op.not_equal(relax.op.less(rest, zero), relax.op.less(divisor, zero))
    other = relax.op.logical_and(relax.op.not_equal(rest, zero), signs)
    moved = node.emit(relax.op.where(other, relax.op.add(rest, divisor), rest))
    # a rest of zero has the divisor's sign
    negative = relax.op.logical_and(relax.op.equal(moved, zero), relax.op.less(divisor, zero))
    positive = relax.op.logical_and(relax.op.equal(moved, zero), relax.op.greater(divisor, zero))
    moved = relax.op.where(negative, number(-0.0, dtype), moved)
    return [relax.op.where(positive, zero, moved)]


def dropout(node: OnnxNode) -> list[Any] | None:
    """Dropout in inference, or in training without loss: the identity; random numbers are refused."""
    training = node.constant(2)
    if node.input(2) is not None and training is None:
        return None
    ratio = node.constant(1)
    rate = 0.5 if node.input(1) is None else None if ratio is None else float(ratio.reshape(-1)[0])
    if training is not None and bool(training.reshape(-1)[0]) and rate != 0.0:
        node.refuse(
            "in training mode makes random numbers",
            need="inference (training_mode false), or a ratio of 0",
            remedy="export the model for inference; or multiply with a mask that is an input",
        )
    shape = node.shape()
    mask = relax.op.ones(shape, "bool" if node.step.version >= 10 else node.dtype())
    return [node.input(0), node.emit(mask)][: len(node.step.node.output)]


def _scalar_attribute(name: str) -> Any:
    return lambda node: number(float(node.attributes[name]), node.dtype())


def swish(node: OnnxNode) -> list[Any]:
    """Swish: x * sigmoid(alpha * x)."""
    scaled = relax.op.multiply(node.input(0), _scalar_attribute("alpha")(node))
    return [relax.op.multiply(node.input(0), relax.op.sigmoid(scaled))]


def thresholded_relu(node: OnnxNode) -> list[Any]:
    """ThresholdedRelu: x above alpha, else 0."""
    data, zero = node.input(0), number(0, node.dtype())
    return [relax.op.where(relax.op.greater(data, _scalar_attribute("alpha")(node)), data, zero)]


def shrink(node: OnnxNode) -> list[Any]:
    """Shrink: x + bias below -lambd, x - bias above lambd, else 0; in the dtype of x."""
    dtype = node.dtype()
    bias, limit = node.attributes["bias"], node.attributes["lambd"]
    wide = "float32" if not dtype.startswith(("float", "bfloat")) else dtype
    data = node.emit(relax.op.astype(node.input(0), wide)) if wide != dtype else node.input(0)
    above = relax.op.where(
        relax.op.greater(data, number(limit, wide)),
        relax.op.subtract(data, number(bias, wide)),
        number(0, wide),
    )
    result = relax.op.where(
        relax.op.less(data, number(-limit, wide)), relax.op.add(data, number(bias, wide)), above
    )
    return [relax.op.astype(node.emit(result), dtype) if wide != dtype else result]


def determinant(node: OnnxNode) -> list[Any] | None:
    """Det of small matrices, by cofactors of the first row."""
    shape = node.shape()
    size = shape[-1]
    if size > 4:
        return None
    data = node.input(0)
    rank = len(shape)

    def entry(row: int, column: int) -> Any:
        part = relax.op.strided_slice(data, [rank - 2, rank - 1], [row, column], [row + 1, column + 1])
        return node.emit(relax.op.reshape(node.emit(part), shape[:-2]))

    cells = [[entry(row, column) for column in range(size)] for row in range(size)]

    def minor(rows: tuple[int, ...], columns: tuple[int, ...]) -> Any:
        if len(rows) == 1:
            return cells[rows[0]][columns[0]]
        total = None
        for place, column in enumerate(columns):
            rest = tuple(c for c in columns if c != column)
            term = node.emit(relax.op.multiply(cells[rows[0]][column], minor(rows[1:], rest)))
            if total is None:
                total = term
            else:
                total = node.emit((relax.op.subtract if place % 2 else relax.op.add)(total, term))
        return total

    return [minor(tuple(range(size)), tuple(range(size)))]


def binarizer(node: OnnxNode) -> list[Any] | None:
    """Binarizer: 1 above the threshold, else 0."""
    above = relax.op.greater(node.input(0), number(float(node.attributes["threshold"]), node.dtype()))
    return [relax.op.astype(above, node.dtype())]


def bit_shift(node: OnnxNode) -> list[Any]:
    """BitShift: by as many bits as the dtype has, or more, all are gone; to the right, signs stay."""
    left = node.attributes["direction"].decode() == "LEFT"
    dtype = node.dtype()
    bits = np.dtype(dtype).itemsize * 8
    width = number(bits, dtype)
    inside = relax.op.less(node.input(1), width)
    signs = not left and dtype.startswith("int")
    amount = relax.op.where(inside, node.input(1), number(bits - 1 if signs else 0, dtype))
    if signs:
        return [relax.op.right_shift(node.input(0), node.emit(amount))]
    moved = (relax.op.left_shift if left else relax.op.right_shift)(node.input(0), node.emit(amount))
    return [relax.op.where(inside, moved, number(0, dtype))]


def power(node: OnnxNode) -> list[Any] | None:
    """Pow: in the dtype of the base, whatever that of the exponent; integers of 32 bits through float64."""
    dtype, exponent = node.dtype(), node.input(1)
    floats = ("float", "bfloat")
    if node.dtype(1) == dtype and dtype.startswith(floats):
        return None
    if "int64" in dtype and "int" in node.dtype(1):
        node.refuse(
            f"of {dtype}", need="floats, or integers of at most 32 bits", remedy="cast them to float64"
        )
    if dtype.startswith(("float", "bfloat")):
        return [relax.op.power(node.input(0), relax.op.astype(exponent, dtype))]
    # exact: integers of 32 bits and their powers are float64 numbers
    wide = [relax.op.astype(value, "float64") for value in node.inputs]
    result = relax.op.power(*wide)
    whole = relax.op.round(result) if "int" in node.dtype(1) else result
    return [relax.op.astype(whole, dtype)]


def prelu(node: OnnxNode) -> list[Any]:
    """PRelu: x, or slope * x below zero; the slope broadcasts as any operand."""
    data = node.input(0)
    slope = node.input(1)
    if node.step.version < 7 and len(node.shape(1)) == 1 and len(node.shape()) > 2:
        # one for each channel
        slope = relax.op.reshape(slope, [-1] + [1] * (len(node.shape()) - 2))
    below = relax.op.less(data, number(0, node.dtype()))
    return [relax.op.where(below, relax.op.multiply(data, slope), data)]


def elu(node: OnnxNode) -> list[Any]:
    """Elu: x, or alpha * (exp(x) - 1) below zero."""
    data, dtype = node.input(0), node.dtype()
    alpha, one = number(float(node.attributes["alpha"]), dtype), number(1, dtype)
    small = relax.op.minimum(data, number(0, dtype))
    below = relax.op.multiply(alpha, relax.op.subtract(relax.op.exp(small), one))
    return [relax.op.where(relax.op.less(data, number(0, dtype)), below, data)]


def hard_sigmoid(node: OnnxNode) -> list[Any]:
    """HardSigmoid: alpha * x + beta within 0 and 1."""
    dtype = node.dtype()
    scaled = relax.op.multiply(node.input(0), number(float(node.attributes["alpha"]), dtype))
    moved = relax.op.add(scaled, number(float(node.attributes["beta"]), dtype))
    return [relax.op.minimum(relax.op.maximum(moved, number(0, dtype)), number(1, dtype))]


ELEMENTWISE: dict[str, Converter] = {
    "BitShift": bit_shift,
    "Det": determinant,
    "Dropout": dropout,
    "Elu": elu,
    "HardSigmoid": hard_sigmoid,
    "IsInf": is_inf,
    "Mod": mod,
    "Pow": power,
    "PRelu": prelu,
    "Shrink": shrink,
    "Swish": swish,
    "ThresholdedRelu": thresholded_relu,
    "ai.onnx.ml::Binarizer": binarizer,
}
