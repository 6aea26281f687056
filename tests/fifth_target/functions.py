# SPDX-License-Identifier: Apache-2.0
"""Scalar functions as C: expressions of x, y and p, by kind of element."""

from __future__ import annotations

from collections.abc import Mapping

#: What stands before every text.  Narrow floats are computed in fp32 and rounded once.
PRELUDE = """\
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef _Float16 fp16;
typedef struct { uint16_t bits; } bf16;
static inline float load_bf16(bf16 x) {
  uint32_t u = (uint32_t)x.bits << 16; float f; memcpy(&f, &u, 4); return f;
}
static inline bf16 store_bf16(float f) {
  uint32_t u; memcpy(&u, &f, 4);
  if (f != f) return (bf16){(uint16_t)((u >> 16) | 64)};
  return (bf16){(uint16_t)((u + 0x7fff + ((u >> 16) & 1)) >> 16)};
}
static inline int64_t clamp(int64_t x, int64_t low, int64_t high) {
  return x < low ? low : x > high ? high : x;
}
static inline int64_t floor_div(int64_t x, int64_t y) {
  return x / y - (x % y != 0 && (x % y < 0) != (y < 0));
}
static inline int64_t floor_mod(int64_t x, int64_t y) { return x - y * floor_div(x, y); }
static inline double fmod_down(double x, double y) {
  double r = fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
static inline double sigmoid(double x) { double e = exp(-fabs(x)); return (x >= 0 ? 1.0 : e) / (1.0 + e); }
static inline int64_t int_pow(int64_t x, int64_t y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? 1 - 2 * (y & 1) : 0;
  int64_t z = 1;
  for (; y; y >>= 1, x *= x) if (y & 1) z *= x;
  return z;
}
#define MAX(x, y) ((x) > (y) || (x) != (x) ? (x) : (y))
#define MIN(x, y) ((x) < (y) || (x) != (x) ? (x) : (y))
#define SATURATE(x, T, low, high) \\
  ((x) != (x) ? 0 : (x) <= (double)(low) ? (low) : (x) >= (double)(high) ? (high) : (T)(x))
"""

_LIBM = (
    "exp exp2 log log2 log1p sqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf "
    "floor ceil trunc sigmoid"
).split()
_NUMBERS = {
    "copy": "x",
    "adds": "x + p",
    "subs": "x - p",
    "muls": "x * p",
    "rsubs": "p - x",
    "maxs": "MAX(x, p)",
    "mins": "MIN(x, p)",
    "relu": "MAX(x, 0)",
    "neg": "-x",
    "add": "x + y",
    "sub": "x - y",
    "mul": "x * y",
    "max": "MAX(x, y)",
    "min": "MIN(x, y)",
    **dict(eq="x == y", ne="x != y", lt="x < y", le="x <= y", gt="x > y", ge="x >= y"),
}
#: Of floats; C's functions are those of double, rounded once.
FLOATS: Mapping[str, str] = {
    **_NUMBERS,
    **{name: f"{name}((double)x)" for name in _LIBM},
    "divs": "x / p",
    "rdivs": "p / x",
    "pows": "pow(x, p)",
    "rsqrt": "1.0 / sqrt((double)x)",
    "recip": "1 / x",
    "abs": "fabs((double)x)",
    "leaky_relu": "x >= 0 ? x : x * p",
    "round": "rint((double)x)",
    "sign": "x != x ? x : (x > 0) - (x < 0)",
    **{name: f"{name}(x)" for name in ("isnan", "isinf", "isfinite")},
    "div": "x / y",
    "floordiv": "floor((double)(x / y))",
    "truncdiv": "trunc((double)(x / y))",
    "mod": "fmod_down(x, y)",
    "truncmod": "fmod(x, y)",
    "pow": "pow(x, y)",
    "atan2": "atan2(x, y)",
}
#: Of integers and bools; an integer over zero is zero, and shifts by all bits shift all out.
INTEGERS: Mapping[str, str] = {
    **_NUMBERS,
    "pows": "int_pow(x, p)",
    "pow": "int_pow(x, y)",
    "abs": "x < 0 ? -x : x",
    "sign": "(x > 0) - (x < 0)",
    "not": "~x",
    "floordiv": "y ? floor_div(x, y) : 0",
    "truncdiv": "y ? x / y : 0",
    "mod": "y ? floor_mod(x, y) : 0",
    "truncmod": "y ? x % y : 0",
    "ands": "x & p",
    "shls": "(uint64_t)p < 8 * sizeof(x) ? x << p : 0",
    "shrs": "(uint64_t)p < 8 * sizeof(x) ? x >> p : x < 0 ? -1 : 0",
    "and": "x & y",
    "or": "x | y",
    "xor": "x ^ y",
    "shl": "(uint64_t)y < 8 * sizeof(x) ? x << y : 0",
    "shr": "(uint64_t)y < 8 * sizeof(x) ? x >> y : x < 0 ? -1 : 0",
}
_UNSIGNED = {"floordiv": INTEGERS["truncdiv"], "mod": INTEGERS["truncmod"], "abs": "x"}
#: Kind of dtype -> functions.
FUNCTIONS: Mapping[str, Mapping[str, str]] = {
    "float": FLOATS,
    "int": INTEGERS,
    "uint": {**INTEGERS, **_UNSIGNED},
    "bool": {**INTEGERS, "not": "!x"},
}
