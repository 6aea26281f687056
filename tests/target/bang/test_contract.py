# SPDX-License-Identifier: Apache-2.0
"""Products by the matrix unit: cut into pieces where NRAM and WRAM have no room, refused where none fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import pytest
import uir_tvm
from tvm.script import tirx as T
from uir_tvm import hardware
from uir_tvm.device.run_text import run
from uir_tvm.errors import CodegenCapacityError
from uir_tvm.igraph import HardwareModel, IGraph, IPointer, ISlice, interpreter, make, var
from uir_tvm.igraph.dtypes import bytes_of, numpy_of
from uir_tvm.options import CompileOptions
from uir_tvm.target.bang.lower import lower

KIB = 1024
#: Relative error of a sum of some hundred products of numbers in [-1, 1] that is rounded to a dtype; of fp32
#: that of another order of addition.
TOLERANCE = {"fp32": 1e-5, "fp16": 4e-3, "bf16": 3e-2}


def device(nram: int, wram: int, model: str = "mlu370-x8") -> HardwareModel:
    """A device with other sizes of NRAM (what a kernel may plan for) and WRAM, in bytes."""
    hw = hardware.get(model, "bang")
    figures: Mapping[str, Any] = {**hw.figures, "wram_bytes": wram}
    sizes = (hw.num_groups, hw.num_units, nram, hw.sram_bytes, hw.vector_bytes)
    return HardwareModel(str(hw.name), "bang", *map(int, sizes), figures)


@attrs.frozen
class Product:
    """t (+)= a b of one core: rows, contracted side, columns; boxes of a's columns and of t's rows."""

    shape: tuple[int, int, int]
    factors: str = "fp32"
    result: str = "fp32"
    accumulate: bool = False
    box: bool = False

    def graph(self, hw: HardwareModel) -> IGraph:
        """Loads, the product, the store."""
        rows, inner, cols = self.shape
        sizes = {"a": (rows, inner), "b": (inner, cols), "t": (rows, cols)}
        kinds = {"a": self.factors, "b": self.factors, "t": self.result}
        tiles, body, pointers = {}, [], []
        # bounds that only the run knows
        box: dict[str, Any] = {"rows": (None, rows - 1 - var("pid")), "cols": (1, inner - 2 - var("pid"))}
        for name, size in sizes.items():
            role = "inout" if name == "t" else "in"
            kept = box if self.box and name == "a" else {}
            if self.box and name == "t":
                kept = {"rows": box["rows"]}
            far = IPointer(name, "dram", kinds[name], size[0] * size[1], role)
            near = IPointer(f"{name}_tile", "reg", kinds[name], size[0] * size[1], "tmp")
            pointers += [far, near]
            tiles[name] = (ISlice(near, 0, size, **kept), ISlice(far, 0, size, **kept))
            body.append(make.move(*tiles[name]))
        near_t, far_t = tiles["t"]
        product = make.contract(near_t, tiles["a"][0], tiles["b"][0], accumulate=self.accumulate)
        return IGraph("product", hw, 1, 1, pointers, [*body, product, make.move(far_t, near_t)])

    def inputs(self) -> list[np.ndarray]:
        """Numbers in [-1, 1]."""
        rng = np.random.default_rng(7)
        rows, inner, cols = self.shape
        made = []
        for size, dtype in (
            (rows * inner, self.factors),
            (inner * cols, self.factors),
            (rows * cols, self.result),
        ):
            made.append(rng.uniform(-1, 1, size).astype(numpy_of(dtype)))
        return made

    @property
    def operand_bytes(self) -> int:
        """Of the three tiles, each a multiple of 128."""
        rows, inner, cols = self.shape
        sizes = ((rows * inner, self.factors), (inner * cols, self.factors), (rows * cols, self.result))
        return sum(-(-n * bytes_of(dtype) // 128) * 128 for n, dtype in sizes)


def pieces(product: Product, hw: HardwareModel) -> int:
    """How many products the matrix unit is given; the host model agrees with the interpreter."""
    graph, inputs = product.graph(hw), product.inputs()
    kernel = lower(graph)
    ran = run(kernel, inputs).check()
    (wanted,) = interpreter.run(graph, *inputs)
    found = ran.outputs["t"].astype(np.float64)
    limit = TOLERANCE[product.result] * np.sqrt(product.shape[1])
    np.testing.assert_allclose(found, wanted.reshape(-1).astype(np.float64), rtol=0, atol=limit)
    return kernel.source.count("__bang_matmul(")


KINDS = [("fp32", "fp32"), ("fp16", "fp32"), ("fp16", "fp16"), ("bf16", "fp32"), ("bf16", "bf16")]


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize(("factors", "result"), KINDS)
def test_pieces_of_every_kind(factors: str, result: str, accumulate: bool) -> None:
    """In a quarter of the room: tails on every side, a box that only the run knows, partial sums."""
    product = Product((37, 200, 190), factors, result, accumulate, box=True)
    room = product.operand_bytes + 8 * KIB
    assert pieces(product, device(room + 56 * KIB, 512 * KIB)) > 2


@pytest.mark.parametrize(("factors", "result"), KINDS)
def test_wram_alone_may_bind(factors: str, result: str) -> None:
    product = Product((8, 128, 256), factors, result)
    hw = device(640 * KIB, 1024 * KIB)
    assert pieces(product, hw) == 1
    held = 128 * 256 * 4  # the matrix unit gets floats
    assert pieces(product, device(640 * KIB, held)) == 1
    assert pieces(product, device(640 * KIB, held - 1)) == 2
    assert pieces(product, device(640 * KIB, held // 4)) == 4


def test_more_room_needs_no_more_pieces() -> None:
    """From where the smallest pieces fit up to where nothing is cut."""
    product = Product((32, 128, 128))
    found = []
    for spare in (44, 80, 112, 160, 256):
        found.append(pieces(product, device(product.operand_bytes + spare * KIB, 512 * KIB)))
    assert found == sorted(found, reverse=True) and found[0] > 2 and found[-1] == 1


def test_large_products_of_a_core() -> None:
    """Operands that fill most of the NRAM of an MLU370: 128 x 512 by 512 x 192 in fp16."""
    product = Product((128, 512, 192), "fp16", "fp32")
    hw = hardware.get("mlu370-x8", "bang")
    assert product.operand_bytes > 0.6 * hw.reg_bytes and pieces(product, hw) > 1


def test_operands_that_need_no_padding_are_taken_as_they_lie() -> None:
    graph = Product((16, 64, 64)).graph(device(640 * KIB, 512 * KIB))
    assert "__bang_write" not in lower(graph).source
    # and a whole result is left where it belongs
    assert "__bang_matmul(t_tile, a_tile, weights" in lower(graph).source


def test_a_product_without_room_says_how_much_it_needs() -> None:
    product = Product((16, 64, 64))
    with pytest.raises(CodegenCapacityError, match="smallest pieces") as error:
        lower(product.graph(device(product.operand_bytes + 9 * KIB, 512 * KIB)))
    assert "bytes" in error.value.need and "beside what is alive" in error.value.limit
    assert "smaller tiles" in error.value.remedy
    refused = error.value
    assert refused.memory == "NRAM" and f"{refused.needed} bytes" == refused.need
    assert f"{refused.available} bytes" in refused.limit and refused.needed > refused.available


def test_what_a_skipped_copy_would_have_waited_for_is_waited_for() -> None:
    """Units beyond the rows skip the copy of the left operand, which waits where it is made."""

    @T.prim_func(s_tir=True)
    def products(
        A: T.Buffer((3, 64, 8), "float32"),
        W: T.Buffer((3, 12, 8), "float32"),
        C: T.Buffer((3, 64, 12), "float32"),
    ):
        for b, i, j, k in T.grid(3, 64, 12, 8):
            with T.sblock("product"):
                vb, vi, vj, vk = T.axis.remap("SSSR", [b, i, j, k])
                with T.init():
                    C[vb, vi, vj] = T.float32(0)
                C[vb, vi, vj] = C[vb, vi, vj] + A[vb, vi, vk] * W[vb, vj, vk]

    exe = uir_tvm.compile(products, target="uir-bang", options=CompileOptions(device="model"))
    (kernel,) = exe.info.kernels
    assert not kernel.fallback and "__bang_matmul" in kernel.texts["source"]
    generator = np.random.default_rng(5)
    a, w = (generator.uniform(-1, 1, shape).astype(np.float32) for shape in ((3, 64, 8), (3, 12, 8)))
    np.testing.assert_allclose(exe(a, w), a @ w.transpose(0, 2, 1), rtol=0, atol=1e-5)
