# SPDX-License-Identifier: Apache-2.0
"""The table of targets.  A new target is a folder beside this file and one row here."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import attrs
import tvm
from tvm import tirx

from .. import hardware
from ..errors import TargetError
from ..igraph import IGraph
from ..optimize.passes import PASSES
from ..toolkits import CANN, CNCC
from .place import AUTO, Place, choose

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
    places : str or tuple of Place
        Where its code runs, best first; a string names the module that has them as ``PLACES``.
    without : Mapping[str, str]
        Passes that do not pay on it (see `uir_tvm.optimize.PASSES`), each with the reason.
    told : tuple of str
        Fields of `CompileOptions` that its printer reads: they become attributes of the graph.
    """

    name: str
    kind: str
    package: str
    _places: str | tuple[Place, ...] = attrs.field(alias="places")
    without: Mapping[str, str] = attrs.field(factory=dict)
    told: tuple[str, ...] = ()

    @property
    def passes(self) -> tuple[str, ...]:
        """The passes that run for it by default, in order."""
        return tuple(row.name for row in PASSES if row.name not in self.without)

    def lower(self, graph: IGraph, prim_func: tirx.PrimFunc) -> Any:
        """What the target makes of an iGraph (on uir-cpu: a TIR function)."""
        return importlib.import_module(f"{__package__}.{self.package}").lower(graph, prim_func)

    @property
    def places(self) -> tuple[Place, ...]:
        """Where its code runs, best first."""
        if isinstance(self._places, str):
            return importlib.import_module(f"{__package__}.{self._places}").PLACES
        return self._places

    def place(self, device: str = AUTO) -> Place:
        """The place of a name, or for ``auto`` the best one that this machine has.

        Raises
        ------
        TargetError
            The target has no such place.
        """
        return choose(self.places, device, self.name)

    def place_of(self, target: tvm.target.Target) -> Place:
        """The place that a TVM target of this row stands for."""
        return next(row for row in self.places if row.stands_for(target))

    def target(self, model: str | None = None, device: str = AUTO) -> tvm.target.Target:
        """The TVM target for a hardware model (default: of the device found, else the kind's) at a place.

        Raises
        ------
        TargetError
            There is no such model or place.
        """
        chosen = self.place(device)
        hw = hardware.get(model if model is not None else chosen.found(), self.kind)
        return tvm.target.Target(chosen.target_config(hw))


@attrs.frozen
class Resolved:
    """A target as the user named it."""

    name: str
    spec: TargetSpec
    target: tvm.target.Target


def _cpu_config(hw: Any) -> dict[str, Any]:
    return {
        "keys": [KEY, "cpu"],
        "mcpu": str(hw.figures["mcpu"]),
        "num-cores": int(hw.num_groups),
        "model": str(hw.name),
    }


_CPU_WITHOUT = {
    "pad": "its products take their bounds as they are",
    "matrix_unit": "a core multiplies in its own registers",
    "turn": "its lowering packs operands, in whatever order they lie",
    "operands": "its products want operands packed in registers, at the dtype of their sums",
    "hoist": "its lowering reads operands through copies where they are used; a hoisted one needs memory",
    "pitch": "its vectors load and store from any address",
    "widen": "it vectorises over rows of its own choice; wider moves cost 10 to 30 % on small kernels",
    "spread": "its lowering reads broadcast operands in place by itself",
    "separate": "no loop of it has stages",
    "multibuffer": "a core has no engine that loads while it computes",
    "allocate": "LLVM places its buffers",
}

_CUDA_WITHOUT = {
    "pitch": "a tile in reg is spread over the registers of lanes: it has no rows of bytes",
    "turn": "a tile in reg has the layout that its fragments have; loads take elements from anywhere",
    "matrix_unit": "tensor cores belong to the warp: they read registers and shared memory",
    "spread": "a broadcast value takes no registers of its own where it is used",
    "separate": "registers are named by the compiler: values in one pointer do not tie each other",
    "allocate": "registers have no addresses; the printer lays out shared memory, with swizzles and padding",
}

