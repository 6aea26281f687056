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
from ..igraph.iops import IOPS
from ..igraph.iops_meaning import Region
from ..igraph.iops_scalar import ANY, FLOAT, INTEGER, NUMBER
from ..igraph.nodes import IOp
from .definitions import seen_through
from .exact_casts import has_infinity, holds
from .tidy_site import Rule, Site, is_nan, plain, rounded, same_number, same_slice


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
        if iop.op != "unary" or iop.name != row.name or site.kind not in row.kinds:
            return None
        number = row.number(str(iop.dtype))
        if number is None or not same_number(site.param(), number, str(iop.dtype)):
            return None
        return site.copy(iop.sources[0])

    return Rule(row.text, "x", row.reason, apply)


#: Functions that do nothing to some kinds of dtype.
_NOTHING = {"copy": ANY, "abs": frozenset({"uint"}), "relu": frozenset({"uint"})}


def _nothing(site: Site) -> IOp | None:
    iop = site.iop
    does = iop.op == "unary" and site.kind in _NOTHING.get(str(iop.name), frozenset())
    return site.copy(iop.sources[0]) if does else None


# --- f(g(x)) ---------------------------------------------------------------------------------------

_INVOLUTIONS = ("neg", "not")
_IDEMPOTENT = ("abs", "relu", "floor", "ceil", "round", "trunc", "sign")


def _involution(site: Site) -> IOp | None:
    maker = site.before() if site.iop.op == "unary" and site.iop.name in _INVOLUTIONS else None
    if maker is None or maker.op != "unary" or maker.name != site.iop.name:
        return None
    return site.copy(site.through(0, maker))


def _idempotent(site: Site) -> IOp | None:
    iop = site.iop
    if iop.op != "unary" or iop.name not in _IDEMPOTENT:
        return None
    maker = site.definitions.maker(iop, 0)
    if maker is None or maker.op != "unary" or maker.name != iop.name:
        return None
    return site.copy(iop.sources[0])


def _absolute_of_negative(site: Site) -> IOp | None:
    maker = site.before() if site.iop.op == "unary" and site.iop.name == "abs" else None
    if maker is None or maker.op != "unary" or maker.name not in ("neg", "abs"):
        return None
    return site.unary("abs", site.through(0, maker))


def linear(iop: IOp, param: Any) -> tuple[Any, Any] | None:
    """(m, a) of an iOp that computes m*x + a with integers; None for others."""
    forms: dict[str, Callable[[int], tuple[int, int]]] = {
        "adds": lambda p: (1, p),
        "subs": lambda p: (1, -p),
        "muls": lambda p: (p, 0),
        "rsubs": lambda p: (-1, p),
        "neg": lambda p: (-1, 0),
    }
    if iop.op != "unary" or iop.name not in forms:
        return None
    return forms[str(iop.name)](0 if param is None else int(param))


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
    return site.copy(iop.sources[0]) if iop.op == "cast" and iop.name == iop.dtype else None


def _cast_of_cast(site: Site) -> IOp | None:
    iop = site.iop
    maker = site.before() if iop.op == "cast" else None
    if maker is None or maker.op != "cast" or not holds(str(maker.dtype), str(maker.name)):
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
    if iop.op not in ("binary", "compare") or not same_slice(*iop.sources):
        return None
    if iop.op == "compare":
        value, kinds = _ITSELF[str(iop.name)]
        return site.filled(value) if site.kind in kinds else None
    if site.kind in _SAME_OPERAND.get(str(iop.name), ()):
        return site.copy(iop.sources[0])
    return site.filled(0) if site.kind in _NOUGHT.get(str(iop.name), ()) else None


#: binary -> its unary form with the constant on the right, and on the left.
_SCALAR_FORMS = {
    "add": ("adds", "adds"),
    "sub": ("subs", "rsubs"),
    "mul": ("muls", "muls"),
    "div": ("divs", "rdivs"),
    "max": ("maxs", "maxs"),
    "min": ("mins", "mins"),
}


def _constant_operand(site: Site) -> IOp | None:
    iop = site.iop
    if iop.op != "binary" or iop.name not in _SCALAR_FORMS:
        return None
    for k in (1, 0):
        value = site.constant(k)
        # of two zeros max and min may give either, and a constant NaN is a limit to none of the scalar forms
        doubtful = value is not None and iop.name in ("max", "min") and site.kind == "float" and value == 0
        if value is not None and not is_nan(value) and not doubtful:
            return site.unary(_SCALAR_FORMS[str(iop.name)][1 - k], iop.sources[1 - k], value)
    return None


def _power(site: Site) -> IOp | None:
    iop = site.iop
    if iop.op != "unary" or iop.name != "pows":
        return None
    if site.param() == 0:
        return site.filled(1)
    return make.binary("mul", iop.target, iop.sources[0], iop.sources[0]) if _is_square(site) else None


def _is_square(site: Site) -> bool:
    # of fp64 a power is rounded otherwise than a product
    return bool(site.param() == 2) and site.iop.dtype != "fp64"


def _power_of_two(site: Site) -> IOp | None:
    iop = site.iop
    if iop.op != "unary" or iop.name != "divs":
        return None
    value = float(site.param())
    if value in (0.0, 1.0) or not np.isfinite(value) or abs(np.frexp(value)[0]) != 0.5:
        return None
    inverse = 1.0 / value
    exact = np.isfinite(inverse) and float(rounded(inverse, str(iop.dtype))) == inverse
    return site.unary("muls", iop.sources[0], inverse) if exact else None


# --- choices ---------------------------------------------------------------------------------------


