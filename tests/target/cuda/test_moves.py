# SPDX-License-Identifier: Apache-2.0
"""Moves between every pair of memories do on the host model what the interpreter says, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm import hardware
from uir_tvm.igraph import interpreter
from uir_tvm.runtime.kernel import run_igraph

from .. import random_moves


@pytest.mark.parametrize("seed", range(6))
def test_random_moves(seed: int) -> None:
    """Whatever shape, stride, box, padding and path: the same bytes, nothing else written."""
    graph, arrays = random_moves.build(seed, hardware.get("h200", "cuda"))
    wanted = interpreter.run(graph, *arrays)
    got = run_igraph(graph, "uir-cuda", *arrays, device="model")
    for pointer, a, b in zip([p for p in graph.params if p.role != "in"], wanted, got, strict=True):
        np.testing.assert_array_equal(
            np.asarray(a).view(np.uint8), np.asarray(b).view(np.uint8), err_msg=f"seed {seed}, {pointer.name}"
        )
