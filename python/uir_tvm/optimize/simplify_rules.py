# SPDX-License-Identifier: Apache-2.0
"""The rules of tidying that keep every bit of every result.

Kept are NaN as NaN, infinities, the signs of zeros and denormals.  Not part of the meaning of an iOp, and
so free to change, are a NaN's sign and payload: arithmetic on different hardware differs in them anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from ..igraph import make
from ..igraph.dtypes import dtype_of
from ..igraph.iops import head, spec_of
from ..igraph.iops_meaning import ValidBoxes
from ..igraph.iops_scalar import ANY, BINARY, COMPARE, FLOAT, INTEGER, NUMBER, UNARY
from ..igraph.nodes import IOp
from .exact_casts import has_infinity, holds
from .made_values import seen_through
from .simplify_site import Rule, Site, is_nan, named, plain, rounded, same_number, same_slice


def _limit(dtype: str, sign: int) -> Any:
    """What max (sign -1) or min (sign 1) with it changes nothing; None where a dtype has no such number."""
    row = dtype_of(dtype)
    if row.kind == "float":
        return sign * np.inf if has_infinity(dtype) else None
    return np.iinfo(row.numpy).min if sign < 0 else np.iinfo(row.numpy).max


# --- x op neutral -> x -----------------------------------------------------------------------------


@attrs.frozen
class _Neutral:
    """A parameter with which a unary iOp is a copy."""

    name: str
    number: Callable[[str], Any]
    kinds: frozenset[str]
    text: str
    reason: str


_NEUTRAL = (
    _Neutral("muls", lambda _: 1, NUMBER, "x * 1", "1 is neutral for every number of every dtype"),
    _Neutral("divs", lambda _: 1, FLOAT, "x / 1", "exact, so nothing is rounded"),
    _Neutral("subs", lambda _: 0, NUMBER, "x - 0", "-0 - (+0) is -0 and +0 - (+0) is +0"),
    _Neutral(
        "adds", lambda _: -0.0, FLOAT, "x + (-0.0)", "-0 + (-0) is -0; +0 + (-0) is +0, not so with +0.0"
    ),
    _Neutral("adds", lambda _: 0, INTEGER, "x + 0 (integers)", "integers have one zero"),
    _Neutral(
        "pows", lambda _: 1, INTEGER, "x ** 1 (integers)", "exact; of floats a target may approximate it"
    ),
    _Neutral("maxs", lambda d: _limit(d, -1), NUMBER, "max(x, lowest)", "no value is lower, and NaN stays"),
    _Neutral("mins", lambda d: _limit(d, 1), NUMBER, "min(x, highest)", "no value is higher, and NaN stays"),
)


def _neutral_rule(row: _Neutral) -> Rule:
    def apply(site: Site) -> IOp | None:
        iop = site.iop
        if site.kind not in row.kinds:
            return None
        number = row.number(str(iop.dtype))
        if number is None or not same_number(site.param(), number, str(iop.dtype)):
            return None
        return site.copy(iop.sources[0])

    return Rule(row.text, "x", row.reason, apply, named("unary", [row.name]))


#: Functions that do nothing to some kinds of dtype.
_NOTHING = {"copy": ANY, "abs": frozenset({"uint"}), "relu": frozenset({"uint"})}


def _nothing(site: Site) -> IOp | None:
    return site.copy(site.iop.sources[0]) if site.kind in _NOTHING[str(site.iop.name)] else None


# --- f(g(x)) ---------------------------------------------------------------------------------------

_INVOLUTIONS = tuple(name for name, row in UNARY.items() if row.involution)
_IDEMPOTENT = tuple(name for name, row in UNARY.items() if row.idempotent)


def _involution(site: Site) -> IOp | None:
    maker = site.before(0, site.head)
    return None if maker is None else site.copy(site.through(0, maker))


def _idempotent(site: Site) -> IOp | None:
    maker = site.definitions.maker(site.iop, 0)
    return site.copy(site.iop.sources[0]) if maker is not None and head(maker) == site.head else None


def _absolute_of_negative(site: Site) -> IOp | None:
    maker = site.before(0, "unary.neg", "unary.abs")
    return None if maker is None else site.unary("abs", site.through(0, maker))


#: (m, a) of m*x + a by the head and the parameter.
_LINEAR: dict[str, Callable[[int], tuple[int, int]]] = {
    "unary.adds": lambda p: (1, p),
    "unary.subs": lambda p: (1, -p),
    "unary.muls": lambda p: (p, 0),
    "unary.rsubs": lambda p: (-1, p),
    "unary.neg": lambda p: (-1, 0),
}


def linear(iop: IOp, param: Any) -> tuple[Any, Any] | None:
    """(m, a) of an iOp that computes m*x + a with integers; None for others."""
    form = _LINEAR.get(head(iop))
    return None if form is None else form(0 if param is None else int(param))


def _integer_chain(site: Site) -> IOp | None:
    iop = site.iop
    outer = linear(iop, site.param()) if site.kind in INTEGER else None
    maker = site.before() if outer is not None else None
    if outer is None or maker is None:
        return None
    inner = linear(maker, Site(maker, site.definitions).param())
    if inner is None:
        return None
    m, a = (
        plain(rounded_wrapping(v, str(iop.dtype)))
        for v in (outer[0] * inner[0], outer[0] * inner[1] + outer[1])
    )
    source = site.through(0, maker)
    if m == 1:
        return site.unary("adds", source, a)
    if a == 0:
        return site.unary("muls", source, m)
    if m == plain(rounded_wrapping(-1, str(iop.dtype))):
        return site.unary("rsubs", source, a)
    return None


def rounded_wrapping(value: int, dtype: str) -> Any:
    """A whole number modulo the size of an integer dtype."""
    row = dtype_of(dtype)
    bits = 8 * row.bytes
    value &= (1 << bits) - 1
    if row.kind == "int" and value >> (bits - 1):
        value -= 1 << bits
    return row.numpy.type(value)


# --- casts -----------------------------------------------------------------------------------------


def _cast_to_same(site: Site) -> IOp | None:
    iop = site.iop
    return site.copy(iop.sources[0]) if iop.name == iop.dtype else None


def _cast_of_cast(site: Site) -> IOp | None:
    iop = site.iop
    maker = site.before(0, "cast")
    if maker is None or not holds(str(maker.dtype), str(maker.name)):
        return None
    source = site.through(0, maker)
    if maker.name == iop.dtype and "round" not in iop.attrs:
        return site.copy(source)
    kinds = [dtype_of(d).kind for d in (maker.name, maker.dtype, iop.dtype)]
    if kinds[0] in INTEGER and kinds[1:] == ["float", "float"] and dtype_of(iop.dtype).bytes < 4:
        return None  # the reference rounds integers to a narrow float by way of fp32
    whole = kinds[2] != "float"
    if "round" in iop.attrs and not (whole and kinds[0] == "float"):
        return None  # a directed rounding speaks of the dtype in between
    return make.cast(iop.target, source, iop.attrs.get("round"))


# --- operands that are equal, or constant ----------------------------------------------------------

_SAME_OPERAND = {"max": NUMBER, "min": NUMBER, "and": ANY, "or": ANY}
_NOUGHT = {"sub": INTEGER, "xor": INTEGER | {"bool"}}
#: Comparisons of a number with itself: (what they give, the kinds for which that is so).  NaN equals nothing.
_ITSELF = {
    "eq": (True, ANY - FLOAT),
    "le": (True, ANY - FLOAT),
    "ge": (True, ANY - FLOAT),
    "ne": (False, ANY - FLOAT),
    "lt": (False, ANY),
    "gt": (False, ANY),
}


def _same_operands(site: Site) -> IOp | None:
    iop = site.iop
    if not same_slice(*iop.sources):
        return None
    if iop.name in _ITSELF:
        value, kinds = _ITSELF[str(iop.name)]
        return site.filled(value) if site.kind in kinds else None
    if site.kind in _SAME_OPERAND.get(str(iop.name), ()):
        return site.copy(iop.sources[0])
    return site.filled(0) if site.kind in _NOUGHT.get(str(iop.name), ()) else None


_SCALAR_FORMS: dict[str, tuple[str, str]] = {
    name: (right, left)
    for name, row in BINARY.items()
    for right, left in [row.scalar_forms]
    if right is not None and left is not None
}


def _constant_operand(site: Site) -> IOp | None:
    iop = site.iop
    row, forms = BINARY[str(iop.name)], _SCALAR_FORMS[str(iop.name)]
    for k in (1, 0):
        value = site.constant(k)
        # of two zeros max and min may give either, and a constant NaN is a limit to none of the scalar forms
        doubtful = value is not None and row.either_zero and site.kind == "float" and value == 0
        takes = site.kind in UNARY[forms[1 - k]].kinds
        if takes and value is not None and not is_nan(value) and not doubtful:
            return site.unary(forms[1 - k], iop.sources[1 - k], value)
    return None


def _power(site: Site) -> IOp | None:
    iop = site.iop
    if site.param() == 0:
        return site.filled(1)
    return make.binary("mul", iop.target, iop.sources[0], iop.sources[0]) if _is_square(site) else None


def _is_square(site: Site) -> bool:
    # of fp64 a power is rounded otherwise than a product
    return bool(site.param() == 2) and site.iop.dtype != "fp64"


def _power_of_two(site: Site) -> IOp | None:
    iop = site.iop
    value = float(site.param())
    if value in (0.0, 1.0) or not np.isfinite(value) or abs(np.frexp(value)[0]) != 0.5:
        return None
    inverse = 1.0 / value
    exact = np.isfinite(inverse) and float(rounded(inverse, str(iop.dtype))) == inverse
    return site.unary("muls", iop.sources[0], inverse) if exact else None


# --- choices ---------------------------------------------------------------------------------------


def _select(site: Site) -> IOp | None:
    iop = site.iop
    mask, a, b = iop.sources
    if same_slice(a, b):
        return site.copy(a)
    known = site.constant(0)
    if known is not None:
        return site.copy(a if known else b)
    left, right = site.constant(1), site.constant(2)
    if left is not None and right is not None and same_number(left, right, str(iop.dtype)):
        return site.filled(left)
    return None


def _select_by_not(site: Site) -> IOp | None:
    maker = site.before(0, "unary.not")
    if maker is None or maker.dtype != "bool":
        return None
    _, a, b = site.iop.sources
    return make.select(site.iop.target, site.through(0, maker), b, a)


# --- constants and copies --------------------------------------------------------------------------


def _fold(site: Site) -> IOp | None:
    iop, spec = site.iop, spec_of(site.iop)
    joined = iop.attrs.get("scope", "unit") != "unit"
    if not (spec.elementwise or spec.rearranges) or "pad" in iop.attrs or joined:
        return None
    row = None if spec.names is None else spec.names[iop.name]
    if row is not None and site.kind == "float" and not row.exact:
        return None
    values = [site.constant(k) for k in range(len(iop.sources))]
    if not values or any(v is None for v in values):
        return None
    one = (0, 1, 0, 1)
    arrays = [np.asarray([[v]]) for v in values]
    assert spec.meaning is not None
    result = np.asarray(spec.meaning(iop, ValidBoxes({}, one, [one] * len(arrays)), *arrays))[0, 0]
    is_float = dtype_of(iop.target.pointer.dtype).kind == "float"
    if is_float and (is_nan(result) or (float(result) == 0 and row is not None and row.either_zero)):
        return None
    if spec.converts and not np.isfinite(float(values[0])):
        return None
    return site.filled(result)


def _flat_iota(site: Site) -> IOp | None:
    iop = site.iop
    if iop.attrs.get("row_step", 0) or iop.attrs.get("col_step", 1):
        return None
    base = iop.attrs.get("base", 0)
    number = base if isinstance(base, int) else base.constant if base.is_constant else None
    return None if number is None else site.filled(int(number))


def _transpose_back(site: Site) -> IOp | None:
    iop = site.iop
    maker = site.definitions.readable(iop, 0)
    return site.copy(maker.sources[0]) if maker is not None and head(maker) == "transpose" else None


def _copied(site: Site) -> IOp | None:
    iop = site.iop
    for k in range(len(iop.sources)) if spec_of(iop).touches else ():
        maker = site.before(k, "move")
        if maker is not None:
            sources = list(iop.sources)
            sources[k] = seen_through(iop, k, maker)
            return IOp(iop.op, iop.name, iop.dtype, iop.targets, sources, iop.attrs)
    return None


#: In the order in which they are asked; each makes an iOp that is cheaper, or nearer to what memory holds.
RULES: tuple[Rule, ...] = (
    Rule("f(y) with y a copy of x", "f(x)", "a copy has the bits of what it copies", _copied),
    *(_neutral_rule(row) for row in _NEUTRAL),
    Rule("copy(x), abs and relu of unsigned", "x", "they are copies", _nothing, named("unary", _NOTHING)),
    Rule(
        "neg(neg(x)), not(not(x))",
        "x",
        "a bit is flipped twice; NaN, infinities and zeros included",
        _involution,
        named("unary", _INVOLUTIONS),
    ),
    Rule(
        "f(f(x)), f one of " + " ".join(_IDEMPOTENT),
        "f(x)",
        "f gives what it leaves as it is",
        _idempotent,
        named("unary", _IDEMPOTENT),
    ),
    Rule(
        "abs(neg(x))",
        "abs(x)",
        "the sign that neg changes is cleared",
        _absolute_of_negative,
        ("unary.abs",),
    ),
    Rule(
        "m*(n*x + a) + b (integers)",
        "one of adds, muls, rsubs",
        "arithmetic modulo 2**bits is a ring",
        _integer_chain,
        tuple(_LINEAR),
    ),
    Rule("x as its own dtype", "x", "nothing is converted", _cast_to_same, ("cast",)),
    Rule(
        "(C)(B)x, B holding every value of the dtype A of x",
        "(C)x, or x where C is A",
        "the first cast is exact, so only the second rounds",
        _cast_of_cast,
        ("cast",),
    ),
    Rule(
        "x op x",
        "x, or a constant",
        "max(x, x) is x; x < x is false for NaN too; x - x only of integers",
        _same_operands,
        named("binary", BINARY) + named("compare", COMPARE),
    ),
    Rule(
        "x op c, c op x with c filled",
        "the unary form",
        "the same operation on the same numbers",
        _constant_operand,
        named("binary", _SCALAR_FORMS),
    ),
    Rule(
        "x ** 0",
        "1",
        "1 even for NaN, as C's pow",
        lambda s: _power(s) if s.param() == 0 else None,
        ("unary.pows",),
    ),
    Rule(
        "x ** 2 (not fp64)",
        "x * x",
        "the product is exact in fp64, so that both round once; integers wrap",
        lambda s: _power(s) if s.param() != 0 else None,
        ("unary.pows",),
    ),
    Rule(
        "x / 2**k",
        "x * 2**-k",
        "2**-k is exact, so that both round the same number",
        _power_of_two,
        ("unary.divs",),
    ),
    Rule(
        "m ? a : b, a = b or m constant",
        "a or b",
        "a choice of equal or known sides is none",
        _select,
        ("select",),
    ),
    Rule("not(m) ? a : b", "m ? b : a", "the same choice", _select_by_not, ("select",)),
    Rule(
        "f of constants",
        "a constant",
        "IEEE 754 gives these functions to the last bit; never folded to NaN, nor to a zero of doubtful sign",
        _fold,
    ),
    Rule("iota with steps 0", "fill", "every element is the base", _flat_iota, ("iota",)),
    Rule(
        "transpose(transpose(x))",
        "x",
        "elements return to their places",
        _transpose_back,
        ("transpose",),
    ),
)

__all__ = ["RULES", "linear"]
