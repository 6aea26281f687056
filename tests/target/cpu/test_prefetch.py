# SPDX-License-Identifier: Apache-2.0
"""What the next tile needs is fetched: where, how far ahead, and that results are as they were."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest
import tvm
import tvm_ffi
from uir_tvm import hardware
from uir_tvm.igraph import HardwareModel, IGraph
from uir_tvm.schedule import apply_default
from uir_tvm.target.cpu import first_lanes
from uir_tvm.target.cpu.lower import lower

from tests.extracted import extracted
from tests.open_functions import INNER, OPEN

from .support import HOST, compiled, parsed, signature

#: A processor that leaves fetches to its code (`uir_tvm.target.cpu.runs`).
BEHIND = {"mcpu": "sapphirerapids", "machine": "x86_64", "mattr": ""}


def in_small_caches(
    graph: IGraph, other: Mapping[str, str] = MappingProxyType({}), vector_bytes: int = HOST.vector_bytes
) -> IGraph:
    """The graph for a core whose own caches hold 64 KiB, and whose figures are otherwise this machine's."""
    figures = dict(HOST.figures.items()) | {"l2_bytes": 1 << 16} | dict(other)
    hw = HardwareModel("small", "cpu", 2, 1, HOST.reg_bytes, 0, vector_bytes, figures)
    return graph.replace(hardware=hw)


def softmax_rows(rows: int, cols: int) -> IGraph:
    """o = exp(x) / sum(exp(x)) in each of ``rows`` rows of two units."""
    n, s = 2 * rows * cols, f"(1,{cols}); ({cols},1)"
    here = f"[{cols}*i + {rows * cols}*pid; {s}]"
    one = "[0; (1,1); (1,1)]"
    return parsed(
        f"x = iPointer(dram, fp32, {n}, in)\no = iPointer(dram, fp32, {n}, out)\n"
        + "".join(f"{name} = iPointer(reg, fp32, {cols})\n" for name in "aedb")
        + "s = iPointer(reg, fp32, 1)",
        f"""for i in {rows} {{
        move.dram.reg.fp32 a[0; {s}], x{here}
        unary.exp.fp32 e[0; {s}], a[0; {s}]
        reduce.add.row.unit.fp32 s{one}, e[0; {s}]
        broadcast.row.unit.fp32 b[0; {s}], s{one}
        binary.div.fp32 d[0; {s}], e[0; {s}], b[0; {s}]
        move.reg.dram.fp32 o{here}, d[0; {s}]
        }}""",
        2,
    )


def fetches(graph: IGraph) -> list[str]:
    """What LLVM's intrinsic is called for: 0 to read, 1 to write."""
    text = compiled(graph).mod.inspect_source("ll")
    return sorted(
        set(re.findall(r"call void @llvm\.prefetch\.p0\(ptr [^,]*, i32 (\d), i32 \d, i32 1\)", text))
    )


def fetched(graph: IGraph) -> set[str]:
    """What the TIR for such a processor fetches to."""
    small = in_small_caches(graph, BEHIND)
    return set(re.findall(r"uir_fetch_(read|write)", str(lower(small, signature(small)))))


def test_rows_and_their_results_are_fetched() -> None:
    assert fetches(in_small_caches(softmax_rows(64, 512))) == ["0", "1"]


def test_nothing_is_fetched_that_the_caches_hold() -> None:
    assert not fetches(in_small_caches(softmax_rows(8, 512)))


def test_nothing_is_fetched_without_a_next_tile() -> None:
    graph = parsed(
        "x = iPointer(dram, fp32, 65536, in)\no = iPointer(dram, fp32, 65536, out)",
        "unary.muls.fp32 o[0; (1,65536); (65536,1)], x[0; (1,65536); (65536,1)] [3.0]",
    )
    assert not fetches(in_small_caches(graph))


@pytest.mark.parametrize("cols", [512, 500])
def test_results_are_those_of_the_graph(cols: int) -> None:
    """Also in the last row, from which a fetch leads out of the tensor."""
    x = np.random.default_rng(0).standard_normal(2 * 40 * cols).astype(np.float32)
    o = np.zeros_like(x)
    compiled(in_small_caches(softmax_rows(40, cols)))["kernel"](
        tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(o)
    )
    e = np.exp(x.reshape(-1, cols).astype(np.float64))
    np.testing.assert_allclose(o.reshape(-1, cols), e / e.sum(1, keepdims=True), rtol=2e-6)


