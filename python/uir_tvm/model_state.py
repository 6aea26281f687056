# SPDX-License-Identifier: Apache-2.0
"""State of a Relax module: tensors that a call of ``main`` reads and leaves changed for the next one."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import tvm
from tvm import relax

from .errors import FrontendError
from .state_spec import IN_PLACE, StateSpec

#: Attribute of a Relax module: its `StateEntry` records.
STATE = "uir.state"
#: In the place of a result: kernels of the module update the parameter where it is.
IN_KERNEL = -1


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
