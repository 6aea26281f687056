# SPDX-License-Identifier: Apache-2.0
"""Moves: the copies that are chosen, and on the host model the interpreter's bytes, whatever the strides."""

from __future__ import annotations

import pytest

from .. import random_moves
from .kernels import AS_WRITTEN, DEVICE, PASSES, check

DTYPES = ("fp32", "fp16", "bf16", "int8", "int16", "int64", "bool", "int32", "uint8")
PATHS = ("reg", "scratch", "direct", "reg_reg")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("passes", [AS_WRITTEN, PASSES], ids=["as written", "all passes"])
def test_random_moves_of_cores(seed: int, passes: tuple[str, ...]) -> None:
    """Whatever shape, stride, box, padding and path: the same bytes, nothing else written, nothing found."""
    graph, arrays = random_moves.build(seed, DEVICE, 3, groups=3, units=1, dtypes=DTYPES, paths=PATHS)
    check(graph, arrays, passes, hint=f"seed {seed}")


@pytest.mark.parametrize("seed", range(6))
def test_random_moves_of_clusters(seed: int) -> None:
    """By way of SRAM as well: the memory core moves what lies in global memory."""
    paths = (*PATHS, "sram", "sram")
    graph, arrays = random_moves.build(seed, DEVICE, 4, groups=2, units=4, dtypes=DTYPES, paths=paths)
    check(graph, arrays, hint=f"seed {seed}")
