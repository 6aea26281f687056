# SPDX-License-Identifier: Apache-2.0
"""Where a target's code runs: on the CPU, on a device, or on the device's host model."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import tvm

from ..errors import TargetError
from ..igraph.nodes import HardwareModel

log = logging.getLogger(__name__)
#: Notices that were said already.
_said: set[str] = set()

#: The place of a device's host model.
MODEL = "model"
#: The choice that is made by what there is on this machine.
AUTO = "auto"


def _present() -> str:
    return ""


def _able(_hw: HardwareModel) -> str:
    return ""


@attrs.frozen
class Away:
    """How candidates are measured at a place that no network reaches (`uir_tvm.export.batch_runner`).

    Parameters
    ----------
    runner : str
        Module of the runner that measures them there.
    what : str
        What must be there, for people.
    facts : callable
        What the runner must know of the target.
    compiled : callable, optional
        A `DeviceKernel` -> its machine code and how to launch it, where candidates are compiled here.
    build_seconds : float
        That building a candidate there may take.
    """

    runner: str
    what: str
    facts: Callable[[], Mapping[str, Any]] = dict
    compiled: Callable[[Any], tuple[bytes, Mapping[str, Any]]] | None = None
    build_seconds: float = 120.0


#: The machine that measures compiles, by this package.
SAME_VERSION = Away("batch_jobs", "a machine with this version of uir_tvm")


@attrs.frozen
class Place:
    """One row of a target's table of places.

    Parameters
    ----------
    name : str
        As users write it: ``cpu``, ``gpu``, ``npu``, ``mlu`` or ``model``.
    kind : str
        Kind of the TVM target that stands for it.
    device : str
        Name of the TVM device on which tensors lie.
    config : callable
        Hardware model -> the rest of the TVM target's configuration.
    absent : callable
        Why there is no such place on this machine; empty where there is.
    found : callable
        Name of the hardware model of what is there; None where that does not depend on the machine.
    notice : str
        What a user of the place should know.
    key : str
        Key of the TVM target that tells the place from others of its kind; empty where its kind does.
    captures : bool
        Whether launches go to a stream, which can be captured and replayed
        (`uir_tvm.kernel_graph.cuda_graph`).
    toolchain : callable
        What compiles code for the place, with its version: times are true of it. A host model's time does
        not depend on a compiler.
    away : Away
    unable : callable
        Hardware model -> what this machine lacks to run code for it; empty where that is nothing.
    """

    name: str
    kind: str
    device: str
    config: Callable[[HardwareModel], Mapping[str, Any]]
    absent: Callable[[], str] = _present
    found: Callable[[], str | None] = lambda: None
    notice: str = ""
    key: str = ""
    captures: bool = False
    toolchain: Callable[[], str] = lambda: "host model"
    away: Away = SAME_VERSION
    unable: Callable[[HardwareModel], str] = _able

    def say(self) -> None:
        """Say once in a process what is to be said of this place."""
        if self.notice and self.notice not in _said:
            _said.add(self.notice)
            log.warning(self.notice)

    def target_config(self, hw: HardwareModel) -> dict[str, Any]:
        """The configuration of the TVM target that stands for a hardware model here."""
        return {"kind": self.kind, **self.config(hw)}

    def stands_for(self, target: tvm.target.Target) -> bool:
        """Whether a TVM target of the place's own uir target names this place."""
        keys = [str(key) for key in target.keys]
        return self.kind == str(target.kind.name) and (not self.key or self.key in keys)


def choose(places: Sequence[Place], name: str, target: str) -> Place:
    """The place of that name; for ``auto`` the first one that this machine has, or the last.

    Raises
    ------
    TargetError
        The target has no such place.
    """
    if name == AUTO:
        return next((place for place in places if not place.absent()), places[-1])
    for place in places:
        if place.name == name:
            return place
    raise TargetError(
        f"{target} does not run on '{name}'.",
        where="CompileOptions.device, --device or UIR_DEVICE",
        need="one of " + ", ".join([AUTO, *(place.name for place in places)]),
    )
