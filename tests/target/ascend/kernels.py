# SPDX-License-Identifier: Apache-2.0
"""Graphs for a vector core, printed and run on the host model beside the interpreter."""

from __future__ import annotations

from ..on_model import AS_WRITTEN, ASCEND

__all__ = ["AS_WRITTEN", "DEVICE", "PASSES", "check", "parse", "printed"]

DEVICE, PASSES = ASCEND.hardware, ASCEND.passes
parse, printed, check = ASCEND.parse, ASCEND.printed, ASCEND.check
