# SPDX-License-Identifier: Apache-2.0
"""Blocks of every type stand for the values that the package ``gguf`` unpacks, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.llm.gguf_blocks import KINDS, quantised

gguf = pytest.importorskip("gguf")

#: Where blocks have numbers of fp16.
HALVES = {
    "Q4_0": (0,),
    "Q4_1": (0, 2),
    "Q5_0": (0,),
    "Q5_1": (0, 2),
    "Q8_0": (0,),
    "Q4_K": (0, 2),
    "Q5_K": (0, 2),
    "Q6_K": (208,),
}
PACKED = {kind.name: kind for kind in KINDS.values() if kind.packing is not None}


def test_sizes_are_those_of_the_package() -> None:
    for number, kind in KINDS.items():
        found = gguf.GGMLQuantizationType(number)
        assert found.name == kind.name
        assert gguf.GGML_QUANT_SIZES[found] == (kind.values, kind.nbytes)


@pytest.mark.parametrize("name", PACKED)
def test_values_of_random_blocks(name: str) -> None:
    """Every byte is random, but that scales are finite."""
    kind, rows = PACKED[name], 7
    blocks = np.random.default_rng(3).integers(0, 256, (rows, 3, kind.nbytes), np.uint8)
    for begin in HALVES[name]:
        blocks[..., begin + 1] &= 0xBF
    wanted = gguf.dequantize(blocks.reshape(rows, -1), gguf.GGMLQuantizationType[name])
    found = quantised(kind, blocks.reshape(rows, -1))
    assert found.packing == kind.packing and found.shape == (rows, 3 * kind.values)
    np.testing.assert_array_equal(found.values(), wanted)
    parts = [found.packed, found.scales, *([] if found.offsets is None else [found.offsets])]
    assert sum(part.nbytes for part in parts) == found.nbytes
