# SPDX-License-Identifier: Apache-2.0
"""Peaks with the slices that make them."""

from __future__ import annotations

from uir_tvm.explain.memory_peaks import memory
from uir_tvm.verify.access import GraphFacts

from . import graphs


def test_the_peak_of_every_level_and_what_lies_there() -> None:
    """reg: 64 numbers of a and 32 of c while the contraction runs; sram: all of b."""
    reg, sram = memory(GraphFacts(graphs.graph(graphs.STAGED)))
    assert (reg.level, reg.peak_bytes, reg.budget_bytes, reg.share) == ("reg", 384, 4096, 384 / 4096)
    assert [(live.pointer, live.bytes, live.address) for live in reg.alive] == [
        ("ra", 256, None),
        ("rc", 128, None),
    ]
    assert reg.placed_bytes == 384
    assert reg.at.startswith("contract.fp32")
    assert (sram.level, sram.peak_bytes, sram.budget_bytes) == ("sram", 512, 2048)
    assert sram.alive[0].slice.startswith("s[0; (1,128)") or sram.alive[0].slice.startswith("s[0; (16,8)")


def test_addresses_of_the_graph_are_told() -> None:
    graph = graphs.graph(graphs.STAGED)
    graph = graph.replace(
        attrs={"addresses": {"ra": 128, "rc": 0, "s": 0}, "peak": {"reg": 384, "sram": 512}}
    )
    reg, _ = memory(GraphFacts(graph))
    assert [(live.pointer, live.address) for live in reg.alive] == [("ra", 128), ("rc", 0)]
    assert reg.placed_bytes == 384


def test_a_kernel_without_sram_has_no_peak_there() -> None:
    assert [use.level for use in memory(GraphFacts(graphs.graph(graphs.SOFTMAX)))] == ["reg"]
