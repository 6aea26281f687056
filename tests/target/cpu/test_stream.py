# SPDX-License-Identifier: Apache-2.0
"""Stores that bypass the caches: where they are used, and that they store what plain ones do."""

from __future__ import annotations

import platform
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import tvm
import tvm_ffi
from uir_tvm import hardware
from uir_tvm.hardware.last_cache import L3_PER_CORE
from uir_tvm.igraph import HardwareModel, IGraph
from uir_tvm.schedule import apply_default
from uir_tvm.target.cpu.lower import lower
from uir_tvm.target.cpu.processors import has_avx512
from uir_tvm.target.cpu.stream import Streams

from tests.extracted import extracted
from tests.open_functions import INNER

from .support import HOST, compiled, llvm_target, parsed, signature

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="x86 stores")


def scaled(count: int, hint: str, units: int = 2) -> IGraph:
    """o = 3 x over ``count`` elements per unit."""
    n = count * units
    piece = f"[{count}*pid; (1,{count}); ({count},1)]"
    return parsed(
        f"x = iPointer(dram, fp32, {n}, in)\no = iPointer(dram, fp32, {n}, out)\n"
        f"a = iPointer(reg, fp32, {count})",
        f"""unary.muls.fp32 a[0; (1,{count}); ({count},1)], x{piece} [3.0]
        move.reg.dram.fp32 o{piece}, a[0; (1,{count}); ({count},1)] {hint}""",
        units,
    )


def test_only_where_asked_for_or_large() -> None:
    def streams(graph: IGraph) -> bool:
        text = compiled(graph).mod.inspect_source("asm")
        assert ("vmovntps" in text or "movntps" in text) == ("sfence" in text)
        return "sfence" in text

    assert streams(scaled(1024, "[hint=stream]"))
    assert not streams(scaled(1024, ""))
    assert streams(scaled(1 << 26, ""))


@pytest.mark.parametrize(
    ("figures", "size"),
    [
        ({}, None),
        ({"l3_bytes": 0}, None),
        ({"l3_bytes": 1 << 20}, 1 << 20),
        ({"l3_bytes": 480 << 20}, 2 * L3_PER_CORE),
    ],
)
def test_large_is_what_exceeds_the_share_of_the_cache(figures: dict[str, int], size: int | None) -> None:
    graph = SimpleNamespace(
        hardware=SimpleNamespace(num_groups=2, vector_bytes=64, figures=figures), walk=list, params=[]
    )
    assert Streams(cast(Any, graph), cast(Any, None)).cache == size


