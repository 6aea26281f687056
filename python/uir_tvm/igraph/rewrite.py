# SPDX-License-Identifier: Apache-2.0
"""Nodes of the loop tree with their slices, variables or attributes exchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .affine import Affine, AffineLike, affine
from .nodes import IGraph, IOp, ISlice, Loop, walk_body


def map_slices(iop: IOp, change: Callable[[ISlice], ISlice]) -> IOp:
    """An iOp with every slice that it names exchanged, that of a group form's buffer included."""
    attrs = {key: change(value) if isinstance(value, ISlice) else value for key, value in iop.attrs.items()}
    return IOp(
        iop.op, iop.name, iop.dtype, [change(s) for s in iop.targets], [change(s) for s in iop.sources], attrs
    )


def substituted(node: Any, env: Mapping[str, AffineLike], names: Mapping[str, str] | None = None) -> Any:
    """A node with variables replaced by expressions, and with its loops renamed by ``names``."""

    def one(value: Affine | None) -> Affine | None:
        return None if value is None else value.substitute(env)

    def piece(s: ISlice) -> ISlice:
        bounds = [one(b) for b in s.valid]
        rows, cols = s.stride
        return s.replace(
            offset=s.offset.substitute(env),
            stride=(affine(rows).substitute(env), affine(cols).substitute(env))
            if s.open_strides
            else s.stride,
            rows=(bounds[0], bounds[1]),
            cols=(bounds[2], bounds[3]),
        )

    if isinstance(node, Loop):
        body = [substituted(n, env, names) for n in node.body]
        told = {key: one(value) if isinstance(value, Affine) else value for key, value in node.attrs.items()}
        return Loop((names or {}).get(str(node.var), node.var), node.extent, body, told)
    iop = map_slices(node, piece)
    moved = {key: one(value) if isinstance(value, Affine) else value for key, value in iop.attrs.items()}
    return IOp(iop.op, iop.name, iop.dtype, iop.targets, iop.sources, moved)


def without(body: Sequence[Any], gone: Callable[[IOp], bool]) -> list[Any]:
    """The loop tree without some iOps, and without loops that hold nothing."""
    out: list[Any] = []
    for node in body:
        if isinstance(node, Loop):
            inner = without(node.body, gone)
            if inner:
                out.append(Loop(node.var, node.extent, inner, node.attrs))
        elif not gone(node):
            out.append(node)
    return out


def pointers_of(body: Sequence[Any]) -> set[str]:
    """Names of the pointers that the iOps of a body name."""
    return {str(piece.pointer.name) for iop, _ in walk_body(body) for piece in iop.slices()}


def loop_variables(body: Sequence[Any]) -> Iterator[str]:
    """The variables of all loops of a body."""
    for node in body:
        if isinstance(node, Loop):
            yield str(node.var)
            yield from loop_variables(node.body)


class FreshNames:
    """Names of loop variables that a graph does not have yet."""

    def __init__(self, graph: IGraph) -> None:
        named = [*(str(p.name) for p in graph.pointers), *(str(s.name) for s in graph.sizes)]
        self._taken = {"pid", *loop_variables(graph.body), *named}

    def like(self, name: str) -> str:
        """``name_1``, or with the next number that is free."""
        count = 1
        while f"{name}_{count}" in self._taken:
            count += 1
        self._taken.add(f"{name}_{count}")
        return f"{name}_{count}"

    def free(self, name: str) -> str:
        """``name`` where it is free, else as `like`."""
        if name in self._taken:
            return self.like(name)
        self._taken.add(name)
        return name

    def of(self, names: Iterable[str]) -> dict[str, str]:
        """A fresh name for each of ``names``."""
        return {name: self.like(name) for name in names}
