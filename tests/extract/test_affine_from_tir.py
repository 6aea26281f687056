# SPDX-License-Identifier: Apache-2.0
"""Index expressions become the quasi-affine expressions that they equal, simplified by ranges."""

from __future__ import annotations

import itertools

import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import tirx
from uir_tvm.extract.affine_from_tir import AffineConverter, NotAffineError
from uir_tvm.igraph.affine import affine, var
from uir_tvm.igraph.space import Space

P, Q, J, X = (tvm.ir.Var(name, "int32") for name in "pijx")
EXTENTS = {"p": 6, "i": 8, "j": 3}
CONVERTER = AffineConverter({P: var("p"), Q: var("i"), J: var("j")}, {X: P * 8 + Q}, Space(EXTENTS))

CASES = [
    (lambda: P * 8 + Q * 2 - 3, var("p") * 8 + var("i") * 2 - 3),
    (lambda: (P * 8 + Q) // 8, var("p")),
    (lambda: (P * 8 + Q) % 8, var("i")),
    (lambda: (P * 8 + Q) // 16, var("p") // 2),
    (lambda: (P * 8 + Q) % 16, (var("p") % 2) * 8 + var("i")),
    (lambda: X // 12 * 12 + X % 12, var("p") * 8 + var("i")),
    (lambda: X // 4 // 3 * 3 + X // 4 % 3, var("p") * 2 + var("i") // 4),
    (lambda: (X % 24) // 8, var("p") % 3),
    (lambda: (X % 24) % 8, var("i")),
    (lambda: tirx.truncdiv(X, 8), var("p")),
    (lambda: tirx.truncmod(X, 8), var("i")),
    (lambda: tirx.min(Q, 7), var("i")),
    (lambda: tirx.max(Q - 8, P), var("p")),
    (lambda: tirx.Cast("int64", X), var("p") * 8 + var("i")),
    (lambda: X >> 3, var("p")),
    (lambda: J << 2, var("j") * 4),
    (lambda: tirx.if_then_else(Q < 8, Q, P), var("i")),
    (lambda: tirx.likely(Q), var("i")),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_conversion(case):
    """Each form of TIR gives the expected expression."""
    build, expected = CASES[case]
    assert CONVERTER.convert(build()) == expected


@pytest.mark.parametrize(
    "build",
    [
        lambda: P * Q,
        lambda: P // Q,
        lambda: tirx.truncdiv(Q - 4, 2),  # rounds towards zero, and may be negative
        lambda: tirx.min(Q, P),
        lambda: tvm.ir.Var("unknown", "int32") + 1,
        lambda: tirx.exp(tirx.Cast("float32", Q)),
    ],
)
def test_not_affine(build):
    """What no quasi-affine expression equals is refused, not approximated."""
    with pytest.raises(NotAffineError):
        CONVERTER.convert(build())


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_a_cast_is_affine_where_every_value_fits(dtype):
    """One more at either end, and it would wrap around."""
    least, most = int(tvm.tirx.min_value(dtype)), int(tvm.tirx.max_value(dtype))

    def moved(by: int):
        return tirx.Cast(dtype, tirx.Cast("int64", Q) + tirx.IntImm("int64", by))

    assert CONVERTER.convert(moved(most - 7)) == var("i") + (most - 7)
    assert CONVERTER.convert(moved(least)) == var("i") + least
    for by in (most - 6, least - 1):
        with pytest.raises(NotAffineError):
            CONVERTER.convert(moved(by))


def test_decide():
    """Conditions that the ranges decide are decided; others are not."""
    assert CONVERTER.decide(X < 48) is True
    assert CONVERTER.decide(tirx.And(Q < 8, J >= 3)) is False
    assert CONVERTER.decide(tirx.Or(Q < 8, P > 2)) is True
    assert CONVERTER.decide(tirx.Not(Q == 9)) is True
    assert CONVERTER.decide(Q < 7) is None


_LEAVES = st.one_of(st.sampled_from([P, Q, J, X]), st.integers(-9, 9).map(lambda n: tirx.IntImm("int32", n)))


def _grow(children):
    constant = st.integers(1, 13)
    return st.one_of(
        st.tuples(children, children).map(lambda t: t[0] + t[1]),
        st.tuples(children, children).map(lambda t: t[0] - t[1]),
        st.tuples(children, st.integers(-5, 5)).map(lambda t: t[0] * t[1]),
        st.tuples(children, constant).map(lambda t: tirx.floordiv(t[0], t[1])),
        st.tuples(children, constant).map(lambda t: tirx.floormod(t[0], t[1])),
    )


@settings(max_examples=150, deadline=None)
@given(st.recursive(_LEAVES, _grow, max_leaves=6))
def test_conversion_keeps_values(expr):
    """For random expressions the result has the value of the original at every point of the ranges."""
    converted = CONVERTER.convert(expr)
    low, high = CONVERTER.space.range(converted)
    for p, i, j in itertools.product(range(0, 6, 2), range(0, 8, 3), range(3)):
        env = {"p": p, "i": i, "j": j}
        value = converted.evaluate(env)
        assert value == _evaluate(expr, {P: p, Q: i, J: j, X: p * 8 + i})
        assert low <= value <= high


def _evaluate(expr, env):
    if isinstance(expr, tvm.ir.Var):
        return env[expr]
    if isinstance(expr, tirx.IntImm):
        return int(expr.value)
    a, b = _evaluate(expr.a, env), _evaluate(expr.b, env)
    operations = {
        tirx.Add: lambda: a + b,
        tirx.Sub: lambda: a - b,
        tirx.Mul: lambda: a * b,
        tirx.FloorDiv: lambda: a // b,
        tirx.FloorMod: lambda: a % b,
    }
    return operations[type(expr)]()


def test_is_linear():
    """A variable inside of a division is not linear; the others of the expression are."""
    expr = var("p") * 3 + (var("i") + 1) // 4
    assert expr.is_linear_in("p") and not expr.is_linear_in("i")
    assert affine(3).is_linear_in("p")


def test_an_expression_is_converted_once_until_what_it_depends_on_changes(monkeypatch: pytest.MonkeyPatch):
    """Also what is not affine; a variable that stands for something else is asked for again."""
    env = {P: var("p"), Q: var("i")}
    converter = AffineConverter(env, {}, Space(EXTENTS))
    asked, inner = [], AffineConverter._divide
    monkeypatch.setattr(AffineConverter, "_divide", lambda *args: asked.append(args) or inner(*args))
    quotient, other = P // 2, P // Q
    assert converter.convert(quotient) == converter.convert(quotient) == var("p") // 2
    for _ in range(2):
        with pytest.raises(NotAffineError, match="p // i"):
            converter.convert(other)
    assert len(asked) == 2
    env[P] = var("i")
    converter.forget()
    assert converter.convert(quotient) == var("i") // 2
