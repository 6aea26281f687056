# SPDX-License-Identifier: Apache-2.0
"""The registry of hardware models: those of every registered target (`uir_tvm.target.record`).

A target's field ``hardware`` is a module, or any object, with

``PRESETS : Mapping[str, Callable[[], HardwareModel]]``
    A maker per model, called when the model is asked for (so that a model may be read from the machine).
``DEFAULT : str``
    The name that stands for the kind when the user names none.
``FURTHER : str``, optional
    Which names ``PRESETS`` takes beside those that it lists.
``name_of(target) -> str | None``, optional
    The model that a TVM target without a name of one stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import tvm

from ..errors import TargetError
from ..igraph.nodes import HardwareModel
from ..target_facts import Facts
from .rates import Rates


class Presets(Protocol):
    """The hardware models of one kind of target."""

    PRESETS: Mapping[str, Callable[[], HardwareModel]]
    DEFAULT: str


#: Figures that say which instructions a model's processor has, to LLVM.
INSTRUCTIONS = ("mcpu", "mattr", "machine")

#: Kind of target -> its hardware models.
PRESETS: Mapping[str, Presets] = Facts("hardware")


def kinds() -> list[str]:
    """The kinds of target that have hardware models, sorted."""
    return sorted(PRESETS)


def names(kind: str = "cpu") -> list[str]:
    """The models of a kind of target, in the order of its file.

    Raises
    ------
    TargetError
        The kind has no models.
    """
    return list(_table(kind))


def get(name: str | None = None, target_kind: str = "cpu") -> HardwareModel:
    """The hardware model of that name; None is the default of the kind.

    Raises
    ------
    TargetError
        No such kind or no such model; the message lists what there is.
    """
    table = _table(target_kind)
    name = name if name is not None else _module(target_kind).DEFAULT
    if name not in table:
        raise TargetError(
            f"There is no hardware model '{name}' for uir-{target_kind}.",
            where=f"hardware model '{name}'",
            need="one of " + ", ".join(filter(None, (*table, getattr(PRESETS[target_kind], "FURTHER", "")))),
            remedy="name one of these, or add it to the presets of the target",
        )
    return table[name]()


def name_of(target: tvm.target.Target, target_kind: str) -> str | None:
    """The model that a TVM target of a kind names; None: the kind's default."""
    name = str(target.attrs.get("model", ""))
    if name not in ("", "unknown"):
        return name
    derived: Callable[[tvm.target.Target], str | None] | None = getattr(_module(target_kind), "name_of", None)
    return None if derived is None else derived(target)


def with_instructions_of(hw: HardwareModel, machine: HardwareModel) -> HardwareModel:
    """A model with the instructions of another one, for which the code of a graph is compiled.

    A graph for longer vectors than the machine has is right there, in several vectors each, but not with
    instructions that the machine lacks.
    """
    kept = {name: value for name, value in hw.figures.items() if name not in INSTRUCTIONS}
    given = {name: machine.figures[name] for name in INSTRUCTIONS if name in machine.figures}
    sizes = (hw.num_groups, hw.num_units, hw.reg_bytes, hw.sram_bytes, hw.vector_bytes)
    return HardwareModel(hw.name, hw.kind, *sizes, {**kept, **given})


def assumed_figures(hw: HardwareModel) -> list[str]:
    """Names of the figures of a hardware model that nobody publishes, and that hold careful defaults."""
    return [str(name) for name in hw.figures.get("unknown", ())]


def _module(kind: str) -> Presets:
    if kind not in PRESETS:
        raise TargetError(
            f"There are no hardware models for the target kind '{kind}'.",
            where=f"target kind '{kind}'",
            need="one of " + ", ".join(kinds()),
            remedy="name one of these, or register a target of that kind (uir_tvm.target.record)",
        )
    return PRESETS[kind]


def _table(kind: str) -> Mapping[str, Callable[[], HardwareModel]]:
    return _module(kind).PRESETS


def rate_makers(target_kind: str) -> Mapping[str, Callable[[HardwareModel], Rates]]:
    """Makers of rates by the model's name (see `uir_tvm.hardware.rates`); none for an unknown kind."""
    return getattr(_module(target_kind), "RATES", {}) if target_kind in PRESETS else {}
