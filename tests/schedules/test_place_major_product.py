# SPDX-License-Identifier: Apache-2.0
"""Products whose codes lie by place: the iGraph, TVM's lowering and printed text compute the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
import uir_tvm
from tvm import te, topi
from uir_tvm import hardware
from uir_tvm.igraph import HardwareModel, interpreter
from uir_tvm.kernel_graph.place_major import place_major, place_major_te
from uir_tvm.library.library_tables import LIBRARIES
from uir_tvm.quantized import Packing, unpack
from uir_tvm.runtime.modelled import recording
from uir_tvm.schedule import apply_default
from uir_tvm.schedules.contraction.place_major_product import FEW_ROWS, one_token

from tests.asked import asked
from tests.device_targets import DEVICE_TARGETS, name_of
from tests.extracted import extracted
from tests.schedules.test_packed_product import NEAR, Q4_0, Q4_1, Q8, assert_near, operands
from tests.stock import stock

#: Devices whose kernels want codes by place.
DEVICES = [device for device in DEVICE_TARGETS if LIBRARIES[str(device.hardware.kind)].place_major]


def function(rows: Any, columns: int, packing: Packing, dtype: str = "float32", groups: int = 2) -> Any:
    """relu(x @ unpacked.T) with two groups in a row, or more."""
    length, places = groups * packing.group, packing.group * packing.bits // 8
    x = te.placeholder((rows, length), dtype, "x")
    codes = te.placeholder((places, columns, groups), "int8", "codes")
    sides = [
        te.placeholder((columns, groups), packing.scale_dtype, name)
        for name in ("scales", "offsets")[: 1 + packing.offsets]
    ]
    product = place_major_te(x, codes, *(*sides, None)[:2], packing, dtype)
    func = te.create_prim_func([x, codes, *sides, topi.nn.relu(product)], "int64")
    return func.with_attr("uir.hero", "contraction")


def given(
    rows: int, columns: int, packing: Packing, dtype: str = "float32", groups: int = 2
) -> tuple[list[Any], np.ndarray]:
    """What the function is called with, and what it gives."""
    (x, codes, *sides), want = operands(rows, columns, packing, dtype, groups)
    return [x, place_major(codes, packing), *sides], want


def test_codes_of_a_place_lie_side_by_side() -> None:
    packing = Packing(4, 8)
    codes = np.random.default_rng(0).integers(0, 256, (3, 8), np.uint8)
    by_place, plain = place_major(codes, packing), unpack(codes, packing).reshape(3, 2, 8)
    assert by_place.shape == (4, 3, 2) and by_place.dtype == np.int8 and by_place.flags["C_CONTIGUOUS"]
    for place in range(4):
        np.testing.assert_array_equal(by_place[place] & 15, plain[:, :, place])
        np.testing.assert_array_equal((by_place[place].astype(int) + 128) >> 4, plain[:, :, place + 4])


MODELS = (hardware.get("avx512-2core"), *(device.hardware for device in DEVICES))


@pytest.mark.parametrize("hw", MODELS, ids=lambda hw: hw.name)
@pytest.mark.parametrize("rows", [1, 3, FEW_ROWS + 1])
def test_graph_and_tvm_compute_the_definition(hw: HardwareModel, rows: int) -> None:
    for packing, columns in ((Q4_1, 48), (Q4_0, 37), (Q8, 48)):
        func, (arrays, want) = function(rows, columns, packing), given(rows, columns, packing)
        (got,) = interpreter.run(extracted(apply_default(func, hw), hw), *arrays)
        assert_near(got, want)
        if hw is MODELS[0]:
            tensors = [tvm.runtime.tensor(each) for each in (*arrays, np.empty(want.shape, np.float32))]
            stock(func)["main"](*tensors)
            assert_near(tensors[-1].numpy(), want)


@pytest.mark.parametrize("device", DEVICES, ids=name_of)
def test_long_inputs_of_several_rows_are_taken_in_chunks(device: Any) -> None:
    """11008 inputs of each of four rows leave no room for a tile: chunks of them are held, not all."""
    hw, groups = device.hardware, 344
    func, (arrays, want) = function(4, 16, Q4_1, groups=groups), given(4, 16, Q4_1, groups=groups)
    graph = extracted(apply_default(func, hw), hw)
    (got,) = interpreter.run(graph, *arrays)
    assert_near(got, want)
    held = 4 * max(pointer.size for pointer in graph.pointers if pointer.level == "reg")
    assert held < int(hw.figures["tile_bytes"])


CASES = [(1, 37, Q4_1, "float16"), (20, 96, Q4_0, "float32")]
MANY_CASES = [*CASES, (5, 48, Q4_0, "float32"), (1, 32, Q8, "float16"), (16, 32, Q8, "float32")]


@pytest.mark.compares_itself
@pytest.mark.parametrize("device", DEVICES, ids=name_of)
@pytest.mark.parametrize(("rows", "columns", "packing", "dtype"), asked(CASES, MANY_CASES))
def test_printed_text_computes_the_definition(
    device: Any, rows: int, columns: int, packing: Packing, dtype: str
) -> None:
    """And no code goes through the scalar unit, which takes tens of cycles for each."""
    arrays, want = given(rows, columns, packing, dtype)
    exe = uir_tvm.compile(function(rows, columns, packing, dtype), target=device.target())
    with recording(hardware=exe.hardware) as found:
        got = np.asarray(exe(*arrays))
    # results of float16 are rounded once
    assert_near(got, want, NEAR if dtype == "float32" else 2**-10)
    assert exe.report()["kernels_through_igraph"] == 1
    pipes = [launch.pipes for launch in found.times.launches]
    assert len(pipes) == (1 if rows <= FEW_ROWS else 2)
    scalar = sum(each["S"].instructions for each in pipes if "S" in each)
    assert scalar < arrays[1].size


@pytest.mark.parametrize(("prompts", "few"), [(1, True), (4, True), (FEW_ROWS + 1, False)])
def test_one_token_of_few_prompts_is_a_variant(prompts: int, few: bool) -> None:
    """So that it needs no matrix unit, whatever the longest prompt has."""
    tokens = te.var("tokens", "int64")
    found = one_token(function(tokens * prompts, 48, Q4_1))
    assert [(str(var.name), value) for var, value in found.items()] == ([("tokens", 1)] if few else [])
    assert not one_token(function(5, 48, Q4_1))
