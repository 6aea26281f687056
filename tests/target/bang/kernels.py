# SPDX-License-Identifier: Apache-2.0
"""Graphs for an MLU, printed and run on the host model beside the interpreter."""

from __future__ import annotations

from ..on_model import AS_WRITTEN, BANG

__all__ = ["AS_WRITTEN", "DEVICE", "PASSES", "check", "parse", "printed"]

DEVICE, PASSES = BANG.hardware, BANG.passes
parse, printed, check = BANG.parse, BANG.printed, BANG.check
