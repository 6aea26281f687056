# SPDX-License-Identifier: Apache-2.0
"""Casts to and from floats of eight bits, exactly rounded, and bits taken for other numbers.

Reading one is a table of its 256 values. TVM's own conversions lose subnormals and saturation.
"""

from __future__ import annotations

from typing import Any

import attrs
import ml_dtypes
import numpy as np
from tvm import relax, te, tirx

from .node import Converter, OnnxNode, dtype_of_element


@attrs.frozen
class FloatFormat:
    """Bits of the mantissa, and what is added to the exponent."""

    mantissa: int
    bias: int


#: Floats of eight bits with a sign.
SIGNED = {
    "float8_e4m3fn": FloatFormat(3, 7),
    "float8_e4m3fnuz": FloatFormat(3, 8),
    "float8_e5m2": FloatFormat(2, 15),
    "float8_e5m2fnuz": FloatFormat(2, 16),
}
NARROW = frozenset({*SIGNED, "float8_e8m0fnu"})


def values_of(dtype: str) -> np.ndarray:
    """The 256 values of a float of eight bits, in float32, by their codes."""
    return np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, dtype)).astype(np.float32)


def from_narrow(node: OnnxNode, data: Any, to: str) -> Any:
    """A cast of a float of eight bits to a wider dtype."""
    source = data.ty.dtype.dtype
    table = relax.const(values_of(str(source)))

    def read(values: te.Tensor, numbers: te.Tensor) -> te.Tensor:
        return te.compute(
            values.shape,
            lambda *i: numbers[tirx.Cast("int32", tirx.reinterpret("uint8", values(*i)))],
            name="from_" + str(source),
        )

    wide = node.builder.emit_te(read, data, table, primfunc_name_hint="from_" + str(source))
    return wide if to == "float32" else node.emit(relax.op.astype(wide, to))


def to_narrow(node: OnnxNode, data: Any, to: str, saturate: bool) -> Any:
    """A cast to a float of eight bits with a sign; numbers beyond its range saturate or become NaN, infinity.

    Ties go to the even code. Numbers of the normal range are rounded in their bits, smaller ones as multiples
    of the least subnormal.
    """
    kind, values = SIGNED[to], values_of(to)
    count = int(np.isfinite(values[:128]).sum())
    nan = int(np.flatnonzero(np.isnan(values))[0])
    infinite = np.flatnonzero(np.isinf(values))
    beyond = count - 1 if saturate else int(infinite[0]) if len(infinite) else nan
    # without a negative zero, its code is NaN
    one_zero = to.endswith("fnuz")
    drop = 23 - kind.mantissa
    least_normal = (128 - kind.bias) << 23
    if node_dtype(data) != "float32":
        data = node.emit(relax.op.astype(data, "float32"))

    def i32(number: int) -> Any:
        return tirx.const(number, "int32")

    def magnitude(numbers: te.Tensor) -> te.Tensor:
        def code(*i: Any) -> Any:
            bits = tirx.reinterpret("int32", numbers(*i)) & i32(0x7FFFFFFF)
            odd = (bits >> i32(drop)) & i32(1)
            least = i32((127 - kind.bias) << kind.mantissa)
            # a NaN, which overflows here, is chosen below
            normal = ((bits + i32((1 << (drop - 1)) - 1) + odd) >> i32(drop)) - least
            steps = tirx.abs(numbers(*i)) * tirx.const(2.0 ** (kind.mantissa + kind.bias - 1), "float32")
            tiny = bits < i32(least_normal)
            small = tirx.Cast("int32", tirx.nearbyint(tirx.Select(tiny, steps, tirx.const(0.0, "float32"))))
            rounded = tirx.Select(tiny, small, normal)
            inside = tirx.Select(rounded < i32(count), rounded, i32(beyond))
            return tirx.Select(bits > i32(0x7F800000), i32(nan), inside)

        return te.compute(numbers.shape, code, name="magnitude")

    def write(numbers: te.Tensor) -> te.Tensor:
        sizes = magnitude(numbers)

        def code(*i: Any) -> Any:
            size = sizes(*i)
            sign = (tirx.reinterpret("int32", numbers(*i)) >> i32(24)) & i32(128)
            whole = size | sign
            if one_zero:
                whole = tirx.Select(tirx.any(size == i32(0), size == i32(nan)), size, whole)
            return tirx.reinterpret(to, tirx.Cast("uint8", whole))

        return te.compute(numbers.shape, code, name="to_" + to)

    return node.builder.emit_te(write, data, primfunc_name_hint="to_" + to)


