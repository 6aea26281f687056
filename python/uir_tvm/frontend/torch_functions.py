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


#: log(erfc(x) exp(x^2) / t), t = 2 / (2 + x), of x >= 0 as a series of Chebyshev's polynomials of 2 t - 1:
#: c0 / 2 + c1 T1 + ..., by interpolation in 60 nodes with 60 digits.
_ERFC = (
    -1.30265371978170943, 0.64196979235649026, 0.0194764732041858363, -0.00956151478680863164,
    -0.000946595344482036866, 0.000366839497852761452, 4.25233248069077716e-5, -2.02785781125342432e-5,
    -1.62429000464702551e-6, 1.3036558355805232e-6, 1.56264417220661432e-8, -8.52380959149265425e-8,
    6.52905443909885152e-9, 5.05934349555146892e-9, -9.91364156493033064e-10, -2.27365122293183608e-10,
    9.64679110201552906e-11, 2.39403808303909242e-12, -6.88602752649753136e-12, 8.94487927309050837e-13,
    3.13092139934317226e-13, -1.12708223613693611e-13, 3.81090525539665303e-16, 7.1060976135888546e-15,
    -1.5230282014370956e-15, -9.4574945732533647e-17, 1.21023718941648363e-16, -2.81666308962782184e-17,
)  # fmt: skip
#: Terms of the series that float32 can tell.
_FLOAT32_TERMS = 12


def _scaled_tail(size: Tensor, shift: Tensor | Number) -> Tensor:
    """erfc(size) exp(size^2 + shift) of numbers from 0, in float32 or float64."""
    t = 2 / (2 + size)
    y = 2 * (2 * t - 1)
    coefficients = _ERFC if size.dtype == torch.float64 else _ERFC[:_FLOAT32_TERMS]
    before, last = torch.zeros_like(y), torch.zeros_like(y)
    for coefficient in coefficients[:0:-1]:  # C. W. Clenshaw's recurrence
        before, last = last, y * last - before + coefficient
    return t * torch.exp(0.5 * (y * last + coefficients[0]) - before + shift)


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
