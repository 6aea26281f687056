# SPDX-License-Identifier: Apache-2.0
"""Exact arithmetic that stands for that of real numbers: residues of two primes, on NumPy arrays.

A value is a pair (u, v): u in the field of P elements, v in the field of Q elements, where P = 2*Q + 1 (both
prime).  Sums, products and quotients are taken in both.  Numbers embed as the residues of the fraction that
they are.  Two expressions that are equal as rational functions are equal here for any input; two that are not
are equal with probability at most degree/P for random input (Schwartz and Zippel).

``exp`` is ``u' = w ** v`` with w of order Q modulo P, so that exp(a + b) = exp(a) * exp(b) as it is for real
numbers; the exponent is what v is for.  (The pair of primes: Wu et al., Mirage, arXiv 2405.05751.)  What
comes out of an exponential has no v (`NONE`), nor has what is computed from it; of that, exp is a fixed
pseudo-random function of u.  Every other function (sqrt, tanh, rounding, ...) is a fixed pseudo-random
function of u, different for each name and parameter: equal arguments give equal results, and nothing else is
known of it.

Comparisons order the values by u, taken between -P/2 and P/2.  Infinities and NaN are values of their own.
There is no rounding and no overflow.

A pair is held in one int64: ``u << 31 | v``; negative numbers are the special values.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction

import numpy as np

#: The greatest prime below 2**31 of the form 2*Q + 1 with Q prime.
P = 2147483579
Q = 1073741789
SHIFT = 31
MASK = 2**31 - 1
#: In the place of v: the value is no exponent.
NONE = MASK
POS_INF, NEG_INF, NAN = -1, -2, -3
ZERO = 0
#: Squares other than 1 have order Q modulo P.
BASES = {"exp": pow(1103515245, 2, P), "exp2": pow(69069, 2, P)}
HALF = P // 2
#: Ranks of the infinities in the order of values.
TOP = 2**40

#: Multipliers of the mixing function (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
MIX_1, MIX_2 = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
MIX_STEP = 0x9E3779B97F4A7C15

Array = np.ndarray


def pack(u: int, v: int) -> int:
    """The value of two residues."""
    return (u << SHIFT) | v


def embed(number: float | int | Fraction, largest: float | None = None) -> int:
    """A number as a value; infinity and NaN as the special ones.

    Parameters
    ----------
    largest : float, optional
        The largest finite number of the dtype, which counts as infinity: reductions start there.
    """
    if isinstance(number, float) and number != number:
        return NAN
    if largest is not None and abs(float(number)) >= largest:
        return POS_INF if number > 0 else NEG_INF
    if number in (float("inf"), float("-inf")):
        return POS_INF if number > 0 else NEG_INF
    exact = Fraction(number)
    top, bottom = exact.numerator, exact.denominator
    return pack(top * pow(bottom, -1, P) % P, top * pow(bottom, -1, Q) % Q)


def whole(numbers: Array) -> Array:
    """Exact integers as values."""
    if numbers.dtype == np.uint64:
        return (((numbers % np.uint64(P)) << np.uint64(SHIFT)) | (numbers % np.uint64(Q))).astype(np.int64)
    n = numbers.astype(np.int64)
    return ((n % P) << SHIFT) | (n % Q)


def random_values(rng: np.random.Generator, size: int) -> Array:
    """Values drawn uniformly."""
    return (rng.integers(0, P, size) << SHIFT) | rng.integers(0, Q, size)


def _is_special(*values: Array) -> bool:
    return any(bool((x < 0).any()) for x in values)


def _tainted(u: Array, v: Array, taint: Array) -> Array:
    """The pair, without v where ``taint``; a zero is a zero whatever it comes from."""
    return (u << SHIFT) | np.where(taint, np.where(u == 0, 0, NONE), v)


def rank(x: Array) -> Array:
    """Where values stand in the order; not of NaN."""
    u = x >> SHIFT
    centred = np.where(u > HALF, u - P, u)
    if not _is_special(x):
        return centred
    return np.where(x == POS_INF, TOP, np.where(x == NEG_INF, -TOP, centred))


def neg(x: Array) -> Array:
    """-x."""
    u, v = x >> SHIFT, x & MASK
    result = (np.where(u == 0, 0, P - u) << SHIFT) | np.where((v == NONE) | (v == 0), v, Q - v)
    if not _is_special(x):
        return result
    return np.where(x < 0, np.where(x == NAN, NAN, POS_INF + NEG_INF - x), result)


def add(a: Array, b: Array) -> Array:
    """a + b; infinity minus infinity is NaN."""
    u = (a >> SHIFT) + (b >> SHIFT)
    u = np.where(u >= P, u - P, u)
    va, vb = a & MASK, b & MASK
    v = va + vb
    v = np.where(v >= Q, v - Q, v)
    result = _tainted(u, v, (va == NONE) | (vb == NONE))
    if not _is_special(a, b):
        return result
    nan = (a == NAN) | (b == NAN) | ((a < 0) & (b < 0) & (a != b))
    return np.where(nan, NAN, np.where(a < 0, a, np.where(b < 0, b, result)))


def sub(a: Array, b: Array) -> Array:
    """a - b."""
    return add(a, neg(b))


def mul(a: Array, b: Array) -> Array:
    """a * b; zero times infinity is zero, as a mask that multiplies means it."""
    u = (a >> SHIFT) * (b >> SHIFT) % P
    va, vb = a & MASK, b & MASK
    result = _tainted(u, va * vb % Q, (va == NONE) | (vb == NONE))
    if not _is_special(a, b):
        return result
    ra, rb = rank(a), rank(b)
    infinite = np.where((ra == 0) | (rb == 0), ZERO, np.where((ra > 0) == (rb > 0), POS_INF, NEG_INF))
    return np.where((a == NAN) | (b == NAN), NAN, np.where((a < 0) | (b < 0), infinite, result))


def _power_mod(base: Array, exponent: int, modulus: int) -> Array:
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result = result * base % modulus
        base = base * base % modulus
        exponent >>= 1
    return result


def inverse(x: Array) -> Array:
    """1 / x; of zero, infinity."""
    distinct, back = np.unique(x, return_inverse=True)
    u, v = distinct >> SHIFT, distinct & MASK
    inverted = (_power_mod(u, P - 2, P) << SHIFT) | np.where(v == NONE, NONE, _power_mod(v, Q - 2, Q))
    inverted = np.where(u == 0, POS_INF, inverted)
    inverted = np.where(distinct < 0, np.where(distinct == NAN, NAN, ZERO), inverted)
    return inverted[back].reshape(x.shape)


def div(a: Array, b: Array) -> Array:
    """a / b."""
    return mul(a, inverse(b))


def power(x: Array, exponent: int) -> Array:
    """x ** exponent for an integer."""
    result = np.full_like(x, embed(1))
    square, rest = x, abs(exponent)
    while rest:
        if rest & 1:
            result = mul(result, square)
        rest >>= 1
        if rest:
            square = mul(square, square)
    return inverse(result) if exponent < 0 else result


def maximum(a: Array, b: Array) -> Array:
    """The later in the order; NaN where either is."""
    result = np.where(rank(a) >= rank(b), a, b)
    return np.where((a == NAN) | (b == NAN), NAN, result) if _is_special(a, b) else result


def minimum(a: Array, b: Array) -> Array:
    """The earlier in the order; NaN where either is."""
    result = np.where(rank(a) <= rank(b), a, b)
    return np.where((a == NAN) | (b == NAN), NAN, result) if _is_special(a, b) else result


# --- uninterpreted functions ---------------------------------------------------------------------


def code_of(name: str) -> int:
    """The number of a function in `mix`, signed 64-bit: what tells its values from those of another."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little", signed=True)