def node_dtype(data: Any) -> str:
    """The dtype of an expression."""
    return str(data.ty.dtype.dtype)


def to_exponent(node: OnnxNode, data: Any, saturate: bool, mode: str) -> Any:
    """A cast to float8_e8m0fnu: the power of two, rounded up, down or to the nearest."""
    if node_dtype(data) != "float32":
        data = node.emit(relax.op.astype(data, "float32"))

    def write(numbers: te.Tensor) -> te.Tensor:
        def code(*i: Any) -> Any:
            bits = tirx.reinterpret("uint32", numbers(*i))
            exponent = tirx.Cast("int32", (bits >> tirx.const(23, "uint32")) & tirx.const(255, "uint32"))
            mantissa = bits & tirx.const(0x7FFFFF, "uint32")
            if mode == "up":
                more = mantissa > tirx.const(0, "uint32")
            elif mode == "nearest":
                more = mantissa >= tirx.const(0x400000, "uint32")
            else:
                more = tirx.const(False, "bool")
            raised = tirx.Select(more, exponent + 1, exponent)
            top = 254 if saturate else 255
            raised = tirx.Select(tirx.all(exponent < 255, raised > 254), tirx.const(top, "int32"), raised)
            wrong = tirx.Select(exponent == 255, tirx.const(255, "int32"), raised)
            return tirx.reinterpret("float8_e8m0fnu", tirx.Cast("uint8", wrong))

        return te.compute(numbers.shape, code, name="to_float8_e8m0fnu")

    return node.builder.emit_te(write, data, primfunc_name_hint="to_float8_e8m0fnu")


def converted(node: OnnxNode, data: Any, to: str) -> Any | None:
    """A cast by these tables; None where TVM's is right."""
    source = node_dtype(data)
    if source == to:
        return data
    saturate = bool(node.attributes.get("saturate", 1))
    if source in NARROW:
        data = from_narrow(node, data, to if to not in NARROW else "float32")
        if to not in NARROW:
            return data
    if to in SIGNED:
        return to_narrow(node, data, to, saturate)
    if to == "float8_e8m0fnu":
        mode = node.attributes.get("round_mode", b"up")
        return to_exponent(node, data, saturate, mode.decode() if isinstance(mode, bytes) else mode)
    return None


def cast(node: OnnxNode) -> list[Any] | None:
    """Cast and CastLike where a float of eight bits is concerned, or a float becomes a bool."""
    _, to = node.result()
    if not to:
        to = dtype_of_element(node.attributes["to"])
    source = node.dtype()
    if NARROW & {source, to}:
        result = converted(node, node.input(0), to)
        return None if result is None else [result]
    return [node.input(0) if source == to else relax.op.astype(node.input(0), to)]


def bit_cast(node: OnnxNode) -> list[Any] | None:
    """BitCast between dtypes of one width."""
    _, to = node.result()
    if not to or "bool" in (to, node.dtype()):
        return None

    def taken(values: te.Tensor) -> te.Tensor:
        return te.compute(values.shape, lambda *i: tirx.reinterpret(to, values(*i)), name="bit_cast")

    if to == node.dtype():
        return [node.input(0)]
    return [node.builder.emit_te(taken, node.input(0), primfunc_name_hint="bit_cast")]


NARROW_CASTS: dict[str, Converter] = {"BitCast": bit_cast, "Cast": cast, "CastLike": cast}
