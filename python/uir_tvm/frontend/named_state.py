# SPDX-License-Identifier: Apache-2.0
"""State of models that are functions: inputs whose next value is a result, named by the caller."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import tvm
from tvm import relax

from ..errors import FrontendError
from ..model_state import IN_KERNEL, StateEntry, with_state
from .relax_view import dtype_of, op_name, shape_of

#: Input -> the result that is its next value, by name or number; None: kernels update it where it is. True:
#: the names that exporters of decoders use.
Pairs = Mapping[str, str | int | None] | bool
#: How these names begin: of an input, of its result.
CONVENTIONS = (("past_key_values", "present_key_values"), ("past_key_values", "present"), ("past", "present"))


def named_state(mod: tvm.IRModule, pairs: Pairs, outputs: Sequence[str] = ()) -> tvm.IRModule:
    """A module whose ``main`` keeps inputs as state, which begins as zeros.

    Parameters
    ----------
    mod : tvm.IRModule
    pairs : mapping or True
    outputs : sequence of str
        The results' names; default: ``output0`` and so on.

    Raises
    ------
    FrontendError
        A name that is none, an input and a result of different shapes or dtypes, or an input that no kernel
        updates.
    """
    main = mod["main"]
    fields = list(main.ret_ty.fields) if isinstance(main.ret_ty, relax.TupleType) else [main.ret_ty]
    results = list(outputs) or [f"output{at}" for at in range(len(fields))]
    inputs = {param.name: at for at, param in enumerate(main.params)}
    entries = []
    for name, chosen in _named(pairs, list(inputs), results).items():
        at = inputs.get(name, inputs.get(_plain(name)))
        if at is None:
            raise _no(f"input {name!r}", list(inputs))
        param = main.params[at]
        if chosen is None:
            _check_updated(main, param, name)
            entries.append(StateEntry(name, at, IN_KERNEL, _zeros(param)))
            continue
        place = results.index(chosen) if chosen in results else chosen
        if not isinstance(place, int) or not 0 <= place < len(fields):
            raise _no(f"result {chosen!r}", results)
        _check_equal(name, param.ty, results[place], fields[place])
        entries.append(StateEntry(name, at, place, _zeros(param)))
    taken = [entry.output for entry in entries if entry.output != IN_KERNEL]
    if len(set(taken)) < len(taken):
        raise FrontendError(
            "one result is named as the next value of two inputs",
            need="a result for each",
            remedy="state={input: result} (--state INPUT=RESULT) with results of their own",
        )
    return with_state(mod, entries)


def pairs_by_name(
    pairs: Pairs, inputs: Sequence[str], outputs: Sequence[str]
) -> Mapping[str, str | int | None]:
    """Pairs of a model that leaves sizes open, whose shapes are only known when it is called.

    Raises
    ------
    FrontendError
        A name that is none, or no result for an input.
    """
    found = _named(pairs, inputs, outputs)
    for name, result in found.items():
        if name not in inputs:
            raise _no(f"input {name!r}", inputs)
        known = result in outputs if isinstance(result, str) else result in range(len(outputs))
        if not known:
            raise _no(f"result {result!r}", outputs)
    return found


def _named(pairs: Pairs, inputs: Sequence[str], results: Sequence[str]) -> Mapping[str, str | int | None]:
    """Pairs by name; those that are conventional where they are asked for."""
    if isinstance(pairs, Mapping):
        return pairs
    plain = {_plain(result): result for result in results}
    found = {
        name: plain[after + _plain(name)[len(before) :]]
        for before, after in reversed(CONVENTIONS)
        for name in inputs
        if name.startswith(before) and after + _plain(name)[len(before) :] in plain
    }
    if pairs and not found:
        raise FrontendError(
            "no input and result have the names of a decoder's past",
            need=" or ".join(f"{before}... and {after}..." for before, after in CONVENTIONS),
            limit=f"inputs {', '.join(inputs)}; results {', '.join(results)}",
            remedy="name them: state={input: result} (--state INPUT=RESULT)",
        )
    return found


def _plain(name: str) -> str:
    """A name as an identifier."""
    return re.sub(r"\W", "_", name)


def _no(what: str, names: Sequence[str]) -> FrontendError:
    return FrontendError(
        f"the model has no {what}", need="one of " + ", ".join(names), remedy="see `uir check MODEL`"
    )


def _check_equal(name: str, given: relax.TensorType, result: str, made: relax.TensorType) -> None:
    shapes = [[int(size) for size in each.shape] for each in (given, made)]
    dtypes = [str(each.dtype) for each in (given, made)]
    if shapes[0] != shapes[1] or dtypes[0] != dtypes[1]:
        raise FrontendError(
            f"the result {result!r} is no next value of the input {name!r}",
            need=f"{dtypes[0]}{shapes[0]}",
            limit=f"{dtypes[1]}{shapes[1]}",
            remedy="export the model with a cache of fixed length, into which it writes; one that grows with "
            "every call stays an input and a result",
        )


def _check_updated(main: relax.Function, param: relax.Var, name: str) -> None:
    """Some kernel updates the parameter itself."""
    for block in main.body.blocks:
        for binding in block.bindings:
            call = binding.value
            if op_name(call) != "call_tir_inplace":
                continue
            places = [int(at) for at in call.attrs.inplace_indices]
            if any(at >= 0 and call.args[1].fields[at].same_as(param) for at in places):
                return
    raise FrontendError(
        f"no kernel updates the input {name!r} in place",
        need=f"R.call_tir_inplace with {name} among the updated arguments",
        remedy="name the result that is its next value: state={input: result}",
    )


def _zeros(param: relax.Var) -> tvm.runtime.Tensor:
    import ml_dtypes  # noqa: F401  (NumPy then knows bfloat16 by its name)

    return tvm.runtime.tensor(np.zeros(shape_of(param) or (), np.dtype(dtype_of(param))))
