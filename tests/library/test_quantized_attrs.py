# SPDX-License-Identifier: Apache-2.0
"""Products with weights of few bits: all instructions of this CPU against NumPy; refusals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.library.attrs import MatmulAttrs, OperandLayout
from uir_tvm.library.quantized_attrs import QuantizedMatmulAttrs, pack_quantized, takes_packing
from uir_tvm.library.reference import ACTIVATIONS
from uir_tvm.library.reference import activation as function_of
from uir_tvm.library.work import work_of
from uir_tvm.quantized import Packing, dequantized, pack

MATMUL = tvm_ffi.get_global_func("uir.library.cpu.quantized_matmul")
VECTORS = [str(name) for name in tvm_ffi.get_global_func("uir.library.cpu.quantized_vectors")()]
Q4_1 = Packing(4, 32, 0, "float16", True)


@pytest.fixture(autouse=True)
def best() -> Iterator[None]:
    yield
    choose(VECTORS[0])


def choose(vectors: str) -> None:
    tvm_ffi.get_global_func("uir.library.cpu.set_quantized_vectors")(vectors)


def weight(packing: Packing, n: int, k: int, seed: int = 0) -> tuple[Any, ...]:
    rng = np.random.default_rng(seed)
    parts = [pack(rng.integers(0, 1 << packing.bits, (n, k)), packing)]
    for _ in range(1 + packing.offsets):
        parts.append(rng.standard_normal((n, k // packing.group)).astype(packing.scale_dtype))
    return (*parts, None)[:3]


def product(
    m: int, n: int, k: int, packing: Packing, digits: int = 3, **epilogue: Any
) -> QuantizedMatmulAttrs:
    return QuantizedMatmulAttrs.of(
        MatmulAttrs.contiguous((m, k), (n, k), transpose_b=True, **epilogue), packing, digits
    )


def run(attributes: QuantizedMatmulAttrs, x: np.ndarray, parts: tuple[Any, ...], *rest: Any) -> np.ndarray:
    blob = pack_quantized(*parts, attributes)
    out = np.full((*attributes.batch, attributes.m, attributes.n), np.nan, np.float32)
    MATMUL(*map(tvm_ffi.from_dlpack, (x, blob, *rest)), attributes.to_json(), tvm_ffi.from_dlpack(out))
    return out


def assert_product(got: np.ndarray, x: np.ndarray, values: np.ndarray) -> None:
    """Within some roundings of float32 of the sum of the products' magnitudes."""
    x, values = x.astype(np.float64), values.astype(np.float64)
    error = np.abs(got - x @ values.T) / np.maximum(np.abs(x) @ np.abs(values.T), 1e-30)
    assert error.max(initial=0) < 1e-6, error.max()


@pytest.mark.parametrize("vectors", VECTORS)
@pytest.mark.parametrize(
    "packing",
    [Q4_1, Packing(4, 32, 8, "float16"), Packing(8, 32, 128, "float16"), Packing(8, 4, 77, "float32", True)],
    ids=str,
)
def test_rows_of_every_tile(vectors: str, packing: Packing) -> None:
    choose(vectors)
    parts = weight(packing, 37, 96)
    values = dequantized(*parts, packing)
    rng = np.random.default_rng(1)
    for rows in (1, 2, 3, 4, 5, 9, 24, 25, 61, 130):
        x = rng.standard_normal((rows, 96)).astype(np.float32)
        assert_product(run(product(rows, 37, 96, packing), x, parts), x, values)


