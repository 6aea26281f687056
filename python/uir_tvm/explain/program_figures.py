# SPDX-License-Identifier: Apache-2.0
"""What a program with open sizes moves and computes, for all of its sizes; and the same graph in numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from ..library.sized import in_numbers
from ..sizes.saved_sizes import size_text
from ..sizes.symbolic_shapes import Size, Sizes, in_terms_of, symbols_of, value_of
from .size_polynomials import product, text_of, total


@attrs.frozen
class ProgramFigures:
    """Figures of a kernel graph with open sizes, as texts that Python reads; empty where there is none.

    Attributes
    ----------
    sizes : mapping of str to int
        Those at which other figures are told.
    bytes : str
        What kernels and library read and write, each operand and each result once.
    library_operations : str
        Multiplications and additions of the library's products; convolutions as sums of products, also where
        Winograd's way takes fewer.
    input_bytes, output_bytes : str
    weight_bytes : int
    """

    sizes: Sizes
    bytes: str
    library_operations: str
    input_bytes: str
    output_bytes: str
    weight_bytes: int


def program_figures(graph: Mapping[str, Any], sizes: Sizes) -> ProgramFigures:
    """The figures of a kernel graph's JSON."""
    tensors = {tensor["name"]: tensor for tensor in graph["tensors"]}
    work = [_operations(node) for node in graph["nodes"] if node["type"] == "library"]
    return ProgramFigures(
        dict(sizes),
        text_of(total([graph["summary"]["bytes_after"]])),
        text_of(total(text for text in work)) if all(work) else "",
        text_of(total(tensors[name]["bytes"] for name in graph["inputs"])),
        text_of(total(tensors[row["tensor"]]["bytes"] for row in graph["outputs"])),
        sum(int(tensor["bytes"]) for tensor in graph["tensors"] if tensor["constant"]),
    )


def _operations(node: Mapping[str, Any]) -> Size:
    """Of a library operator's product; empty where its kind has no expression here."""
    fields = node["attrs"]
    if node["kind"] in ("matmul", "quantized_matmul"):
        return text_of(product([2, *fields["batch"], fields["m"], fields["n"], fields["k"]]))
    if node["kind"] == "conv2d":
        outputs, inputs, *window = fields["weight"]
        return text_of(product([2, fields["input"][0], outputs, inputs, *window, *_spatial(fields)]))
    return ""


def _spatial(fields: Mapping[str, Any]) -> list[Size]:
    """Rows and columns of a convolution's result."""
    above, left, below, right = fields["padding"]
    rows = zip(
        fields["input"][2:],
        fields["weight"][2:],
        fields["strides"],
        fields["dilation"],
        (above + below, left + right),
        strict=True,
    )
    return [
        in_terms_of(
            f"(size + {padding - dilation * (kernel - 1) - 1}) // {stride} + 1",
            {"size": size if isinstance(size, int) else size_text(size)},
        )
        for size, kernel, stride, dilation, padding in rows
    ]


def graph_at(graph: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    """A kernel graph's JSON with numbers for its open sizes."""

    def nodes() -> list[dict[str, Any]]:
        rows = []
        for node in graph["nodes"]:
            row = {**node, "bytes_read": _number(node.get("bytes_read"), sizes)}
            if node["type"] == "library":
                row["attrs"] = json.loads(in_numbers(node["kind"], json.dumps(node["attrs"]), sizes))
            rows.append(row)
        return rows

    def tensor(row: Mapping[str, Any]) -> dict[str, Any]:
        shape = [_number(size, sizes) for size in row["shape"]]
        return {**row, "shape": shape, "bytes": _number(row["bytes"], sizes)}

    return {
        **graph,
        "tensors": [tensor(row) for row in graph["tensors"]],
        "nodes": nodes(),
        "why_not": [
            {**row, "saved_bytes": _number(row["saved_bytes"], sizes)} if "saved_bytes" in row else row
            for row in graph["why_not"]
        ],
    }


def _number(value: Any, sizes: Sizes) -> Any:
    if not isinstance(value, str):
        return value
    text = size_text(value)
    return value_of(text, sizes) if set(symbols_of(text)) <= sizes.keys() else value
