# SPDX-License-Identifier: Apache-2.0
"""The table of targets, and how a user's name or a target of TVM leads to one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import tvm

from .. import hardware, target_facts
from ..errors import TargetError
from ..hardware.machine_model import GraphCounts, MachineModel
from ..igraph import HardwareModel
from ..optimize.passes import FIRST, PASSES
from ..options import DEFAULT_TARGET
from .place import AUTO, Place
from .record import TargetRecord

#: The key by which a TVM target is recognised as one of ours.
KEY = "uir"


@attrs.frozen
class Resolved:
    """A target as the user named it."""

    name: str
    spec: TargetRecord
    target: tvm.target.Target


class _Targets(Mapping[str, TargetRecord]):
    """The registered targets by name, in the order of lists."""

    def __getitem__(self, name: str) -> TargetRecord:
        return target_facts.records()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(target_facts.records())

    def __len__(self) -> int:
        return len(target_facts.records())


TARGETS: Mapping[str, TargetRecord] = _Targets()
_MACHINES: target_facts.Facts[Callable[[HardwareModel, GraphCounts], MachineModel]] = target_facts.Facts(
    "machine"
)


def get(name: str) -> TargetRecord:
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
        Name of a place (`TargetRecord.places`) for a name; a TVM target says itself where it runs.

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


def _named(spec: TargetRecord, target: tvm.target.Target) -> str:
    """How a user would name a TVM target of a row: with the hardware model if it is not the default one."""
    model = hardware.name_of(target, spec.kind)
    default = str(hardware.get(None, spec.kind).name)
    return spec.name if model in (None, default) else f"{spec.name}:{model}"


def of_target(target: tvm.target.Target) -> TargetRecord:
    """The row of a TVM target.

    Raises
    ------
    TargetError
        It is not one of ours.
    """
    keys = [str(key) for key in target.keys]
    if KEY in keys and (kind := target_facts.kind_of(keys)) is not None:
        return next(spec for spec in TARGETS.values() if spec.kind == kind)
    raise TargetError(
        f"{target} is no uir target.",
        need="one of " + ", ".join(TARGETS),
        remedy=f'name it: target="{DEFAULT_TARGET}"',
    )


def place_of(target: tvm.target.Target) -> Place:
    """Where what is compiled for one of our targets runs."""
    return of_target(target).place_of(target)


def machine_of(hw: HardwareModel, counts: GraphCounts) -> MachineModel:
    """What analytic times of a graph on a hardware model are computed from.

    A GPU holds fewer units of many registers. Kinds without a machine are taken for processors.
    """
    kind = str(hw.kind)
    return _MACHINES[kind if kind in _MACHINES else get(DEFAULT_TARGET).kind](hw, counts)


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


def _unknown(spec: TargetRecord) -> str:
    """Figures of its hardware models that nobody publishes, by the first models that have them."""
    rows: dict[str, list[str]] = {}
    for name in hardware.names(spec.kind):
        for figure in hardware.assumed_figures(hardware.get(name, spec.kind)):
            rows.setdefault(figure, []).append(name)
    grouped: dict[str, list[str]] = {}
    for figure, models in rows.items():
        grouped.setdefault(", ".join(models), []).append(figure)
    return "; ".join(f"{models}: {', '.join(figures)}" for models, figures in grouped.items())


def _state(spec: TargetRecord) -> str:
    """Where the target's code runs on this machine, and why not at a better place."""
    chosen = spec.place()
    missing = [f"no {row.name}: {row.absent()}" for row in spec.places if row.absent()]
    return "; ".join([f"ready ({chosen.name})" if len(spec.places) > 1 else "ready", *missing])


def describe_passes() -> list[dict[str, str]]:
    """Rows of pass, what it does, why it stands where it does, and why it pays on which targets."""
    first = [
        {"pass": row.name, "does": row.summary, "order": row.reason, "pays on": "always run first"}
        for row in FIRST
    ]
    return first + [
        {
            "pass": row.name,
            "does": row.summary,
            "order": row.reason,
            "pays on": "; ".join(
                f"{name}: {record.fact('pass_rows')[row.name]}"
                for name, record in TARGETS.items()
                if row.name in record.passes
            ),
        }
        for row in PASSES
    ]