@pytest.mark.parametrize("vectors", VECTORS)
@pytest.mark.parametrize(
    "packing",
    [Q4_1, Packing(4, 8, 8, "float32"), Packing(8, 32, 128, "float16"), Packing(8, 12, 77, "float32", True)],
    ids=str,
)
def test_activations_of_bytes(vectors: str, packing: Packing) -> None:
    """Each value within half a step of its group, or of its second digit; rows of every tile, an epilogue."""
    choose(vectors)
    parts = weight(packing, 37, 96)
    values = dequantized(*parts, packing).astype(np.float64)
    rng = np.random.default_rng(1)
    for rows in (1, 2, 3, 7, 8, 19, 40):
        x = rng.standard_normal((rows, 96)).astype(np.float32)
        x[0, :32] *= 1e5  # groups have scales of their own
        x[-1, 40:64] = 0.0
        attributes = product(rows, 37, 96, packing, digits=1, bias=True, activation="relu")
        bias = rng.standard_normal(37).astype(np.float32)
        got = run(attributes, x, parts, bias)
        steps = np.abs(x).reshape(rows, -1, packing.group).max(-1) / 127.0
        # groups that make most of the error of their row have a second digit, of 254 steps
        fine = steps**2 > 2 * (steps**2).mean(1, keepdims=True)
        assert fine[0].any() and not fine[0].all()
        each = np.repeat(np.where(fine, steps / 254, steps), packing.group, axis=1)
        # half a step, or the 8 bits of a bfloat16 where the CPU has tiles of those for weight and x
        limit = (each * 0.5001 + np.abs(x) * 2.0**-7) @ np.abs(values.T) + 1e-5
        want = np.maximum(x.astype(np.float64) @ values.T + bias, 0)
        assert (np.abs(got - want) < limit).all()
        if rows < 8:  # they are rounded: to the nearest steps, whose products are exact
            counts = x.reshape(rows, -1, packing.group) / np.maximum(steps, 1e-30)[..., None]
            rounded = np.rint(counts)
            rounded += np.where(fine[..., None], np.rint((counts - rounded) * 254) / 254, 0)
            again = (rounded * steps[..., None]).reshape(rows, 96) @ values.T + bias
            np.testing.assert_allclose(
                got,
                np.maximum(again, 0),
                rtol=1e-5,
                atol=3e-6 * np.abs(x).max() * np.abs(values).sum(1).max(),
            )


@pytest.mark.parametrize("vectors", VECTORS)
@pytest.mark.parametrize("worst", [1.0, -1.0])
def test_the_largest_bytes(vectors: str, worst: float) -> None:
    """No sum of pairs is beyond its 16 bits."""
    choose(vectors)
    for packing in (
        Packing(8, 32, 128, "float32"),
        Packing(8, 32, 0, "float32"),
        Packing(4, 32, 0, "float32"),
        Packing(4, 48, 0, "float32"),
        Packing(4, 128, 0, "float32"),
    ):
        k = 2 * packing.group
        largest = (1 << packing.bits) - 1
        for code in (0, largest):
            parts = (pack(np.full((16, k), code), packing), np.ones((16, 2), np.float32), None)
            got = run(product(1, 16, k, packing, digits=1), np.full((1, k), worst, np.float32), parts)
            np.testing.assert_allclose(got, k * worst * (code - packing.zero), rtol=1e-6)


