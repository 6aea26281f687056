# SPDX-License-Identifier: Apache-2.0
"""The vectorised functions: error over float32, special values, other dtypes, and that they stay vectors."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tvm
from tvm import tirx
from uir_tvm.errors import CodegenError
from uir_tvm.target.cpu.vector_math import MATH, OF_NEGATIVE, avx512, bind_in_cells, binding, const_like, emit
from uir_tvm.target.cpu.vector_math.functions import MATH64
from uir_tvm.target.cpu.vector_math.measure_accuracy import (
    REFERENCES,
    build_loop,
    host_target,
    measure_error,
    ulp_error,
)
from uir_tvm.target.cpu.vector_math.ops import MAGIC, MAGIC64, horner, let

INF, NAN = np.inf, np.nan
SMALLEST, LARGEST = 2.0**-149, float(np.finfo(np.float32).max)

#: The bounds that docs/numerics.md promises, in ULP.
BOUNDS = dict.fromkeys(REFERENCES, 4.0) | {"exp2": 1.0, "log": 2.0, "log2": 2.5, "rsqrt": 2.0, "sqrt": 0.5}
BOUNDS |= {"sin": 2.5, "cos": 2.5}


def inputs_of(name: str) -> int:
    return 2 if name == "pow" else 1


def run(function, *inputs: np.ndarray, lanes: int = 16, vectors: bool = True) -> np.ndarray:
    """Apply a function of expressions to arrays."""
    size = -(-len(inputs[0]) // lanes) * lanes
    dtype = str(inputs[0].dtype)
    module = build_loop(function, size, lanes, len(inputs), dtype, vectors)
    out = tvm.runtime.tensor(np.zeros(size, inputs[0].dtype))
    module["main"](*(tvm.runtime.tensor(np.resize(x, size)) for x in inputs), out)
    return out.numpy()[: len(inputs[0])]


def same(got: np.ndarray, want: np.ndarray) -> None:
    """Equal, with NaN equal to NaN and -0 different from 0."""
    np.testing.assert_array_equal(got, want)
    number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(want)[number])


@pytest.mark.parametrize("name", REFERENCES)
def test_error_over_all_float32(name):
    """Every 1021st (a prime) of all bit patterns: every exponent, both signs, denormals, infinities, NaN.

    Prints what it measured (``pytest -s``).
    """
    worst = measure_error(MATH[name], REFERENCES[name], stride=1021)
    print(f"{name}: {worst.ulp:.2f} ULP at {worst.x!r}")
    assert worst.ulp <= BOUNDS[name], worst


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        (
            "exp",
            [
                (0.0, 1),
                (-0.0, 1),
                (INF, INF),
                (-INF, 0),
                (NAN, NAN),
                (88.72284, INF),
                (1e30, INF),
                (-104.0, 0),
                (-1e30, 0),
            ],
        ),
        (
            "exp2",
            [
                (0.0, 1),
                (10.0, 1024),
                (-149.0, SMALLEST),
                (-151.0, 0),
                (128.0, INF),
                (INF, INF),
                (-INF, 0),
                (NAN, NAN),
            ],
        ),
        (
            "log",
            [
                (1.0, 0),
                (0.0, -INF),
                (-0.0, -INF),
                (-1.0, NAN),
                (-SMALLEST, NAN),
                (INF, INF),
                (-INF, NAN),
                (NAN, NAN),
            ],
        ),
        (
            "log2",
            [
                (1.0, 0),
                (8.0, 3),
                (SMALLEST, -149),
                (0.0, -INF),
                (-1.0, NAN),
                (INF, INF),
                (-INF, NAN),
                (NAN, NAN),
            ],
        ),
        (
            "tanh",
            [
                (0.0, 0),
                (-0.0, -0.0),
                (SMALLEST, SMALLEST),
                (INF, 1),
                (-INF, -1),
                (20.0, 1),
                (-20.0, -1),
                (NAN, NAN),
            ],
        ),
        (
            "erf",
            [
                (0.0, 0),
                (-0.0, -0.0),
                (SMALLEST, SMALLEST),
                (INF, 1),
                (-INF, -1),
                (5.0, 1),
                (-5.0, -1),
                (NAN, NAN),
            ],
        ),
        ("sigmoid", [(0.0, 0.5), (-0.0, 0.5), (INF, 1), (-INF, 0), (LARGEST, 1), (-LARGEST, 0), (NAN, NAN)]),
        ("sin", [(0.0, 0), (-0.0, -0.0), (SMALLEST, SMALLEST), (INF, NAN), (-INF, NAN), (NAN, NAN)]),
        ("cos", [(0.0, 1), (-0.0, 1), (SMALLEST, 1), (INF, NAN), (-INF, NAN), (NAN, NAN)]),
        ("sqrt", [(0.0, 0), (-0.0, -0.0), (4.0, 2), (INF, INF), (-1.0, NAN), (NAN, NAN)]),
        ("rsqrt", [(0.0, INF), (-0.0, -INF), (4.0, 0.5), (INF, 0), (-1.0, NAN), (NAN, NAN)]),
    ],
)
def test_special_values(name, cases):
    """Exact at the points where IEEE 754 and C leave no choice."""
    x, want = np.array(cases, np.float32).T
    same(run(MATH[name], x), want)


def test_exp_at_both_ends_of_float32():
    """The last finite result, and the gradual underflow down to the smallest denormal."""
    x = np.array([88.72283, -87.5, -95.0, -103.0, -103.9], np.float32)
    got = run(MATH["exp"], x)
    assert np.isfinite(got).all() and (got > 0).all()
    assert ulp_error(got, np.exp(x.astype(np.float64))).max() <= 4


def test_exp_of_negative_is_exp():
    """The same bits for arguments up to zero, gradual underflow and what is less than that among them."""
    edges = [0.0, -0.0, -87.4, -103.97, -104.0, -104.1, -131.5, -176.0, -1e9, -LARGEST, -INF, NAN]
    payload = np.array([0x7FC001FF, 0xFFFFFFFF], np.uint32).view(np.float32)
    x = np.concatenate([np.float32(edges), payload, -np.geomspace(1e-30, 200, 100_003, dtype=np.float32)])
    for lanes, vectors in ((16, True), (8, True), (8, False)):
        want, got = (run(f, x, lanes=lanes, vectors=vectors) for f in (MATH["exp"], OF_NEGATIVE["exp"]))
        same(got, want)


@pytest.mark.parametrize("name", ["tanh", "erf", "sigmoid"])
def test_saturating_functions_stay_within_one(name):
    """Rounding never carries them past one, where log(1 - y) and the like would turn into NaN."""
    x = np.linspace(2, 20, 1 << 20, dtype=np.float32)
    assert np.abs(run(MATH[name], np.concatenate([x, -x]))).max() == 1


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_large_arguments_of_sin_and_cos(name):
    """Integers up to 1e5, and floats next to multiples of pi / 2 and huge ones are reduced right."""
    near = (np.pi / 2 * np.arange(1, 63662)).astype(np.float32)
    huge = np.ldexp(np.linspace(1, 2, 4001), 2 * np.arange(4001) % 128).astype(np.float32)
    x = np.concatenate([np.arange(100_001, dtype=np.float32), near, huge, np.float32([LARGEST])])
    assert ulp_error(run(MATH[name], x), REFERENCES[name](x.astype(np.float64))).max() <= BOUNDS[name]


def test_pow():
    """Random pairs over a wide range of both arguments, results from denormal to overflow."""
    rng = np.random.default_rng(7)
    x = np.exp2(rng.uniform(-149, 128, 1 << 18)).astype(np.float32)
    y = (rng.uniform(-155, 135, 1 << 18) / np.log2(x.astype(np.float64))).astype(np.float32)
    near_one = rng.uniform(0.999, 1.001, 1 << 18).astype(np.float32)
    steep = rng.uniform(-1e5, 1e5, 1 << 18).astype(np.float32)
    x, y = np.concatenate([x, near_one]), np.concatenate([y, steep])
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64))
    assert ulp_error(run(MATH["pow"], x, y), want).max() <= 2


def test_special_values_of_pow():
    """Every pair of notable arguments, as C's pow."""
    notable = [0.0, 1.0, 0.5, 2.0, 3.0, 2.5, 1e-40, 1e30, 16777216.0, 16777217.0, INF]
    points = np.array([s * v for v in notable for s in (1, -1)] + [NAN], np.float32)
    x, y = (v.ravel() for v in np.meshgrid(points, points))
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64))
    got = run(MATH["pow"], x, y)
    assert ulp_error(got, want).max() <= 2
    number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(want)[number])


