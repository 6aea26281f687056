# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions: each by name with the dtypes and values that it meets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F

from .calls import Call, Function

#: The first is what the fast form of the sweep takes of each function, with one of the others in turn.
FLOATS = (
    "f32[35]:edges",
    "f16[35]:edges",
    "bf16[35]:edges",
    "f64[35]:edges",
    "f32[]",
    "f32[0,3]",
    "f32[4,3].t",
)
WHOLE = ("i32[12]:edges", "i64[12]:edges", "u8[6]", "bool[5]", "i8[12]:edges")
ROWS = FLOATS + WHOLE
INTEGERS = ("i32[12]:edges", "i64[12]:edges", "u8[6]", "bool[5]", "i16[3].s")

_special = torch.special

UNARY: dict[str, tuple[Function, tuple[str, ...]]] = {
    **{
        name: (getattr(torch, name), ROWS)
        for name in (
            "abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad erf erfc exp exp2 expm1 floor frac "
            "isfinite isinf isnan isneginf isposinf isreal log log10 log1p log2 logical_not logit nan_to_num "
            "neg positive rad2deg reciprocal relu round rsqrt selu sgn sigmoid sign signbit sin sinc sinh "
            "sqrt square tan tanh trunc"
        ).split()
    },
    **{
        f"special.{name}": (getattr(_special, name), ROWS)
        for name in "entr erfcx expit i0 i0e i1 i1e log_ndtr ndtr xlog1py xlogy".split()
        if name not in ("xlog1py", "xlogy")
    },
    "bitwise_not": (torch.bitwise_not, INTEGERS),
    "erfinv": (torch.erfinv, ("f32[40]:unit", "f32[35]:edges", "f64[9]:unit", "f16[9]:unit")),
    "lgamma": (torch.lgamma, ("f32[40]:pos", "f64[9]", "f16[9]:pos")),
    "digamma": (torch.digamma, ("f32[40]:pos", "f64[9]:pos")),
    **{
        f"F.{name}": (getattr(F, name), FLOATS)
        for name in (
            "celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu6 silu "
            "softplus softshrink softsign tanhshrink"
        ).split()
    },
    "relu of integers": (F.relu, WHOLE),
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"), FLOATS),
    "celu 2": (lambda x: F.celu(x, 2.0), FLOATS),
    "elu 0.5": (lambda x: F.elu(x, 0.5), FLOATS),
    "leaky_relu 0.3": (lambda x: F.leaky_relu(x, 0.3), FLOATS),
    "leaky_relu negative": (lambda x: F.leaky_relu(x, -0.3), FLOATS[:2]),
    "softplus beta": (lambda x: F.softplus(x, 3.0, 5.0), FLOATS),
    "softshrink 1": (lambda x: F.softshrink(x, 1.0), FLOATS),
    "hardshrink 1": (lambda x: F.hardshrink(x, 1.0), FLOATS),
    "hardtanh bounds": (lambda x: F.hardtanh(x, -0.5, 2.0), FLOATS),
    "threshold": (lambda x: F.threshold(x, 0.4, 20.0), FLOATS),
    "rrelu": (lambda x: F.rrelu(x), FLOATS[:2]),
    "logit eps": (lambda x: torch.logit(x, 0.1), FLOATS),
    "nan_to_num values": (lambda x: torch.nan_to_num(x, 1.0, 2.0, -3.0), FLOATS),
    "round 2 decimals": (lambda x: torch.round(x, decimals=2), ("f32[9]", "f64[9]")),
    "round -1 decimals": (lambda x: torch.round(x, decimals=-1), ("f32[9]:big", "f64[9]:big")),
    "clamp": (lambda x: torch.clamp(x, -1, 2), ROWS),
    "clamp floats": (lambda x: torch.clamp(x, -1.5, 2.5), ROWS),
    "clamp min": (lambda x: torch.clamp(x, min=0.5), ROWS),
    "clamp max": (lambda x: torch.clamp(x, max=1), ROWS),
    "clamp crossed": (lambda x: torch.clamp(x, 2, -1), FLOATS[:2]),
    "mvlgamma": (lambda x: torch.mvlgamma(x, 2), ("f32[9]:big",)),
    "polygamma": (lambda x: torch.polygamma(1, x), ("f32[9]:pos",)),
}

