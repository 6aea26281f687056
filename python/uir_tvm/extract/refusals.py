# SPDX-License-Identifier: Apache-2.0
"""Refusals of extraction, worded alike."""

from __future__ import annotations

from typing import Any, NoReturn

from ..errors import ExtractionError


class NeedsSerialError(Exception):
    """A tile loop that a statement cannot carry as rows or columns; the planner makes it serial."""

    def __init__(self, loop: str) -> None:
        self.loop = loop
        super().__init__(loop)


def one_line(node: Any, width: int = 160) -> str:
    """A TIR node as one line, cut at ``width`` characters."""
    lines = [line for line in str(node).splitlines() if line and not line.lstrip().startswith("#")]
    text = " ".join(" ".join(lines).split())
    return text if len(text) <= width else text[: width - 3] + "..."


def refuse(what: str, block: str, node: Any = None, **parts: str) -> NoReturn:
    """Raise the `ExtractionError` of a block and one of its statements."""
    where = f"block '{block}'" if block else "outside of every block"
    if node is not None:
        where += f": {one_line(node)}"
    raise ExtractionError(what, where=where, **parts)