@pytest.mark.parametrize("exponent", [-1.0, -0.5, 0.5, 1.0, 2.0, 3.0, 4.0])
def test_pow_with_a_constant_exponent(exponent):
    """The short forms have the same special values as the long one."""
    rng = np.random.default_rng(3)
    x = np.concatenate([[0, -0.0, 1, -1, INF, -INF, NAN], rng.normal(size=1000) * 100]).astype(np.float32)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), np.full(x.shape, exponent))
    got = run(lambda v: emit("pow", v, tirx.const(exponent, "float32")), x)
    assert ulp_error(got, want).max() <= 2
    np.testing.assert_array_equal(np.signbit(got)[~np.isnan(want)], np.signbit(want)[~np.isnan(want)])


@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("name", MATH)
def test_stays_in_vector_registers(name, vectors):
    """On vectors, and in a vectorised loop: vector instructions, no calls, no values left in memory."""
    module = build_loop(MATH[name], 1024, inputs=inputs_of(name), vectors=vectors)
    body = module.inspect_source("ll").split("@main_compute_(")[-1]
    called = {n for n in re.findall(r"call [^@\n]*@([\w.]+)\(", body) if not n.startswith("llvm.")}
    assert not called, called
    assert "alloca" not in body and "Workspace" not in body
    assert re.search(r"<16 x float>", body)
    assembly = module.inspect_source("asm")
    library = re.compile(r"\b(call\w*|jmp)\s+\*?(exp|log|pow|tanh|erf|sin|cos|sqrt|fma|rint|nearbyint)\w*\b")
    assert not library.search(assembly), library.search(assembly)
    if "avx2" in str(tvm.target.codegen.llvm_get_cpu_features(host_target())):
        assert re.search(r"%[yz]mm\d+", assembly), "neither 256 nor 512 bit registers"


