# SPDX-License-Identifier: Apache-2.0
"""Executables: call, report, save and load."""

from .bundle import load, look_at
from .executable import Executable
from .specialized import SpecializedExecutable

__all__ = ["Executable", "SpecializedExecutable", "load", "look_at"]