def test_a_result_that_cannot_stay_beside_what_is_read() -> None:
    """Half of what is moved, where that exceeds the cache and the result does not; not a small part of it."""
    share = 1 << 25
    for read, written, wanted in (
        (share * 3 // 4, share * 3 // 4, True),
        (share // 4, share // 4, False),
        (8 * share, share // 2, False),
        (8 * share, share + 1, True),
    ):
        assert Streams._exceeds(written, read + written, share) is wanted


@pytest.mark.parametrize("shift", [0, 1, 3, 9, 15])
@pytest.mark.parametrize(("rows", "cols"), [(13, 130), (40, 17), (5, 103)])
def test_rows_of_no_whole_vectors_are_streamed_together(rows: int, cols: int, shift: int) -> None:
    """Tiles whose rows follow each other are one long row; what lies around the result stays as it was."""
    tile, count = rows * cols, 2 * 7 * rows * cols
    kept = f"a[0; ({rows},{cols}); ({cols},1)]"
    piece = f"[{tile}*i + {7 * tile}*pid; ({rows},{cols}); ({cols},1)]"
    graph = parsed(
        f"x = iPointer(dram, fp32, {count + rows}, in)\no = iPointer(dram, fp32, {count}, out)\n"
        f"a = iPointer(reg, fp32, {tile})",
        f"""for i in 7 {{
        move.dram.reg.fp32 {kept}, x{piece}
        unary.muls.fp32 {kept}, {kept} [3.0]
        move.reg.dram.fp32 o{piece}, {kept} [hint=stream]
        }}""",
        2,
    )
    module = compiled(graph)
    assert "movnt" in module.mod.inspect_source("asm")
    x = np.random.default_rng(0).standard_normal(count + rows).astype(np.float32)
    room = np.zeros(count + 64, np.float32)
    start = (-room.ctypes.data // 4) % 16 + shift
    o = room[start : start + count]
    module["kernel"](tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(o))
    np.testing.assert_array_equal(o, 3 * x[:count])
    assert not room[:start].any() and not room[start + count :].any()


@pytest.mark.parametrize("shift", [0, 1, 3])
@pytest.mark.parametrize("count", [1024, 1000, 37])
def test_any_alignment_and_length(shift: int, count: int) -> None:
    run = compiled(scaled(count, "[hint=stream]"))["kernel"]
    x = np.random.default_rng(0).standard_normal(2 * count).astype(np.float32)
    room = np.zeros(2 * count + 64, np.float32)
    start = (-room.ctypes.data // 4) % 16 + shift
    o = room[start : start + 2 * count]
    run(tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(o))
    np.testing.assert_array_equal(o, 3 * x)
    assert not room[:start].any() and not room[start + 2 * count :].any()


def test_long_rows_are_streamed_wherever_they_begin() -> None:
    """Rows of 1029: every one but some begins within a vector; what lies around them stays as it was."""
    s = "(1,1029); (1029,1)"
    graph = parsed(
        "x = iPointer(dram, fp32, 41160, in)\no = iPointer(dram, fp32, 41160, out)\n"
        "a = iPointer(reg, fp32, 1029)",
        f"""for i in 20 {{
        unary.muls.fp32 a[0; {s}], x[1029*i + 20580*pid; {s}] [3.0]
        move.reg.dram.fp32 o[1029*i + 20580*pid; {s}], a[0; {s}] [hint=stream]
        }}""",
        2,
    )
    assert "else:" not in str(lower(graph, signature(graph))), "rows have other stores elsewhere"
    module = compiled(graph)
    assert "movntps" in module.mod.inspect_source("asm")
    x = np.random.default_rng(0).standard_normal(41160).astype(np.float32)
    for shift in (0, 5):
        room = np.zeros(41160 + 64, np.float32)
        o = room[shift : shift + 41160]
        module["kernel"](tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(o))
        np.testing.assert_array_equal(o, 3 * x)
        assert not room[:shift].any() and not room[shift + 41160 :].any()


@pytest.mark.parametrize("dtype", ["fp64", "fp32", "fp16", "int8"])
@pytest.mark.parametrize(("pitch", "streamed"), [(64, True), (68, False)])
def test_blocks_are_transposed_past_the_caches_where_they_fill_lines(
    dtype: str, pitch: int, streamed: bool
) -> None:
    """Lines that a result begins within, and rows that do, are stored as ever; all around it stays."""
    tile = "(32,64); (64,1)"
    graph = parsed(
        f"x = iPointer(dram, {dtype}, 2048, in)\no = iPointer(dram, {dtype}, {32 * pitch}, out)\n"
        f"a = iPointer(reg, {dtype}, 2048)",
        f"""move.dram.reg.{dtype} a[0; {tile}], x[0; (32,64); (1,32)]
        move.reg.dram.{dtype} o[0; (32,64); ({pitch},1)], a[0; {tile}] [hint=stream]""",
    )
    module = compiled(graph)
    assert ("nontemporal" in module.mod.inspect_source("ll")) == streamed
    # with AVX512 LLVM has no such store of halves, and takes a plain one
    is_plain = dtype == "fp16" and has_avx512(HOST)
    assert ("movnt" in module.mod.inspect_source("asm")) == (streamed and not is_plain)
    kind = np.dtype({"fp64": "f8", "fp32": "f4", "fp16": "f2", "int8": "i1"}[dtype])
    x = np.random.default_rng(0).integers(1, 100, 2048).astype(kind)
    for shift in (0, 1, 32 // kind.itemsize):
        room = np.zeros(32 * pitch + 192, kind)
        start = (-room.ctypes.data // kind.itemsize) % (64 // kind.itemsize) + shift
        o = room[start : start + 32 * pitch]
        module["kernel"](tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(o))
        made = o.reshape(32, pitch)
        np.testing.assert_array_equal(made[:, :64], x.reshape(64, 32).T)
        assert not made[:, 64:].any() and not room[:start].any() and not room[start + o.size :].any()


@pytest.mark.parametrize(("pitch", "streamed"), [(64, True), (68, False)])
def test_rows_are_streamed_where_each_begins_at_a_whole_vector(pitch: int, streamed: bool) -> None:
    tile = f"(4,48); ({pitch},1)"
    graph = parsed(
        "x = iPointer(dram, fp32, 288, in)\no = iPointer(dram, fp32, 288, out)\na = iPointer(reg, fp32, 288)",
        f"""unary.muls.fp32 a[0; {tile}], x[0; {tile}] [3.0]
        move.reg.dram.fp32 o[0; {tile}], a[0; {tile}] [hint=stream]""",
    )
    assert ("sfence" in compiled(graph).mod.inspect_source("asm")) == streamed


def test_rows_whose_pitch_sizes_decide_are_streamed_where_each_begins_at_a_whole_vector() -> None:
    """A vector stored past the caches at another place would end the process."""
    hw, function = hardware.get(), INNER["masked scores"]
    scheduled = apply_default(function.func(), hw)
    figures = dict(HOST.figures.items()) | {"l2_bytes": 1 << 14, "l3_bytes": 1 << 14}
    small = HardwareModel("small", "cpu", 2, 1, HOST.reg_bytes, 0, HOST.vector_bytes, figures)
    code = lower(extracted(scheduled, hw).replace(hardware=small), scheduled)
    assert "uir_stream" in str(code)
    run = tvm.compile(tvm.IRModule({"main": code}), target=llvm_target())["main"]
    for length in (16, 17):
        inputs = function.inputs({"b": 40, "s": length})
        want = function.reference(*inputs)
        out = tvm.runtime.tensor(np.zeros(want.shape, "float32"))
        run(*map(tvm.runtime.tensor, inputs), out)
        np.testing.assert_allclose(out.numpy(), want, rtol=1e-6, atol=1e-6)
