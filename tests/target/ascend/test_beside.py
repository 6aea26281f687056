# SPDX-License-Identifier: Apache-2.0
"""Results that cannot be computed where they belong are computed beside, and their box goes to its place."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import uir_tvm
from uir_tvm.errors import CodegenError
from uir_tvm.igraph import IGraph
from uir_tvm.target.ascend.lower import lower

from .kernels import DEVICE, check, parse

#: Two reductions into one pointer, in boxes of their own; both are stored.
SUMS = """
x = iPointer(dram, {dtype}, 256, in)
y = iPointer(dram, {dtype}, {size}, out)
t = iPointer(reg, {dtype}, 256)
s = iPointer(reg, {dtype}, {size})
move.dram.reg.{dtype} t[0; (1,256); (256,1)], x[0; (1,256); (256,1)]
fill.{dtype} s[0; (1,{size}); ({size},1)] [value=7]
{lines}
move.reg.dram.{dtype} y[0; (1,{size}); ({size},1)], s[0; (1,{size}); ({size},1)]
"""


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "int32", "int8"])
@pytest.mark.parametrize("box", ["cols 3:13", "cols :13", "cols 5:"])
def test_a_reduction_over_columns_keeps_what_lies_outside_of_its_box(dtype: str, box: str) -> None:
    line = f"reduce.add.col.unit.{dtype} s[0; (1,32); (32,1); {box}], t[0; (8,32); (32,1); {box}]"
    graph = parse(SUMS.format(dtype=dtype, size=32, lines=line))
    values = (np.arange(256) % 5 - 2).astype({"fp32": "f4", "fp16": "f2", "int32": "i4", "int8": "i1"}[dtype])
    check(graph, [values])


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "int32"])
@pytest.mark.parametrize("box", ["rows 3:7", "rows :5", "rows 2:"])
def test_a_reduction_over_rows_keeps_what_lies_outside_of_its_box(dtype: str, box: str) -> None:
    line = f"reduce.max.row.unit.{dtype} s[0; (8,1); (1,1); {box}], t[0; (8,32); (32,1); {box}]"
    graph = parse(SUMS.format(dtype=dtype, size=8, lines=line))
    values = (np.arange(256) * 37 % 101).astype({"fp32": "f4", "fp16": "f2", "int32": "i4"}[dtype])
    check(graph, [values])


@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
@pytest.mark.parametrize(("at", "box"), [(3, ""), (0, "; rows 1:4"), (8, "; cols :5")])
def test_a_column_and_a_tile_that_lie_as_they_like(dtype: str, at: int, box: str) -> None:
    """Rows that start within a block, or whose box begins late: the function of a column runs beside."""
    tile = f"{at}; (5,8); (9,1){box}"
    graph = parse(
        f"""
x = iPointer(dram, {dtype}, 64, in)
y = iPointer(dram, {dtype}, 64, out)
t = iPointer(reg, {dtype}, 64)
c = iPointer(reg, {dtype}, 64)
s = iPointer(reg, {dtype}, 64)
move.dram.reg.{dtype} t[0; (1,64); (64,1)], x[0; (1,64); (64,1)]
move.dram.reg.{dtype} c[0; (1,64); (64,1)], x[0; (1,64); (64,1)]
fill.{dtype} s[0; (1,64); (64,1)] [value=7]
binary.mul.{dtype} s[{tile}], t[{tile}], c[0; (5,8); (1,0){box}]
move.reg.dram.{dtype} y[0; (1,64); (64,1)], s[0; (1,64); (64,1)]
"""
    )
    values = (np.arange(64) % 7 - 3).astype("f4" if dtype == "fp32" else "f2")
    check(graph, [values])


@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
@pytest.mark.parametrize("name", ["sub", "div", "max"])
@pytest.mark.parametrize("box", ["", "; rows :40", "; rows 3:50", "; rows 16:50"])
def test_one_value_for_a_column(dtype: str, name: str, box: str) -> None:
    """A column of consecutive elements is a row to vector functions, whichever operand is one value."""
    tile = f"0; (64,1); (1,1){box}"
    spread = f"c[3; (64,1); (0,1){box}]"
    graph = parse(
        f"""
x = iPointer(dram, {dtype}, 64, in)
y = iPointer(dram, {dtype}, 128, out)
t = iPointer(reg, {dtype}, 64)
c = iPointer(reg, {dtype}, 64)
s = iPointer(reg, {dtype}, 64)
u = iPointer(reg, {dtype}, 64)
move.dram.reg.{dtype} t[0; (1,64); (64,1)], x[0; (1,64); (64,1)]
move.dram.reg.{dtype} c[0; (1,64); (64,1)], x[0; (1,64); (64,1)]
fill.{dtype} s[0; (1,64); (64,1)] [value=7]
fill.{dtype} u[0; (1,64); (64,1)] [value=7]
binary.{name}.{dtype} s[{tile}], t[{tile}], {spread}
binary.{name}.{dtype} u[{tile}], {spread}, t[{tile}]
move.reg.dram.{dtype} y[0; (1,64); (64,1)], s[0; (1,64); (64,1)]
move.reg.dram.{dtype} y[64; (1,64); (64,1)], u[0; (1,64); (64,1)]
"""
    )
    values = (np.arange(64) % 7 - 3.5).astype("f4" if dtype == "fp32" else "f2")
    check(graph, [values])


MODELS = {
    "pool": (torch.nn.AvgPool2d(3, 2, 1), (1, 8, 7, 7), torch.float32),
    "transposed": (torch.nn.ConvTranspose2d(4, 3, 2, 2), (1, 4, 4, 4), torch.float32),
    "half convolution": (
        torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.Sigmoid()),
        (1, 3, 8, 8),
        torch.float16,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_no_kernel_is_left_to_the_host(name: str) -> None:
    """Windows with padding, and products of half: every kernel goes through an iGraph, and is right."""
    module, shape, dtype = MODELS[name]
    module = module.to(dtype).eval()
    x = torch.from_numpy(np.random.default_rng(3).standard_normal(shape)).to(dtype)
    executable = uir_tvm.compile(torch.export.export(module, (x,)), "uir-ascend:910b2")
    report = executable.report()
    assert report["kernels_through_igraph"] == report["custom"] > 0
    with torch.no_grad():
        want = module(x).float().numpy()
    got = np.asarray(executable(x.numpy())).astype(np.float32)
    np.testing.assert_allclose(got, want, atol=1e-5 if dtype == torch.float32 else 4e-3)


def product(groups: int) -> IGraph:
    """One product on every core, from global memory."""
    graph = parse(
        """
a = iPointer(dram, fp32, 256, in)
b = iPointer(dram, fp32, 256, in)
y = iPointer(dram, fp32, 256, out)
contract.fp32 y[0; (16,16); (16,1)], a[0; (16,16); (16,1)], b[0; (16,16); (16,1)]
""",
        groups=groups,
    )
    return graph


def test_blocks_beyond_the_cube_cores_are_refused() -> None:
    """A block with a product takes a cube core, of which there are half as many as vector cores."""
    with pytest.raises(CodegenError, match="24 cube cores"):
        lower(product(25))
    assert int(DEVICE.num_groups) == 48
