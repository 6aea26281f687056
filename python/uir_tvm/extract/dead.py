# SPDX-License-Identifier: Apache-2.0
"""Stores that nothing reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs
from tvm import tirx

from .access import accesses_of
from .tree_nodes import Leaf, Serial


def without_dead_stores(body: Sequence[Any], params: Iterable[Any]) -> list[Any]:
    """The tree without leaves that only store to buffers of the kernel's own that nothing loads.

    Caching an intermediate in reg leaves its copy back to dram behind; when its readers were moved
    to the cache, that copy is such a leaf.
    """
    kept = set(params)
    while True:
        read = {buffer for leaf in _leaves(body) for buffer in _loaded(leaf)}
        pruned = _pruned(body, kept | read)
        if len(list(_leaves(pruned))) == len(list(_leaves(body))):
            return pruned
        body = pruned


def _loaded(leaf: Leaf) -> set[Any]:
    """Buffers that the leaf loads for more than to update them itself."""
    stored = {g.stmt.buffer for g in leaf.stmts if isinstance(g.stmt, tirx.BufferStore)}
    loaded = {buffer for buffer, _, is_write in accesses_of(leaf) if not is_write}
    return loaded - stored if len(stored) == 1 else loaded


def _leaves(body: Sequence[Any]) -> Iterable[Leaf]:
    for node in body:
        if isinstance(node, Serial):
            yield from _leaves(node.body)
        else:
            yield node


def _pruned(body: Sequence[Any], live: set[Any]) -> list[Any]:
    out: list[Any] = []
    for node in body:
        if isinstance(node, Serial):
            inner = _pruned(node.body, live)
            if inner:
                out.append(attrs.evolve(node, body=inner))
        elif any(isinstance(g.stmt, tirx.BufferStore) and g.stmt.buffer in live for g in node.stmts):
            out.append(node)
    return out
