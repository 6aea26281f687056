# SPDX-License-Identifier: Apache-2.0
"""Kernels for faults that the recipes' have no place for.

On a GPU: barriers of a part of a block and of the grid, bulk copies.  On an NPU: flags that loops carry,
copies with pads, products in loops of loops.  On an MLU: clusters, their SRAM and their memory core, sets of
cores, pipelines of three stages.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from uir_tvm import hardware
from uir_tvm.device.device_kernel import DeviceKernel
from uir_tvm.igraph import IGraph, parse_igraph
from uir_tvm.igraph.dtypes import numpy_of
from uir_tvm.schedule import apply_default
from uir_tvm.target.cuda.lower import lower

from tests.corpus.by_hand import FOLDER
from tests.extracted import extracted
from tests.schedules import test_attention
from tests.target.ascend import kernels as ascend
from tests.target.bang import golden_graphs
from tests.target.bang import kernels as bang
from tests.target.cuda.test_async import OWN, OWN_ROWS, SHARED, staged


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
    yield "bulk copies of lanes", staged(OWN_ROWS, 3)
    yield "bulk copies of a block, twice", staged(SHARED, 2, turns=3)


#: Loads and stores of a loop, ahead and behind, with flags of two ids and more.
_STREAM = """
  x = iPointer(dram, fp32, 2560, in)
  y = iPointer(dram, fp32, 2560, out)
  t = iPointer(reg, fp32, 256)
  u = iPointer(reg, fp32, 256)
  for k in 5 [pipeline={stages}] {{
    move.dram.reg.fp32 t[0; (1,256); (256,1)], x[1280*pid + 256*k; (1,256); (256,1)]
    unary.exp.fp32 u[0; (1,256); (256,1)], t[0; (1,256); (256,1)]
    move.reg.dram.fp32 y[1280*pid + 256*k; (1,256); (256,1)], u[0; (1,256); (256,1)]
  }}
"""

#: A sum that a loop carries, over tiles that are padded where the data ends.
_PADDED = """
  x = iPointer(dram, fp32, 500, in)
  y = iPointer(dram, fp32, 8, out)
  t = iPointer(reg, fp32, 256)
  s = iPointer(reg, fp32, 8)
  u = iPointer(reg, fp32, 8)
  fill.fp32 s[0; (8,1); (1,1)] [0.0]
  for k in 2 {
    move.dram.reg.fp32 t[0; (8,32); (32,1)], x[32*k; (8,32); (62,1); cols :62 - 32*k] [pad=0.0]
    reduce.add.row.unit.fp32 u[0; (8,1); (1,1)], t[0; (8,32); (32,1)]
    binary.add.fp32 s[0; (8,1); (1,1)], s[0; (8,1); (1,1)], u[0; (8,1); (1,1)]
  }
  move.reg.dram.fp32 y[0; (8,1); (1,1)], s[0; (8,1); (1,1)]
"""

#: Products of whole tiles, which the cube core reads where they lie, in a loop over columns.
_WHOLE = """
  a = iPointer(dram, {dtype}, 3072, in)
  b = iPointer(dram, {dtype}, 6144, in)
  c = iPointer(dram, fp32, 2048, out)
  at = iPointer(reg, {dtype}, 512)
  bt = iPointer(reg, {dtype}, 1024)
  s = iPointer(reg, fp32, 512)
  for j in 2 {{
    fill.fp32 {sums} [0.0]
    for k in 3 {{
      contract.fp32 {sums}, {left}, {right} [accumulate=true]
    }}
    unary.maxs.fp32 {sums}, {sums} [0.0]
    move.reg.dram.fp32 c[1024*pid + 32*j; (16,32); (64,1)], {sums}
  }}
"""

#: The same with operands that the vector core computes.
_STAGED = """
  a = iPointer(dram, {dtype}, 3072, in)
  b = iPointer(dram, {dtype}, 6144, in)
  c = iPointer(dram, fp32, 2048, out)
  at = iPointer(reg, {dtype}, 512)
  bt = iPointer(reg, {dtype}, 1024)
  s = iPointer(reg, fp32, 512)
  for j in 2 {{
    fill.fp32 {sums} [0.0]
    for k in 3 {{
      move.dram.reg.{dtype} at[0; (16,32); (32,1)], {left}
      unary.maxs.{dtype} at[0; (16,32); (32,1)], at[0; (16,32); (32,1)] [0.0]
      move.dram.reg.{dtype} bt[0; (32,32); (32,1)], {right}
      contract.fp32 {sums}, at[0; (16,32); (32,1)], bt[0; (32,32); (32,1)] [accumulate=true]
    }}
    move.reg.dram.fp32 c[1024*pid + 32*j; (16,32); (64,1)], {sums}
  }}
"""

#: What both multiply.
_OPERANDS = {
    "sums": "s[0; (16,32); (32,1)]",
    "left": "a[1536*pid + 32*k; (16,32); (96,1)]",
    "right": "b[2048*k + 32*j; (32,32); (64,1)]",
}


def ascend_graphs() -> Iterator[tuple[str, IGraph]]:
    """What a kernel is about, and its graph."""
    for stages in (2, 3):
        yield f"stream in {stages} stages", ascend.parse(_STREAM.format(stages=stages), 2)
    yield "padded sum", ascend.parse(_PADDED)
    for dtype in ("fp32", "fp16"):
        for what, text in (("whole", _WHOLE), ("computed", _STAGED)):
            yield f"product of {what} tiles {dtype}", ascend.parse(text.format(dtype=dtype, **_OPERANDS), 2)


#: A loop of three stages on a core, and one whose operand waits in SRAM: the cluster turns the buffers.
_STREAM_OF_CORES = """
  x = iPointer(dram, fp32, 2560, in)
  y = iPointer(dram, fp32, 2560, out)
  t = iPointer(reg, fp32, 256)
  u = iPointer(reg, fp32, 256)
  for k in 5 [pipeline=2] {
    move.dram.reg.fp32 t[0; (1,256); (256,1)], x[1280*pid + 256*k; (1,256); (256,1)]
    unary.adds.fp32 u[0; (1,256); (256,1)], t[0; (1,256); (256,1)] [1.0]
    move.reg.dram.fp32 y[1280*pid + 256*k; (1,256); (256,1)], u[0; (1,256); (256,1)]
  }
