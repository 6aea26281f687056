# SPDX-License-Identifier: Apache-2.0
"""Which hardware model a schedule is written for."""

from __future__ import annotations

import tvm
from tvm.s_tir import Schedule

from .. import hardware as models
from ..errors import ScheduleError
from ..igraph import HardwareModel
from ..target_facts import kind_of


def hardware_for(sch: Schedule | None, hardware: HardwareModel | str | None) -> HardwareModel:
    """The model given, or of that name, or of the current target, or of this host."""
    if isinstance(hardware, HardwareModel):
        return hardware
    if isinstance(hardware, str):
        return models.get(hardware)
    return model_of_target(tvm.target.Target.current(allow_none=True))


def model_of_target(target: tvm.target.Target | None) -> HardwareModel:
    """The hardware model of a uir target: kind by its keys, name by what it says; else this host."""
    keys = [] if target is None else [str(key) for key in target.keys]
    if target is None or "uir" not in keys:
        return models.get()
    kind = kind_of(keys) or "cpu"
    return models.get(models.name_of(target, kind), kind)


def check_group(hw: HardwareModel, group_size: int, num_units: int | None = None) -> None:
    """Refuse sets of units that a group cannot be cut into.

    Parameters
    ----------
    num_units : int, optional
        The units of a group; default: all that the hardware has.

    Raises
    ------
    ScheduleError
        ``group_size`` does not divide their number.
    """
    units = hw.num_units if num_units is None else num_units
    if group_size < 1 or units % group_size:
        divisors = [d for d in range(1, units + 1) if units % d == 0]
        raise ScheduleError(
            f"A group of {hw.name} cannot be shared by {group_size} units.",
            need=f"group_size {group_size}",
            limit=f"{units} units in a group",
            remedy=f"use one of {divisors}",
        )
