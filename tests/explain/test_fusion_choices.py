# SPDX-License-Identifier: Apache-2.0
"""Candidates of fusion that a price decided: both prices in the report, of compiled and of loaded models."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
import uir_tvm
from tvm import relax
from uir_tvm.explain import explain, render
from uir_tvm.explain.fusion_choices import fusion_choices

from tests.kernel_graph.programs import module

op = relax.op
F32 = "float32"


def _both_ways(emit: Any, c: Any, r: Any) -> Any:
    value = emit(op.add(c, r))
    return emit(op.sum(value, axis=[1])), emit(op.sum(value, axis=[0]))


@pytest.fixture(scope="module")
def executable() -> uir_tvm.Executable:
    """Two sums of a matrix that is made of two vectors: both kernels compute it."""
    return uir_tvm.compile(module({"c": ((512, 1), F32), "r": ((512,), F32)}, _both_ways))


def test_both_prices_are_told(executable: uir_tvm.Executable, tmp_path: pathlib.Path) -> None:
    for exe in (executable, uir_tvm.load(executable.save(tmp_path / "both.uir"))):
        found = explain(exe)
        (choice,) = found.fusion
        assert choice.merged and choice.together.modelled_seconds < choice.apart.modelled_seconds
        # the matrix is neither written nor read again
        assert choice.apart.bytes - choice.together.bytes > 2 * 512 * 512 * 4 - 8192
        text = render(found)
        assert "recomputed: lv, computed by each of its readers: modelled" in text
        assert "    stored: modelled" in text and "2.01 MiB" in text
        (entry,) = found.to_json()["fusion"]
        assert entry["apart"]["modelled_seconds"] == choice.apart.modelled_seconds
        assert json.loads(json.dumps(entry)) == entry


def test_one_kernel_alone_has_no_choices(executable: uir_tvm.Executable) -> None:
    name = executable.info.kernels[0].name
    assert explain(executable, name).fusion == ()


def test_equal_candidates_of_layers_are_one_line_and_the_costliest_comes_first() -> None:
    def price(seconds: float) -> dict[str, Any]:
        return {"seconds": seconds, "bytes": 1, "operations": 1, "units": 1}

    def entry(value: str, apart: float) -> dict[str, Any]:
        row = {"candidate": "siblings", "value": value, "kernels": ["k", "l"], "merged": True}
        return row | {"apart": price(apart), "together": price(1.0)}

    found = fusion_choices({"fusion": [entry("a", 2.0), entry("b", 1.5), entry("c", 1.5), entry("d", 1.5)]})
    assert [choice.values for choice in found] == [("b", "c", "d"), ("a",)]


def test_a_graph_of_an_older_file_has_none() -> None:
    assert fusion_choices({"nodes": []}) == ()
