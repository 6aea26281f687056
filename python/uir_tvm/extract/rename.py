# SPDX-License-Identifier: Apache-2.0
"""Nodes with variables or pointers exchanged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..igraph import IOp, IPointer, ISlice, Loop
from ..igraph.affine import Affine, var


def renamed(node: Any, variables: Mapping[str, str]) -> Any:
    """The node with variables renamed."""
    env = {old: var(new) for old, new in variables.items()}

    def expr(value: Affine | None) -> Affine | None:
        return None if value is None else value.substitute(env)

    def piece(s: ISlice) -> ISlice:
        bounds = [expr(b) for b in s.valid]
        return s.replace(
            offset=s.offset.substitute(env), rows=(bounds[0], bounds[1]), cols=(bounds[2], bounds[3])
        )

    return _mapped(node, piece, lambda value: value.substitute(env) if isinstance(value, Affine) else value)


def repointed(node: Any, pointers: Mapping[str, IPointer]) -> Any:
    """The node with pointers exchanged by name."""

    def piece(s: ISlice) -> ISlice:
        other = pointers.get(str(s.pointer.name))
        return s if other is None else s.replace(pointer=other)

    return _mapped(node, piece, lambda value: value)


def _mapped(node: Any, piece: Any, value: Any) -> Any:
    if isinstance(node, Loop):
        return Loop(node.var, node.extent, [_mapped(n, piece, value) for n in node.body], node.attrs)
    attrs = {k: piece(v) if isinstance(v, ISlice) else value(v) for k, v in node.attrs.items()}
    return IOp(
        node.op,
        node.name,
        node.dtype,
        [piece(s) for s in node.targets],
        [piece(s) for s in node.sources],
        attrs,
    )
