# SPDX-License-Identifier: Apache-2.0
"""Executables: call, report, save and load."""

from .artifact import load
from .executable import Executable

__all__ = ["Executable", "load"]