@pytest.mark.parametrize("vectors", VECTORS)
def test_the_largest_digits(vectors: str) -> None:
    """No sum of pairs is beyond its 16 bits where lower digits are all -128 and codes the largest."""
    choose(vectors)
    x = np.full((1, 128), -(128 * 256 + 128) / 2.0**22, np.float32)
    x[0, ::32] = -1 + 2.0**-22
    for group in (16, 32, 48, 128):
        k = 96 if group == 48 else 128
        packing = Packing(4, group, 0, "float32")
        parts = (pack(np.full((16, k), 15), packing), np.ones((16, k // group), np.float32), None)
        here = np.ascontiguousarray(x[:, :k])
        assert_product(run(product(1, 16, k, packing), here, parts), here, np.full((16, k), 15.0))


@pytest.mark.parametrize("vectors", VECTORS)
@pytest.mark.parametrize(
    "packing", [Q4_1, Packing(4, 384, 8, "float32"), Packing(8, 96, 128, "float16")], ids=str
)
def test_many_rows_of_a_long_side(vectors: str, packing: Packing) -> None:
    """What is unpacked a piece at a time: several pieces, of one group each where groups are long."""
    choose(vectors)
    parts = weight(packing, 37, 1152)
    x = np.random.default_rng(3).standard_normal((7, 1152)).astype(np.float32)
    assert_product(run(product(7, 37, 1152, packing), x, parts), x, dequantized(*parts, packing))


@pytest.mark.parametrize("vectors", VECTORS)
@pytest.mark.parametrize("packing", [Q4_1, Packing(8, 304, 128, "float16")], ids=str)
@pytest.mark.parametrize("activation", ["none", "silu"])
def test_blocks_of_rows_by_groups_of_unpacked_panels(
    vectors: str, packing: Packing, activation: str, threads: int
) -> None:
    """More rows than a second cache holds; more outputs than are unpacked at a time for them."""
    choose(vectors)
    rows, n, k = 230, 427, 608
    parts = weight(packing, n, k)
    rng = np.random.default_rng(4)
    x = rng.standard_normal((rows, k)).astype(np.float32)
    other = rng.standard_normal((rows, n)).astype(np.float32)
    attributes = product(rows, n, k, packing, residual="after_activation", activation=activation)
    values = dequantized(*parts, packing).astype(np.float64)
    want = function_of(activation)(x.astype(np.float64) @ values.T) + other
    limit = 1e-6 * (np.abs(x) @ np.abs(values.T) + np.abs(other) + 1)
    assert (np.abs(run(attributes, x, parts, other) - want) < limit).all()


@pytest.mark.parametrize("vectors", [name for name in VECTORS if not name.startswith("amx")])
@pytest.mark.parametrize("packing", [Q4_1, Packing(8, 32, 128, "float16")], ids=str)
@pytest.mark.parametrize("rows", [6, 23, 24, 25, 128, 230])
def test_a_row_is_the_same_whatever_rows_are_beside_it(
    vectors: str, packing: Packing, rows: int, threads: int
) -> None:
    """Sums are in one order, so that a prompt in chunks gives what it gives at once."""
    choose(vectors)
    parts = weight(packing, 100, 608)
    rng = np.random.default_rng(5)
    x, other = (rng.standard_normal((rows, size)).astype(np.float32) for size in (608, 100))
    bias = rng.standard_normal(100).astype(np.float32)
    how = {"alpha": 0.3, "bias": True, "activation": "silu", "residual": "after_activation"}
    for epilogue, rest in (({}, []), (how, [bias, other])):
        got = run(product(rows, 100, 608, packing, **epilogue), x, parts, *rest)
        last = [*rest[:1], *(np.ascontiguousarray(each[-6:]) for each in rest[1:])]
        alone = run(product(6, 100, 608, packing, **epilogue), np.ascontiguousarray(x[-6:]), parts, *last)
        np.testing.assert_array_equal(got[-6:], alone)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.data())
def test_any_packing_and_shape(data: st.DataObject) -> None:
    bits = data.draw(st.sampled_from([4, 8]))
    group = data.draw(st.integers(1, 12)) * 32 // bits
    packing = Packing(
        bits,
        group,
        data.draw(st.integers(0, (1 << bits) - 1)),
        data.draw(st.sampled_from(["float16", "float32"])),
        data.draw(st.booleans()),
    )
    n, k, m = (
        data.draw(st.integers(1, 40)),
        group * data.draw(st.integers(1, 4)),
        data.draw(st.integers(1, 30)),
    )
    choose(data.draw(st.sampled_from(VECTORS)))
    parts = weight(packing, n, k, data.draw(st.integers(0, 99)))
    magnitude = np.float32(10.0) ** data.draw(st.integers(-30, 20))
    x = np.random.default_rng(m).standard_normal((m, k)).astype(np.float32) * magnitude
    assert_product(run(product(m, n, k, packing), x, parts), x, dequantized(*parts, packing))


@pytest.mark.parametrize("vectors", VECTORS)
@pytest.mark.parametrize("rows", [1, 3, 7, 40])
@pytest.mark.parametrize("digits", [1, 3])
def test_numbers_that_are_no_numbers_stay_what_they_are(vectors: str, rows: int, digits: int) -> None:
    choose(vectors)
    parts = weight(Q4_1, 20, 64)
    values = dequantized(*parts, Q4_1).astype(np.float64)
    x = np.ones((rows, 64), np.float32)
    x[0, 5], x[-1, 40] = np.inf, np.nan if rows > 1 else 1e30
    got = run(product(rows, 20, 64, Q4_1, digits), x, parts)
    with np.errstate(invalid="ignore"):
        want = x.astype(np.float64) @ values.T
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(got[np.isinf(want)], want[np.isinf(want)])


@pytest.mark.parametrize("vectors", VECTORS)
@pytest.mark.parametrize("activation", [*ACTIVATIONS, "clip(-0.5,0.5)", "hard_swish(0.25,0.5)"])
@pytest.mark.parametrize("residual", ["none", "before_activation", "after_activation"])
def test_epilogues(vectors: str, activation: str, residual: str) -> None:
    choose(vectors)
    parts = weight(Q4_1, 21, 64)
    rng = np.random.default_rng(2)
    for rows in (1, 6):
        x = rng.standard_normal((rows, 64)).astype(np.float32) / 16
        bias, other = (rng.standard_normal(shape).astype(np.float32) for shape in (21, (rows, 21)))
        attributes = product(
            rows, 21, 64, Q4_1, alpha=0.5, bias=True, residual=residual, activation=activation
        )
        got = run(attributes, x, parts, bias, *([] if residual == "none" else [other]))
        want = 0.5 * (x.astype(np.float64) @ dequantized(*parts, Q4_1).T.astype(np.float64)) + bias
        want = want + other if residual == "before_activation" else want
        function = function_of(activation)
        assert function is not None
        want = function(want)
        want = want + other if residual == "after_activation" else want
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("vectors", VECTORS)
def test_strides_and_batches(vectors: str) -> None:
    choose(vectors)
    parts = weight(Q4_1, 18, 32)
    values = dequantized(*parts, Q4_1)
    x = np.random.default_rng(3).standard_normal((2, 32, 5)).astype(np.float32)  # rows lie across
    attributes = QuantizedMatmulAttrs.of(
        MatmulAttrs(
            batch=(2,),
            m=5,
            n=18,
            k=32,
            a=OperandLayout((160, 1, 5)),
            b=OperandLayout((0, 1, 32)),
            out=OperandLayout((90, 1, 5)),
        ),
        Q4_1,
    )
    blob = pack_quantized(*parts, attributes)
    out = np.full((2, 18, 5), np.nan, np.float32)
    MATMUL(*map(tvm_ffi.from_dlpack, (x, blob)), attributes.to_json(), tvm_ffi.from_dlpack(out))
    assert_product(out.transpose(0, 2, 1), x.transpose(0, 2, 1), values)


def test_sizes_of_none() -> None:
    parts = weight(Q4_1, 18, 32)
    assert run(product(0, 18, 32, Q4_1), np.zeros((0, 32), np.float32), parts).shape == (0, 18)


def test_a_packed_weight_has_hardly_more_bytes_than_the_tensor() -> None:
    attributes = product(1, 576, 1536, Q4_1)
    assert pack_quantized(*weight(Q4_1, 576, 1536), attributes).size == Q4_1.nbytes(576, 1536)
    work = work_of("quantized_matmul", attributes.to_json())
    assert work.operations == 2 * 576 * 1536
    assert work.elements == 576 + 1536 + Q4_1.nbytes(576, 1536) // 4


def test_what_the_library_does_not_take_is_refused() -> None:
    assert (
        takes_packing(Packing(4, 8)) and not takes_packing(Packing(4, 6)) and not takes_packing(Packing(8, 2))
    )
    parts, x = weight(Q4_1, 18, 32), np.zeros((1, 32), np.float32)
    attributes = product(1, 18, 32, Q4_1)
    blob, out = pack_quantized(*parts, attributes), np.zeros((1, 18), np.float32)
    told = attributes.to_json()

    def call(x: Any = x, blob: Any = blob, text: str = told, out: Any = out) -> None:
        MATMUL(tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(blob), text, tvm_ffi.from_dlpack(out))

    call()
    with pytest.raises(ValueError, match="operand 2 does not fit"):
        call(blob=blob[:-1].copy())
    with pytest.raises(ValueError, match="operand 2 is no uint8"):
        call(blob=blob.view(np.int8))
    with pytest.raises(ValueError, match="float32|another type"):
        call(x=x.astype(np.float16))
    with pytest.raises(ValueError, match="operand 1 does not fit"):
        call(x=x[:, :16].copy())
    for wrong in ('"bits":5', '"bits":0'):
        with pytest.raises(ValueError, match="bits"):
            call(text=told.replace('"bits":4', wrong))
    with pytest.raises(ValueError, match="group"):
        call(text=told.replace('"group":32', '"group":12'))
    with pytest.raises(ValueError, match="zero"):
        call(text=told.replace('"zero":0', '"zero":16'))
    with pytest.raises(ValueError, match="digits is 2"):
        call(text=told[:-1] + ',"digits":2}')
    with pytest.raises(ValueError, match="digits"):
        QuantizedMatmulAttrs.of(attributes, Q4_1, 2)
    with pytest.raises(ValueError, match="no instructions"):
        choose("avx3")
    with pytest.raises(ValueError, match="scales"):
        pack_quantized(parts[0], parts[1][:4], parts[2], attributes)
