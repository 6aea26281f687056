# SPDX-License-Identifier: Apache-2.0
"""Importing this module loads TVM and the native library: what is built on them imports it first."""

from __future__ import annotations

from . import _native

_native.load()