def scramble(bits: Array) -> Array:
    """A fixed permutation of 64-bit words (the finaliser of SplitMix64)."""
    z = bits ^ (bits >> np.uint64(30))
    z = z * np.uint64(MIX_1)
    z = z ^ (z >> np.uint64(27))
    z = z * np.uint64(MIX_2)
    return z ^ (z >> np.uint64(31))


def _identity_of(x: Array) -> Array:
    """What a function may depend on: u, or which special value."""
    return np.where(x < 0, x, x >> SHIFT).astype(np.uint64)


def bits_of(code: int, *args: Array) -> Array:
    """The 64 pseudo-random bits that a function of that code has at these arguments."""
    z = np.full(args[0].shape, np.uint64(code & (2**64 - 1)))
    for x in args:
        z = scramble((z + _identity_of(x)) * np.uint64(MIX_STEP))
    return z


def mix(code: int, *args: Array) -> Array:
    """A fixed pseudo-random function; NaN where an argument is."""
    z = bits_of(code, *args)
    u, v = (z >> np.uint64(32)) % np.uint64(P), (z & np.uint64(2**32 - 1)) % np.uint64(Q)
    result = ((u << np.uint64(SHIFT)) | v).astype(np.int64)
    for x in args:
        result = np.where(x == NAN, NAN, result)
    return result


_TABLE_BITS = 10


def _tables(base: int) -> tuple[Array, ...]:
    tables = []
    for step in range(3):
        factor, row = pow(base, 1 << (_TABLE_BITS * step), P), [1]
        for _ in range((1 << _TABLE_BITS) - 1):
            row.append(row[-1] * factor % P)
        tables.append(np.array(row, np.int64))
    return tuple(tables)


