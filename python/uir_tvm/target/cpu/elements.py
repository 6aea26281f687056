# SPDX-License-Identifier: Apache-2.0
"""How the elements of each iGraph dtype are stored in a TIR buffer, computed with, and rounded.

Values flow in the *compute* type: fp32 for fp16 and bf16 (rounded after every iOp, as an iGraph
prescribes), the type itself otherwise.  bf16 is stored as its 16 bits, since TVM's legalisation of
that type does not reach every statement.  A bool that is held for later use is an int8.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import attrs
from tvm import tirx
from tvm.ir import Expr

from ...errors import CodegenError
from ...igraph.dtypes import dtype_of
from .vector_math.ops import let


@attrs.frozen
class Element:
    """One row of the table.

    Parameters
    ----------
    storage : str
        TIR dtype of the flat buffer.
    compute : str
        TIR dtype of values.
    load, store : Callable[[Expr], Expr]
        Storage to compute, compute to storage.
    round : Callable[[Expr], Expr]
        A result of the compute type rounded to what the dtype can hold, still in the compute type.
    """

    storage: str
    compute: str
    load: Callable[[Expr], Expr]
    store: Callable[[Expr], Expr]
    round: Callable[[Expr], Expr]


@functools.cache
def _parts(dtype: Any) -> tuple[str, int]:
    """TIR name of the element type of a type, and its lanes: TVM makes new objects to say it."""
    lanes = int(dtype.lanes)
    return str(dtype.with_lanes(1)) if lanes > 1 else str(dtype), lanes


def lanes_of(x: Expr) -> int:
    """Number of lanes; 1 for a scalar."""
    return _parts(x.ty.dtype)[1]


def type_of(x: Expr) -> str:
    """TIR name of the element type."""
    return _parts(x.ty.dtype)[0]


def vector_type(dtype: str, lanes: int) -> str:
    """``float32``, 8 -> ``float32x8``."""
    return dtype if lanes == 1 else f"{dtype}x{lanes}"


def splat(value: Expr, lanes: int) -> Expr:
    """A scalar repeated; a vector as it is."""
    return value if lanes == 1 or lanes_of(value) > 1 else tirx.Broadcast(value, lanes)


def constant(value: Any, dtype: str, lanes: int = 1) -> Expr:
    """A constant of a TIR dtype."""
    if dtype.startswith("float"):
        value = float(value)
    elif dtype == "bool":
        value = bool(value)
    else:
        value = int(value)
    return splat(tirx.const(value, dtype), lanes)


def like(x: Expr, value: Any, dtype: str | None = None) -> Expr:
    """A constant with as many lanes as ``x``, of its type or of ``dtype``."""
    return constant(value, dtype or type_of(x), lanes_of(x))


def convert(x: Expr, dtype: str) -> Expr:
    """TIR's cast of a scalar or vector; nothing where the type is the same, or was before it was widened."""
    if type_of(x) == dtype:
        return x
    narrow = narrow_of(x)
    if narrow is not None and type_of(narrow) == dtype:
        return narrow
    return tirx.Cast(vector_type(dtype, lanes_of(x)), x)


def narrow_of(x: Expr) -> Expr | None:
    """The half precision number that a number is, whose own conversion LLVM does not take back."""
    is_wide = isinstance(x, tirx.Cast) and (type_of(x.value), type_of(x)) == ("float16", "float32")
    return x.value if is_wide else None


def _bits(x: Expr) -> Expr:
    return tirx.reinterpret(vector_type("uint32", lanes_of(x)), x)


def _float(x: Expr) -> Expr:
    return tirx.reinterpret(vector_type("float32", lanes_of(x)), x)


def _round_bf16(x: Expr) -> Expr:
    """Round to nearest even at bit 16; a NaN stays one (adding to its mantissa could make it infinite)."""

    def rounded(x: Expr) -> Expr:
        def of(bits: Expr) -> Expr:
            odd = tirx.bitwise_and(tirx.shift_right(bits, like(bits, 16)), like(bits, 1))
            up = bits + like(bits, 0x7FFF) + odd
            quiet = tirx.bitwise_or(bits, like(bits, 0x400000))
            # TVM's != is false for NaN
            kept = tirx.Select(x <= like(x, float("inf")), up, quiet)
            return _float(tirx.bitwise_and(kept, like(bits, 0xFFFF0000)))

        return let(_bits(x), of)

    return let(x, rounded)


def _load_bf16(x: Expr) -> Expr:
    wide = convert(x, "uint32")
    return _float(tirx.shift_left(wide, like(wide, 16)))


def _store_bf16(x: Expr) -> Expr:
    bits = _bits(x)
    return convert(tirx.shift_right(bits, like(bits, 16)), "uint16")


def _same(x: Expr) -> Expr:
    return x


def _plain(dtype: str) -> Element:
    return Element(dtype, dtype, _same, _same, _same)


def _to(dtype: str) -> Callable[[Expr], Expr]:
    return lambda x: convert(x, dtype)


_SPECIAL: dict[str, Element] = {
    "fp16": Element(
        "float16",
        "float32",
        _to("float32"),
        _to("float16"),
        lambda x: convert(convert(x, "float16"), "float32"),
    ),
    "bf16": Element("uint16", "float32", _load_bf16, _store_bf16, _round_bf16),
    # TVM turns a buffer of bool that is only met in vectors into bytes, but not the conditions that load it
    "bool": Element(
        "int8",
        "bool",
        lambda x: tirx.NE(x, like(x, 0)),
        lambda x: tirx.Select(x, like(x, 1, "int8"), like(x, 0, "int8")),
        _same,
    ),
}


def element(dtype: str) -> Element:
    """The row of an iGraph dtype.

    Raises
    ------
    CodegenError
        fp8, which LLVM has no vectors of on this target.
    """
    if dtype.startswith("fp8"):
        raise CodegenError(
            f"uir-cpu has no arithmetic on {dtype}.",
            where=f"dtype {dtype}",
            need="fp64, fp32, fp16, bf16, integers or bool",
            remedy="cast the tensors to fp16 or bf16 before they reach the kernel",
        )
    return _SPECIAL.get(dtype) or _plain(dtype_of(dtype).tvm)


def boundable(value: Expr) -> Expr:
    """``value`` as a small buffer holds it (bool becomes 0 or 1)."""
    if type_of(value) != "bool":
        return value
    return tirx.Select(value, like(value, 1, "int8"), like(value, 0, "int8"))
