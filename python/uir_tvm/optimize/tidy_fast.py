# SPDX-License-Identifier: Apache-2.0
"""The rules of tidying that are asked for with ``fast_math``: equal in real arithmetic, not in every bit.

Each reason says what may differ.  The relative error of a result grows by a few ULP at most where no
intermediate result overflows, underflows or cancels; NaN, infinities and signed zeros are not kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..igraph import make
from ..igraph.nodes import IOp
from .tidy_site import Rule, Site, rounded, same_slice

#: (m, a) of m*x + a by name and parameter.
_LINEAR: dict[str, Callable[[float], tuple[float, float]]] = {
    "adds": lambda p: (1.0, p),
    "subs": lambda p: (1.0, -p),
    "muls": lambda p: (p, 0.0),
    "divs": lambda p: (1.0 / p, 0.0),
    "rsubs": lambda p: (-1.0, p),
    "neg": lambda p: (-1.0, 0.0),
}


def _linear(site: Site) -> tuple[float, float] | None:
    iop = site.iop
    if iop.op != "unary" or iop.name not in _LINEAR or site.kind != "float":
        return None
    param = 0.0 if site.param() is None else float(site.param())
    if not np.isfinite(param) or (iop.name == "divs" and param == 0):
        return None
    return _LINEAR[str(iop.name)](param)


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
    if iop.op != "unary" or iop.name != "divs":
        return None
    value = float(site.param())
    if value == 0 or not np.isfinite(value) or not _normal(1.0 / value, str(iop.dtype)):
        return None
    return site.unary("muls", iop.sources[0], 1.0 / value)


#: Powers as cheaper functions; where C's pow differs is in the reason.
_POWERS = {0.5: "sqrt", -0.5: "rsqrt", -1.0: "recip", 1.0: "copy"}


def _power(site: Site) -> IOp | None:
    iop = site.iop
    if iop.op != "unary" or iop.name != "pows" or site.kind != "float":
        return None
    power = float(site.param())
    if power == 2:
        return make.binary("mul", iop.target, iop.sources[0], iop.sources[0])
    return site.unary(_POWERS[power], iop.sources[0]) if power in _POWERS else None


def _inverse_root(site: Site) -> IOp | None:
    maker = site.before() if site.iop.op == "unary" and site.iop.name == "recip" else None
    if maker is None or maker.op != "unary" or maker.name != "sqrt":
        return None
    return site.unary("rsqrt", site.through(0, maker))


def _with_itself(site: Site) -> IOp | None:
    iop = site.iop
    if iop.op != "binary" or site.kind != "float" or not same_slice(*iop.sources):
        return None
    results: dict[str, Any] = {"sub": 0.0, "div": 1.0}
    return site.filled(results[str(iop.name)]) if iop.name in results else None


def _with_zero(site: Site) -> IOp | None:
    iop = site.iop
    if iop.op != "unary" or site.kind != "float" or site.param() is None or site.param() != 0:
        return None
    if iop.name in ("adds", "subs"):
        return site.copy(iop.sources[0])
    if iop.name == "muls":
        return site.filled(0.0)
    return site.unary("neg", iop.sources[0]) if iop.name == "rsubs" else None


def _log_of_exp(site: Site) -> IOp | None:
    iop = site.iop
    inverse = {"log": "exp", "log2": "exp2"}.get(str(iop.name)) if iop.op == "unary" else None
    maker = site.before() if inverse is not None else None
    if maker is None or maker.op != "unary" or maker.name != inverse:
        return None
    return site.copy(site.through(0, maker))


def _divided_by_reciprocal(site: Site) -> IOp | None:
    iop = site.iop
    maker = site.before(1) if iop.op == "binary" and iop.name == "div" else None
    if maker is None or maker.op != "unary" or maker.name != "recip":
        return None
    return make.binary("mul", iop.target, iop.sources[0], site.through(1, maker))


RULES: tuple[Rule, ...] = (
    Rule(
        "x + 0, x - 0, x * 0, 0 - x",
        "x, x, 0, -x",
        "-0 + 0 is +0; 0 times NaN or infinity is NaN",
        _with_zero,
    ),
    Rule("x - x, x / x", "0, 1", "NaN for NaN and infinity, x / x for zero too", _with_itself),
    Rule("m*(n*x + a) + b", "one of adds, muls, rsubs", "reassociation: one rounding instead of two", _chain),
    Rule("x / c", "x * (1/c)", "1/c is rounded: up to 1.5 ULP", _reciprocal),
    Rule(
        "x ** 0.5, -0.5, -1, 1, 2",
        "sqrt, rsqrt, recip, x, x * x",
        "other rounding; of -0 and -inf pow differs",
        _power,
    ),
    Rule("1 / sqrt(x)", "rsqrt(x)", "one rounding instead of two", _inverse_root),
    Rule(
        "x / (1/y)",
        "x * y",
        "two roundings less; 1/y may overflow where x * y does not",
        _divided_by_reciprocal,
    ),
    Rule("log(exp(x)), log2(exp2(x))", "x", "exp overflows and underflows where x does not", _log_of_exp),
)

__all__ = ["RULES"]