"""
_STREAM_OF_CLUSTERS = """
  x = iPointer(dram, fp32, 2560, in)
  y = iPointer(dram, fp32, 10240, out)
  s = iPointer(sram, fp32, 256)
  t = iPointer(reg, fp32, 256)
  u = iPointer(reg, fp32, 256)
  for k in 5 [pipeline=2] {
    move.dram.sram.fp32 s[64*(pid % 4); (1,64); (64,1)], x[1280*(pid/4) + 256*k + 64*(pid%4); (1,64); (64,1)]
    move.sram.reg.fp32 t[0; (1,256); (256,1)], s[0; (1,256); (256,1)]
    unary.adds.fp32 u[0; (1,256); (256,1)], t[0; (1,256); (256,1)] [1.0]
    move.reg.dram.fp32 y[256*k + 1280*pid; (1,256); (256,1)], u[0; (1,256); (256,1)]
  }
"""

#: All by way of SRAM: the memory core loads and stores, cores copy to and fro, one meeting turns all buffers.
_FIVE_STAGES = """
  x = iPointer(dram, fp32, 14336, in)
  y = iPointer(dram, fp32, 14336, out)
  s = iPointer(sram, fp32, 1024)
  t = iPointer(reg, fp32, 256)
  u = iPointer(reg, fp32, 256)
  v = iPointer(sram, fp32, 1024)
  for k in 7 [pipeline=2] {
    move.dram.sram.fp32 s[256*(pid%4); (1,256); (256,1)], x[6144*(pid/4) + 256*pid + 1024*k; (1,256); (256,1)]
    move.sram.reg.fp32 t[0; (1,256); (256,1)], s[768 - 256*(pid%4); (1,256); (256,1)]
    unary.adds.fp32 u[0; (1,256); (256,1)], t[0; (1,256); (256,1)] [1.0]
    move.reg.sram.fp32 v[256*(pid%4); (1,256); (256,1)], u[0; (1,256); (256,1)]
    move.sram.dram.fp32 y[6144*(pid/4) + 256*pid + 1024*k; (1,256); (256,1)], v[256*(pid%4); (1,256); (256,1)]
  }
"""

#: Graphs by hand in which the cores of a cluster read what the others left in SRAM.
_OF_CLUSTERS = ("neighbours_sram", "bias_from_leader", "grouped_softmax_one_buffer")


#: For loops whose buffers in SRAM are in order only once they are pipelined.
_PIPELINED = ("multibuffer", "insert_sync", "allocate")


def bang_graphs() -> Iterator[tuple[str, IGraph, tuple[str, ...]]]:
    """What a kernel is about, its graph, and the passes that it goes through."""
    yield "three stages of cores", bang.parse(_STREAM_OF_CORES, 2), bang.PASSES
    yield "three stages of clusters", bang.parse(_STREAM_OF_CLUSTERS, 2, 4), _PIPELINED
    yield "five stages of clusters", bang.parse(_FIVE_STAGES, 2, 4), _PIPELINED
    yield "padded sum of a core", bang.parse(_PADDED), bang.PASSES
    for name in ("sets of 2 cores", "sets of 4 cores"):
        groups, units, text = golden_graphs.GRAPHS[name]
        yield name, bang.parse(text, groups, units), bang.PASSES
    for name in _OF_CLUSTERS:
        graph = parse_igraph((FOLDER / f"{name}.igraph").read_text())
        yield f"{name} of clusters", graph.replace(hardware=bang.DEVICE), bang.PASSES
    func = test_attention.kernel((2, 1), 20, 70, 16)
    yield "attention", extracted(apply_default(func, bang.DEVICE), bang.DEVICE), bang.PASSES


def cuda_kernels(seed: int = 0) -> Iterator[tuple[str, DeviceKernel, list[np.ndarray]]]:
    """The printed kernels with inputs."""
    rng = np.random.default_rng(seed)
    for name, graph in cuda_graphs():
        yield name, lower(graph), _inputs(graph, rng)


def ascend_kernels(seed: int = 0) -> Iterator[tuple[str, DeviceKernel, list[np.ndarray]]]:
    """The printed kernels with inputs."""
    rng = np.random.default_rng(seed)
    for name, graph in ascend_graphs():
        yield name, ascend.printed(graph, ascend.PASSES), _inputs(graph, rng)


def bang_kernels(seed: int = 0) -> Iterator[tuple[str, DeviceKernel, list[np.ndarray]]]:
    """The printed kernels with inputs."""
    rng = np.random.default_rng(seed)
    for name, graph, passes in bang_graphs():
        yield name, bang.printed(graph, passes), _inputs(graph, rng)


def _inputs(graph: IGraph, rng: np.random.Generator) -> list[np.ndarray]:
    taken = [p for p in graph.params if p.role != "out"]
    return [rng.standard_normal(int(p.size)).astype(numpy_of(str(p.dtype))) for p in taken]
