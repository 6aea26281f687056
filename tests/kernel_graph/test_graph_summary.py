# SPDX-License-Identifier: Apache-2.0
"""The figures and the JSON of a graph."""

from __future__ import annotations

import json

from tvm import relax

from .programs import check, constant

op = relax.op
F32 = "float32"


def test_summary_and_json_say_the_same() -> None:
    def body(emit, x):
        return emit(op.nn.softmax(emit(op.matmul(x, constant(8, 8)))))

    graph = check({"x": ((4, 8), "float32")}, body)
    summary = graph.summary()
    assert (summary["operators"], summary["library"], summary["custom"], summary["kernels"]) == (2, 1, 1, 1)
    # matmul: x, weight, result; softmax: result, output.
    assert summary["bytes_after"] == summary["bytes_before"] == 4 * (32 + 64 + 32 + 32 + 32)
    parsed = json.loads(graph.to_json())
    assert parsed["summary"] == summary
    assert [node["type"] for node in parsed["nodes"]] == ["library", "custom"]
    assert parsed["nodes"][1]["kernel"] in graph.kernels
    assert parsed["why_not"][0]["reason"] == "nn.softmax is no epilogue of library.matmul"
