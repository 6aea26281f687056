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
    x = _in(x, torch.result_type(x, y))
    product = x if alpha == 1 else x * alpha
    return torch.neg(product) + y


def _weighted(x: Tensor, y: Operand, alpha: Number) -> Tensor:
    if not isinstance(y, Tensor):
        return x + y * alpha
    dtype = torch.result_type(x, y)
    if dtype in NARROW:
        return (x.float() + y.float() * alpha).to(dtype)
    return x + _in(y, dtype) * alpha


def divided(x: Operand, y: Operand, *, rounding_mode: str | None = None) -> Tensor:
    """A quotient, or one rounded down or towards zero.

    TVM's importer divides integers as floats in float32 to truncate them, and rounds the inexact quotient of
    floats down; PyTorch (c10/util/div_floor) rounds the exact one, by the remainder.
    """
    if rounding_mode is None:
        return torch.div(x, y)
    dtype = torch.result_type(x, y)
    like = x if isinstance(x, Tensor) else y
    assert isinstance(like, Tensor)
    x, y = _tensor(x, dtype, like), _tensor(y, dtype, like)
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


def floor_divide(x: Operand, y: Operand) -> Tensor:
    """A quotient rounded down."""
    dtype = torch.result_type(x, y)
    if dtype.is_floating_point:
        return divided(x, y, rounding_mode="floor")
    if not isinstance(x, Tensor) or x.dtype != dtype:
        like = x if isinstance(x, Tensor) else y
        assert isinstance(like, Tensor)
        return torch.floor_divide(_tensor(x, dtype, like), y)
    return NotImplemented


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
        if isinstance(x, Tensor):
            return NotImplemented
        assert isinstance(y, Tensor)
        return torch.remainder(_tensor(x, dtype, y), y)
    if dtype in NARROW:
        return remainder(_wide(x), _wide(y)).to(dtype)
    like = x if isinstance(x, Tensor) else y
    assert isinstance(like, Tensor)
    x, y = _tensor(x, dtype, like), _tensor(y, dtype, like)
    rest = torch.fmod(x, y)
    return torch.where((rest != 0) & ((y < 0) != (rest < 0)), rest + y, rest)


def power(x: Operand, y: Operand) -> Tensor:
    """Integers to the power of integers by squaring (TVM's importer fails); floats as they are.

    x ** 0.5 and x ** -0.5 are the roots that PyTorch takes: of -inf NaN, where C's pow is inf or 0; but of
    float16 the power.
    """
    dtype = torch.result_type(x, y)
    if isinstance(x, Tensor) and x.is_floating_point() and not isinstance(y, Tensor) and y in ROOTS:
        if x.dtype == torch.float16:
            return torch.pow(x.float(), torch.full((), y, device=x.device)).to(x.dtype)
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


def ldexp(x: Tensor, y: Tensor) -> Tensor:
    """x * 2 ** y."""
    return x * torch.pow(2.0, y)


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


def floating(x: Tensor) -> Tensor:
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


def neg(x: Tensor) -> Any:
    """-x; of uint8 modulo 256 (TVM's fails for want of a -1)."""
    return torch.zeros_like(x) - x if x.dtype == torch.uint8 else NotImplemented


def asks_floats(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Any]:
    """No integer is infinite or no number; TVM's operators refuse bfloat16, small integers and bool."""

    def compute(x: Tensor) -> Any:
        if x.dtype == torch.bfloat16:
            return function(x.float())
        return NotImplemented if x.is_floating_point() else torch.zeros_like(x, dtype=torch.bool)

    return compute


def clamp(x: Tensor, low: Number | None = None, high: Number | None = None) -> Any:
    """Between bounds, which PyTorch casts to an integer's dtype (TVM's are floats, and fail beyond it)."""
    if x.is_floating_point() or x.dtype == torch.bool or isinstance(low, float) or isinstance(high, float):
        return NotImplemented
    known = torch.iinfo(x.dtype)
    bounds = (
        None if bound is None else _tensor((bound - known.min) % (1 << known.bits) + known.min, x.dtype, x)
        for bound in (low, high)
    )
    return clamp_tensors(x, *bounds)


def clamp_tensors(x: Tensor, low: Tensor | None = None, high: Tensor | None = None) -> Tensor:
    """Between bounds of each element, which may be more than x has (TVM's importer fails)."""
    x = x if low is None else torch.maximum(x, low)
    return x if high is None else torch.minimum(x, high)


def masked_fill(x: Tensor, mask: Tensor, value: Operand) -> Tensor:
    """The value where the mask is set."""
    return torch.where(mask, _tensor(value, x.dtype, x), x)


ARITHMETIC: dict[Any, Callable[..., Any]] = {
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
    aten.clamp.default: clamp,
    aten.clamp.Tensor: clamp_tensors,
    aten.copysign.Tensor: copysign,
    aten.copysign.Scalar: copysign,
    aten.signbit.default: signbit,
    aten.ldexp.Tensor: ldexp,
    aten.fmax.default: fmax,
    aten.fmin.default: fmin,
    aten._to_copy.default: to_copy,
    aten.neg.default: neg,
    aten.sign.default: sign,
    aten.isinf.default: asks_floats(torch.isinf),
    aten.isnan.default: asks_floats(torch.isnan),
    aten.masked_fill.Scalar: masked_fill,
    aten.masked_fill.Tensor: masked_fill,
}
