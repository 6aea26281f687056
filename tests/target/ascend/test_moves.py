# SPDX-License-Identifier: Apache-2.0
"""Moves: the copies that are chosen, and on the host model the interpreter's bytes, whatever the strides."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.igraph.dtypes import numpy_of

from .. import random_moves
from .kernels import AS_WRITTEN, DEVICE, PASSES, check, parse

DTYPES = ("fp32", "fp16", "bf16", "int8", "int16", "int64", "bool", "int32", "uint8")
PATHS = ("reg", "scratch", "direct", "reg_reg")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("passes", [AS_WRITTEN, PASSES], ids=["as written", "all passes"])
def test_random_moves(seed: int, passes: tuple[str, ...]) -> None:
    """Whatever shape, stride, box, padding and path: the same bytes, nothing else written, nothing found."""
    graph, arrays = random_moves.build(seed, DEVICE, 3, groups=3, units=1, dtypes=DTYPES, paths=PATHS)
    check(graph, arrays, passes, hint=f"seed {seed}")


#: What is moved -> (rows, cols, dtype, strides in dram, strides in reg, boxes, pad, what the text must hold).
CASES = {
    "blocks": (
        4,
        64,
        "fp32",
        (64, 1),
        (64, 1),
        "",
        None,
        ["DataCopy(t, x_gm, 256)", "DataCopy(y_gm, t, 256)"],
    ),
    "rows of blocks apart": (
        4,
        64,
        "fp32",
        (96, 1),
        (64, 1),
        "",
        None,
        ["DataCopy(t, x_gm, DataCopyParams(4, 8, 4, 0))", "DataCopy(y_gm, t, DataCopyParams(4, 8, 0, 4))"],
    ),
    "rows that are no blocks": (
        4,
        50,
        "fp16",
        (50, 1),
        (64, 1),
        "",
        None,
        [
            "DataCopyPad(t, x_gm, DataCopyExtParams(4, 100, 0, 0, 0)",
            "DataCopyPad(y_gm, t, DataCopyExtParams(4, 100, 0, 0, 0))",
        ],
    ),
    "a gap of odd bytes": (3, 32, "int8", (35, 1), (32, 1), "", None, ["DataCopyExtParams(3, 32, 3, 0, 0)"]),
    "rows that overlap": (
        6,
        16,
        "fp32",
        (4, 1),
        (16, 1),
        "",
        None,
        ["for (int32_t row = 0; row < 6; ++row)"],
    ),
    "one row for all": (6, 16, "fp32", (0, 1), (16, 1), "", None, ["DataCopy(work, x_gm, 16)"]),
    "transposed": (16, 24, "fp32", (1, 16), (24, 1), "", None, ["DataCopy(work, x_gm, 384)", "Gather("]),
    "every second": (4, 16, "fp32", (40, 2), (16, 1), "", None, ["DataCopyExtParams(4, 124,", "Gather("]),
    "far apart": (2, 16, "fp32", (4096, 100), (16, 1), "", None, ["DataCopyExtParams(16, 4, 396, 0, 0)"]),
    "halves of 8 bytes": (8, 6, "int64", (1, 8), (8, 1), "", None, ["ReinterpretCast<int32_t>()"]),
    "a tail of columns": (
        4,
        64,
        "fp32",
        (64, 1),
        (64, 1),
        "cols :50",
        0.5,
        ["Duplicate<float>(t, 0.5f, 256)"],
    ),
    "a tail of rows": (8, 64, "fp32", (64, 1), (64, 1), "rows :5", -1.0, ["DataCopy(t, x_gm, 320)"]),
    "a pad of 8 bytes": (2, 8, "int64", (8, 1), (8, 1), "cols :5", 7, ["SetValue"]),
}


@pytest.mark.parametrize("case", CASES)
def test_copies(case: str) -> None:
    """Loads by one kind of copy; what comes back is what was there."""
    rows, cols, dtype, strides, pitches, box, pad, texts = CASES[case]
    size = (rows - 1) * max(strides[0], 0) + (cols - 1) * strides[1] + 1
    # rows that share elements are not stored as they were loaded
    shared = strides[0] < cols and strides[1] == 1
    out = (cols, 1) if shared else strides
    out_size = max(size, rows * cols)
    bounded = f"; {box}" if box else ""
    padded = "" if pad is None else f" [pad={pad}]"
    tile, source = f"({rows},{cols}); {_pair(pitches)}", f"({rows},{cols}); {_pair(strides)}{bounded}"
    graph = parse(
        f"""
        x = iPointer(dram, {dtype}, {size}, in)
        y = iPointer(dram, {dtype}, {out_size}, inout)
        t = iPointer(reg, {dtype}, {rows * max(pitches)})
        move.dram.reg.{dtype} t[0; {tile}], x[0; {source}]{padded}
        move.reg.dram.{dtype} y[0; ({rows},{cols}); {_pair(out)}], t[0; {tile}]
        """
    )
    x = np.arange(size).astype(numpy_of(dtype))
    kernel = check(graph, [x, np.zeros(out_size, x.dtype)], hint=case)
    for text in texts:
        assert text in kernel.source, kernel.source


def _pair(pair: tuple[int, int]) -> str:
    return f"({pair[0]},{pair[1]})"


def test_more_rows_than_a_copy_counts() -> None:
    """DataCopyPad takes 4095 rows at a time."""
    graph = parse(
        """
        x = iPointer(dram, int16, 15000, in)
        y = iPointer(dram, int16, 15000, out)
        t = iPointer(reg, int16, 80000)
        move.dram.reg.int16 t[0; (5000,3); (16,1)], x[0; (5000,3); (3,1)]
        move.reg.dram.int16 y[0; (5000,3); (3,1)], t[0; (5000,3); (16,1)]
        """
    )
    kernel = check(graph, [np.arange(15000, dtype=np.int16)])
    assert "DataCopyExtParams(4095, 6, 0, 0, 0)" in kernel.source
    assert "DataCopyExtParams(905, 6, 0, 0, 0)" in kernel.source


def test_neighbours_within_a_block_stay() -> None:
    """Two loads meet within a block: the second comes beside and goes to its place under a mask."""
    graph = parse(
        """
        a = iPointer(dram, fp32, 35, in)
        b = iPointer(dram, fp32, 14, in)
        y = iPointer(dram, fp32, 49, out)
        t = iPointer(reg, fp32, 49)
        move.dram.reg.fp32 t[0; (1,49); (49,1); cols :35], a[0; (1,49); (49,1); cols :35]
        move.dram.reg.fp32 t[0; (1,49); (49,1); cols 35:], b[-35; (1,49); (49,1); cols 35:]
        move.reg.dram.fp32 y[0; (1,49); (49,1)], t[0; (1,49); (49,1)]
        """
    )
    rng = np.random.default_rng(0)
    kernel = check(graph, [rng.random(35, dtype=np.float32), rng.random(14, dtype=np.float32)])
    assert "Copy(" in kernel.source and "SetValue" not in kernel.source


def test_loads_ahead_land_in_places_of_their_own() -> None:
    """A double buffer: the next tile is loaded before this one is computed, once its place is free."""
    graph = parse(
        """
        x = iPointer(dram, fp32, 8000, in)
        y = iPointer(dram, fp32, 8000, out)
        t = iPointer(reg, fp32, 1000)
        for k in 8 [pipeline=2] {
          move.dram.reg.fp32 t[0; (1,1000); (1000,1)], x[1000*k; (1,1000); (1000,1)]
          unary.muls.fp32 t[0; (1,1000); (1000,1)], t[0; (1,1000); (1000,1)] [params=[2.0]]
          move.reg.dram.fp32 y[1000*k; (1,1000); (1000,1)], t[0; (1,1000); (1000,1)]
        }
        """
    )
    kernel = check(graph, [np.random.default_rng(1).random(8000, dtype=np.float32)], PASSES)
    loop = kernel.source[kernel.source.index("for (int32_t k") :]
    assert loop.index("DataCopy(t") < loop.index("Muls(")
    assert "(k + 1)" in loop[: loop.index("Muls(")]


def test_padding_on_both_sides_reads_no_further_than_the_source() -> None:
    """What is gathered for a box ends with it: the columns behind would lie behind the tensor."""
    graph = parse(
        """
        x = iPointer(dram, fp32, 48, in)
        y = iPointer(dram, fp32, 72, out)
        s = iPointer(reg, fp32, 48)
        t = iPointer(reg, fp32, 96)
        move.dram.reg.fp32 s[0; (3,16); (16,1)], x[0; (3,16); (16,1)]
        move.reg.reg.fp32 t[0; (4,18); (24,1)], s[-17; (4,18); (16,1); rows 1:; cols 1:17] [pad=1.0]
        move.reg.dram.fp32 y[0; (4,18); (18,1)], t[0; (4,18); (24,1)]
        """
    )
    check(graph, [np.arange(48, dtype=np.float32)])
