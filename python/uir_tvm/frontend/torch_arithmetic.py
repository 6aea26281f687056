# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators of PyTorch in terms of simpler ones, where TVM's importer computes something else."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten
Number = bool | int | float
Operand = Tensor | Number

#: Computed in float32 and rounded once, as PyTorch does.
NARROW = (torch.float16, torch.bfloat16)
ROOTS: dict[Number, Callable[[Tensor], Tensor]] = {0.5: torch.sqrt, -0.5: torch.rsqrt}
#: An exponent of a 64-bit integer that does not overflow, in bits, but for bases of -1, 0 and 1.
EXPONENT_BITS = 6


def expm1(x: Tensor) -> Tensor:
    """exp(x) - 1 without cancellation near 0: tanh(x/2) * (exp(x) + 1)."""
    x = _floating(x)
    small = torch.tanh(x * 0.5) * (torch.exp(x) + 1)
    return torch.where(x.abs() < 1, small, torch.exp(x) - 1)


def log1p(x: Tensor) -> Tensor:
    """log(1 + x) without cancellation near 0: log(u) * x / (u - 1), u = fl(1 + x) (W. Kahan)."""
    x = _floating(x)
    u = x + 1
    corrected = torch.log(u) * (x / (u - 1))
    return torch.where((u == 1), x, torch.where(torch.isinf(u), torch.log(u), corrected))


def atanh(x: Tensor) -> Tensor:
    """log1p(2x / (1 - x)) / 2 of the magnitude, which has no cancellation near 0."""
    x = _floating(x)
    size = x.abs()
    return torch.where(x < 0, -0.5, 0.5) * log1p(2 * size / (1 - size))


def elu(x: Tensor, alpha: Number = 1, scale: Number = 1, input_scale: Number = 1) -> Tensor:
    """scale * (x if x > 0 else alpha * expm1(input_scale * x)); TVM's knows alpha alone, and cancels near 0.

    selu and celu are made of it.
    """
    negative = expm1(x * input_scale if input_scale != 1 else x) * (alpha * scale)
    return torch.where(x > 0, x * scale if scale != 1 else x, negative)


def add(x: Tensor, y: Operand, *, alpha: Number = 1) -> Tensor:
    """x + alpha * y; TVM's importer drops alpha."""
    if alpha == 1:
        return NotImplemented
    return _weighted(x, y, alpha)


def sub(x: Tensor, y: Operand, *, alpha: Number = 1) -> Tensor:
    """x - alpha * y; TVM's importer drops alpha."""
    if alpha == 1:
        return NotImplemented
    return _weighted(x, y, -alpha)


def rsub(x: Tensor, y: Operand, alpha: Number = 1) -> Tensor:
    """y - alpha * x; TVM's importer drops alpha."""
    if isinstance(y, Tensor):
        return torch.sub(y, x, alpha=alpha)
    product = x if alpha == 1 else _in(x, torch.result_type(x, y)) * alpha
    return torch.neg(product) + y


def _weighted(x: Tensor, y: Operand, alpha: Number) -> Tensor:
    if not isinstance(y, Tensor):
        return x + y * alpha
    dtype = torch.result_type(x, y)
    if dtype in NARROW:
        return (x.float() + y.float() * alpha).to(dtype)
    return x + _in(y, dtype) * alpha


