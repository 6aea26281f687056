# SPDX-License-Identifier: Apache-2.0
"""Few pointers for many temporaries: those whose lives do not meet share one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..igraph import IOp, IPointer, Loop
from .memory import Names
from .rename import repointed


class Pool:
    """The reg pointers that temporaries live in."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.pointers: list[IPointer] = []
        self._free: dict[tuple[str, int], list[IPointer]] = {}

    def assign(self, nodes: Sequence[Any], temporaries: Sequence[IPointer]) -> list[Any]:
        """Give each temporary a pointer of its dtype and size.

        A temporary lives from the first iOp that names it to the last one, or to the end of the loop
        that the last one is in if it lives before that loop.  No iOp gets one pointer for its target
        and a source that dies there.
        """
        lives = _lives(nodes, {str(t.name) for t in temporaries})
        chosen: dict[str, IPointer] = {}
        running: list[tuple[int, IPointer]] = []
        by_name = {str(t.name): t for t in temporaries}
        for name, (first, last) in sorted(lives.items(), key=lambda item: item[1]):
            for end, pointer in [r for r in running if r[0] < first]:
                self._release(pointer)
                running.remove((end, pointer))
            chosen[name] = self._take(by_name[name])
            running.append((last, chosen[name]))
        return [repointed(node, chosen) for node in nodes]

    def _take(self, like: IPointer) -> IPointer:
        free = self._free.setdefault((str(like.dtype), like.size), [])
        if free:
            return free.pop(0)
        pointer = IPointer(self.names.new(f"t_{like.dtype}"), "reg", like.dtype, like.size, "tmp")
        self.pointers.append(pointer)
        return pointer

    def _release(self, pointer: IPointer) -> None:
        self._free[(str(pointer.dtype), pointer.size)].insert(0, pointer)


def _lives(nodes: Sequence[Any], names: set[str]) -> dict[str, tuple[int, int]]:
    """(first, last) position of each name, with loops accounted for."""
    lives: dict[str, tuple[int, int]] = {}
    count = 0

    def visit(body: Sequence[Any]) -> None:
        nonlocal count
        for node in body:
            if isinstance(node, Loop):
                begin = count
                visit(node.body)
                for name, (first, last) in lives.items():
                    if first <= begin < last:
                        lives[name] = (first, count)
                continue
            count += 1
            for name in _names(node):
                if name in names:
                    lives[name] = (lives.get(name, (count, count))[0], count)

    visit(nodes)
    return lives


def _names(iop: IOp) -> Iterator[str]:
    for piece in iop.slices():
        yield str(piece.pointer.name)