PAIRS = (
    "f32[35]:edges f32[35]:edges.s",
    "f32[7,5]:edges f32[5,7].t",
    "f16[35]:edges f16[35]",
    "bf16[35]:edges bf16[35]",
    "f64[35]:edges f64[35]",
    "f32[3,1,4] f32[5,1]",
    "f32[] f32[3]",
    "f32[0,3] f32[3]",
    "f32[3] i64[3]",
    "f16[3] f32[3]",
    "i32[3] i64[3]",
    "f16[3] bf16[3]",
    "i64[3] f16[]",
    "f64[] f32[3]",
    "u8[5] i8[5]",
    "bool[5] i32[5]",
)
INTEGER_PAIRS = (
    "i32[12]:edges i32[12]:idx9",
    "i64[12]:edges i64[1]:idx9",
    "u8[5] u8[5]",
    "bool[5] bool[5]",
    "u8[5] i16[5]",
)
NONZERO = (
    "i32[12]:edges i32[12]:pos",
    "i64[12]:edges i64[1]:pos",
    "u8[5] u8[5]:pos",
    "i64[12]:edges i32[]:pos",
)
NEGATIVE = ("i32[12]:edges i32[12]:neg", "i64[12]:edges i64[12]:neg")


def _reversed(function: Function) -> Function:
    return lambda x, y: function(y, x)


BINARY: dict[str, tuple[Function, tuple[str, ...]]] = {
    **{
        name: (getattr(torch, name), PAIRS + INTEGER_PAIRS)
        for name in (
            "add copysign eq fmax fmin ge gt le logical_and logical_or logical_xor lt maximum minimum mul "
            "ne sub atan2 hypot"
        ).split()
    },
    **{name: (getattr(torch, name), INTEGER_PAIRS) for name in "bitwise_and bitwise_or bitwise_xor".split()},
    **{
        f"bitwise_{side}_shift": (
            getattr(torch, f"bitwise_{side}_shift"),
            ("i32[12]:edges i32[12]:idx9", "i64[5] i64[5]:idx20", "u8[5] u8[5]:idx8"),
        )
        for side in ("left", "right")
    },
    **{name: (getattr(torch, name), NONZERO) for name in ("gcd", "lcm")},
    **{
        f"{name}": (function, PAIRS + NONZERO + NEGATIVE)
        for name, function in {
            "div": torch.div,
            "div floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
            "div trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
            "floor_divide": torch.floor_divide,
            "fmod": torch.fmod,
            "remainder": torch.remainder,
        }.items()
    },
    "pow": (torch.pow, PAIRS + ("i32[6]:idx9 i32[6]:idx5", "i64[6] i64[6]:idx5", "f32[6] i32[6]")),
    "float_power": (torch.float_power, ("f32[6]:pos f32[6]", "i32[6]:pos i32[6]")),
    "logaddexp": (torch.logaddexp, PAIRS[:8]),
    "logaddexp2": (torch.logaddexp2, PAIRS[:8]),
    "nextafter": (torch.nextafter, ("f32[35]:edges f32[35]", "f64[35]:edges f64[35]")),
    "heaviside": (torch.heaviside, ("f32[35]:edges f32[35]", "i32[12]:edges i32[12]")),
    "xlogy": (torch.xlogy, PAIRS[:8]),
    "special.xlog1py": (_special.xlog1py, ("f32[9] f32[9]:pos", "f32[35]:edges f32[35]")),
    "special.zeta": (_special.zeta, ("f32[9]:big f32[9]:pos",)),
    "igamma": (torch.igamma, ("f32[9]:pos f32[9]:pos",)),
    "igammac": (torch.igammac, ("f32[9]:pos f32[9]:pos",)),
    "ldexp": (torch.ldexp, ("f32[9] i32[9]", "f32[9] f32[9]")),
    "prelu": (F.prelu, ("f32[2,3,4] f32[3]", "f32[2,3] f32[1]", "f16[2,3,4] f16[3]")),
    "where scalars": (lambda x, y: torch.where(x > y, 1.5, 2), PAIRS[:3]),
    "where of both": (lambda x, y: torch.where(x > y, x, y), PAIRS + INTEGER_PAIRS),
    "where scalar": (lambda x, y: torch.where(x > y, x, 2.0), PAIRS[:5] + INTEGER_PAIRS[:2]),
    "isclose": (torch.isclose, ("f32[35]:edges f32[35]:edges", "f64[5] f64[5]", "i32[5] i32[5]")),
    "isclose nan": (lambda x, y: torch.isclose(x, y, equal_nan=True), ("f32[35]:edges f32[35]:edges",)),
    "add alpha": (lambda x, y: torch.add(x, y, alpha=3), PAIRS + INTEGER_PAIRS[:3]),
    "sub alpha": (lambda x, y: torch.sub(x, y, alpha=2), PAIRS[:9] + INTEGER_PAIRS[:3]),
    "rsub alpha": (lambda x, y: torch.rsub(x, y, alpha=2), PAIRS[:9] + INTEGER_PAIRS[:3]),
    "add alpha float": (lambda x, y: torch.add(x, y, alpha=0.5), PAIRS[:9]),
    "clamp tensors": (lambda x, y: torch.clamp(x, y - 1, y + 1), PAIRS[:6]),
    "clamp min tensor": (lambda x, y: torch.clamp(x, min=y), PAIRS[:6]),
    "clamp max tensor": (lambda x, y: torch.clamp(x, max=y), PAIRS[:6]),
    "equal parts of iand": (lambda x, y: x & y | x ^ ~y, INTEGER_PAIRS[:4]),
    "squared_difference": (lambda x, y: (x - y) ** 2, PAIRS[:6]),
}

