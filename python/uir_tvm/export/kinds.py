# SPDX-License-Identifier: Apache-2.0
"""The table of projects: one fact of every target whose toolkit builds some."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import attrs

from ..target_facts import Facts

if TYPE_CHECKING:
    from .device_program import HostProgram


@attrs.frozen
class ProjectKind:
    """One kind of project.

    Parameters
    ----------
    target : str
        The target whose executables it takes.
    toolkit : str
        What builds it.
    texts : callable
        Name and text of every file but weights and data to check with.
    executables : frozenset of str
        Files that may be run.
    """

    target: str
    toolkit: str
    texts: Callable[[HostProgram], Iterator[tuple[str, str]]]
    executables: frozenset[str] = frozenset()


#: Kind of hardware -> its projects (`uir_tvm.target.record`).
PROJECTS: Mapping[str, ProjectKind] = Facts("project")