_EXP_TABLES: dict[str, tuple[Array, ...]] = {}


def exponential(name: str, x: Array) -> Array:
    """``exp`` or ``exp2``: the base to the power of v; of -inf, zero."""
    if name not in _EXP_TABLES:
        _EXP_TABLES[name] = _tables(BASES[name])
    low, middle, high = _EXP_TABLES[name]
    v = x & MASK
    part = (1 << _TABLE_BITS) - 1
    exponent = np.where((v == NONE) | (x < 0), 0, v)
    u = low[exponent & part] * middle[(exponent >> _TABLE_BITS) & part] % P * high[exponent >> 20] % P
    result = (u << SHIFT) | NONE
    opaque = (v == NONE) & (x >= 0)
    if opaque.any():
        result = np.where(opaque, (mix(code_of(name), x) >> SHIFT << SHIFT) | NONE, result)
    if _is_special(x):
        result = np.where(x == NEG_INF, ZERO, np.where(x < 0, x, result))
    return result


# --- sums ----------------------------------------------------------------------------------------


def total(x: Array, axis: int) -> Array:
    """The sum along an axis, kept with length 1."""
    v = x & MASK
    none = v == NONE
    special = _is_special(x)
    regular = np.where(x < 0, 0, x) if special else x
    u = (regular >> SHIFT).sum(axis=axis, keepdims=True) % P
    v = np.where(none, 0, regular & MASK).sum(axis=axis, keepdims=True) % Q
    result = _tainted(u, v, none.any(axis=axis, keepdims=True))
    if not special:
        return result
    top, low = (x == POS_INF).any(axis=axis, keepdims=True), (x == NEG_INF).any(axis=axis, keepdims=True)
    nan = (x == NAN).any(axis=axis, keepdims=True) | (top & low)
    return np.where(nan, NAN, np.where(top, POS_INF, np.where(low, NEG_INF, result)))


def product(x: Array, axis: int) -> Array:
    """The product along an axis, kept with length 1."""
    moved = np.moveaxis(x, axis, 0)
    while len(moved) > 1:
        half = len(moved) // 2
        odd = moved[2 * half :]
        moved = np.concatenate([mul(moved[:half], moved[half : 2 * half]), odd])
    return np.moveaxis(moved, 0, axis)


def extreme(x: Array, axis: int, largest: bool) -> Array:
    """The maximum or minimum along an axis, kept with length 1."""
    order = rank(x)
    at = np.expand_dims((order.argmax if largest else order.argmin)(axis=axis), axis)
    result = np.take_along_axis(x, at, axis)
    if not _is_special(x):
        return result
    return np.where((x == NAN).any(axis=axis, keepdims=True), NAN, result)


def _limb_product(a: Array, b: Array, modulus: int) -> Array:
    """a.b modulo a 31-bit number: two 16-bit limbs each, so that fp64 sums of 2**20 products are exact."""
    a1, a0 = (a >> 16).astype(np.float64), (a & 0xFFFF).astype(np.float64)
    b1, b0 = (b >> 16).astype(np.float64), (b & 0xFFFF).astype(np.float64)
    high = (a1 @ b1).astype(np.int64) % modulus
    middle = (a1 @ b0 + a0 @ b1).astype(np.int64) % modulus
    low = (a0 @ b0).astype(np.int64) % modulus
    return (((high << 16) % modulus + middle << 16) + low) % modulus


#: Sums of that many products of limbs are exact in fp64.
_EXACT_TERMS = 2**20


def matmul(a: Array, b: Array) -> Array:
    """a.b of two matrices."""
    if a.shape[1] > _EXACT_TERMS:
        half = a.shape[1] // 2
        return add(matmul(a[:, :half], b[:half]), matmul(a[:, half:], b[half:]))
    if _is_special(a, b):
        result = np.full((a.shape[0], b.shape[1]), ZERO, np.int64)
        for k in range(a.shape[1]):
            result = add(result, mul(a[:, k : k + 1], b[k : k + 1]))
        return result
    none_a, none_b = (a & MASK) == NONE, (b & MASK) == NONE
    u = _limb_product(a >> SHIFT, b >> SHIFT, P)
    v = _limb_product(np.where(none_a, 0, a & MASK), np.where(none_b, 0, b & MASK), Q)
    # a tainted factor times zero is zero: only pairs of which both are not zero taint
    taint: Array = np.zeros(u.shape, np.bool_)
    if none_a.any() or none_b.any():
        pairs = none_a.astype(np.float32) @ (b != ZERO).astype(np.float32)
        pairs += (a != ZERO).astype(np.float32) @ none_b.astype(np.float32)
        taint = pairs > 0
    return _tainted(u, v, taint)
