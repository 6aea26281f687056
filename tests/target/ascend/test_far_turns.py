# SPDX-License-Identifier: Apache-2.0
"""Sine, cosine and tangent of large numbers, however tiles lie: the scalar unit takes their turns off."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import uir_tvm
from tvm.relax import op
from uir_tvm.options import CompileOptions
from uir_tvm.target.ascend.lower import lower

from ...kernel_graph.programs import module
from .kernels import parse

FUNCTIONS = {"sin": (op.sin, np.sin), "cos": (op.cos, np.cos), "tan": (op.tan, np.tan)}


def _compiled(shape: tuple[int, ...], dtype: str, *names: str) -> uir_tvm.runtime.Executable:
    def body(emit, x):
        for name in names:
            x = emit(FUNCTIONS[name][0](x))
        return x

    mod = module({"x": (shape, dtype)}, body)
    exe = uir_tvm.compile(mod, target="uir-ascend", options=CompileOptions(device="model"))
    (kernel,) = exe.info.kernels
    assert not kernel.fallback, kernel.fallback
    return exe


def _numbers(shape: tuple[int, ...], share: float) -> np.ndarray:
    """Numbers of all magnitudes; a share of them is beyond 2^22."""
    generator = np.random.default_rng(shape[-1])
    exponent = np.where(
        generator.random(shape) < share, generator.uniform(22, 128, shape), generator.uniform(-20, 22, shape)
    )
    return (np.exp2(exponent) * generator.choice([-1, 1], shape)).astype(np.float32)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    ("shape", "share"), [((37, 100), 0.5), ((3, 9001), 0.001), ((5, 7), 1.0), ((129,), 0.0)]
)
def test_every_float_is_within_four_units(shape: tuple[int, ...], share: float, name: str) -> None:
    x = _numbers(shape, share)
    got = _compiled(shape, "float32", name)(x)
    wanted = FUNCTIONS[name][1](x.astype(np.float64))
    units = np.abs(np.asarray(got, np.float64) - wanted) / np.spacing(np.abs(wanted).astype(np.float32))
    assert units.max() <= 4, (x.flat[units.argmax()], units.max())


def test_one_after_the_other_in_place() -> None:
    """The tangent of a sine: its argument is a result, small whatever x is."""
    x = _numbers((64, 48), 0.5)
    got = _compiled((64, 48), "float32", "sin", "tan")(x)
    np.testing.assert_allclose(got, np.tan(np.sin(x.astype(np.float64))), rtol=2e-6)


def test_bfloat16_is_rounded_once() -> None:
    x = _numbers((37, 100), 0.5).astype(ml_dtypes.bfloat16)
    got = np.asarray(_compiled((37, 100), "bfloat16", "cos")(x)).astype(np.float64)
    np.testing.assert_allclose(got, np.cos(x.astype(np.float64)), rtol=0.6 * 2.0**-7)


def test_infinities_and_nan_are_nan() -> None:
    x = np.tile(np.array([np.inf, -np.inf, np.nan, 1e30], np.float32), 16)
    got = _compiled((64,), "float32", "sin")(x)
    np.testing.assert_array_equal(np.isnan(got), np.tile([True, True, True, False], 16))


@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
def test_the_function_stands_in_a_text_once_and_only_where_it_is_called(dtype: str) -> None:
    """No half is as large."""
    graph = parse(f"""
x = iPointer(dram, {dtype}, 512, in)
y = iPointer(dram, {dtype}, 512, out)
t = iPointer(reg, {dtype}, 512)
move.dram.reg.{dtype} t[0; (1,512); (512,1)], x[0; (1,512); (512,1)]
unary.sin.{dtype} t[0; (1,512); (512,1)], t[0; (1,512); (512,1)]
unary.tan.{dtype} t[0; (1,512); (512,1)], t[0; (1,512); (512,1)]
move.reg.dram.{dtype} y[0; (1,512); (512,1)], t[0; (1,512); (512,1)]
""")
    kernel = lower(graph)
    assert kernel.source.count("int32_t RestOfTurns(") == (dtype == "fp32")
    assert ("RestOfTurns" in kernel.source) == (dtype == "fp32")
