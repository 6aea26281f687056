# SPDX-License-Identifier: Apache-2.0
"""The rules of tidying that are asked for with ``fast_math``: equal in real arithmetic, not in every bit.

Each reason says what may differ.  The relative error of a result grows by a few ULP at most where no
intermediate result overflows, underflows or cancels; NaN, infinities and signed zeros are not kept.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..igraph import make
from ..igraph.nodes import IOp
from .simplify_site import Rule, Site, rounded, same_slice

#: (m, a) of m*x + a by head and parameter.
_LINEAR: dict[str, Callable[[float], tuple[float, float]]] = {
    "unary.adds": lambda p: (1.0, p),
    "unary.subs": lambda p: (1.0, -p),
    "unary.muls": lambda p: (p, 0.0),
    "unary.divs": lambda p: (1.0 / p, 0.0),
    "unary.rsubs": lambda p: (-1.0, p),
    "unary.neg": lambda p: (-1.0, 0.0),
}


def _linear(site: Site) -> tuple[float, float] | None:
    form = _LINEAR.get(site.head) if site.kind == "float" else None
    param = 0.0 if form is None or site.param() is None else float(site.param())
    if form is None or not np.isfinite(param) or (site.head == "unary.divs" and param == 0):
        return None
    return form(param)


def _chain(site: Site) -> IOp | None:
    outer = _linear(site)
    maker = site.before() if outer is not None else None
    inner = None if maker is None else _linear(Site(maker, site.definitions))
    if outer is None or maker is None or inner is None:
        return None
    m, a = outer[0] * inner[0], outer[0] * inner[1] + outer[1]
    if not _normal(m, str(site.iop.dtype)) or not (a == 0 or _normal(a, str(site.iop.dtype))):
        return None
    source = site.through(0, maker)
    if m == 1:
        return site.unary("adds", source, a) if a else site.copy(source)
    if a == 0:
        return site.unary("muls", source, m)
    return site.unary("rsubs", source, a) if m == -1 else None


def _normal(value: float, dtype: str) -> bool:
    """Whether a dtype holds a number with all its digits: neither zero, denormal nor infinite."""
    held = float(rounded(value, dtype))
    return bool(np.isfinite(held)) and held != 0 and abs(held - value) <= 2.0**-3 * abs(value)


def _reciprocal(site: Site) -> IOp | None:
    iop = site.iop
    value = float(site.param())
    if value == 0 or not np.isfinite(value) or not _normal(1.0 / value, str(iop.dtype)):
        return None
    return site.unary("muls", iop.sources[0], 1.0 / value)


#: Powers as cheaper functions; where C's pow differs is in the reason.
_POWERS = {0.5: "sqrt", -0.5: "rsqrt", -1.0: "recip", 1.0: "copy"}


def _power(site: Site) -> IOp | None:
    iop = site.iop
    if site.kind != "float":
        return None
    power = float(site.param())
    if power == 2:
        return make.binary("mul", iop.target, iop.sources[0], iop.sources[0])
    return site.unary(_POWERS[power], iop.sources[0]) if power in _POWERS else None


def _inverse_root(site: Site) -> IOp | None:
    maker = site.before(0, "unary.sqrt")
    return None if maker is None else site.unary("rsqrt", site.through(0, maker))


#: What x op x is.
_WITH_ITSELF = {"binary.sub": 0.0, "binary.div": 1.0}


def _with_itself(site: Site) -> IOp | None:
    if site.kind != "float" or not same_slice(*site.iop.sources):
        return None
    return site.filled(_WITH_ITSELF[site.head])


#: What x op 0 is.
_WITH_ZERO: dict[str, Callable[[Site], IOp]] = {
    "unary.adds": lambda site: site.copy(site.iop.sources[0]),
    "unary.subs": lambda site: site.copy(site.iop.sources[0]),
    "unary.muls": lambda site: site.filled(0.0),
    "unary.rsubs": lambda site: site.unary("neg", site.iop.sources[0]),
}


def _with_zero(site: Site) -> IOp | None:
    return _WITH_ZERO[site.head](site) if site.kind == "float" and site.param() == 0 else None


_INVERSE = {"unary.log": "unary.exp", "unary.log2": "unary.exp2"}


def _log_of_exp(site: Site) -> IOp | None:
    maker = site.before(0, _INVERSE[site.head])
    return None if maker is None else site.copy(site.through(0, maker))


def _divided_by_reciprocal(site: Site) -> IOp | None:
    iop, maker = site.iop, site.before(1, "unary.recip")
    return None if maker is None else make.binary("mul", iop.target, iop.sources[0], site.through(1, maker))


RULES: tuple[Rule, ...] = (
    Rule(
        "x + 0, x - 0, x * 0, 0 - x",
        "x, x, 0, -x",
        "-0 + 0 is +0; 0 times NaN or infinity is NaN",
        _with_zero,
        tuple(_WITH_ZERO),
    ),
    Rule(
        "x - x, x / x",
        "0, 1",
        "NaN for NaN and infinity, x / x for zero too",
        _with_itself,
        tuple(_WITH_ITSELF),
    ),
    Rule(
        "m*(n*x + a) + b",
        "one of adds, muls, rsubs",
        "reassociation: one rounding instead of two",
        _chain,
        tuple(_LINEAR),
    ),
    Rule("x / c", "x * (1/c)", "1/c is rounded: up to 1.5 ULP", _reciprocal, ("unary.divs",)),
    Rule(
        "x ** 0.5, -0.5, -1, 1, 2",
        "sqrt, rsqrt, recip, x, x * x",
        "other rounding; of -0 and -inf pow differs",
        _power,
        ("unary.pows",),
    ),
    Rule("1 / sqrt(x)", "rsqrt(x)", "one rounding instead of two", _inverse_root, ("unary.recip",)),
    Rule(
        "x / (1/y)",
        "x * y",
        "two roundings less; 1/y may overflow where x * y does not",
        _divided_by_reciprocal,
        ("binary.div",),
    ),
    Rule(
        "log(exp(x)), log2(exp2(x))",
        "x",
        "exp overflows and underflows where x does not",
        _log_of_exp,
        tuple(_INVERSE),
    ),
)

__all__ = ["RULES"]
