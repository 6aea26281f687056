# SPDX-License-Identifier: Apache-2.0
"""Faults in emitted text: each kind finds its places in the kernels and changes one of them.

A fault is (line, what, text).  Only the kernels are changed, not the helpers before them.  The kinds of a
target are a `FaultTable`: `cuda_faults` and its neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import attrs


@attrs.frozen
class TextFault:
    """One changed place: its line in the text (from 1), what was done, and the whole changed text.

    ``barrier`` says that what changed only orders accesses: where nobody misses it, it is needless.
    """

    kind: str
    line: int
    what: str
    source: str
    barrier: bool


#: What may stand for a match of a pattern; "" drops it.
Edit = Callable[[re.Match[str]], Iterator[str]]


def drop(match: re.Match[str]) -> Iterator[str]:
    """Nothing."""
    yield ""


def replace(*texts: str) -> Edit:
    """Texts, with groups of the match."""
    return lambda match: (match.expand(text) for text in texts)


def number(group: int, *changes: Callable[[int], int]) -> Edit:
    """Change the number in a group of the match."""

    def edit(match: re.Match[str]) -> Iterator[str]:
        begin, end = match.start(group) - match.start(), match.end(group) - match.start()
        value = int(match[group])
        for change in changes:
            if change(value) != value:
                yield match[0][:begin] + str(change(value)) + match[0][end:]

    return edit


@attrs.frozen
class FaultTable:
    """The kinds of fault of a target's text.

    Parameters
    ----------
    begin : str
        How the first kernel begins; before it are helpers.
    barriers, values : mapping
        Kind -> (pattern of the place, what may stand there): what orders accesses, and all else.
    """

    begin: str
    barriers: Mapping[str, tuple[str, Edit]]
    values: Mapping[str, tuple[str, Edit]]

    @property
    def kinds(self) -> Mapping[str, tuple[str, Edit]]:
        """All kinds."""
        return {**self.barriers, **self.values}

    def faults(self, source: str, kind: str) -> Iterator[TextFault]:
        """All texts with one fault of a kind."""
        pattern, edit = self.kinds[kind]
        begin = source.index(self.begin)
        for match in re.finditer(pattern, source[begin:], re.MULTILINE):
            start, end = begin + match.start(), begin + match.end()
            line_begin = source.rfind("\n", 0, start) + 1
            if source[line_begin:start].lstrip().startswith("//"):
                continue
            line = source.count("\n", 0, start) + 1
            for text in edit(match):
                if text == match[0]:
                    continue
                shown = f"{match[0].strip()} -> {text.strip() or 'nothing'}"
                changed = source[:start] + text + source[end:]
                yield TextFault(kind, line, shown, changed, kind in self.barriers)