@pytest.mark.parametrize(
    ("processor", "instruction"),
    [
        ({"mcpu": "haswell", "mtriple": "x86_64-linux-gnu"}, "prefetch"),
        ({"mcpu": "neoverse-n1", "mtriple": "aarch64-linux-gnu"}, "prfm"),
    ],
)
def test_other_processors_have_such_an_instruction(processor: dict[str, str], instruction: str) -> None:
    graph = in_small_caches(softmax_rows(64, 512), {"mcpu": processor["mcpu"], "machine": "other"}, 16)
    target = tvm.target.Target({"kind": "llvm", **processor})
    module = tvm.compile(tvm.IRModule({"kernel": lower(graph, signature(graph))}), target=target)
    assert instruction in module.mod.inspect_source("asm")


def open_code(name: str, other: Mapping[str, str] = MappingProxyType({})) -> tvm.tirx.PrimFunc:
    """The code of a function with open sizes for a core with small caches."""
    hw = hardware.get()
    scheduled = apply_default(OPEN[name].func(), hw)
    return lower(in_small_caches(extracted(scheduled, hw), other), scheduled)


def test_open_tensors_are_fetched_where_a_launch_finds_them_large() -> None:
    """Neighbours of units that one thread runs are each other's next tiles; a gain of all rows stays.

    Of a processor that is not ahead by itself (`runs`).
    """
    text = str(open_code("layer norm", BEHIND))
    tensor = r"n \* T.int64\(96\) \* T.int64\(4\)"
    asked = re.search(rf"( *)if {tensor} \+ {tensor} > T.int64\(65536\):\n", text)
    assert asked
    far, near = text[asked.end() :].split(f"\n{asked[1]}else:\n")
    assert "uir_fetch_read" in far and "uir_fetch_write" in far
    assert "uir_fetch" not in near and "uir_fetch" not in text[: asked.start()]
    assert not re.search(r"uir_fetch_\w+\W+T.address_of\(x[12]_", text)


@pytest.mark.skipif(not first_lanes.masked_bytes(HOST), reason="this processor moves nothing under masks")
def test_ends_of_open_rows_fetch_nothing() -> None:
    """Their lines are those of the vectors beside them: what is moved under a mask stands without a fetch."""
    hw = hardware.get()
    scheduled = apply_default(INNER["softmax of open rows"].func(), hw)
    text = str(lower(in_small_caches(extracted(scheduled, hw)), scheduled))
    ends = re.findall(r"\n( *)if i_\d+ > T.int64\(0\):\n((?:\1 +.*\n)+)", text)
    assert "uir_fetch_read" in text and ends
    assert not any("uir_fetch" in end for _, end in ends)


@pytest.mark.parametrize("name", ["layer norm", "softmax"])
def test_results_of_open_kernels_are_those_of_numpy(name: str) -> None:
    """On one thread, on several, and with fetches that lead out of the tensor."""
    function = OPEN[name]
    target = tvm.target.Target({"kind": "llvm", "mcpu": str(HOST.figures["mcpu"])})
    run = tvm.compile(tvm.IRModule({"main": open_code(name)}), target=target)["main"]
    for n in (1, 120, 1001):
        inputs = function.inputs({"n": n})
        want = function.reference(*inputs)
        out = tvm.runtime.tensor(np.zeros(want.shape, "float32"))
        run(*map(tvm.runtime.tensor, inputs), out)
        np.testing.assert_allclose(out.numpy(), want, rtol=1e-4, atol=1e-5)


def test_nests_that_only_move_fetch_no_operands() -> None:
    """Their loads are many tiles ahead of their stores."""
    moved = scaled_rows("unary.muls.fp32 o{here}, x{here} [3.0]")
    dear = scaled_rows("unary.tanh.fp32 o{here}, x{here}")
    assert fetched(moved) == {"write"}
    assert fetched(dear) == {"read", "write"}


@pytest.mark.parametrize("vector_bytes", [32, 64])
def test_open_nests_that_only_move_fetch_where_a_vector_is_a_line(vector_bytes: int) -> None:
    """Half a line would be fetched twice."""
    hw = hardware.get()
    scheduled = apply_default(OPEN["flat"].func(), hw)
    graph = in_small_caches(extracted(scheduled, hw), BEHIND, vector_bytes)
    assert ("uir_fetch_write" in str(lower(graph, scheduled))) == (vector_bytes == 64)


def scaled_rows(iop: str) -> IGraph:
    """One iOp on each of 64 rows of two units."""
    here = "[512*i + 32768*pid; (1,512); (512,1)]"
    return parsed(
        "x = iPointer(dram, fp32, 65536, in)\no = iPointer(dram, fp32, 65536, out)",
        f"for i in 64 {{ {iop.format(here=here)} }}",
        2,
    )
