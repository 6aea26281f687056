# SPDX-License-Identifier: Apache-2.0
"""A number that only divides is turned over once, where it is made; one that is read otherwise stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tvm
from tvm import te, tirx, topi
from uir_tvm import CompileOptions
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.pipeline import recording

EPSILON = 1e-5


def built(made: Callable[[Any, Any], Sequence[Any]]) -> tuple[tvm.runtime.Module, str]:
    """What is made of n rows of s columns, at most 64 of 128; and its text."""
    func = te.create_prim_func(made(tirx.Var("n", "int64"), tirx.Var("s", "int64")))
    func = with_sizes(func, {"n": Size("n", 1, 64), "s": Size("s", 1, 128)})
    with recording(CompileOptions(variants="none")) as records:
        module = tvm.tirx.build(tvm.IRModule({"main": func}), target="uir-bang")["main"]
    return module, str(records["main"].products["source"].source)


def called(module: tvm.runtime.Module, inputs: Sequence[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    tensors = [tvm.runtime.tensor(a, tvm.ext_dev(0)) for a in (*inputs, np.full(shape, 7, "float32"))]
    module(*tensors)
    return np.asarray(tensors[-1].numpy())


def layer_norm(n: Any, s: Any) -> Sequence[Any]:
    x, gain, shift = (
        te.placeholder(shape, name=name) for name, shape in (("x", (n, s)), ("g", (s,)), ("b", (s,)))
    )
    return [x, gain, shift, topi.nn.layer_norm(x, gain, shift, [1], EPSILON)]


def test_the_length_of_rows_that_two_means_divide_by() -> None:
    """One reciprocal, before the first load is waited for; no copies of it, in either mean."""
    module, text = built(layer_norm)
    head, rest = text.split("__sync_io();", 1)
    assert len(re.findall(r"__bang_recip\(", head)) == 1 and "__bang_recip(" not in rest, text
    assert "NRAM2NRAM" not in text, text
    rng = np.random.default_rng(0)
    for n, s in ((1, 1), (3, 37), (64, 128), (17, 5)):
        x, gain, shift = (rng.standard_normal(shape).astype("float32") for shape in ((n, s), (s,), (s,)))
        mean, variance = x.mean(1, keepdims=True), x.var(1, keepdims=True)
        wanted = (x - mean) / np.sqrt(variance + EPSILON) * gain + shift
        np.testing.assert_allclose(called(module, [x, gain, shift], (n, s)), wanted, rtol=2e-5, atol=2e-5)


def test_a_number_that_is_added_too_stays_as_it_is() -> None:
    """The same length divides the sum and is added to the quotient."""

    def made(n: Any, s: Any) -> Sequence[Any]:
        x = te.placeholder((n, s), name="x")
        total, length = topi.sum(x, 1), tirx.Cast("float32", s)
        return [x, te.compute((n,), lambda i: total[i] / length + length, "y")]

    module, text = built(made)
    assert "unary.recip" not in text
    for n, s in ((1, 1), (5, 37), (64, 128)):
        x = np.random.default_rng(n).standard_normal((n, s)).astype("float32")
        np.testing.assert_allclose(called(module, [x], (n,)), x.mean(1) + s, rtol=1e-5, atol=1e-5)
