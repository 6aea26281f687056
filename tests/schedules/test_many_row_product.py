# SPDX-License-Identifier: Apache-2.0
"""Products of many rows with codes by place: x is laid out once, and tiles are what memory and units want."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import uir_tvm
from tvm import te
from uir_tvm.igraph import interpreter
from uir_tvm.optimize.split import is_barrier, phases
from uir_tvm.runtime.modelled import recording
from uir_tvm.schedule import apply_default
from uir_tvm.schedules.contraction.many_row_product import _shared_out, _tile, chunks_of
from uir_tvm.schedules.contraction.place_major_product import FEW_ROWS

from tests.device_targets import name_of
from tests.extracted import extracted
from tests.schedules.test_packed_product import Q4_0, Q4_1, Q8, assert_near
from tests.schedules.test_place_major_product import DEVICES, function, given


def open_function(columns: int, packing: Any, groups: int) -> Any:
    """Of up to 48 rows."""
    func = function(te.var("m", "int64"), columns, packing, groups=groups)
    return func.with_attr("tir_var_upper_bound", {"m": 48})


@pytest.mark.parametrize("device", DEVICES, ids=name_of)
def test_x_is_brought_once_and_laid_out_before_all_columns(device: Any) -> None:
    """Of any number of rows: units are as many in both phases, so that the phases are kernels."""
    for packing in (Q4_1, Q8):
        graph = extracted(apply_default(open_function(96, packing, 4), device.hardware), device.hardware)
        (barrier,) = (k for k, node in enumerate(graph.body) if getattr(node, "op", "") and is_barrier(node))
        first, second = phases(graph)
        assert {p.name for p in first.pointers if p.role == "in"} == {"x"}
        assert "x" not in {p.name for p in second.pointers} and 0 < barrier < len(graph.body) - 1
        for rows in (1, FEW_ROWS + 1, 48):
            arrays, want = given(rows, 96, packing, groups=4)
            (got,) = interpreter.run(graph, *arrays, sizes={"m": rows})
            assert_near(got, want)


@pytest.mark.compares_itself
@pytest.mark.parametrize("device", DEVICES, ids=name_of)
def test_printed_text_of_open_rows_has_no_scalar_code(device: Any) -> None:
    """With groups of which tiles of chunks are whole, and with rows that no tile fills."""
    exe = uir_tvm.compile(open_function(64, Q4_0, 32), target=device.target())
    for rows in (3, 40):
        arrays, want = given(rows, 64, Q4_0, groups=32)
        with recording(hardware=exe.hardware) as found:
            got = np.asarray(exe(*arrays))
        assert_near(got, want)
        assert len(found.times.launches) == 2
        pipes = [launch.pipes for launch in found.times.launches]
        assert sum(each["S"].instructions for each in pipes if "S" in each) == 0


def test_chunks_are_even_parts_or_what_the_unit_or_the_memory_takes_at_once() -> None:
    models = {str(device.hardware.kind): device.hardware for device in DEVICES}
    assert chunks_of(models["bang"], 344) == [2, 4, 8, 32, 64, 86, 96, 128, 160, 172, 192, 224]
    assert chunks_of(models["bang"], 9) == [1, 3, 9]
    assert chunks_of(models["ascend"], 344) == [*range(32, 257, 32)]


def test_units_have_as_much_to_do_where_that_idles_few_of_them() -> None:
    """86 tiles on 16 units have masks: two would take all without; 128 on 24 are for 16 units."""
    assert _shared_out(1, 128, 24) == (1, 16)
    assert _shared_out(1, 86, 16) == (1, 16)
    assert _shared_out(8, 4, 16) == (4, 16)
    assert _shared_out(1, 4, 16) == (1, 4)


@pytest.mark.parametrize("device", DEVICES, ids=name_of)
def test_open_rows_are_one_tile_where_memory_has_room(device: Any) -> None:
    """All that is done for one of several tiles of them has a mask; smaller memories have smaller tiles."""
    hw = device.hardware
    assert _tile(hw, (128, 4096, 344), 16, True)[0] == 128
    assert _tile(hw, (4096, 4096, 344), 16, False)[0] < 4096


def test_tiles_are_what_the_matrix_unit_takes_at_once() -> None:
    """Groups beyond it would be padded by copies: 344 are 10 times 32 and a rest, not 4 times 86."""
    models = {str(device.hardware.kind): device.hardware for device in DEVICES}
    assert _tile(models["bang"], (128, 4096, 344), 16, False)[2] % 32 == 0
    # of few columns each unit gets one tile, as wide as a fractal or more
    assert _tile(models["ascend"], (16, 576, 18), 24, False) == (16, 24, 18)
