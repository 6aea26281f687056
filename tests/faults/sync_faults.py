# SPDX-License-Identifier: Apache-2.0
"""Faults of synchronisation."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from uir_tvm.igraph import IGraph, Loop

from .edit import Candidate, Path, Plant, changed, edited, iops, places, shuffled, siblings, with_body

#: From the narrowest to the widest.
SCOPES = ("reg", "sram", "dram")


def drop_sync(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Leave one sync out."""
    found: list[Candidate] = [
        (f"without sync.{iop.attrs['scope']} at {position}", _dropping(graph, position))
        for position, iop in iops(graph)
        if iop.op == "sync"
    ]
    yield from shuffled(found, rng)


def _dropping(graph: IGraph, position: int) -> Callable[[], IGraph]:
    return lambda: edited(graph, position, lambda _: None)


def lower_sync(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Give one sync every narrower scope."""
    found: list[Candidate] = []
    for position, iop in iops(graph):
        if iop.op != "sync":
            continue
        for scope in SCOPES[: SCOPES.index(str(iop.attrs["scope"]))]:
            text = f"sync.{iop.attrs['scope']} at {position} as sync.{scope}"
            found.append((text, _scoped(graph, position, scope)))
    yield from shuffled(found, rng)


def _scoped(graph: IGraph, position: int, scope: str) -> Callable[[], IGraph]:
    return lambda: edited(graph, position, lambda iop: changed(iop, attrs={"scope": scope}))


def move_sync(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Move one sync across its neighbour, or out of its loop."""
    found: list[Candidate] = []
    for path, node in places(graph.body):
        if isinstance(node, Loop) or node.op != "sync":
            continue
        body, at = siblings(graph, path), path[-1]
        for other in (at - 1, at + 1):
            if 0 <= other < len(body) and not _is_sync(body[other]):
                found.append((f"sync at {path} across {_name(body[other])}", _swapping(graph, path, other)))
        if len(path) > 1 and len(body) > 1:
            for after in (0, 1):
                text = f"sync at {path} {'behind' if after else 'before'} its loop"
                found.append((text, _hoisting(graph, path, node, after)))
    yield from shuffled(found, rng)


def _is_sync(node: Any) -> bool:
    return not isinstance(node, Loop) and node.op == "sync"


def _name(node: Any) -> str:
    return f"the loop over {node.var}" if isinstance(node, Loop) else str(node.op)


def _swapping(graph: IGraph, path: Path, other: int) -> Callable[[], IGraph]:
    def swap(body: list[Any]) -> list[Any]:
        at = path[-1]
        body[at], body[other] = body[other], body[at]
        return body

    return lambda: with_body(graph, path, swap)


def _hoisting(graph: IGraph, path: Path, node: Any, after: int) -> Callable[[], IGraph]:
    def out(body: list[Any]) -> list[Any]:
        return [*body[: path[-1]], *body[path[-1] + 1 :]]

    def put(body: list[Any]) -> list[Any]:
        at = path[-2] + after
        return [*body[:at], node, *body[at:]]

    return lambda: with_body(with_body(graph, path, out), path[:-1], put)
