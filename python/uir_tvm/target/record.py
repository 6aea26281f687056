# SPDX-License-Identifier: Apache-2.0
"""What a target is: one record, which its folder registers.

Everything that the compiler, the runtime, the tuner and the command line know of a target alone is a field.
Importing a record costs nothing: a field may name ``.module:NAME``, which is imported when it is first asked
for.  A target outside of this package registers in the same way, with objects or names of modules.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from .. import target_facts
from ..errors import TargetError
from ..toolkits import Toolkit

if TYPE_CHECKING:
    import tvm

    from .place import Place

#: An object, or ``module:NAME`` of one (``module`` alone: the module), relative to the record's package.
Part = Any


@attrs.frozen(eq=False)
class TargetRecord:
    """One target.

    Parameters
    ----------
    name : str
        As users write it.
    kind : str
        Kind of its hardware models, and the second key of its TVM targets.
    package : str
        The package to which names of parts are relative: ``__name__`` of its folder.
    rank : int
        Where it stands in lists.
    hardware : Part
        ``PRESETS``, ``DEFAULT`` and perhaps ``RATES`` (`uir_tvm.hardware.hardware_models`).
    passes : Part
        Name of a pass -> why it pays on this target, in the order in which they run.
    lower : Part
        ``lower(graph, prim_func)``: what the target makes of an iGraph, a TIR function or a `DeviceKernel`.
    places : Part
        Where its code runs, best first: `Place` rows.
    devices : tuple of str
        Names of those places that are none of a host model.
    space : Part
        How kernels are tiled (`uir_tvm.schedule.tile_facts.TileSpace`); None: as for a CPU.
    size_ranges : Part
        For which parts of their sizes kernels have variants (`uir_tvm.schedule.size_ranges.SizeRanges`);
        None: for none but those that a recipe names.
    product_space : Part
        How units share tiles of products, where they can
        (`uir_tvm.schedules.contraction.shared_product.ProductSpace`).
    attention_space : Part
        Tiles of attention in one kernel (`uir_tvm.schedules.attention.AttentionSpace`); None: as for a CPU.
    device : Part
        How its source text is compiled and launched (`uir_tvm.device.kind.DeviceKind`); None: it prints none.
    ahead : Part
        ``compile_ahead(records)``: code made while a model compiles, so that no first call waits for it.
    library : Part
        What its library computes (`uir_tvm.library.library_tables.LibraryTable`).
    library_cost : Part
        What that takes by a model (`uir_tvm.hardware.library_costs.LibraryCost`).
    load : Part
        A function that runs once in a process that runs kernels: it lets the native code find its libraries.
    accuracy : Part
        Function -> `uir_tvm.igraph.accuracy.Accuracy`, where it is not within what holds for all targets.
    machine : Part
        What its kernels take by a rough model: ``machine(hw, counts)`` (`uir_tvm.explain.analytic`).
    project : Part
        Projects that its toolkit builds (`uir_tvm.export.kinds.ProjectKind`).
    checks : Part
        Rows of ``uir doctor``: name -> a function that says what there is, or raises what is missing.
    toolkit : Toolkit, optional
        The vendor's toolkit, where texts are spelled by its version: an option of users, and an attribute
        that the printer reads.
    variables : mapping
        Variables of the environment that it reads -> what they mean.
    tanh_by_powers : bool
        Whether its tanh is made of exponentials: then a sigmoid takes fewer instructions.
    float_places : bool
        Whether its vectors compare floats alone: places are compared as such where these are exact.
    """

    name: str
    kind: str
    package: str
    hardware: Part
    pass_rows: Part = attrs.field(alias="passes")
    lower_with: Part = attrs.field(alias="lower")
    place_rows: Part = attrs.field(alias="places")
    devices: tuple[str, ...] = ()
    rank: int = 100
    space: Part = None
    size_ranges: Part = None
    product_space: Part = None
    attention_space: Part = None
    device: Part = None
    ahead: Part = None
    library: Part = None
    library_cost: Part = None
    load: Part = None
    accuracy: Part = attrs.field(factory=dict)
    machine: Part = None
    project: Part = None
    checks: Part = attrs.field(factory=dict)
    toolkit: Toolkit | None = None
    variables: Mapping[str, str] = attrs.field(factory=dict)
    tanh_by_powers: bool = False
    float_places: bool = False

    def fact(self, name: str) -> Any:
        """A field; one that names a module is what is found there."""
        value = getattr(self, name)
        return _found(value, self.package) if isinstance(value, str) and name in _PARTS else value

    @property
    def passes(self) -> tuple[str, ...]:
        """The passes that run for it by default, in order."""
        return tuple(self.fact("pass_rows"))

    @property
    def told(self) -> tuple[str, ...]:
        """Fields of `CompileOptions` that its printer reads: they become attributes of the graph."""
        return () if self.toolkit is None else (self.toolkit.option,)

    def lower(self, graph: Any, prim_func: Any = None) -> Any:
        """What the target makes of an iGraph: a TIR function, or a `DeviceKernel`."""
        return self.fact("lower_with")(graph, prim_func)

    @property
    def places(self) -> tuple[Place, ...]:
        """Where its code runs, best first."""
        return self.fact("place_rows")

    def place(self, device: str = "auto") -> Place:
        """The place of a name, or for ``auto`` the best one that this machine has.

        Raises
        ------
        TargetError
            The target has no such place.
        """
        from .place import choose

        return choose(self.places, device, self.name)

    def place_of(self, target: tvm.target.Target) -> Place:
        """The place that a TVM target of this record stands for."""
        for row in self.places:
            if row.stands_for(target):
                return row
        raise TargetError(
            f"{target} is for no place where {self.name} runs.",
            need="the kind " + " or ".join(dict.fromkeys(row.kind for row in self.places)),
            remedy=f'name it: target="{self.name}"',
        )

    def target(self, model: str | None = None, device: str = "auto") -> tvm.target.Target:
        """The TVM target for a hardware model (default: of the device found, else the kind's) at a place.

        Raises
        ------
        TargetError
            There is no such model or place.
        """
        import tvm

        from .. import hardware

        chosen = self.place(device)
        hw = hardware.get(model if model is not None else chosen.found(), self.kind)
        return tvm.target.Target(chosen.target_config(hw))


#: Fields that may name a part.
_PARTS = frozenset(
    field.name for field in attrs.fields(TargetRecord) if field.name not in ("name", "kind", "package")
)


@functools.cache
def _found(part: str, package: str) -> Any:
    module, _, name = part.partition(":")
    loaded = importlib.import_module(module, package)
    return getattr(loaded, name) if name else loaded


def register_target(record: TargetRecord) -> TargetRecord:
    """Enter a target; from now on it may be named wherever a target may.

    Raises
    ------
    ValueError
        Another target has its name or kind.
    """
    target_facts.add(record)
    return record
