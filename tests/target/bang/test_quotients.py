# SPDX-License-Identifier: Apache-2.0
"""Quotients by zero: what the vendor's function leaves undefined is IEEE 754's all the same.

The host model finds every division by zero that `__bang_div` is given.
"""

from __future__ import annotations

import numpy as np
import pytest
import uir_tvm
from tvm import relax
from uir_tvm.options import CompileOptions

from ...kernel_graph.programs import module

op = relax.op
INF, NAN = np.inf, np.nan
#: All pairs of these are divided.
VALUES = np.array([0.0, -0.0, 1, -1, 2.5, -7, INF, -INF, NAN, 3e38, -3e38, 2e-38], np.float32)


def _compiled(body, names: str, target: str = "uir-bang:mlu590", dtype: str = "float32"):
    size = VALUES.size**2
    mod = module({name: ((size,), dtype) for name in names}, body)
    exe = uir_tvm.compile(mod, target=target, options=CompileOptions(device="model"))
    (kernel,) = exe.info.kernels
    assert not kernel.fallback, kernel.fallback
    return exe, kernel.texts["source"]


def _pairs(dtype: str) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(over="ignore"):
        x, y = (v.reshape(-1).astype(dtype) for v in np.meshgrid(VALUES, VALUES, indexing="ij"))
    return x, y


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_every_pair_is_divided_as_ieee_754_does(dtype: str) -> None:
    exe, source = _compiled(lambda emit, x, y: emit(op.divide(x, y)), "xy", dtype=dtype)
    assert source.count("__bang_div(") == 1
    x, y = _pairs(dtype)
    with np.errstate(all="ignore"):
        wanted = x / y
    found = exe(x, y)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found)[wanted == wanted], np.signbit(wanted)[wanted == wanted])


@pytest.mark.parametrize(
    "divisor",
    [
        lambda emit, y: emit(op.add(emit(op.exp(y)), relax.const(1.0, "float32"))),
        lambda emit, y: emit(op.add(emit(op.multiply(y, y)), relax.const(1e-6, "float32"))),
        lambda emit, y: emit(op.sqrt(emit(op.add(emit(op.abs(y)), relax.const(0.5, "float32"))))),
        lambda emit, y: emit(op.maximum(y, relax.const(1e-3, "float32"))),
        lambda emit, y: relax.const(3.0, "float32"),
    ],
    ids=["exp + 1", "square + eps", "sqrt", "maximum", "number"],
)
def test_a_divisor_that_cannot_be_zero_is_not_guarded(divisor) -> None:
    """One function more than the divisor takes alone."""

    def whole(emit, x, y):
        return emit(op.divide(x, divisor(emit, y)))

    exe, source = _compiled(whole, "xy")
    lines = [line for line in source.splitlines() if "__bang_" in line]
    (place,) = [k for k, line in enumerate(lines) if "__bang_div(" in line]
    assert place == len(lines) - 1 and "__bang_eq" not in source, source
    x, y = _pairs("float32")
    exe(x, y)  # no finding


@pytest.mark.parametrize(
    "divisor",
    [
        lambda emit, y: emit(op.exp(y)),
        lambda emit, y: emit(op.multiply(y, y)),
        lambda emit, y: emit(op.add(emit(op.multiply(y, y)), relax.const(-1.0, "float32"))),
    ],
    ids=["exp", "square", "square - 1"],
)
def test_a_divisor_that_may_become_zero_is_guarded(divisor) -> None:
    exe, source = _compiled(lambda emit, x, y: emit(op.divide(x, divisor(emit, y))), "xy")
    assert "__bang_eq_scalar(" in source
    x, y = _pairs("float32")
    exe(x, y)  # no finding


@pytest.mark.parametrize("name", ["floor_divide", "mod", "tan", "atan2", "log1p", "power", "divide by zero"])
def test_functions_that_divide_make_no_undefined_quotient(name: str) -> None:
    """Formulas over divisions, on numbers of all kinds: no finding."""
    bodies = {
        "tan": lambda emit, x, y: emit(op.add(emit(op.tan(x)), y)),
        "atan2": lambda emit, x, y: emit(op.add(emit(op.atan(emit(op.divide(x, y)))), y)),
        "log1p": lambda emit, x, y: emit(op.add(emit(op.tanh(x)), emit(op.erf(y)))),
        "power": lambda emit, x, y: emit(op.power(x, y)),
        "divide by zero": lambda emit, x, y: emit(op.add(emit(op.divide(x, relax.const(0.0, "float32"))), y)),
    }
    body = bodies.get(name, lambda emit, x, y: emit(getattr(op, name)(x, y)))
    exe, _ = _compiled(body, "xy")
    exe(*_pairs("float32"))
