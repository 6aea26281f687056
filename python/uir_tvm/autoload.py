# SPDX-License-Identifier: Apache-2.0
"""What ``import tvm`` calls by itself once this package is installed (entry point group ``tvm.backends``)."""

from __future__ import annotations


def register() -> None:
    """Make the uir targets known to TVM and the primitives methods of its Schedule.

    The native code also learns here where the CPU's matrix library lies: a program that only loads compiled
    models must find it too.
    """
    from . import _native

    _native.load()
    from .device import compilers
    from .library import cpu

    cpu.locate()
    compilers.register()
    if _native.runtime_only():
        # what compiled models need is there; TVM's compiler, and with it targets and schedules, is not
        return
    from .schedule.attach import attach
    from .target import integration

    attach()
    integration.register()
