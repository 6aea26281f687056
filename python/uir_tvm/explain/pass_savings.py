# SPDX-License-Identifier: Apache-2.0
"""Which passes changed a kernel and what each saved: the comments above an optimised iGraph."""

from __future__ import annotations

import re

import attrs

#: A line above the text of an optimised iGraph: the pass, whether it was refused, what it changed or why.
_STEP = re.compile(r"#\s*([A-Za-z_]\w*): (?:(refused) \((.+)\)|(.+))")
_FIGURE = re.compile(r"(\w+) (\d+) -> (\d+)")


@attrs.frozen
class Figure:
    """A figure before and after: ``iops`` and ``syncs`` of a unit, dram ``bytes``, peaks of reg and sram."""

    name: str
    before: int
    after: int


@attrs.frozen
class PassEffect:
    """One pass that changed the kernel, and how; or (``refused``) whose result was not taken, and why."""

    name: str
    effect: str
    refused: bool = False

    @property
    def figures(self) -> tuple[Figure, ...]:
        """What changed, where it is told in figures."""
        found = _FIGURE.findall(self.effect) if not self.refused else []
        return tuple(Figure(name, int(before), int(after)) for name, before, after in found)


def pass_effects(text: str) -> tuple[PassEffect, ...]:
    """The passes named above the graph in the text of an optimised iGraph, in the order in which they ran."""
    found = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        step = _STEP.fullmatch(line.strip())
        if step is not None:
            found.append(PassEffect(step[1], step[3] or step[4], step[2] is not None))
    return tuple(found)
