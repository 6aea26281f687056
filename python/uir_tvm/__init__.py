# SPDX-License-Identifier: Apache-2.0
"""Unified IR on Apache TVM: one instruction-level graph IR, every accelerator."""

from __future__ import annotations

from . import _native

_native.load()
