# SPDX-License-Identifier: Apache-2.0
"""Kernels for faults that the recipes' have no place for: barriers of a part of a block, the grid, copies."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from uir_tvm import hardware
from uir_tvm.igraph import IGraph, parse_igraph
from uir_tvm.target.cuda.lower import lower
from uir_tvm.target.device_kernel import DeviceKernel

from tests.corpus.by_hand import FOLDER
from tests.target.cuda.test_async import OWN, SHARED, staged


def _by_hand(name: str, **attributes: object) -> IGraph:
    graph = parse_igraph((FOLDER / f"{name}.igraph").read_text()).replace(
        hardware=hardware.get("h200", "cuda")
    )
    return graph.replace(attrs={**graph.attrs, **attributes})


def cuda_graphs() -> Iterator[tuple[str, IGraph]]:
    """What a kernel is about, and its graph."""
    yield "named barriers", _by_hand("pairs_rms_norm")
    yield "barriers of the grid", _by_hand("share_of_total", cooperative=True)
    yield "bulk copies of a warp", staged(OWN, 3)
    yield "bulk copies of a block, twice", staged(SHARED, 2, turns=3)


def cuda_kernels(seed: int = 0) -> Iterator[tuple[str, DeviceKernel, list[np.ndarray]]]:
    """The printed kernels with inputs."""
    rng = np.random.default_rng(seed)
    for name, graph in cuda_graphs():
        sizes = [int(p.size) for p in graph.params if p.role != "out"]
        inputs = [rng.standard_normal(size).astype(np.float32) for size in sizes]
        yield name, lower(graph), inputs
