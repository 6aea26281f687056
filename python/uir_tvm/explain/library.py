# SPDX-License-Identifier: Apache-2.0
"""The library operators of a model: what they move and compute at least, beside the kernels of our own."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from ..hardware.rates import Rates
from ..igraph.dtypes import bytes_of, from_tvm
from ..library.attrs import Conv2dAttrs, MatmulAttrs
from .roofline import seconds_of


@attrs.frozen
class LibraryWork:
    """Calls of the library with the same attributes.

    Attributes
    ----------
    name : str
        Kind, sizes and epilogue.
    calls : int
    bytes : int
        DRAM traffic of one call: every operand read once, the result written once.
    flops : int
        Multiplications and additions of one call's product; its epilogue does not count.
    modelled_seconds : float or None
        Of one call at full rates: the library is no faster.  None where a rate is not known.
    limit : str
        ``dram`` or ``arithmetic``; empty where that is not known.
    """

    name: str
    calls: int
    bytes: int
    flops: int
    modelled_seconds: float | None
    limit: str


def _matmul(attributes: Any) -> tuple[str, int]:
    sizes = "x".join(map(str, (*attributes.batch, attributes.m, attributes.k, attributes.n)))
    return sizes, 2 * math.prod((*attributes.batch, attributes.m, attributes.k, attributes.n))


def _conv2d(attributes: Any) -> tuple[str, int]:
    o, i, kh, kw = attributes.weight
    sizes = f"{'x'.join(map(str, attributes.input))} by {o}x{i}x{kh}x{kw}"
    return sizes, 2 * math.prod(attributes.output) * i * kh * kw


#: Kind -> its attributes' class, and (sizes as text, operations) of them.
KINDS: Mapping[str, tuple[Any, Callable[[Any], tuple[str, int]]]] = {
    "matmul": (MatmulAttrs, _matmul),
    "conv2d": (Conv2dAttrs, _conv2d),
}


def library_work(graph: Mapping[str, Any], rates: Rates) -> tuple[LibraryWork, ...]:
    """The library operators of a kernel graph's JSON, equal ones together."""
    tensors = {tensor["name"]: tensor for tensor in graph["tensors"]}
    found: dict[str, LibraryWork] = {}
    for node in graph["nodes"]:
        if node["type"] != "library":
            continue
        key = json.dumps([node["kind"], node["attrs"], node.get("bytes_read")], sort_keys=True)
        known = found.get(key)
        found[key] = (
            _work(node, tensors, rates) if known is None else attrs.evolve(known, calls=known.calls + 1)
        )
    return tuple(found.values())


def _work(node: Mapping[str, Any], tensors: Mapping[str, Mapping[str, Any]], rates: Rates) -> LibraryWork:
    kind, measure = KINDS[node["kind"]]
    attributes = kind.from_json(json.dumps(node["attrs"]))
    sizes, flops = measure(attributes)
    inputs = sum(tensors[name]["bytes"] for name in node["inputs"])
    outputs = sum(tensors[name]["bytes"] for name in node["outputs"])
    moved = node.get("bytes_read", inputs) + outputs
    width = bytes_of(from_tvm(tensors[node["outputs"][0]]["dtype"]))
    times = {
        "dram": seconds_of(moved, rates.memory_of(moved).rate),
        "arithmetic": seconds_of(flops * max(width, 4) / 4, rates.contract),
    }
    known = {name: seconds for name, seconds in times.items() if seconds is not None}
    limit = max(known, key=lambda name: known[name]) if len(known) == len(times) else ""
    steps = [step for step in node["ops"][1:]]
    name = " + ".join([f"library {node['kind']} {sizes}", *steps])
    return LibraryWork(name, 1, moved, flops, known[limit] if limit else None, limit)
