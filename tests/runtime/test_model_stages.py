# SPDX-License-Identifier: Apache-2.0
"""Models whose computed values decide what follows: each part is compiled when it is known."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
import uir_tvm
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator
from uir_tvm.errors import ShapeError, SizeError

BRANCH = """
g (float[4] x) => (float[4] y) {
  s = ReduceSum<keepdims=0>(x)
  zero = Constant<value_float=0.0>()
  c = Greater(s, zero)
  y = If(c)<
    then_branch = t () => (float[4] a) { a = Mul(x, s) },
    else_branch = e () => (float[4] b) { b = Sub(x, s) }
  >
}"""
DOUBLE = """
g (float[4] x) => (float[4] y, int64 rounds) {
  zero = Constant<value_int=0>()
  end = Constant<value_float=100.0>()
  most = Constant<value_int=9223372036854775807>()
  top = ReduceMax<keepdims=0>(x)
  c = Less(top, end)
  y, rounds = Loop(most, c, x, zero)<body = round (int64 i, bool go, float[4] v, int64 j)
      => (bool on, float[4] w, int64 k) {
    two = Constant<value_float=2.0>()
    w = Mul(v, two)
    one = Constant<value_int=1>()
    k = Add(j, one)
    now = ReduceMax<keepdims=0>(w)
    on = Less(now, end)
  }>
}"""
FOUND = """
g (float[3,4] x) => (int64[2,n] i, float[n] y, float s) {
  i = NonZero(x)
  places = Transpose(i)
  y = GatherND(x, places)
  e = Exp(y)
  s = ReduceSum<keepdims=0>(e)
}"""
COUNTED = """
g (float[3,8] x) => (float[3,k] y) {
  zero = Constant<value_float=0.0>()
  positive = Greater(x, zero)
  ones = Cast<to=7>(positive)
  sum = ReduceSum<keepdims=0>(ones)
  most = Constant<value_int=8>()
  least = Min(sum, most)
  shape = Constant<value_ints=[1]>()
  k = Reshape(least, shape)
  y, places = TopK(x, k)
}"""


def model(text: str) -> ModelProto:
    return parser.parse_model('<ir_version: 9, opset_import: ["" : 18]>' + text)


def expect_right(executable: object, proto: ModelProto, *inputs: np.ndarray) -> None:
    feeds = dict(zip((value.name for value in proto.graph.input), inputs, strict=True))
    want = ReferenceEvaluator(proto).run(None, feeds)
    got = executable(*inputs)  # type: ignore[operator]
    got = got if isinstance(got, tuple) else (got,)
    for g, w in zip(got, want, strict=True):
        assert g.shape == np.asarray(w).shape
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", ["uir-cpu", "uir-cuda"])
def test_a_branch_is_compiled_when_it_is_taken(target: str) -> None:
    proto = model(BRANCH)
    executable = uir_tvm.compile(proto, target)
    x = np.array([1, -2, 3, 0.5], np.float32)
    for sign, compiled in ((1, 2), (1, 2), (-1, 3), (1, 3), (-1, 3)):
        expect_right(executable, proto, sign * x)
        assert executable.compiled == compiled
    report = executable.report()
    assert report["decided_at_run_time"] == ["c"] and report["specialized_on"] == []


def test_rounds_of_a_loop_are_compiled_once() -> None:
    proto = model(DOUBLE)
    executable = uir_tvm.compile(proto)
    for scale in (1.0, 200.0, 0.01, 30.0):
        expect_right(executable, proto, np.full(4, scale, np.float32))
    assert executable.compiled <= 6


def test_shapes_that_depend_on_data() -> None:
    """Also where nothing is found: what follows has tensors of no elements."""
    proto = model(FOUND)
    executable = uir_tvm.compile(proto)
    x = np.arange(12, dtype=np.float32).reshape(3, 4) / 12
    for least in (3, 5, 3):
        expect_right(executable, proto, np.where(x * 12 < least, 0, x).astype(np.float32))
    assert executable.compiled == 1
    assert executable.report()["outside_kernels"] == {"NonZero": "the shape of its result depends on data"}
    assert -1 in executable.specialized(x).info.outputs[0].shape
    expect_right(executable, proto, np.zeros((3, 4), np.float32))


def test_k_is_computed() -> None:
    proto = model(COUNTED)
    executable = uir_tvm.compile(proto)
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal((3, 8))
        expect_right(executable, proto, x.astype(np.float32))


def test_sizes_that_a_model_leaves_open(tmp_path: pathlib.Path) -> None:
    proto = model("g (float[n, 4] x, float[m] y) => (float[n, 4] z) { z = Add(x, y) }")
    executable = uir_tvm.compile(proto)
    assert [str(spec) for spec in executable.info.inputs] == ["x: float32[n, 4]", "y: float32[m]"]
    four = np.ones(4, np.float32)
    for rows in (1, 3, 1):
        expect_right(executable, proto, np.full((rows, 4), rows, np.float32), four)
    report = executable.report()
    assert executable.compiled == 1 and report["dynamic_shapes"] == ["x", "y"]
    assert "m == 4" in report["programs"][0]["conditions"]
    with pytest.raises(ShapeError, match="wrong shape"):
        executable(np.ones((2, 5), np.float32), four)
    with pytest.raises(SizeError, match="m = 3") as caught:
        executable(np.ones((2, 4), np.float32), np.ones(3, np.float32))
    assert "m == 4" in caught.value.need
    expect_right(executable, proto, np.ones((2, 4), np.float32), np.ones(1, np.float32))
    uir_tvm.compile(proto).save(tmp_path / "model.uir")
    loaded = uir_tvm.load(tmp_path / "model.uir")
    expect_right(loaded, proto, np.full((5, 4), 2, np.float32), four)


@pytest.mark.parametrize("x", [0.0, 2.0])
def test_a_scalar_that_is_found_or_not(x: float) -> None:
    proto = model("g (float x, float y) => (int64[0,n] i, float z) { i = NonZero(x) z = Add(x, y) }")
    found, z = uir_tvm.compile(proto)(np.array(x, np.float32), np.array(1, np.float32))
    assert found.shape == (0, int(x != 0)) and z == x + 1


def test_operands_that_do_not_fit_outside_kernels() -> None:
    text = "g (float[3] x, float[5] c) => (float[n] y) { b = Cast<to=9>(c) y = Compress<axis=0>(x, b) }"
    executable = uir_tvm.compile(model(text))
    got = executable(np.arange(3, dtype=np.float32), np.array([1, 0, 1, 0, 0], np.float32))
    np.testing.assert_array_equal(got, [0, 2])
    with pytest.raises(ShapeError, match="Compress cannot be computed") as caught:
        executable(np.ones(3, np.float32), np.ones(5, np.float32))
    assert "[5]" in caught.value.where and caught.value.remedy
