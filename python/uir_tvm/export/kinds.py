# SPDX-License-Identifier: Apache-2.0
"""The table of projects.  A new kind is a module beside this file, a folder of templates, and a row here."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from .host_program import HostProgram


@attrs.frozen
class ProjectKind:
    """One kind of project.

    Parameters
    ----------
    target : str
        The target whose executables it takes.
    toolkit : str
        What builds it.
    module : str
        The module beside this file that has ``texts(program)``.
    executables : frozenset of str
        Files that may be run.
    """

    target: str
    toolkit: str
    module: str
    executables: frozenset[str] = frozenset()

    def texts(self, program: HostProgram) -> Iterator[tuple[str, str]]:
        """Name and text of every file but weights and data to check with."""
        return importlib.import_module(f"{__package__}.{self.module}").texts(program)


#: Kind of hardware -> its projects.
PROJECTS: Mapping[str, ProjectKind] = {
    "ascend": ProjectKind("uir-ascend", "Ascend CANN", "ascend", frozenset({"run.sh"})),
    "bang": ProjectKind("uir-bang", "Cambricon Neuware", "bang", frozenset({"run.sh"})),
}