#: What stands on the other side of a tensor.
SCALARS: dict[str, tuple[Function, tuple[str, ...]]] = {
    f"{name} {value!r}": (
        lambda x, f=function, v=value: f(x, v),
        ("f32[35]:edges", "f16[9]", "i32[12]:edges", "u8[5]", "bool[4]", "f32[]", "bf16[0]"),
    )
    for name, function in {
        "add": torch.add,
        "sub": torch.sub,
        "rsub": torch.rsub,
        "mul": torch.mul,
        "div": torch.div,
        "div floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
        "div trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
        "floor_divide": torch.floor_divide,
        "remainder": torch.remainder,
        "fmod": torch.fmod,
        "eq": torch.eq,
        "lt": torch.lt,
        "ge": torch.ge,
        "copysign": torch.copysign,
    }.items()
    for value in (2, -3, 2.5)
}
SCALARS |= (
    {
        f"pow {value!r}": (
            lambda x, v=value: torch.pow(x, v),
            ("f32[35]:edges", "f16[35]:edges", "i32[12]:edges", "f64[9]", "u8[5]"),
        )
        for value in (0, 1, 2, 3, 0.5, -0.5, 2.5)
    }
    | {
        f"pow {value!r} of floats": (lambda x, v=value: torch.pow(x, v), ("f32[35]:edges", "f16[35]:edges"))
        for value in (-1, -2)
    }
    | {
        f"pow of {value!r}": (lambda x, v=value: torch.pow(v, x), ("f32[35]:edges", "f16[9]", "i32[5]:idx6"))
        for value in (2, 0.5, 1)
    }
    | {
        "add scalar alpha": (lambda x: torch.add(x, 2, alpha=3), ("f32[5]", "i32[5]")),
        "sub scalar alpha": (lambda x: torch.sub(x, 2, alpha=3), ("f32[5]", "i32[5]")),
        "rsub scalar alpha": (lambda x: torch.rsub(x, 2, alpha=3), ("f32[5]", "i32[5]")),
        "scalar minus": (lambda x: 1.5 - x, ("f32[5]", "i32[5]", "f16[5]")),
        "scalar over": (lambda x: 3 / x, ("f32[35]:edges", "i32[5]:pos", "f16[5]")),
        "scalar floordiv": (lambda x: 7 // x, ("f32[5]", "i32[5]:pos")),
        "scalar mod": (lambda x: 7 % x, ("f32[5]", "i32[5]:pos")),
        "shift left 3": (lambda x: x << 3, ("i32[12]:edges", "u8[5]", "i64[5]")),
        "shift right 2": (lambda x: x >> 2, ("i32[12]:edges", "u8[5]", "i64[5]")),
        "and 5": (lambda x: x & 5, ("i32[12]:edges", "u8[5]", "i64[5]")),
        "float_power 2": (lambda x: torch.float_power(x, 2), ("f32[5]", "i32[5]")),
        "xlogy scalar": (lambda x: torch.xlogy(2, x), ("f32[35]:edges",)),
        "fill": (lambda x: torch.fill(x, 3.5), ("f32[5]", "i32[5]")),
        "masked_fill": (lambda x: x.masked_fill(x > 0.3, -torch.inf), ("f32[35]:edges", "f16[5]")),
        "masked_fill tensor": (lambda x: x.masked_fill(x > 0, x.sum()), ("f32[5]", "i32[5]")),
    }
)

TERNARY: dict[str, tuple[Function, tuple[str, ...]]] = {
    "where": (
        torch.where,
        (
            "bool[3,5] f32[3,5] f32[5]",
            "bool[5] f16[5] f32[5]",
            "bool[5] i32[5] f32[]",
            "bool[0] f32[0] f32[0]",
            "bool[3,1] i64[1,5] i32[5]",
        ),
    ),
    "addcmul": (
        lambda x, y, z: torch.addcmul(x, y, z, value=0.5),
        ("f32[3,5] f32[5] f32[3,1]", "f16[5] f16[5] f16[5]"),
    ),
    "addcdiv": (
        lambda x, y, z: torch.addcdiv(x, y, z, value=2),
        ("f32[3,5] f32[5] f32[3,1]:pos", "f16[5] f16[5] f16[5]:pos"),
    ),
    "lerp": (
        torch.lerp,
        ("f32[3,5] f32[5] f32[3,1]", "f32[5] f32[5] f32[5]:edges", "f16[5] f16[5] f16[5]:unit"),
    ),
    "lerp scalar": (lambda x, y, z: torch.lerp(x, y, 0.7) + 0 * z, ("f32[5] f32[5] f32[5]",)),
    "clamp of tensors": (
        torch.clamp,
        ("f32[35]:edges f32[35] f32[35]", "i32[5] i32[5] i32[5]", "f32[5] f64[5] f32[]"),
    ),
}

CASTS = {
    f"to {name}": (
        lambda x, d=dtype: x.to(d),
        (
            "f32[12]",
            "f16[12]",
            "f64[12]",
            "bf16[12]",
            "i32[12]",
            "i64[12]:edges",
            "u8[12]",
            "bool[12]",
            "f32[0]",
            "f32[]",
        ),
    )
    for name, dtype in {
        "float64": torch.float64,
        "float32": torch.float32,
        "float16": torch.float16,
        "bfloat16": torch.bfloat16,
        "int64": torch.int64,
        "int32": torch.int32,
        "int16": torch.int16,
        "int8": torch.int8,
        "bool": torch.bool,
    }.items()
} | {
    "to bool of edges": (lambda x: x.bool(), ("f32[35]:edges", "f16[35]:edges")),
    "to half of edges": (lambda x: x.half(), ("f32[35]:edges", "f64[35]:edges")),
    "to bfloat16 of edges": (lambda x: x.bfloat16(), ("f32[35]:edges", "f64[35]:edges")),
    "to uint8": (lambda x: x.to(torch.uint8), ("i32[12]:pos", "bool[12]", "f32[12]:pos")),
    "type_as": (lambda x: x.type_as(torch.zeros(1, dtype=torch.int32)), ("f32[5]", "bool[5]")),
}


#: x - tanh(x), and 1 + erf(x) of negative x.
CANCELLING = frozenset({"F.tanhshrink", "F.gelu", "gelu tanh"})
#: PyTorch's own loses digits by 1 - erf in float64 too.
RELATIVE = {"special.ndtr": 1e-6}


def table() -> Iterator[Call]:
    """Every function with each of its inputs."""
    for family in (UNARY, BINARY, SCALARS, TERNARY, CASTS):
        rows: dict[str, Any] = family
        for name, (function, inputs) in rows.items():
            for text in inputs:
                yield Call(
                    f"{name} ({text})", function, text, RELATIVE.get(name, 0.0), cancels=name in CANCELLING
                )
