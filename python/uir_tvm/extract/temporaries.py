# SPDX-License-Identifier: Apache-2.0
"""Few pointers for many temporaries: those whose lives do not meet share one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..igraph import IOp, IPointer, Loop
from .memory import Names
from .rename import repointed


class Pool:
    """The reg pointers that temporaries live in.

    Parameters
    ----------
    names : Names
    apart : bool
        Whether temporaries of a loop share none with what is around it: a pointer that is used inside a loop
        and outside counts as alive in all of the loop, which matters where reg is scarce.
    """

    def __init__(self, names: Names, apart: bool = False) -> None:
        self.names, self.apart = names, apart
        self.pointers: list[IPointer] = []
        self._free: dict[tuple[str, int, tuple[str, ...]], list[IPointer]] = {}

    def assign(self, nodes: Sequence[Any], temporaries: Sequence[IPointer]) -> list[Any]:
        """Give each temporary a pointer of its dtype and size.

        A temporary lives from the first iOp that names it to the last one, or to the end of the loop
        that the last one is in if it lives before that loop.  No iOp gets one pointer for its target
        and a source that dies there.
        """
        lives, homes = _lives(nodes, {str(t.name) for t in temporaries})
        chosen: dict[str, IPointer] = {}
        running: list[tuple[int, IPointer, tuple[str, ...]]] = []
        by_name = {str(t.name): t for t in temporaries}
        for name, (first, last) in sorted(lives.items(), key=lambda item: item[1]):
            for ended in [r for r in running if r[0] < first]:
                self._release(ended[1], ended[2])
                running.remove(ended)
            home = homes[name] if self.apart else ()
            chosen[name] = self._take(by_name[name], home)
            running.append((last, chosen[name], home))
        return [repointed(node, chosen) for node in nodes]

    def _take(self, like: IPointer, home: tuple[str, ...]) -> IPointer:
        free = self._free.setdefault((str(like.dtype), like.size, home), [])
        if free:
            return free.pop(0)
        pointer = IPointer(self.names.new(f"t_{like.dtype}"), "reg", like.dtype, like.size, "tmp")
        self.pointers.append(pointer)
        return pointer

    def _release(self, pointer: IPointer, home: tuple[str, ...]) -> None:
        self._free[(str(pointer.dtype), pointer.size, home)].insert(0, pointer)


def _lives(
    nodes: Sequence[Any], names: set[str]
) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[str, ...]]]:
    """(first, last) position of each name, with loops accounted for; and the loops around all of its uses."""
    lives: dict[str, tuple[int, int]] = {}
    homes: dict[str, tuple[str, ...]] = {}
    count = 0

    def visit(body: Sequence[Any], around: tuple[str, ...]) -> None:
        nonlocal count
        for node in body:
            if isinstance(node, Loop):
                begin = count
                visit(node.body, (*around, str(node.var)))
                for name, (first, last) in lives.items():
                    if first <= begin < last:
                        lives[name] = (first, count)
                continue
            count += 1
            for name in _names(node):
                if name in names:
                    lives[name] = (lives.get(name, (count, count))[0], count)
                    homes[name] = _common(homes.get(name, around), around)

    visit(nodes, ())
    return lives, homes


def _common(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    """The loops around both, outermost first."""
    return tuple(x for x, y in zip(a, b, strict=False) if x == y)


def _names(iop: IOp) -> Iterator[str]:
    for piece in iop.slices():
        yield str(piece.pointer.name)
