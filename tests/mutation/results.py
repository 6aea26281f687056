# SPDX-License-Identifier: Apache-2.0
"""What became of each fault, in a file that grows as they are judged: a run that was cut off goes on."""

from __future__ import annotations

import json
import os
import pathlib

import attrs


@attrs.define
class Results:
    """The verdicts on faults: the test that found each, empty where none did.

    Parameters
    ----------
    file : pathlib.Path
        Where they are kept.
    seed : int
        Of the draw.
    now : dict
        Verdicts by fault.
    first : dict
        Those of faults that were judged again since: what the tests found before.
    """

    file: pathlib.Path
    seed: int
    now: dict[str, str] = attrs.field(factory=dict)
    first: dict[str, str] = attrs.field(factory=dict)

    @classmethod
    def load(cls, file: pathlib.Path, seed: int) -> Results:
        """Those of a file; none where it does not exist."""
        if not file.exists():
            return cls(file, seed)
        kept = json.loads(file.read_text())
        return cls(file, seed, kept["now"], kept["first"])

    def add(self, fault: str, verdict: str) -> None:
        """Keep a verdict; the first one too, where it was another."""
        if fault in self.now:
            self.first.setdefault(fault, self.now[fault])
        self.now[fault] = verdict
        self._save()

    def forget(self, fault: str) -> None:
        """Drop a verdict that cannot be trusted: the fault is to be judged again."""
        del self.now[fault]
        self._save()

    def before(self, fault: str) -> str:
        """The first verdict on a fault."""
        return self.first.get(fault, self.now[fault])

    def _save(self) -> None:
        # a run that is killed while it writes leaves the last file whole
        whole = self.file.with_name(self.file.name + ".part")
        whole.write_text(json.dumps({"seed": self.seed, "now": self.now, "first": self.first}, indent=1))
        os.replace(whole, self.file)