_ASCEND_WITHOUT = {
    "pad": "there is no sram in which units would stage tiles",
    "turn": "its cube cores turn operands on their way, in hardware",
}

_BANG_WITHOUT = {
    "matrix_unit": "a core multiplies what lies in its own memories; the printer stages right operands",
    "pitch": "vector functions and copies take rows from any address",
}

TARGETS: Mapping[str, TargetSpec] = {
    spec.name: spec
    for spec in (
        TargetSpec("uir-cpu", "cpu", "cpu", (Place("cpu", "llvm", "cpu", _cpu_config),), _CPU_WITHOUT),
        TargetSpec("uir-cuda", "cuda", "cuda", "cuda.places", _CUDA_WITHOUT),
        TargetSpec("uir-ascend", "ascend", "ascend", "ascend.places", _ASCEND_WITHOUT, told=(CANN.option,)),
        TargetSpec("uir-bang", "bang", "bang", "bang.places", _BANG_WITHOUT, told=(CNCC.option,)),
    )
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
            f"There is no target '{name}'.",
            need="TARGET or TARGET:HARDWARE, TARGET one of " + ", ".join(TARGETS),
            limit="a target takes no options" if name.partition(" ")[0] in TARGETS else "",
            remedy="see `uir targets`",
        )
    return TARGETS[name]


def resolve(target: str | Mapping[str, Any] | tvm.target.Target, device: str = AUTO) -> Resolved:
    """A target from its name, ``NAME:MODEL`` (a hardware model), or a TVM target with our keys.

    Parameters
    ----------
    device : str
        Name of a place (`TargetSpec.places`) for a name; a TVM target says itself where it runs.

    Raises
    ------
    TargetError
        An unknown target, hardware model or place.
    """
    if isinstance(target, str):
        name, _, model = target.partition(":")
        spec = get(name)
        made = spec.target(model or None, device)
        return Resolved(target if model else _named(spec, made), spec, made)
    if not isinstance(target, tvm.target.Target):
        target = tvm.target.Target(dict(target))
    spec = of_target(target)
    return Resolved(_named(spec, target), spec, target)


def _named(spec: TargetSpec, target: tvm.target.Target) -> str:
    """How a user would name a TVM target of a row: with the hardware model if it is not the default one."""
    model = str(target.attrs.get("model", ""))
    default = str(hardware.get(None, spec.kind).name)
    return spec.name if model in ("", "unknown", default) else f"{spec.name}:{model}"


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


def place_of(target: tvm.target.Target) -> Place:
    """Where what is compiled for one of our targets runs."""
    return of_target(target).place_of(target)


def host_of(target: tvm.target.Target) -> tvm.target.Target:
    """The LLVM target for which the host's part of what is compiled for a target is."""
    if target.kind.name == "llvm":
        return target
    return tvm.target.Target("llvm") if target.host is None else target.host


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
                "unknown figures": _unknown(spec),
                "state": _state(spec),
            }
        )
    return rows


def _unknown(spec: TargetSpec) -> str:
    """Figures of its hardware models that nobody publishes, by the first models that have them."""
    rows: dict[str, list[str]] = {}
    for name in hardware.names(spec.kind):
        for figure in hardware.assumed_figures(hardware.get(name, spec.kind)):
            rows.setdefault(figure, []).append(name)
    grouped: dict[str, list[str]] = {}
    for figure, models in rows.items():
        grouped.setdefault(", ".join(models), []).append(figure)
    return "; ".join(f"{models}: {', '.join(figures)}" for models, figures in grouped.items())


def _state(spec: TargetSpec) -> str:
    """Where the target's code runs on this machine, and why not at a better place."""
    chosen = spec.place()
    missing = [f"no {row.name}: {row.absent()}" for row in spec.places if row.absent()]
    return "; ".join([f"ready ({chosen.name})" if len(spec.places) > 1 else "ready", *missing])


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
