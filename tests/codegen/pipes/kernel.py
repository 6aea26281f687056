# SPDX-License-Identifier: Apache-2.0
"""Small kernels as plain data, and their plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm_ffi
from uir_tvm.igraph import Affine, affine

Data = dict[str, Any]


def at(begin: Affine | int, size: int, memory: str = "ub", dims: Sequence[Sequence[int]] = ()) -> Data:
    """Bytes that an instruction touches: ``size`` of them at each point of ``dims``, (count, stride) each."""
    return {"memory": memory, "begin": affine(begin), "dims": [list(d) for d in dims], "bytes": size}


def op(
    pipe: str,
    writes: Sequence[Data] = (),
    reads: Sequence[Data] = (),
    comment: str = "",
    blocks: bool = False,
) -> Data:
    regions = [{**r, "write": True} for r in writes] + [{**r, "write": False} for r in reads]
    return {"kind": "instruction", "pipe": pipe, "comment": comment, "blocks": blocks, "regions": regions}


def loop(var: str, extent: int, *body: Data) -> Data:
    return {"kind": "loop", "var": var, "text": f"for {var}", "extent": extent, "body": list(body)}


def plan(*body: Data, vocabulary: str = "ascend") -> Data:
    return dict(tvm_ffi.get_global_func("uir.codegen.pipes.plan")(list(body), vocabulary))


def lines(planned: Data, depth: int = 0) -> list[str]:
    """The plan as text, for a reader."""
    text: list[str] = []
    for node in planned["body"]:
        kind = str(node["kind"])
        if kind in ("loop", "group"):
            text.append(
                "  " * depth + (f"{node['var']} in {node['extent']}:" if kind == "loop" else "group:")
            )
            text += lines(node, depth + 1)
        elif kind == "instruction":
            text.append("  " * depth + f"op {node['index']}")
        elif kind == "barrier":
            text.append("  " * depth + f"barrier {node['from'] or 'all'} #{node['number']}")
        else:
            text.append("  " * depth + f"{kind} {node['from']}_{node['to']}({node['id']}) #{node['number']}")
    return text
