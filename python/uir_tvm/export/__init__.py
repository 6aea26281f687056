# SPDX-License-Identifier: Apache-2.0
"""Compiled models as projects that a vendor's toolkit builds: kernels, a host program, weights.

`kinds.PROJECTS` is the table of projects, `write.write_project` writes one.
"""

from __future__ import annotations

from .kinds import PROJECTS, ProjectKind

__all__ = ["PROJECTS", "ProjectKind"]
