# SPDX-License-Identifier: Apache-2.0
"""Products that unpack their weight on chip: the iGraph, TVM's lowering and printed text compute the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import tvm
import uir_tvm
from tvm import te, topi
from uir_tvm import hardware
from uir_tvm.device.run_text import run
from uir_tvm.igraph import HardwareModel, IGraph, interpreter
from uir_tvm.kernel_graph.quantized_products import packed_product_te
from uir_tvm.optimize import optimize
from uir_tvm.quantized import Packing, dequantized, pack
from uir_tvm.schedule import apply_default
from uir_tvm.schedules.contraction.place_major_product import one_token
from uir_tvm.target import registry

from tests.asked import asked
from tests.device_targets import DEVICE_TARGETS, name_of
from tests.extracted import extracted
from tests.stock import stock

Q4_1, Q4_0, Q8 = Packing(4, 32, 0, "float16", True), Packing(4, 8, 8), Packing(8, 16, 128, "float16")
#: Sums of products in float32, beside the largest of the results.
NEAR = 1e-6


def function(rows: Any, columns: int, packing: Packing, dtype: str = "float32", groups: int = 2) -> Any:
    """relu(x @ unpacked.T) with two groups in a row, or more."""
    length = groups * packing.group
    x = te.placeholder((rows, length), dtype, "x")
    codes = te.placeholder(packing.packed_shape(columns, length), "uint8", "codes")
    sides = [
        te.placeholder(packing.scales_shape(columns, length), packing.scale_dtype, name)
        for name in ("scales", "offsets")[: 1 + packing.offsets]
    ]
    product = packed_product_te(x, codes, *(*sides, None)[:2], packing, dtype)
    func = te.create_prim_func([x, codes, *sides, topi.nn.relu(product)], "int64")
    return func.with_attr("uir.hero", "contraction")


def operands(
    rows: int, columns: int, packing: Packing, dtype: str = "float32", groups: int = 2
) -> tuple[list[np.ndarray], np.ndarray]:
    """What the function is called with, and what it gives."""
    rng, length = np.random.default_rng(rows), groups * packing.group
    parts = [pack(rng.integers(0, 1 << packing.bits, (columns, length)), packing)]
    for _ in range(1 + packing.offsets):
        parts.append(rng.standard_normal((columns, groups)).astype(packing.scale_dtype))
    x = rng.standard_normal((rows, length)).astype(dtype)
    values = dequantized(*(*parts, None)[:3], packing).astype(np.float64)
    return [x, *parts], np.maximum(x.astype(np.float64) @ values.T, 0)


def assert_near(got: Any, want: np.ndarray, near: float = NEAR) -> None:
    assert np.abs(np.asarray(got, np.float64).reshape(want.shape) - want).max() <= near * np.abs(want).max()


def dram_floats(graph: IGraph) -> int:
    """Floats in dram, beside what the function is given and gives."""
    kinds = {"fp32", "fp16", "bf16"}
    return sum(p.size for p in graph.pointers if p.level == "dram" and p.dtype in kinds and p.role == "temp")


MODELS = (hardware.get("avx512-2core"), *(device.hardware for device in DEVICE_TARGETS))


@pytest.mark.parametrize("hw", MODELS, ids=lambda hw: hw.name)
@pytest.mark.parametrize("rows", [1, 5, 20])
def test_graph_and_tvm_compute_the_definition(hw: HardwareModel, rows: int) -> None:
    for packing, columns in ((Q4_1, 48), (Q4_0, 37), (Q8, 48)):
        func, (given, want) = function(rows, columns, packing), operands(rows, columns, packing)
        graph = extracted(apply_default(func, hw), hw)
        assert dram_floats(graph) == 0 and not any(
            p.level == "dram" and p.role == "temp" for p in graph.pointers
        )
        (got,) = interpreter.run(graph, *given)
        assert_near(got, want)
        if hw is MODELS[0]:
            tensors = [tvm.runtime.tensor(each) for each in (*given, np.empty(want.shape, np.float32))]
            stock(func)["main"](*tensors)
            assert_near(tensors[-1].numpy(), want)


@pytest.mark.parametrize("device", DEVICE_TARGETS, ids=name_of)
@pytest.mark.parametrize("dtype", asked(["float16"], ["float32", "float16"]))
def test_printed_text_computes_the_definition(device: Any, dtype: str) -> None:
    for rows, columns, packing in ((1, 37, Q4_1), (5, 48, Q4_0), (20, 96, Q4_1), (18, 32, Q8)):
        given, want = operands(rows, columns, packing, dtype)
        exe = uir_tvm.compile(
            function(rows, columns, packing, dtype),
            target=device.target(),
        )
        # results of float16 are rounded once
        assert_near(np.asarray(exe(*given)), want, NEAR if dtype == "float32" else 2**-10)
        assert exe.report()["kernels_through_igraph"] == 1


def test_every_unit_has_columns_of_one_row() -> None:
    hw = DEVICE_TARGETS[1].hardware
    graph = extracted(apply_default(function(1, 48 * 16, Q4_1), hw), hw)
    assert math.prod((graph.num_groups, graph.num_units)) == 48


#: Groups of 32 lanes, of 8 that do not fill a warp by rows, bytes, and bytes of whole rows.
COLUMNS_BY_LANES = [(1, Q4_1, 64), (3, Q4_1, 24), (2, Q8, 16), (1, Packing(8, 128, 128), 4)]


@pytest.mark.parametrize(("rows", "packing", "groups"), asked(COLUMNS_BY_LANES[:2], COLUMNS_BY_LANES))
def test_a_warp_has_a_column_of_few_rows(rows: int, packing: Packing, groups: int) -> None:
    """Its lanes read codes, scales and x side by side, so that no sector is read in part."""
    record = registry.get("uir-cuda")
    hw, columns = hardware.get("h200", record.kind), 20
    func = function(rows, columns, packing, groups=groups)
    given, want = operands(rows, columns, packing, groups=groups)
    ran = run(record.lower(optimize(extracted(apply_default(func, hw), hw)).graph, None), given).check()
    assert_near(next(iter(ran.outputs.values())), want)
    counters = ran.counters
    assert counters.get("global_uncoalesced", 0) == 0
    # a warp a column: each reads its codes once, in fours at least
    assert counters["global_loads"] * 4 <= counters["global_load_bytes"]
    assert counters["shuffles"] >= rows * columns


def test_one_token_of_packed_products_is_a_variant() -> None:
    """Whatever the longest prompt has; the rows are the product's, not those of the weight."""
    tokens = te.var("tokens", "int64")
    found = one_token(function(tokens, 48, Q4_1))
    assert [(str(variable.name), value) for variable, value in found.items()] == [("tokens", 1)]
    assert not one_token(function(5, 48, Q4_1))
