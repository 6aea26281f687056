# SPDX-License-Identifier: Apache-2.0
"""What ``import tvm`` calls by itself once this package is installed (entry point group ``tvm.backends``)."""

from __future__ import annotations


def register() -> None:
    """Make the uir targets known to TVM and the primitives methods of its Schedule."""
    from . import _native

    _native.load()
    from .schedule.attach import attach
    from .target import integration

    attach()
    integration.register()
