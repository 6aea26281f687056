# SPDX-License-Identifier: Apache-2.0
"""Barriers between the units of a group that share sram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..igraph import IOp, ISlice, Loop, make

_Accesses = dict[str, set[str]]


def synchronise(body: Sequence[Any]) -> list[Any]:
    """Insert ``sync.sram`` where an iOp touches sram that another unit may have touched.

    Two accesses of one pointer conflict unless both read.  A barrier orders everything before it, so
    one suffices for all pointers.  In a loop the accesses of its end meet those of its beginning.
    """
    out, _ = _walk(body, {})
    return out


def _walk(body: Sequence[Any], open_: _Accesses) -> tuple[list[Any], _Accesses]:
    out: list[Any] = []
    for node in body:
        if isinstance(node, Loop):
            before = _accesses(node.body)
            entry = {name: open_.get(name, set()) | before.get(name, set()) for name in {*open_, *before}}
            inner, left = _walk(node.body, entry)
            out.append(Loop(node.var, node.extent, inner, node.attrs))
            open_ = left
            continue
        mine = _accesses([node])
        clash = [name for name, kinds in mine.items() if _conflict(open_.get(name, set()), kinds)]
        if clash:
            pointer = next(piece.pointer for piece in node.slices() if piece.pointer.name == clash[0])
            whole = ISlice(pointer, 0, (1, pointer.size))
            out.append(make.sync(whole, whole, "sram"))
            open_ = {}
        for name, kinds in mine.items():
            open_ = {**open_, name: open_.get(name, set()) | kinds}
        out.append(node)
    return out, open_


def _conflict(before: set[str], now: set[str]) -> bool:
    return bool(before and now) and ("write" in before or "write" in now)


def _accesses(body: Sequence[Any]) -> _Accesses:
    found: _Accesses = {}
    for node in body:
        if isinstance(node, Loop):
            for name, kinds in _accesses(node.body).items():
                found.setdefault(name, set()).update(kinds)
            continue
        _note(node, found)
    return found


def _note(iop: IOp, found: _Accesses) -> None:
    for kind, pieces in (("write", iop.targets), ("read", iop.sources)):
        for piece in pieces:
            if piece.pointer.level == "sram":
                found.setdefault(str(piece.pointer.name), set()).add(kind)
