# SPDX-License-Identifier: Apache-2.0
"""State of a model: tensors that a call reads and leaves changed for the next one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import tvm
from tvm import relax

from .errors import FrontendError

#: Attribute of a Relax module: its `StateEntry` records.
STATE = "uir.state"
#: In the place of a result: kernels of the module update the parameter where it is.
IN_KERNEL = -1
#: How a tensor of the state gets its new value.
IN_PLACE, COPIED, UNCHANGED, GROWS = "in place", "copied", "unchanged", "grows"


@attrs.frozen(eq=False)
class StateEntry:
    """A tensor of the state in a Relax module.

    Attributes
    ----------
    name : str
        As the model calls it.
    parameter, output : int
        Places in ``main``: the parameter that has its value, the result that is its value after a call, or
        `IN_KERNEL`.
    initial : tvm.runtime.Tensor
        Its value before the first call.
    """

    name: str
    parameter: int
    output: int
    initial: tvm.runtime.Tensor


def with_state(mod: tvm.IRModule, entries: Sequence[StateEntry]) -> tvm.IRModule:
    """A module whose ``main`` has state."""
    if not entries:
        return mod
    return mod.with_attr(
        STATE,
        {
            "names": [each.name for each in entries],
            "parameters": [each.parameter for each in entries],
            "outputs": [each.output for each in entries],
            "initial": [relax.const(each.initial, str(each.initial.dtype)) for each in entries],
        },
    )


def state_of(mod: tvm.IRModule) -> tuple[StateEntry, ...]:
    """The state of a module, in the order of its entries."""
    found = dict(mod.attrs).get(STATE) if mod.attrs else None
    if found is None:
        return ()
    rows = zip(*(found[key] for key in ("names", "parameters", "outputs", "initial")), strict=True)
    return tuple(StateEntry(str(n), int(p), int(o), value.value) for n, p, o, value in rows)


def callers(mod: tvm.IRModule) -> tuple[list[str], int]:
    """The names of the parameters of ``main`` that a caller passes, and how many results he gets."""
    entries, main = state_of(mod), mod["main"]
    held = {each.parameter for each in entries}
    fields = len(main.ret_ty.fields) if isinstance(main.ret_ty, relax.TupleType) else 1
    new = sum(each.output != IN_KERNEL for each in entries)
    return [param.name for at, param in enumerate(main.params) if at not in held], fields - new


def held_last(mod: tvm.IRModule) -> tvm.IRModule:
    """A module of lowered calls, with the parameters behind all others that its kernels update as state."""
    entries, main = state_of(mod), mod["main"]
    if any(each.output != IN_KERNEL for each in entries):
        raise FrontendError(
            "a module that calls kernels keeps state in place alone",
            where=", ".join(each.name for each in entries if each.output != IN_KERNEL),
            need="parameters that R.call_tir_inplace updates",
            remedy="state={input: None}",
        )
    held = [main.params[each.parameter] for each in entries]
    others = [param for at, param in enumerate(main.params) if at not in {e.parameter for e in entries}]
    made = relax.Function([*others, *held], main.body, main.ret_ty, main.is_pure, main.attrs)
    return tvm.IRModule({**dict(mod.functions_items()), mod.get_global_var("main"): made}, attrs=mod.attrs)


def updated_specs(mod: tvm.IRModule) -> tuple[StateSpec, ...]:
    """The state of such a module; how much of it a call writes is its kernels' affair."""
    rows = [(each.name, each.initial) for each in state_of(mod)]
    return tuple(
        StateSpec(name, value.shape, str(value.dtype), IN_PLACE, written=value.numpy().nbytes)
        for name, value in rows
    )


def _shape(given: Iterable[int]) -> tuple[int, ...]:
    return tuple(given)


@attrs.frozen
class StateSpec:
    """What an executable says of a tensor of its state.

    Attributes
    ----------
    name, shape, dtype
        As the model calls and declares it.
    how : str
        ``in place``: a call writes what it changes, where it is. ``copied``: the new value, or the old one
        for what still reads it, is written elsewhere first. ``unchanged``. ``grows``: the new value is
        another tensor, which the next call is given.
    why : str
        Why something is copied; empty where nothing is.
    written, copied : int
        Bytes of the tensor that a call writes, and bytes that are written elsewhere for it.
    zeros : bool
        Whether it begins as zeros; a file then holds no initial value.
    """

    name: str
    shape: tuple[int, ...] = attrs.field(converter=_shape)
    dtype: str
    how: str
    why: str = ""
    written: int = 0
    copied: int = 0
    zeros: bool = True

    def __str__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        text = f"{self.name}: {self.dtype}[{shape}], {self.how}, writes {self.written} bytes a call"
        return text + (f", copies {self.copied} ({self.why})" if self.why else "")


def rows_of(specs: Sequence[StateSpec]) -> list[Mapping[str, Any]]:
    """The specs as plain data, for reports."""
    return [{**attrs.asdict(each), "shape": list(each.shape)} for each in specs]
