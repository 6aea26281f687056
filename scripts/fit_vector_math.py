# SPDX-License-Identifier: Apache-2.0
"""Derive the coefficients in ``uir_tvm.target.cpu.vector_math``.

Each function is approximated on its reduced interval by ``P(t) / Q(t)`` (``Q = 1`` for the polynomials)
with the smallest largest relative error (minimax). The fit is linear least squares of ``P(t) - f(t) Q(t)``
on Chebyshev points, re-weighted after every round by the size of its residual (Lawson, "Contributions to
the theory of linear least maximum approximation", 1961) and by ``1 / Q``. Coefficients are then rounded to
float32 one after the other, lowest order first, each followed by a refit of the ones still free, so that
later ones absorb the rounding of the earlier ones.

Run ``python scripts/fit_vector_math.py`` to print every table with the relative error that it leaves.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import erf, erfc

Function = Callable[[np.ndarray], np.ndarray]

_POINTS = 600
_ROUNDS = 150


def _lawson(columns: np.ndarray, target: np.ndarray, denominator: Function) -> np.ndarray:
    """Coefficients whose largest weighted residual over the points is (nearly) the least possible."""
    weight = np.full(len(target), 1.0 / len(target))
    scale = np.abs(columns).max(axis=0)
    columns = columns / scale
    quotient = np.ones_like(target)
    best, best_error = np.zeros(columns.shape[1]), np.inf
    for _ in range(_ROUNDS):
        rows = np.sqrt(weight) / quotient
        solution = np.linalg.lstsq(columns * rows[:, None], target * rows, rcond=None)[0]
        quotient = denominator(solution / scale)
        residual = np.abs((columns @ solution - target) / quotient)
        if residual.max() < best_error:
            best, best_error = solution, residual.max()
        weight = weight * residual
        weight = np.maximum(weight / weight.sum(), 1e-12)
    return best / scale


def fit(
    f: Function,
    interval: tuple[float, float],
    numerator: int,
    denominator: int = 0,
    weight: Function = np.ones_like,
    dtype: type = np.float32,
    constant: float = 1.0,
) -> tuple[list[float], list[float], float]:
    """Fit ``f(t)`` on ``interval`` by a rational function, coefficients rounded to ``dtype``.

    Parameters
    ----------
    f : callable
        The function, on float64 arrays.
    interval : (float, float)
        Where the approximation holds.
    numerator, denominator : int
        Degrees of ``P`` and of ``Q``.
    weight : callable
        The error is measured as ``weight(t) * (P/Q - f)``.
    dtype : type
        The format of the coefficients.
    constant : float
        ``Q(0)``.

    Returns
    -------
    (p, q, error)
        Coefficients, lowest order first, and the largest weighted error with the rounded coefficients.
    """
    low, high = interval
    t = low + (high - low) * (1 - np.cos(np.pi * (np.arange(_POINTS) + 0.5) / _POINTS)) / 2
    value, w = f(t), weight(t)
    # Unknowns: p0..pn, then q1..qm; the residual of the linearised problem is P - f Q.
    powers = [t**k for k in range(numerator + 1)] + [-value * t**k for k in range(1, denominator + 1)]
    order = sorted(range(len(powers)), key=lambda k: k if k <= numerator else k - numerator - 0.5)
    fixed: dict[int, float] = {}

    def quotient(coefficients: dict[int, float]) -> np.ndarray:
        terms = (coefficients[numerator + k] * t**k for k in range(1, denominator + 1))
        return constant + sum(terms, np.zeros_like(t))

    while len(fixed) < len(powers):
        free = [k for k in order if k not in fixed]
        target = constant * value - sum((fixed[k] * powers[k] for k in fixed), np.zeros_like(t))
        solution = _lawson(
            np.stack([powers[k] * w for k in free], axis=1),
            target * w,
            lambda c, free=free: quotient({**fixed, **dict(zip(free, c, strict=True))}),  # type: ignore[misc]
        )
        fixed[free[0]] = float(dtype(solution[0]))
    p = [fixed[k] for k in range(numerator + 1)]
    q = [constant] + [fixed[numerator + k] for k in range(1, denominator + 1)]
    error = np.abs(w * (np.polyval(p[::-1], t) / np.polyval(q[::-1], t) - value)).max()
    return p, q, float(error)


def _taylor_tail(f: Function, head: Function, order: int) -> Function:
    """``(f(t) - head(t)) / t**order``, kept away from t = 0 where it is 0/0."""

    def tail(t: np.ndarray) -> np.ndarray:
        t = np.where(np.abs(t) < 1e-9, 1e-9, t)
        wide = t.astype(np.longdouble)
        return ((f(wide) - head(wide)) / wide**order).astype(np.float64)

    return tail


def _half_erf(x: np.ndarray) -> np.ndarray:
    """The h with ``erf(x) = 2 h / (1 + h**2)``, ``|h| <= 1``."""
    y = erf(x)
    return y / (1 + np.sqrt(erfc(x) * (1 + y)))


def _half(h: Function, limit: float, numerator: int, denominator: int) -> tuple:
    """Fit of ``h(x) / x`` in ``t = x**2``.

    A relative error d of h is one of ``d (1 - h**2) / (1 + h**2)`` in ``2 h / (1 + h**2)``: the weight.
    """

    def f(t: np.ndarray) -> np.ndarray:
        return h(np.sqrt(t)) / np.sqrt(t)

    def weight(t: np.ndarray) -> np.ndarray:
        y = h(np.sqrt(t)) ** 2
        return (1 - y) / (1 + y) / f(t)

    return f, (1e-12, limit**2), numerator, denominator, weight


LN2 = float(np.log(2))

#: name -> (f, interval, degree of P, degree of Q, weight, format and, where it is not 1, Q(0)).
#: The Q(0) of tanh and erf are those of some hundred random ones that round best on the whole interval.
FITS: dict[str, tuple] = {
    # e**r = 1 + r + r**2 P(r)
    "exp": (
        _taylor_tail(np.exp, lambda r: 1 + r, 2),
        (-0.5 * LN2, 0.5 * LN2),
        3,
        0,
        lambda r: r * r / np.exp(r),
        np.float32,
    ),
    # 2**f = 1 + f P(f)
    "exp2": (
        _taylor_tail(np.exp2, lambda f: 1 + 0 * f, 1),
        (-0.5, 0.5),
        5,
        0,
        lambda f: f / np.exp2(f),
        np.float32,
    ),
    # log(1 + f) = f + f**2 P(f)
    "log": (
        _taylor_tail(np.log1p, lambda f: f, 2),
        (-1 / 3, 1 / 3),
        7,
        0,
        lambda f: f * f / np.log1p(f),
        np.float32,
    ),
    # log((1 + s) / (1 - s)) = 2 s + s**3 P(s**2), |s| <= 0.2, in double for pow
    "log64": (
        lambda u: (2 * np.arctanh(np.sqrt(u)) / np.sqrt(u) - 2) / u,
        (1e-6, 0.0401),
        4,
        0,
        lambda u: u / 2,
        np.float64,
    ),
    # tanh(x) = 2 h / (1 + h**2) with h = tanh(x / 2) = x P(x**2) / Q(x**2)
    "tanh": (*_half(lambda x: np.tanh(0.5 * x), 9.011, 2, 3), np.float32, 0.9224634170532227),
    # erf(x) = 2 h / (1 + h**2) with h = x P(x**2) / Q(x**2)
    "erf": (*_half(_half_erf, 3.84, 4, 4), np.float32, 0.8751823306083679),
    # sin(r) = r + r**3 P(r**2)
    "sin": (
        _taylor_tail(lambda t: np.sin(np.sqrt(t)) / np.sqrt(t), lambda t: 1 + 0 * t, 1),
        (1e-6, (np.pi / 4 + 0.01) ** 2),
        2,
        0,
        lambda t: t,
        np.float32,
    ),
    # cos(r) = 1 - r**2 / 2 + r**4 P(r**2)
    "cos": (
        _taylor_tail(lambda t: np.cos(np.sqrt(t)), lambda t: 1 - t / 2, 2),
        (1e-3, (np.pi / 4 + 0.01) ** 2),
        2,
        0,
        lambda t: t * t / np.cos(np.sqrt(t)),
        np.float32,
    ),
}


def main() -> None:
    """Print every table."""
    for name, arguments in FITS.items():
        p, q, error = fit(*arguments)
        print(f"{name}: largest relative error {error:.3g} = 2**{np.log2(error):.1f}")
        print("  P =", ", ".join(f"{c!r}" for c in p))
        if len(q) > 1:
            print("  Q =", ", ".join(f"{c!r}" for c in q))


if __name__ == "__main__":
    main()
