# SPDX-License-Identifier: Apache-2.0
"""Faults in emitted text: each kind finds its places in the kernels and changes one of them.

A fault is (line, what, text).  Only the kernels are changed, not the helpers before them.  The kinds of a
target are a `FaultTable`: `cuda_faults` and its neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

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


#: What stands between the parentheses of a call, whose arguments may hold calls.
_INSIDE = r"[^()]*"
for _ in range(4):
    _INSIDE = rf"(?:[^()]|\({_INSIDE}\))*"


def call(name: str) -> str:
    """Pattern of a call of what the pattern ``name`` fits; the group ``inside`` holds its arguments."""
    return rf"(?<![\w.]){name}(?:<[^()]*?>)?\((?P<inside>{_INSIDE})\)"


def arguments(inside: str) -> list[str]:
    """The arguments of a call, from what stands between its parentheses."""
    found, depth = [""], 0
    for letter in inside:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [argument.strip() for argument in found]


#: The places of arguments among all, negative from the end.
Which = int | Callable[[list[str]], int | None]


def argument(which: Which, *changes: Callable[[str], str | None]) -> Edit:
    """Change one argument of a `call`; a change that gives None does not apply."""

    def edit(match: re.Match[str]) -> Iterator[str]:
        given = arguments(match["inside"])
        at = which(given) if callable(which) else which
        if at is None or not -len(given) <= at < len(given):
            return
        start, end = match.start("inside") - match.start(), match.end("inside") - match.start()
        for change in changes:
            if (stands := change(given[at])) is not None:
                changed = ", ".join([*given[:at], stands, *(given[at:][1:])])
                yield match[0][:start] + changed + match[0][end:]

    return edit


def text(expression: str) -> Callable[[str], str]:
    """A change to an expression that holds the argument as ``{}``; a number becomes another number."""

    def change(given: str) -> str:
        written = expression.replace("{}", given if re.fullmatch(r"\w+", given) else f"({given})")
        known = re.fullmatch(r"[\d+*/ -]+", written)
        return str(eval(written.replace("/", "//"))) if known else written

    return change


#: (source, report of the printer) -> line, what was done, the text with one sync changed wherever it stands.
Everywhere = Callable[[str, Mapping[str, Any]], Iterator[tuple[int, str, str]]]


@attrs.frozen
class FaultTable:
    """The kinds of fault of a target's text.

    Parameters
    ----------
    begin : str
        How the first kernel begins; before it are helpers.
    barriers, values : mapping
        Kind -> (pattern of the place, what may stand there): what orders accesses, and all else.
    syncs : mapping
        Kind -> how a sync of several lines is changed in all of them.
    """

    begin: str
    barriers: Mapping[str, tuple[str, Edit]]
    values: Mapping[str, tuple[str, Edit]]
    syncs: Mapping[str, Everywhere] = attrs.field(factory=dict)

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds."""
        return (*self.syncs, *self.barriers, *self.values)

    @property
    def orders(self) -> frozenset[str]:
        """Kinds that change nothing but order: where nobody misses it, what stood there is needless."""
        return frozenset((*self.syncs, *self.barriers))

    def faults(self, source: str, kind: str, report: Mapping[str, Any] | None = None) -> Iterator[TextFault]:
        """All texts with one fault of a kind; kinds of `syncs` need the printer's report."""
        if kind in self.syncs:
            for line, what, changed in self.syncs[kind](source, report or {}):
                yield TextFault(kind, line, what, changed, True)
            return
        pattern, edit = {**self.barriers, **self.values}[kind]
        begin = source.index(self.begin)
        for match in re.finditer(pattern, source[begin:], re.MULTILINE):
            start, end = begin + match.start(), begin + match.end()
            line_begin = source.rfind("\n", 0, start) + 1
            if source[line_begin:start].lstrip().startswith("//"):
                continue
            line = source.count("\n", 0, start) + 1
            for stands in edit(match):
                if stands == match[0]:
                    continue
                shown = f"{match[0].strip()} -> {stands.strip() or 'nothing'}"
                changed = source[:start] + stands + source[end:]
                yield TextFault(kind, line, shown, changed, kind in self.barriers)
