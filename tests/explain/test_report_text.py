# SPDX-License-Identifier: Apache-2.0
"""The text for a terminal."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
import uir_tvm
from uir_tvm.errors import CodegenCapacityError
from uir_tvm.explain import explain, explain_text, render
from uir_tvm.explain.report_text import bytes_text, count_text, percent_text, seconds_text
from uir_tvm.igraph.text import print_igraph
from uir_tvm.target import registry

from tests import tiny

from . import graphs


def test_figures() -> None:
    assert [bytes_text(n) for n in (0, 1023, 1024, 1536, 33 * 1024, 5 * 2**30, 2**45)] == [
        "0 bytes", "1023 bytes", "1.00 KiB", "1.50 KiB", "33.0 KiB", "5.00 GiB", "32768 GiB",
    ]  # fmt: skip
    assert [count_text(n) for n in (0, 999, 1000, 12_345_678, 5e15)] == [
        "0",
        "999",
        "1.00 k",
        "12.3 M",
        "5000 T",
    ]
    assert [seconds_text(s) for s in (None, 0.0, 5e-8, 1.5e-6, 2e-3, 3.25)] == [
        "?", "0 ns", "50.0 ns", "1.50 us", "2.00 ms", "3.25 s",
    ]  # fmt: skip
    assert [percent_text(p) for p in (None, 0.0, 0.5, 1.0)] == ["?", "0%", "50%", "100%"]


def test_a_staged_contraction_as_a_user_reads_it() -> None:
    text = render(explain_text(print_igraph(graphs.graph(graphs.STAGED))))
    for line in (
        "dram read 4.00 KiB, written 1.00 KiB; least 3.50 KiB: 1.43x",
        "b: in fp32, 128 elements; read 2.00 KiB (4.00x)",
        "8.19 k operations, 1.60 per byte of dram (contract 8.19 k)",
        "5.12 us a call, by dram: dram 5.12 us (100%), sram 1.54 us (30%), arithmetic 4.10 us (80%)",
        "roofline 4.10 us: 80% of it reached",
        "reg of a unit: 384 bytes, 9% of 4.00 KiB; most alive at contract.fp32: 384 bytes",
        "256 bytes fp32 ra[0; (4,16); (16,1)]",
        "iOp 2: sync.sram s[0; (1,128); (128,1)], s[0; (1,128); (128,1)], once a unit",
        "because iOp 0 (move) writes s[",
        "and another unit's iOp 3 (contract) reads s[",
    ):
        assert line in text, text


def test_unknown_rates_are_told_as_such() -> None:
    text = render(explain_text(print_igraph(graphs.graph(graphs.SOFTMAX, hardware=graphs.UNKNOWN))))
    assert "modelled   unknown (dram: the hardware model has no figure for it" in text
    assert "syncs      none" in text


def test_refused_candidates_are_told_one_by_one(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the text, in the report, and of a file that was saved: recipe, tiles, class of the error, reason."""
    spec = type(registry.TARGETS["uir-cpu"])
    lower, tried = spec.lower, []

    def crowded(self: Any, graph: Any, func: Any) -> Any:
        tried.append(graph)
        if len(tried) == 1:
            raise CodegenCapacityError("It is full.", memory="reg", needed=2, available=1)
        return lower(self, graph, func)

    monkeypatch.setattr(spec, "lower", crowded)
    exe = uir_tvm.compile(tiny.module())
    for each in (exe, uir_tvm.load(exe.save(tmp_path / "tiny.uir"))):
        (refused,) = each.report()["candidates_refused"]
        assert refused == {
            "kernel": "layer_norm_softmax",
            "recipe": "normalization",
            "form": "",
            "shrink": 1,
            "stage": "source",
            "refused": "CodegenCapacityError",
            "reason": "It is full.",
        }
        found = explain(each)
        text = render(found)
        assert "tried      normalization: CodegenCapacityError at source: It is full." in text
        assert "normalization, tiles 2 times smaller: taken" in text
        assert found.to_json()["kernels"][0]["attempts"][1]["shrink"] == 2
    assert "tried" not in render(explain(tiny.executable()))


@pytest.mark.parametrize("alone", [False, True])
def test_the_summary_and_the_blocks_of_a_model(alone: bool) -> None:
    exe = tiny.executable()
    text = render(explain(exe, "layer_norm_softmax" if alone else None))
    assert "layer_norm_softmax: hero normalization, recipe normalization; 1 call" in text
    assert "library matmul -> layer_norm_softmax" in text and "one kernel would save 1.00 KiB" in text
    assert ("neighbours that are two kernels" in text) is not alone
    if not alone:
        (header,) = (line for line in text.splitlines() if line.startswith("calls"))
        assert header.split() == "calls each all share dram each of least op/B limit kernel".split()
        assert "library matmul 4x32x32 + add" in text
