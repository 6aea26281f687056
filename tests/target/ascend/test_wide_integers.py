# SPDX-License-Identifier: Apache-2.0
"""int64 on vector cores: words of 32 bits that are put together again, exactly, over the whole range."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.device.run_text import run
from uir_tvm.igraph import IGraph, IPointer, ISlice, interpreter, make
from uir_tvm.igraph.dtypes import numpy_of

from ...conformance.shapes import ShapeClass
from ..on_model import ASCEND, WIDE, case_of

#: Where carries, borrows and signs pass from word to word.
EDGES = np.array(
    [
        0,
        1,
        -1,
        2,
        -2,
        2**31 - 1,
        -(2**31),
        2**31,
        -(2**31) - 1,
        2**32,
        2**32 - 1,
        -(2**32),
        2**63 - 1,
        -(2**63),
    ],
    np.int64,
)
#: Every pair of edges, twice over.
PAIRS = ShapeClass("pairs", 2, len(EDGES) ** 2, (len(EDGES) ** 2, 1))


def numbers(size: int, seed: int) -> np.ndarray:
    """Edges against edges (of two operands with other seeds), then numbers of every length."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 64, size)
    made = rng.integers(-(2**63), 2**63 - 1, size, endpoint=True) >> bits
    pairs = np.tile(EDGES, len(EDGES)) if seed % 2 else np.repeat(EDGES, len(EDGES))
    made[1 : 1 + len(pairs)] = pairs[: size - 1]
    return made


def agree(kind: str, names: tuple[str, ...], shape: ShapeClass, dtype: str = "int64") -> str:
    """Outputs equal the interpreter's, and the model finds nothing; the text."""
    case = case_of(kind, dtype, shape, names)
    graph, given = case.build(ASCEND.hardware)
    inputs = [numbers(x.size, k) if x.dtype == np.int64 else x for k, x in enumerate(given)]
    kernel = ASCEND.lower(graph)
    ran = run(kernel, inputs).check()
    with np.errstate(all="ignore"):
        wanted = interpreter.run(graph, *inputs, allow_unwritten=True)
    for operation, want in zip(case.operations, wanted, strict=True):
        got = ran.outputs[f"{operation.name}_out"]
        np.testing.assert_array_equal(got, want.reshape(-1), err_msg=operation.name)
    return kernel.source


@pytest.mark.parametrize(
    "names",
    [
        ("add", "sub", "max", "min"),
        ("mul", "xor", "and", "or"),
        ("floordiv", "mod"),
        ("truncdiv", "truncmod"),
    ],
    ids="-".join,
)
def test_pairs_of_edges(names: tuple[str, ...]) -> None:
    agree("binary", names, PAIRS)


def test_comparisons_of_edges() -> None:
    agree("compare", (), PAIRS)


def test_functions_of_edges() -> None:
    agree("unary", (), PAIRS)


def test_shifts_by_every_count() -> None:
    """Also by negative counts and by 64 or more, which shift everything out."""
    case = case_of("binary", "int64", PAIRS, ("shl", "shr"))
    graph, (first, _) = case.build(ASCEND.hardware)
    inputs = [numbers(first.size, 3), np.arange(first.size, dtype=np.int64) % 72 - 3]
    ran = run(ASCEND.lower(graph), inputs).check()
    for operation, want in zip(
        case.operations, interpreter.run(graph, *inputs, allow_unwritten=True), strict=True
    ):
        np.testing.assert_array_equal(ran.outputs[f"{operation.name}_out"], want.reshape(-1))


def test_a_cast_takes_the_low_bits() -> None:
    """As the interpreter does; the vector core's own cast would take the nearest number."""
    for dtype in ("int32", "int8", "bool"):
        agree("cast", ("cast_int64",), PAIRS, dtype)


def test_sums_and_products_wrap() -> None:
    agree("reduce", (), ShapeClass("sums", 5, 50, (50, 1)))


def test_wide_tiles_are_worked_on_in_chunks() -> None:
    """The tables of offsets are made once, before the loop over chunks."""
    source = agree("binary", ("mul",), WIDE)
    head, loop = source.split("for (int32_t chunk", 1)
    assert "ShiftRight(" in head and "mask" in head and "mask" not in loop
    assert "Gather(" in loop


def test_any_number_fills() -> None:
    number = -(2**40) + 12345
    out = IPointer("out", "dram", "int64", 40, "out")
    tile = IPointer("tile", "reg", "int64", 40, "tmp")
    body = [
        make.fill(ISlice(tile, 0, (1, 40)), number),
        make.move(ISlice(out, 0, (1, 40)), ISlice(tile, 0, (1, 40))),
    ]
    ran = run(ASCEND.lower(IGraph("fills", ASCEND.hardware, 1, 1, [out, tile], body)), []).check()
    assert ran.outputs["out"].dtype == numpy_of("int64")
    assert (ran.outputs["out"] == number).all()
