# SPDX-License-Identifier: Apache-2.0
"""What ``import tvm`` calls by itself once this package is installed (entry point group ``tvm.backends``)."""

from __future__ import annotations

from collections.abc import Callable

from .one_at_a_time import one_at_a_time


@one_at_a_time
def register() -> None:
    """Make the uir targets known to TVM and the primitives methods of its Schedule.

    The native code also learns here where the CPU's matrix library lies: a program that only loads compiled
    models must find it too.
    """
    import tvm_ffi

    from . import _native, environment

    _native.load()
    from .device import compilers
    from .library import cpu
    from .target_facts import Facts

    cpu.locate()
    for load in Facts[Callable[[], None]]("load").values():
        load()
    compilers.register()
    tvm_ffi.get_global_func("uir.runtime.ext_dev.prefer")(_ext_dev(environment.device()))
    if _native.runtime_only():
        # what compiled models need is there; TVM's compiler, and with it targets and schedules, is not
        return
    from . import integration
    from .schedule import tuned
    from .schedule.attach import attach

    attach()
    integration.register()
    tuned.look_up_by(f"{__package__}.tune.apply:tuned_schedule")


def _ext_dev(device: str) -> str:
    """What ``ext_dev`` is to be for a place: a GPU is another device, and leaves it free."""
    return device if device in ("npu", "mlu", "model") else "auto"
