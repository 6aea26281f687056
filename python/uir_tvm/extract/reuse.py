# SPDX-License-Identifier: Apache-2.0
"""One move for a slice of dram or sram that several statements load."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..igraph import IOp, IPointer, Loop, walk_body
from .rename import repointed


def reuse_loads(body: Sequence[Any], temporaries: Iterable[IPointer]) -> list[Any]:
    """Drop moves of a slice that a temporary already holds.

    Before::

        move.dram.reg t0, x[s]; ...; move.dram.reg t1, x[s]; unary.exp t2, t1

    After::

        move.dram.reg t0, x[s]; ...; unary.exp t2, t0

    Only for moves into temporaries that are written once, where nothing wrote to x in between, and
    from an iOp to those after it in the same body or in loops there.
    """
    writes: dict[str, int] = {}
    for iop, _ in walk_body(body):
        for piece in iop.targets:
            writes[str(piece.pointer.name)] = writes.get(str(piece.pointer.name), 0) + 1
    once = {str(t.name) for t in temporaries if writes.get(str(t.name)) == 1}
    return _walk(body, {}, once, {})


def _walk(
    body: Sequence[Any], held: dict[str, tuple[str, IPointer]], once: set[str], instead: dict[str, IPointer]
) -> list[Any]:
    """``held``: text of a source -> (its pointer's name, the temporary); ``instead``: dropped -> kept."""
    out: list[Any] = []
    for node in body:
        if isinstance(node, Loop):
            written = {str(s.pointer.name) for iop, _ in walk_body(node.body) for s in iop.targets}
            held = {text: entry for text, entry in held.items() if entry[0] not in written}
            out.append(Loop(node.var, node.extent, _walk(node.body, dict(held), once, instead), node.attrs))
            continue
        iop = repointed(node, instead)
        key = _key(iop, once)
        if key is not None and key in held:
            instead[str(iop.target.pointer.name)] = held[key][1]
            continue
        out.append(iop)
        for piece in iop.targets:
            name = str(piece.pointer.name)
            held = {text: entry for text, entry in held.items() if entry[0] != name}
        if key is not None:
            held[key] = (str(iop.sources[0].pointer.name), iop.target.pointer)
    return out


def _key(iop: IOp, once: set[str]) -> str | None:
    """What a move loads, as text; None for other iOps."""
    if iop.op != "move" or str(iop.target.pointer.name) not in once or iop.sources[0].pointer.level == "reg":
        return None
    source, target = iop.sources[0], iop.target
    return "|".join(
        str(part)
        for part in (
            source.pointer.name, source.offset, source.shape, source.stride, source.valid,
            target.shape, target.stride, target.valid, dict(iop.attrs),
        )
    )  # fmt: skip
