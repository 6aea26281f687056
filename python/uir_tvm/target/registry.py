# SPDX-License-Identifier: Apache-2.0
"""The table of targets.  A new target is a folder beside this file and one row here."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import tvm
from tvm import tirx

from .. import hardware
from ..errors import TargetError
from ..igraph import IGraph
from ..optimize.passes import PASSES

#: The key by which a TVM target is recognised as one of ours.
KEY = "uir"


@attrs.frozen
class TargetSpec:
    """One target.

    Parameters
    ----------
    name : str
        As users write it.
    kind : str
        Kind of hardware model, and the target's second key.
    package : str
        The folder under `uir_tvm.target`; defines ``lower(graph, prim_func)``.
    config : callable
        Hardware model -> configuration of the TVM target.
    without : Mapping[str, str]
        Passes that do not pay on it (see `uir_tvm.optimize.PASSES`), each with the reason.
    """

    name: str
    kind: str
    package: str
    config: Callable[[Any], dict[str, Any]]
    without: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def passes(self) -> tuple[str, ...]:
        """The passes that run for it by default, in order."""
        return tuple(row.name for row in PASSES if row.name not in self.without)

    def lower(self, graph: IGraph, prim_func: tirx.PrimFunc) -> Any:
        """What the target makes of an iGraph (on uir-cpu: a TIR function)."""
        return importlib.import_module(f"{__package__}.{self.package}").lower(graph, prim_func)

    def target(self, model: str | None = None) -> tvm.target.Target:
        """The TVM target for a hardware model (default: the kind's)."""
        return tvm.target.Target(self.config(hardware.get(model, self.kind)))


@attrs.frozen
class Resolved:
    """A target as the user named it."""

    name: str
    spec: TargetSpec
    target: tvm.target.Target


def _cpu_config(hw: Any) -> dict[str, Any]:
    return {
        "kind": "llvm",
        "keys": [KEY, "cpu"],
        "mcpu": str(hw.figures["mcpu"]),
        "num-cores": int(hw.num_groups),
        "model": str(hw.name),
    }


_CPU_WITHOUT = {
    "operands": "its products want operands packed in registers, at the dtype of their sums",
    "hoist": "its lowering reads operands through copies where they are used; a hoisted one needs memory",
    "widen": "it vectorises over rows of its own choice; wider moves cost 10 to 30 % on small kernels",
    "multibuffer": "a core has no engine that loads while it computes",
    "allocate": "LLVM places its buffers",
}

TARGETS: Mapping[str, TargetSpec] = {
    spec.name: spec for spec in (TargetSpec("uir-cpu", "cpu", "cpu", _cpu_config, _CPU_WITHOUT),)
}


def get(name: str) -> TargetSpec:
    """The target of that name.

    Raises
    ------
    TargetError
        There is none; the message lists what there is.
    """
    if name not in TARGETS:
        raise TargetError(
            f"There is no target '{name}'.", need="one of " + ", ".join(TARGETS), remedy="see `uir targets`"
        )
    return TARGETS[name]


def resolve(target: str | Mapping[str, Any] | tvm.target.Target) -> Resolved:
    """A target from its name, ``NAME:MODEL`` (a hardware model), or a TVM target with our keys.

    Raises
    ------
    TargetError
        An unknown target or hardware model.
    """
    if isinstance(target, str):
        name, _, model = target.partition(":")
        spec = get(name)
        return Resolved(target, spec, spec.target(model or None))
    if not isinstance(target, tvm.target.Target):
        target = tvm.target.Target(dict(target))
    spec = of_target(target)
    return Resolved(spec.name, spec, target)


def of_target(target: tvm.target.Target) -> TargetSpec:
    """The row of a TVM target.

    Raises
    ------
    TargetError
        It is not one of ours.
    """
    keys = [str(key) for key in target.keys]
    for spec in TARGETS.values():
        if KEY in keys and spec.kind in keys:
            return spec
    raise TargetError(
        f"{target} is no uir target.", need="one of " + ", ".join(TARGETS), remedy='name it: target="uir-cpu"'
    )


def is_ours(target: tvm.target.Target | None) -> bool:
    """Whether a target is for us to lower."""
    return target is not None and KEY in [str(key) for key in target.keys]


def describe() -> list[dict[str, str]]:
    """Rows of target, hardware models and what the default model is."""
    rows = []
    for spec in TARGETS.values():
        hw = hardware.get(None, spec.kind)
        rows.append(
            {
                "target": spec.name,
                "hardware models": ", ".join(hardware.names(spec.kind)),
                "default": f"{hw.name}: {hw.num_groups} groups x {hw.num_units} units, "
                f"{int(hw.reg_bytes) >> 10} KiB reg, {int(hw.sram_bytes) >> 10} KiB sram",
                "state": "ready",
            }
        )
    return rows


def describe_passes() -> list[dict[str, str]]:
    """Rows of pass, what it does, why it stands where it does, and the targets that leave it out."""
    return [
        {
            "pass": row.name,
            "does": row.summary,
            "order": row.reason,
            "left out by": "; ".join(
                f"{spec.name}: {spec.without[row.name]}"
                for spec in TARGETS.values()
                if row.name in spec.without
            ),
        }
        for row in PASSES
    ]