@pytest.mark.parametrize("name", MATH)
def test_scalars_vectors_and_vectorised_loops_agree(name):
    """One function for a scalar, for a vector, and for a scalar inside a vectorised loop."""
    rng = np.random.default_rng(1)
    inputs = [rng.uniform(0.1, 4, 64).astype(np.float32) for _ in range(inputs_of(name))]
    expected = run(MATH[name], *inputs)
    for lanes, vectors in ((1, True), (8, True), (16, False)):
        # The same operations in the same order; only which products are contracted into an fma may differ.
        got = run(MATH[name], *inputs, lanes=lanes, vectors=vectors)
        np.testing.assert_allclose(got, expected, rtol=2**-22)


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_dtypes(name, dtype):
    """float16 is rounded once from float32, float64 is the C library's to about one ULP of it."""
    x = np.linspace(0.05, 8, 256).astype(dtype)
    got = run(lambda v: emit(name, v), x).astype(np.float64)
    epsilon = float(np.finfo(dtype).eps)
    # Half an ULP of rounding, plus float32's own error; three ULP where float64 is composed of two calls.
    bound = {"float64": 3.0}.get(dtype, 0.51) * epsilon
    np.testing.assert_allclose(got, REFERENCES[name](x.astype(np.float64)), rtol=bound)


def test_every_function_has_a_float64_route():
    assert MATH.keys() == MATH64.keys()


def test_composes():
    """Functions of functions: a chain long enough that compiling it would not end if TVM could substitute."""
    x = np.linspace(-6, 6, 256).astype(np.float32)

    def mish(v):
        softplus = MATH["log"](MATH["exp"](v) + const_like(v, 1.0))
        return let(v * MATH["tanh"](softplus), lambda m: MATH["erf"](MATH["sin"](m)) * MATH["sigmoid"](m))

    m = x.astype(np.float64)
    m = m * np.tanh(np.log1p(np.exp(m)))
    want = REFERENCES["erf"](np.sin(m)) * REFERENCES["sigmoid"](m)
    np.testing.assert_allclose(run(mish, x), want, rtol=0, atol=2e-6)


def test_emit_binds_as_it_is_told():
    """Without a binder one expression, with one no ``Let`` in it."""
    x = tirx.Var("x", "float32x8")
    statements: list[tirx.Stmt] = []
    assert isinstance(emit("exp", x), tirx.Let)
    assert "Let" not in str(emit("exp", x, bind=bind_in_cells(statements)))
    assert statements
    with binding(bind_in_cells(statements)):
        assert "Let" not in str(emit("exp", x)), "the surrounding binder is overridden"
    assert isinstance(emit("exp", x), tirx.Let), "the binder outlives its block"


def test_scalar_argument_beside_a_vector_is_broadcast():
    x = tirx.Var("x", "float32x8")
    assert str(emit("pow", x, tirx.const(2.5, "float32")).ty.dtype) == "float32x8"


@pytest.mark.parametrize(
    ("name", "dtypes", "said"),
    [
        ("sinh", ["float32"], "no function named"),
        ("exp", ["int32"], "int32"),
        ("exp", ["bfloat16"], "bfloat16"),
        ("pow", ["float32", "float64"], "and"),
    ],
)
def test_refuses(name, dtypes, said):
    """What it lacks is named, with what there is."""
    with pytest.raises(CodegenError, match=said) as caught:
        emit(name, *(tirx.Var("x", d) for d in dtypes))
    assert caught.value.need and caught.value.remedy


@pytest.mark.parametrize(("magic", "dtype"), [(MAGIC, np.float32), (MAGIC64, np.float64)])
def test_the_magic_numbers_round_to_the_nearest(magic: float, dtype: type) -> None:
    x = np.array([-4e6, -1000.5, -3.7, -2.5, -0.5, 0, 0.4, 1.5, 2.5, 3.3, 4e6], dtype)
    np.testing.assert_array_equal((x + dtype(magic)) - dtype(magic), np.rint(x))


def test_exp_is_the_same_with_and_without_the_scaling_of_avx512() -> None:
    """Whole vectors of AVX-512 are scaled by one instruction, others by two products: every bit agrees."""
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [rng.uniform(-110, 95, 1 << 14), [-104.0, -103.97, -87.4, -INF, INF, NAN, -0.0, 88.73]]
    )
    x = x.astype(np.float32)
    np.testing.assert_array_equal(run(MATH["exp"], x, lanes=16), run(MATH["exp"], x, lanes=8))


@pytest.mark.parametrize(("lanes", "wide", "held"), [(8, False, 5), (16, True, 0), (1, False, 0)])
def test_what_a_polynomial_adds_stays_in_memory_where_registers_are_few(lanes, wide, held):
    x = tirx.Var("x", "float32" if lanes == 1 else f"float32x{lanes}")
    with avx512(wide):
        text = str(horner(x, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)))
    assert text.count("arithmetic.fence") == held
