# SPDX-License-Identifier: Apache-2.0
"""Functions of real numbers in terms of simpler ones, where TVM's importer cancels digits or has none."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .torch_arithmetic import NARROW, Number, floating

aten = torch.ops.aten


def expm1(x: Tensor) -> Tensor:
    """exp(x) - 1 without cancellation near 0: tanh(x/2) * (exp(x) + 1)."""
    x = floating(x)
    small = torch.tanh(x * 0.5) * (torch.exp(x) + 1)
    return torch.where(x.abs() < 1, small, torch.exp(x) - 1)


def log1p(x: Tensor) -> Tensor:
    """log(1 + x) without cancellation near 0: log(u) * x / (u - 1), u = fl(1 + x) (W. Kahan)."""
    x = floating(x)
    u = x + 1
    corrected = torch.log(u) * (x / (u - 1))
    return torch.where((u == 1), x, torch.where(torch.isinf(u), torch.log(u), corrected))


def atanh(x: Tensor) -> Tensor:
    """log1p(2x / (1 - x)) / 2 of the magnitude, which has no cancellation near 0."""
    x = floating(x)
    size = x.abs()
    half = 0.5 * log1p(2 * size / (1 - size))
    return torch.where(x < 0, torch.neg(half), half)


def elu(x: Tensor, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1) -> Tensor:
    """scale * (x if x > 0 else alpha * expm1(input_scale * x)); TVM's knows alpha alone, and cancels near 0.

    selu and celu are made of it.
    """
    negative = expm1(x * input_scale if input_scale != 1 else x) * (alpha * scale)
    return torch.where(x > 0, x * scale if scale != 1 else x, negative)


def exp2(x: Tensor) -> Tensor:
    """2 ** x."""
    return torch.pow(2.0, floating(x))


#: log(erfc(x) exp(x^2) / t), t = 2 / (2 + x), of x >= 0 as a polynomial of 2 t - 1, the constant first: a
#: series of Chebyshev polynomials by interpolation in 60 nodes with 60 digits, cut where digits end.
_TAIL = {
    torch.float32: (
        -0.6717940917, 0.6726431548, 0.04734388761, -0.04689364056, -0.009880019324, 0.008808825369,
        0.00179406625, -0.002288765239, -0.000227910966, 0.000573766372, 8.000738162e-6, -8.728381022e-5,
    ),
    torch.float64: (
        -0.671794084056692266, 0.672643223977656728, 0.0473433068419044283, -0.0468956102311752965,
        -0.00987268936638995857, 0.00882493855706062317, 0.00175893355779901609, -0.00234581250048285337,
        -0.000146246863378003423, 0.00067367879558023519, -9.37350311709812799e-5, -0.000174302947203077656,
        7.14010141275683457e-5, 3.17451797494433059e-5, -3.01878845513882013e-5, 1.37726641328090884e-7,
        8.56262342010857444e-6, -2.94798687696607254e-6, -1.27231190485056231e-6, 1.25002766121361081e-6,
        -1.68498007224291702e-7, -2.49583276132252796e-7, 1.53343459220170359e-7, 1.44486578104011278e-9,
        -3.91718205142960695e-8, 1.1172352271813603e-8, 4.06088214761465198e-9, -1.89023060215653307e-9,
    ),
}  # fmt: skip


def _scaled_tail(size: Tensor, shift: Tensor | Number) -> Tensor:
    """erfc(size) exp(size^2 + shift) of numbers from 0, in float32 or float64."""
    t = 2 / (2 + size)
    y = 2 * t - 1
    *rest, total = _TAIL[size.dtype]
    result = torch.full_like(y, total)
    for coefficient in reversed(rest):
        result = result * y + coefficient
    return t * torch.exp(result + shift)


def _wide(x: Tensor) -> Tensor:
    """Narrow floats as float32; integers as the default float."""
    return x.float() if x.dtype in NARROW else floating(x)


def erfc(x: Tensor) -> Tensor:
    """1 - erf(x) without cancellation."""
    wide = _wide(x)
    size = wide.abs()
    tail = _scaled_tail(size, -size * size)
    result = torch.where(size < 0.5, 1 - torch.erf(wide), torch.where(wide < 0, 2 - tail, tail))
    return result.to(floating(x).dtype)


def erfcx(x: Tensor) -> Tensor:
    """erfc(x) exp(x^2)."""
    wide = _wide(x)
    tail = _scaled_tail(wide.abs(), 0)
    result = torch.where(wide < 0, 2 * torch.exp(wide * wide) - tail, tail)
    return result.to(floating(x).dtype)


def ndtr(x: Tensor) -> Tensor:
    """The normal distribution's share below x."""
    return (0.5 * erfc(_wide(x) * -math.sqrt(0.5))).to(floating(x).dtype)


def shrink(x: Tensor, lambd: Number = 0.5) -> Tensor:
    """x nearer to zero by lambd; NaN stays (TVM's importer makes zero of it)."""
    near = x.abs() <= lambd
    return torch.where(near, torch.zeros_like(x), x - torch.sign(x) * lambd)


def hypot(x: Tensor, y: Tensor) -> Tensor:
    """sqrt(x^2 + y^2) without overflow; infinite beside NaN too."""
    dtype = torch.result_type(x, y)
    wide = torch.float32 if dtype in NARROW else dtype
    x, y = x.to(wide).abs(), y.to(wide).abs()
    large, small = torch.maximum(x, y), torch.minimum(x, y)
    share = torch.where(large == 0, 0.0, small / large)
    result = large * torch.sqrt(1 + share * share)
    return torch.where(torch.isinf(x) | torch.isinf(y), math.inf, result).to(dtype)


def rrelu(
    x: Tensor, noise: Tensor, lower: Number = 1 / 8, upper: Number = 1 / 3, training: bool = False, *_: Any
) -> Any:
    """A leaky ReLU whose slope is, without training, the mean of the bounds."""
    if training:
        return NotImplemented
    return torch.where(x >= 0, x, x * ((lower + upper) / 2)), noise


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    aten.expm1.default: expm1,
    aten.log1p.default: log1p,
    aten.atanh.default: atanh,
    aten.elu.default: elu,
    aten.exp2.default: exp2,
    aten.erfc.default: erfc,
    aten.special_erfcx.default: erfcx,
    aten.special_ndtr.default: ndtr,
    aten.softshrink.default: shrink,
    aten.hypot.default: hypot,
    aten.rrelu_with_noise_functional.default: rrelu,
}
