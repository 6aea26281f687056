# SPDX-License-Identifier: Apache-2.0
"""The library operators of a model: what they move and compute at least, beside the kernels of our own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from ..hardware.rates import Rates
from ..igraph.dtypes import bytes_of, from_tvm
from ..library.work import work_of
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
    least_flops : int
        The same by the way that takes the fewest: Winograd's, for convolutions that may be computed so.
    modelled_seconds : float or None
        Of one call at full rates, of `least_flops`: the library is no faster.  None where a rate is unknown.
    limit : str
        ``dram`` or ``arithmetic``; empty where that is not known.
    """

    name: str
    calls: int
    bytes: int
    flops: int
    least_flops: int
    modelled_seconds: float | None
    limit: str


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
    work = work_of(node["kind"], json.dumps(node["attrs"]))
    flops, least = work.operations, work.least_operations
    inputs = sum(tensors[name]["bytes"] for name in node["inputs"])
    outputs = sum(tensors[name]["bytes"] for name in node["outputs"])
    moved = node.get("bytes_read", inputs) + outputs
    width = bytes_of(from_tvm(tensors[node["outputs"][0]]["dtype"]))
    times = {
        "dram": seconds_of(moved, rates.memory_of(moved).rate),
        "arithmetic": seconds_of(least * max(width, 4) / 4, rates.contract),
    }
    known = {name: seconds for name, seconds in times.items() if seconds is not None}
    limit = max(known, key=lambda name: known[name]) if len(known) == len(times) else ""
    name = " + ".join([f"library {node['kind']} {work.sizes}", *node["ops"][1:]])
    name += " (or Winograd's way)" * work.is_winograd
    return LibraryWork(name, 1, moved, flops, least, known[limit] if limit else None, limit)
