# SPDX-License-Identifier: Apache-2.0
"""The command ``uir``: `command` has its groups; each command with options of its own has a module."""

from .command import compile_progress, main

__all__ = ["compile_progress", "main"]