def _select(site: Site) -> IOp | None:
    iop = site.iop
    if iop.op != "select":
        return None
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
    maker = site.before(0) if site.iop.op == "select" else None
    if maker is None or maker.op != "unary" or maker.name != "not" or maker.dtype != "bool":
        return None
    _, a, b = site.iop.sources
    return make.select(site.iop.target, site.through(0, maker), b, a)


# --- constants and copies --------------------------------------------------------------------------

#: Functions whose result IEEE 754 gives to the last bit, so that every target computes the constant we fold.
_EXACT = frozenset(
    "adds subs muls divs rsubs rdivs maxs mins abs neg floor ceil round trunc sign not and or xor "
    "add sub mul div max min sqrt copy relu".split()
)
_FOLDS = frozenset({"unary", "binary", "compare", "select", "cast", "move", "broadcast", "transpose"})
#: Where a zero of either sign may come out.
_EITHER_ZERO = frozenset({"max", "min", "maxs", "mins", "relu"})


def _fold(site: Site) -> IOp | None:
    iop = site.iop
    if iop.op not in _FOLDS or "pad" in iop.attrs or iop.attrs.get("scope", "unit") != "unit":
        return None
    if iop.op in ("unary", "binary") and site.kind == "float" and iop.name not in _EXACT:
        return None
    values = [site.constant(k) for k in range(len(iop.sources))]
    if not values or any(v is None for v in values):
        return None
    one = (0, 1, 0, 1)
    arrays = [np.asarray([[v]]) for v in values]
    meaning = IOPS[iop.op].meaning
    assert meaning is not None
    result = np.asarray(meaning(iop, Region({}, one, [one] * len(arrays)), *arrays))[0, 0]
    is_float = dtype_of(iop.target.pointer.dtype).kind == "float"
    if is_float and (is_nan(result) or (float(result) == 0 and iop.name in _EITHER_ZERO)):
        return None
    if iop.op == "cast" and not np.isfinite(float(values[0])):
        return None
    return site.filled(result)


def _flat_iota(site: Site) -> IOp | None:
    iop = site.iop
    if iop.op != "iota" or iop.attrs.get("row_step", 0) or iop.attrs.get("col_step", 1):
        return None
    base = iop.attrs.get("base", 0)
    number = base if isinstance(base, int) else base.constant if base.is_constant else None
    return None if number is None else site.filled(int(number))


def _transpose_back(site: Site) -> IOp | None:
    iop = site.iop
    maker = site.definitions.readable(iop, 0) if iop.op == "transpose" else None
    return site.copy(maker.sources[0]) if maker is not None and maker.op == "transpose" else None


def _copied(site: Site) -> IOp | None:
    iop = site.iop
    for k in range(len(iop.sources)):
        maker = site.before(k) if iop.op not in ("sync", "identity") else None
        if maker is not None and maker.op == "move":
            sources = list(iop.sources)
            sources[k] = seen_through(iop, k, maker)
            return IOp(iop.op, iop.name, iop.dtype, iop.targets, sources, iop.attrs)
    return None


#: In the order in which they are asked; each makes an iOp that is cheaper, or nearer to what memory holds.
RULES: tuple[Rule, ...] = (
    Rule("f(y) with y a copy of x", "f(x)", "a copy has the bits of what it copies", _copied),
    *(_neutral_rule(row) for row in _NEUTRAL),
    Rule("copy(x), abs and relu of unsigned", "x", "they are copies", _nothing),
    Rule(
        "neg(neg(x)), not(not(x))",
        "x",
        "a bit is flipped twice; NaN, infinities and zeros included",
        _involution,
    ),
    Rule(
        "f(f(x)), f one of " + " ".join(_IDEMPOTENT), "f(x)", "f gives what it leaves as it is", _idempotent
    ),
    Rule("abs(neg(x))", "abs(x)", "the sign that neg changes is cleared", _absolute_of_negative),
    Rule(
        "m*(n*x + a) + b (integers)",
        "one of adds, muls, rsubs",
        "arithmetic modulo 2**bits is a ring",
        _integer_chain,
    ),
    Rule("x as its own dtype", "x", "nothing is converted", _cast_to_same),
    Rule(
        "(C)(B)x, B holding every value of the dtype A of x",
        "(C)x, or x where C is A",
        "the first cast is exact, so only the second rounds",
        _cast_of_cast,
    ),
    Rule(
        "x op x",
        "x, or a constant",
        "max(x, x) is x; x < x is false for NaN too; x - x only of integers",
        _same_operands,
    ),
    Rule(
        "x op c, c op x with c filled",
        "the unary form",
        "the same operation on the same numbers",
        _constant_operand,
    ),
    Rule("x ** 0", "1", "1 even for NaN, as C's pow", lambda s: _power(s) if s.param() == 0 else None),
    Rule(
        "x ** 2 (not fp64)",
        "x * x",
        "the product is exact in fp64, so that both round once; integers wrap",
        lambda s: _power(s) if s.param() != 0 else None,
    ),
    Rule("x / 2**k", "x * 2**-k", "2**-k is exact, so that both round the same number", _power_of_two),
    Rule("m ? a : b, a = b or m constant", "a or b", "a choice of equal or known sides is none", _select),
    Rule("not(m) ? a : b", "m ? b : a", "the same choice", _select_by_not),
    Rule(
        "f of constants",
        "a constant",
        "IEEE 754 gives these functions to the last bit; never folded to NaN, nor to a zero of doubtful sign",
        _fold,
    ),
    Rule("iota with steps 0", "fill", "every element is the base", _flat_iota),
    Rule("transpose(transpose(x))", "x", "elements return to their places", _transpose_back),
)

__all__ = ["RULES", "linear"]
