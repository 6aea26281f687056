# SPDX-License-Identifier: Apache-2.0
"""What a pass did to a graph, as it is kept without the graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from .optimize import PassRecord


@attrs.frozen
class KeptStep:
    """A `PassRecord` as plain data.

    Attributes
    ----------
    name, changed, fault, rule
        As of the record.
    note : str
        How the figures changed.
    said : str
        The step in one line.
    """

    name: str
    changed: bool
    note: str
    fault: str
    rule: str
    said: str

    @staticmethod
    def of(step: PassRecord | KeptStep) -> KeptStep:
        """The plain data of a step."""
        if isinstance(step, KeptStep):
            return step
        told = step.to_json()
        return KeptStep(step.name, step.changed, told["note"], step.fault, step.rule, step.line())

    def to_json(self) -> dict[str, Any]:
        """As `PassRecord.to_json`."""
        return {"pass": self.name, "changed": self.changed, "note": self.note, "fault": self.fault}

    def line(self) -> str:
        """As `PassRecord.line`."""
        return self.said