def divided(x: Tensor, y: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """A quotient, or one rounded down or towards zero.

    TVM's importer divides integers as floats in float32 to truncate them, and rounds the inexact quotient of
    floats down; PyTorch (c10/util/div_floor) rounds the exact one, by the remainder.
    """
    if rounding_mode is None:
        return torch.div(x, y)
    dtype = torch.result_type(x, y)
    x, y = _in(x, dtype), _tensor(y, dtype, x)
    if not dtype.is_floating_point:
        quotient = aten.floor_divide.default(x, y)
        if rounding_mode == "floor":
            return quotient
        uneven = (quotient * y != x) & ((x < 0) != (y < 0))
        return quotient + uneven.to(dtype)
    if dtype in NARROW:
        return divided(x.float(), y.float(), rounding_mode=rounding_mode).to(dtype)
    if rounding_mode == "trunc":
        return torch.trunc(x / y)
    rest = torch.fmod(x, y)
    quotient = (x - rest) / y
    quotient = torch.where((rest != 0) & ((y < 0) != (rest < 0)), quotient - 1, quotient)
    whole = torch.floor(quotient)
    whole = torch.where(quotient - whole > 0.5, whole + 1, whole)
    whole = torch.where(quotient == 0, (x / y) * 0, whole)
    return torch.where(y == 0, x / y, whole)


def floor_divide(x: Tensor, y: Operand) -> Tensor:
    """A quotient rounded down."""
    dtype = torch.result_type(x, y)
    if not dtype.is_floating_point:
        return NotImplemented
    return divided(x, y, rounding_mode="floor")


def fmod(x: Tensor, y: Operand) -> Tensor:
    """The remainder of a quotient rounded towards zero, with the sign of the dividend."""
    dtype = torch.result_type(x, y)
    if dtype in NARROW:
        return torch.fmod(x.float(), y.float() if isinstance(y, Tensor) else y).to(dtype)
    if dtype.is_floating_point:
        return NotImplemented
    x, y = _in(x, dtype), _tensor(y, dtype, x)
    return x - divided(x, y, rounding_mode="trunc") * y


def remainder(x: Operand, y: Operand) -> Tensor:
    """The remainder of a quotient rounded down, with the sign of the divisor: by fmod, which is exact."""
    dtype = torch.result_type(x, y)
    if not dtype.is_floating_point:
        return NotImplemented
    if dtype in NARROW:
        return remainder(_wide(x), _wide(y)).to(dtype)
    like = x if isinstance(x, Tensor) else y
    assert isinstance(like, Tensor)
    x, y = _tensor(x, dtype, like), _tensor(y, dtype, like)
    rest = torch.fmod(x, y)
    return torch.where((rest != 0) & ((y < 0) != (rest < 0)), rest + y, rest)


def power(x: Operand, y: Operand) -> Tensor:
    """Integers to the power of integers by squaring (TVM's importer fails); floats as they are.

    x ** 0.5 and x ** -0.5 are the roots that PyTorch takes: of -inf NaN, where C's pow is inf or 0.
    """
    dtype = torch.result_type(x, y)
    if isinstance(x, Tensor) and x.is_floating_point() and not isinstance(y, Tensor) and y in ROOTS:
        return ROOTS[y](x)
    if dtype.is_floating_point or dtype == torch.bool:
        return NotImplemented
    like = x if isinstance(x, Tensor) else y
    assert isinstance(like, Tensor)
    if isinstance(y, int):
        base, result, left = _in(like, dtype), None, y
        while left:
            if left & 1:
                result = base if result is None else result * base
            left >>= 1
            base = base * base if left else base
        return torch.ones_like(like, dtype=dtype) if result is None else result
    base, exponent = _tensor(x, dtype, like), _tensor(y, dtype, like)
    base, exponent = torch.broadcast_tensors(base, exponent)
    result, square = torch.ones_like(base), base
    for bit in range(EXPONENT_BITS):
        taken = (exponent & (1 << bit)) != 0
        result = torch.where(taken, result * square, result)
        square = square * square
    odd = (exponent & 1) != 0
    # A negative exponent: 1 / x of an integer is 0 but for -1 and 1.
    unit = torch.where(base == -1, torch.where(odd, -1, 1), torch.where(base == 1, 1, 0)).to(dtype)
    return torch.where(exponent < 0, unit, result)


def copysign(x: Tensor, y: Operand) -> Tensor:
    """|x| with the sign of y; that of a NaN is taken as +, since no operator of Relax tells it."""
    dtype = torch.result_type(x, y)
    if not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    size = _in(x, dtype).abs()
    if not isinstance(y, Tensor):
        return torch.neg(size) if math.copysign(1, y) < 0 else size
    return torch.where(signbit(y), torch.neg(size), size)


def signbit(x: Tensor) -> Tensor:
    """Whether a number is negative or the negative zero, whose reciprocal is -inf."""
    if not x.is_floating_point():
        return x < 0 if x.dtype != torch.bool else torch.zeros_like(x)
    return (x < 0) | ((x == 0) & (torch.reciprocal(x) < 0))


def fmax(x: Tensor, y: Tensor) -> Tensor:
    """The larger; of a NaN and a number the number."""
    return torch.where(torch.isnan(x), y, torch.where(torch.isnan(y), x, torch.maximum(x, y)))


def fmin(x: Tensor, y: Tensor) -> Tensor:
    """The smaller; of a NaN and a number the number."""
    return torch.where(torch.isnan(x), y, torch.where(torch.isnan(y), x, torch.minimum(x, y)))


def to_copy(x: Tensor, *, dtype: torch.dtype | None = None, **others: Any) -> Tensor:
    """A cast; to bool it asks whether a number is not zero (TVM's makes false of 0.5)."""
    if dtype == torch.bool and x.dtype != torch.bool:
        return torch.ne(x, 0)
    return NotImplemented


def _floating(x: Tensor) -> Tensor:
    return x if x.is_floating_point() else x.to(torch.get_default_dtype())


def _in(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x if x.dtype == dtype else x.to(dtype)


def _wide(x: Operand) -> Operand:
    return x.float() if isinstance(x, Tensor) else x


def _tensor(x: Operand, dtype: torch.dtype, like: Tensor) -> Tensor:
    """An operand as a tensor of a dtype."""
    return _in(x, dtype) if isinstance(x, Tensor) else torch.full((), x, dtype=dtype, device=like.device)


def sign(x: Tensor) -> Tensor:
    """-1, 0 or 1; of unsigned numbers and bool whether they are not zero (TVM's fails for want of a -1)."""
    if x.dtype in (torch.uint8, torch.bool):
        return (x != 0).to(x.dtype)
    return NotImplemented


def asks_floats(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Any]:
    """No integer is infinite or no number; TVM's operators refuse bfloat16, small integers and bool."""

    def compute(x: Tensor) -> Any:
        if x.dtype == torch.bfloat16:
            return function(x.float())
        return NotImplemented if x.is_floating_point() else torch.zeros_like(x, dtype=torch.bool)

    return compute


def exp2(x: Tensor) -> Tensor:
    """2 ** x."""
    return torch.pow(2.0, _floating(x))


# t * exp(-x^2 + P(t)), t = 1 / (1 + x / 2): relative error below 1.2e-7 for every x >= 0.
# Source: Press et al., Numerical Recipes (2nd edition), section 6.2, function erfcc.
_ERFC = (-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587,
         -0.82215223, 0.17087277)  # fmt: skip


def erfc(x: Tensor) -> Tensor:
    """1 - erf(x) without cancellation; float64 is left to be refused, as these coefficients serve float32."""
    if x.dtype == torch.float64:
        return NotImplemented
    wide = x.float()
    size = wide.abs()
    t = 1 / (1 + 0.5 * size)
    polynomial = torch.full((), _ERFC[-1], device=x.device)
    for coefficient in _ERFC[-2::-1]:
        polynomial = polynomial * t + coefficient
    tail = torch.where(torch.isinf(size), torch.zeros_like(size), t * torch.exp(polynomial - size * size))
    near = 1 - torch.erf(wide)
    result = torch.where(size < 0.5, near, torch.where(wide < 0, 2 - tail, tail))
    return result.to(x.dtype) if x.dtype in NARROW else result


def ndtr(x: Tensor) -> Tensor:
    """The normal distribution's share below x."""
    return 0.5 * torch.erfc(_floating(x) * -math.sqrt(0.5))


def shrink(x: Tensor, lambd: Number = 0.5) -> Tensor:
    """x nearer to zero by lambd; NaN stays (TVM's importer makes zero of it)."""
    near = x.abs() <= lambd
    return torch.where(near, torch.zeros_like(x), x - torch.sign(x) * lambd)


def masked_fill(x: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """The value where the mask is set."""
    return torch.where(mask, _tensor(value, x.dtype, x), x)


ARITHMETIC: dict[Any, Callable[..., Any]] = {
    aten.expm1.default: expm1,
    aten.log1p.default: log1p,
    aten.atanh.default: atanh,
    aten.elu.default: elu,
    aten.add.Tensor: add,
    aten.add.Scalar: lambda x, y, alpha=1: add(x, y, alpha=alpha),
    aten.sub.Tensor: sub,
    aten.sub.Scalar: lambda x, y, alpha=1: sub(x, y, alpha=alpha),
    aten.rsub.Tensor: lambda x, y, *, alpha=1: rsub(x, y, alpha),
    aten.rsub.Scalar: rsub,
    aten.div.Tensor_mode: divided,
    aten.div.Scalar_mode: divided,
    aten.floor_divide.default: floor_divide,
    aten.floor_divide.Scalar: floor_divide,
    aten.fmod.Tensor: fmod,
    aten.fmod.Scalar: fmod,
    aten.remainder.Tensor: remainder,
    aten.remainder.Scalar: remainder,
    aten.remainder.Scalar_Tensor: remainder,
    aten.pow.Tensor_Tensor: power,
    aten.pow.Tensor_Scalar: power,
    aten.pow.Scalar: power,
    aten.copysign.Tensor: copysign,
    aten.copysign.Scalar: copysign,
    aten.signbit.default: signbit,
    aten.fmax.default: fmax,
    aten.fmin.default: fmin,
    aten._to_copy.default: to_copy,
    aten.sign.default: sign,
    aten.isinf.default: asks_floats(torch.isinf),
    aten.isnan.default: asks_floats(torch.isnan),
    aten.exp2.default: exp2,
    aten.erfc.default: erfc,
    aten.special_ndtr.default: ndtr,
    aten.softshrink.default: shrink,
    aten.masked_fill.Scalar: masked_fill,
    aten.masked_fill.Tensor: masked_fill,
}
