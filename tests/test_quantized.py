# SPDX-License-Identifier: Apache-2.0
"""Quantised tensors: packing is reversible, values are what the definition says, in NumPy and in Relax."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax
from uir_tvm.errors import QuantizationError
from uir_tvm.quantized import Packing, check, dequantized, pack, unpack
from uir_tvm.quantized_calls import dequantize_call, expanded, is_dequantize, packing_of


@st.composite
def packings(draw: st.DrawFn) -> Packing:
    bits = draw(st.sampled_from([4, 8]))
    group = draw(st.integers(1, 24)) * (8 // bits)
    zero = draw(st.integers(0, (1 << bits) - 1))
    return Packing(bits, group, zero, draw(st.sampled_from(["float16", "float32"])), draw(st.booleans()))


def quantised(
    packing: Packing, rows: int, groups: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Codes, bytes, scales, offsets of numbers without a pattern."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 1 << packing.bits, (rows, groups * packing.group))
    scales = rng.standard_normal((rows, groups)).astype(packing.scale_dtype)
    offsets = rng.standard_normal((rows, groups)).astype(packing.scale_dtype) if packing.offsets else None
    return codes, pack(codes, packing), scales, offsets


@settings(max_examples=60, deadline=None, derandomize=True)
@given(packings(), st.integers(1, 4), st.integers(1, 4), st.integers(0, 1 << 30))
def test_packing_is_reversible_and_values_are_the_definitions(
    packing: Packing, rows: int, groups: int, seed: int
) -> None:
    codes, packed, scales, offsets = quantised(packing, rows, groups, seed)
    assert packed.shape == packing.packed_shape(*codes.shape)
    np.testing.assert_array_equal(unpack(packed, packing), codes)
    values = dequantized(packed, scales, offsets, packing)
    for r in range(rows):
        for c in range(codes.shape[1]):
            g = c // packing.group
            want = np.float32(scales[r, g]) * np.float32(int(codes[r, c]) - packing.zero)
            if offsets is not None:
                want += np.float32(offsets[r, g])
            assert values[r, c] == want
    sizes = [array.nbytes for array in (packed, scales, *([] if offsets is None else [offsets]))]
    assert packing.nbytes(*codes.shape) == sum(sizes)
    assert Packing.from_json(packing.to_json()) == packing


def test_halves_of_a_group_lie_as_blocks_of_gguf_have_them() -> None:
    packing = Packing(4, 32)
    packed = pack(np.arange(64).reshape(1, 64) % 16, packing)
    np.testing.assert_array_equal(packed[0, :4], [0x00, 0x11, 0x22, 0x33])
    codes = np.zeros((1, 32), int)
    codes[0, 3], codes[0, 19] = 5, 12
    assert pack(codes, packing)[0].tolist() == [0, 0, 0, 0xC5, *[0] * 12]


def _module(packing: Packing, rows: int, groups: int, dtype: str, expand: bool) -> tvm.IRModule:
    builder = relax.BlockBuilder()
    columns = groups * packing.group
    sides = [(packing.packed_shape(rows, columns), "uint8")]
    sides += [(packing.scales_shape(rows, columns), packing.scale_dtype)] * (1 + packing.offsets)
    params = [relax.Var(f"p{at}", relax.TensorType(*side)) for at, side in enumerate(sides)]
    with builder.function("main", params):
        with builder.dataflow():
            call = dequantize_call(builder, packing, *params, dtype=dtype)
            value = expanded(builder, call) if expand else builder.emit(call)
            out = builder.emit_output(value)
        builder.emit_func_output(out)
    return builder.get()


@pytest.mark.parametrize(
    "packing",
    [Packing(4, 32, 8, "float16"), Packing(4, 6, 0, "float32", True), Packing(8, 5, 128, "float16", True)],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_operators_of_relax_compute_the_same_bits(packing: Packing, dtype: str) -> None:
    codes, packed, scales, offsets = quantised(packing, 3, 2, 7)
    module = _module(packing, 3, 2, dtype, expand=True)
    run = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())["main"]
    parts = [packed, scales, *([] if offsets is None else [offsets])]
    got = run(*[tvm.runtime.tensor(part) for part in parts]).numpy()
    np.testing.assert_array_equal(got, dequantized(packed, scales, offsets, packing).astype(dtype))


def test_a_call_says_its_packing_and_type() -> None:
    packing = Packing(4, 32, 8, "float16", True)
    main = _module(packing, 3, 2, "bfloat16", expand=False)["main"]
    (call,) = [binding.value for binding in main.body.blocks[0].bindings if is_dequantize(binding.value)]
    assert packing_of(call) == packing
    assert call.ty.dtype == "bfloat16" and [int(size) for size in call.ty.shape.values] == [3, 64]
    assert not is_dequantize(main.params[0])


@pytest.mark.parametrize(
    "fields",
    [{"bits": 3}, {"group": 0}, {"group": 7}, {"zero": 16}, {"zero": -1}, {"scale_dtype": "float64"}],
    ids=str,
)
def test_a_packing_that_there_is_none_of_is_refused(fields: dict) -> None:
    with pytest.raises(QuantizationError, match="need:"):
        Packing(**{"bits": 4, "group": 32, **fields})


def test_parts_that_do_not_fit_are_refused() -> None:
    packing = Packing(4, 32, 0, "float16", True)
    kinds = ["uint8", "float16", "float16"]
    assert check(packing, (3, 32), [(3, 2), (3, 2)], kinds) == (3, 64)
    wrong: list[tuple] = [
        ((3, 31), [(3, 2), (3, 2)], kinds),
        ((3, 32), [(3, 2), (3, 1)], kinds),
        ((3, 32), [(3, 2)], kinds[:2]),
        ((3, 32), [(3, 2), (3, 2)], ["int8", *kinds[1:]]),
        ((3, 32, 1), [(3, 2), (3, 2)], kinds),
    ]
    for packed, others, dtypes in wrong:
        with pytest.raises(QuantizationError):
            check(packing, packed, others, dtypes)
    for code in (16, -1):
        with pytest.raises(QuantizationError, match="do not fit into 4 bits"):
            pack(np.full((1, 32), code), packing)
    with pytest.raises(QuantizationError, match="no whole number of groups"):
        pack(np.zeros((1, 33), int), packing)
