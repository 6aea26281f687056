# SPDX-License-Identifier: Apache-2.0
"""Field arithmetic: against fractions of Python, its laws, and LLVM's twin of every function."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import tirx
from tvm.ir import StringImm
from uir_tvm.igraph import finite_field as field
from uir_tvm.igraph import finite_functions
from uir_tvm.igraph.iops_scalar import UNARY
from uir_tvm.verify import field_domain
from uir_tvm.verify.field_llvm import text

FRACTIONS = st.fractions(min_value=-50, max_value=50, max_denominator=64)


def values(*numbers: Any) -> np.ndarray:
    return np.array([field.embed(n) for n in numbers], np.int64)


def is_prime(n: int) -> bool:
    """Fermat's test to some bases: for a number as large as these, and no Carmichael number."""
    return all(pow(base, n - 1, n) == 1 for base in (2, 3, 5, 7, 11, 13))


def test_the_primes_fit_each_other() -> None:
    assert field.P == 2 * field.Q + 1 and field.P < 2**31
    assert is_prime(field.P) and is_prime(field.Q)
    for base in field.BASES.values():
        assert base != 1 and pow(base, field.Q, field.P) == 1


@st.composite
def expressions(draw: Any, depth: int = 4) -> tuple[Fraction, np.ndarray]:
    """A random expression, evaluated in fractions and in the field."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        number = draw(FRACTIONS)
        return number, values(number)
    (a, x), (b, y) = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    kind = draw(st.sampled_from(("add", "sub", "mul", "div")))
    if kind == "div":
        return (a / b, field.div(x, y)) if b else (a, x)
    exact = {"add": a + b, "sub": a - b, "mul": a * b}[kind]
    return exact, getattr(field, kind)(x, y)


@settings(max_examples=80, deadline=None)
@given(expressions())
def test_rational_expressions_are_exact(case: tuple[Fraction, np.ndarray]) -> None:
    exact, found = case
    assert found[0] == field.embed(exact)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 6), st.integers(0, 40), st.integers(1, 6), st.integers(0, 2**31))
def test_a_product_of_matrices_is_its_sums(m: int, k: int, n: int, seed: int) -> None:
    """Also where factors have been through exp, hold zeros, or are infinite."""
    rng = np.random.default_rng(seed)
    a, b = field.random_values(rng, m * k).reshape(m, k), field.random_values(rng, k * n).reshape(k, n)
    a = np.where(rng.integers(0, 3, a.shape) == 0, field.exponential("exp", a), a)
    b = np.where(rng.integers(0, 2, b.shape) == 0, field.ZERO, b)
    if seed % 3 == 0 and a.size:
        a[0, 0] = field.NEG_INF
    want = np.full((m, n), field.ZERO)
    for i in range(k):
        want = field.add(want, field.mul(a[:, i : i + 1], b[i : i + 1]))
    np.testing.assert_array_equal(field.matmul(a, b), want)


def test_exponentials_turn_sums_into_products() -> None:
    rng = np.random.default_rng(0)
    a, b = field.random_values(rng, 100), field.random_values(rng, 100)
    for name in field.BASES:
        together = field.exponential(name, field.add(a, b))
        apart = field.mul(field.exponential(name, a), field.exponential(name, b))
        np.testing.assert_array_equal(together, apart)
    again = field.exponential("exp", field.exponential("exp", a))
    np.testing.assert_array_equal(again, field.exponential("exp", field.exponential("exp", a.copy())))


def test_the_blocked_softmax_is_the_plain_one() -> None:
    """The maxima differ (of a block, of the row), the quotients do not."""
    rng = np.random.default_rng(1)
    x = field.random_values(rng, 64)

    def shifted(part: np.ndarray, by: np.ndarray) -> np.ndarray:
        return field.exponential("exp", field.sub(part, np.broadcast_to(by, part.shape)))

    m = field.extreme(x, 0, True)
    plain = field.div(shifted(x, m), np.broadcast_to(field.total(shifted(x, m), 0), x.shape))
    run_m, run_s = values(float("-inf")), values(0)
    for block in x.reshape(8, 8):
        new = field.maximum(run_m, field.extreme(block, 0, True))
        run_s = field.mul(run_s, field.exponential("exp", field.sub(run_m, new)))
        run_s, run_m = field.add(run_s, field.total(shifted(block, new), 0)), new
    blocked = field.div(shifted(x, run_m), np.broadcast_to(run_s, x.shape))
    np.testing.assert_array_equal(blocked >> field.SHIFT, plain >> field.SHIFT)


def test_special_values() -> None:
    inf, nan = float("inf"), float("nan")
    assert list(field.add(values(inf, inf, 1, nan), values(1, -inf, -inf, 1))) == list(
        values(inf, nan, -inf, nan)
    )
    assert list(field.mul(values(inf, inf, -inf, 0), values(2, -1, -1, inf))) == list(
        values(inf, -inf, inf, 0)
    )
    assert list(field.inverse(values(0, inf, -inf))) == list(values(inf, 0, 0))
    assert list(field.maximum(values(-inf, nan, 3, -2), values(-5, 1, inf, 1))) == list(
        values(-5, nan, inf, 1)
    )
    assert list(field.exponential("exp", values(-inf, inf))) == [field.ZERO, field.POS_INF]
    # reductions start at the least finite number, or at -inf: both are the least value
    assert field_domain.constant(float(np.finfo(np.float32).min), "fp32") == field.NEG_INF


def test_functions_of_different_names_differ() -> None:
    x = field.random_values(np.random.default_rng(0), 50)
    unknown = [name for name in UNARY if UNARY[name].residue is None]
    results = [tuple(field.mix(field.code_of(name), x)) for name in unknown]
    assert len(set(results)) == len(unknown) > 20


TWINS: dict[str, tuple[int, Any]] = {
    "neg": (1, field.neg),
    "inverse": (1, field.inverse),
    "absolute": (1, finite_functions.absolute),
    "rank": (1, field.rank),
    "to_int": (1, lambda x: field_domain.to_integer(x, "int64")),
    "add": (2, field.add),
    "sub": (2, field.sub),
    "mul": (2, field.mul),
    "div": (2, field.div),
    "maximum": (2, field.maximum),
    "minimum": (2, field.minimum),
    "mix": (1, lambda x: field.mix(field.code_of("tanh"), x)),
    "mix2": (2, lambda x, y: field.mix(field.code_of("tanh"), x, y)),
    "exponential": (1, lambda x: field.exponential("exp", x)),
    "power": (1, lambda x: field.power(x, -5)),
}
_LEADING = {
    "mix": (field.code_of("tanh"),),
    "mix2": (field.code_of("tanh"),),
    "exponential": (field.BASES["exp"], field.code_of("exp")),
}
_TRAILING = {"power": (-5,)}


def test_llvm_does_the_same() -> None:
    """Every function of the text on every pair of random, tainted and special values."""
    rng = np.random.default_rng(3)
    plain = field.random_values(rng, 20)
    pool = np.concatenate(
        [plain, field.exponential("exp", plain), values(0, 1, -1, float("inf"), float("-inf"), float("nan"))]
    )
    a, b = (m.reshape(-1).copy() for m in np.meshgrid(pool, pool))
    size = len(a)
    x, y = (tirx.decl_buffer((size,), "int64", name) for name in "xy")
    results = {name: tirx.decl_buffer((size,), "int64", name) for name in TWINS}
    i = tirx.Var("i", "int64")

    def word(number: int) -> Any:
        return tirx.IntImm("int64", number)

    stores = []
    for name, (arity, _) in TWINS.items():
        args = [tirx.BufferLoad(p, [i]) for p in (x, y)[:arity]]
        full = [*map(word, _LEADING.get(name, ())), *args, *map(word, _TRAILING.get(name, ()))]
        call = tirx.call_pure_extern("int64", f"uir_field_{name}", *full)
        stores.append(tirx.BufferStore(results[name], call, [i]))
    loop = tirx.For(i, word(0), word(size), tirx.ForKind.SERIAL, tirx.SeqStmt(stores))
    body = tirx.AttrStmt(word(0), "pragma_import_llvm", StringImm(text()), loop)
    func = tirx.PrimFunc([x, y, *results.values()], body).with_attr("global_symbol", "main")
    run = tvm.compile(tvm.IRModule({"main": func}), target="llvm")["main"]
    outputs = [tvm.runtime.tensor(np.zeros(size, np.int64)) for _ in results]
    run(tvm.runtime.tensor(a), tvm.runtime.tensor(b), *outputs)
    for (name, (arity, twin)), output in zip(TWINS.items(), outputs, strict=True):
        want = twin(*(a, b)[:arity])
        keep = a != field.NAN if name == "rank" else slice(None)
        np.testing.assert_array_equal(output.numpy()[keep], want[keep], err_msg=name)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint64])
def test_integers_embed_as_themselves(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    numbers = np.array([limits.min, 0, 1, 7, limits.max], dtype)
    assert list(field.whole(numbers)) == [field.embed(int(n)) for n in numbers]


def test_an_extreme_with_nan_is_nan() -> None:
    inf, nan = float("inf"), float("nan")
    x = np.stack([values(1, nan, -inf), values(3, 2, -2), values(inf, 0, 1)])
    assert list(field.extreme(x, 1, largest=True)[:, 0]) == list(values(nan, 3, inf))
    assert list(field.extreme(x, 1, largest=False)[:, 0]) == list(values(nan, -2, 0))
