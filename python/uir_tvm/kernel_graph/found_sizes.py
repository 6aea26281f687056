# SPDX-License-Identifier: Apache-2.0
"""Sizes that a model finds while it runs: which node finds them, when, and what has to hold of them."""

from __future__ import annotations

import json
from collections.abc import Sequence

import tvm
from tvm import relax

from ..opaque_call import CHECK
from ..sizes.open_size import OpenSize
from ..sizes.saved_sizes import condition_text, names_in
from ..sizes.size_space import SizeSpace
from .nodes import FoundOp, Node, OpaqueOp


def found_by(node: OpaqueOp, space: SizeSpace) -> tuple[str, ...]:
    """The sizes that a call finds: dimensions of its results by themselves."""
    dims = (size for tensor in node.outputs for size in tensor.shape)
    alone = (str(size) for size in dims if isinstance(size, OpenSize))
    return tuple(dict.fromkeys(name for name in alone if name in space.found))


def found_first(nodes: Sequence[Node], space: SizeSpace | None) -> list[Node]:
    """Nodes in an order in which they can run, each size found as early as it can be.

    A node may need a size without reading what finds it.
    """
    finding = [node for node in nodes if isinstance(node, FoundOp)]
    if not finding or space is None:
        return list(nodes)
    places = {name: place for place, name in enumerate(space.found)}
    finding.sort(key=lambda node: min((places[name] for name in node.found), default=len(places)))
    makers = {tensor: node for node in nodes for tensor in node.outputs}
    done: dict[Node, None] = {}
    for first in [*finding, *nodes]:
        waiting: list[Node] = [first]
        while waiting:
            missing = [
                makers[tensor]
                for tensor in waiting[-1].inputs
                if tensor in makers and makers[tensor] not in done
            ]
            if missing:
                waiting += missing
            else:
                done.setdefault(waiting.pop())
    return list(done)


class FoundChecks:
    """What has to hold of found sizes, as calls that check it once they are known.

    Parameters
    ----------
    space : SizeSpace
    """

    def __init__(self, space: SizeSpace) -> None:
        self._space = space
        texts = dict.fromkeys([*space.needs, *_held(space)])
        self._waiting = [(text, set(names_in(text))) for text in texts]

    def calls(self, known: set[str]) -> list[tvm.ir.Call]:
        """Calls of `CHECK` for what can be checked with these sizes, and was not yet."""
        ready = [text for text, names in self._waiting if names <= known]
        self._waiting = [row for row in self._waiting if not row[1] <= known]
        if not ready:
            return []
        names = [name for name in self._space.names if name in known]
        needs = self._space.needs
        text = json.dumps({"names": names, "checks": ready, "where": [needs.get(text, "") for text in ready]})
        sizes = relax.ShapeExpr([self._space.variables[name] for name in names])
        return [relax.op.call_pure_packed(CHECK, sizes, tvm.ir.StringImm(text), ty_args=relax.ObjectType())]


def _held(space: SizeSpace) -> list[str]:
    """What has to hold of sizes that are found, as `sizes.saved_sizes.holds` reads it."""
    texts = [condition_text(each) for each in space.conditions if space.is_found(each.size)]
    for name, symbol in space.found.items():
        texts += [f"{name} >= {symbol.low}"] if symbol.low else []
        texts += [] if symbol.high is None else [f"{name} <= {symbol.high}"]
    return texts
