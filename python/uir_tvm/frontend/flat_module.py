# SPDX-License-Identifier: Apache-2.0
"""A Relax module as one function of tensors: its entry, without calls of others and without nested tuples."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import tvm
from tvm import relax

from ..errors import FrontendError
from ..function_scope import function_scope
from ..structure import STRUCTURE, Parameter, Structure, Tree

#: Functions within functions.
DEEPEST = 64


def flat_module(mod: tvm.IRModule, entry: str = "main") -> tvm.IRModule:
    """One function ``main`` of tensors that computes what an entry function does.

    Parameters
    ----------
    mod : tvm.IRModule
        Its Relax functions may call each other, and take and return tuples.
    entry : str
        The function that is compiled.

    Returns
    -------
    tvm.IRModule
        ``main`` and the module's PrimFuncs. Where the entry takes or returns nested tuples, the attribute
        `uir_tvm.structure.STRUCTURE` says how, so that an executable is called as the entry is. The module
        itself where there is nothing to do.

    Raises
    ------
    FrontendError
        There is no such Relax function, or it calls itself.
    """
    functions = {gvar.name_hint: function for gvar, function in mod.functions.items()}
    others = [name for name, f in functions.items() if isinstance(f, relax.Function) and name != entry]
    if not isinstance(functions.get(entry), relax.Function):
        raise FrontendError(
            f"The module has no Relax function {entry!r}.",
            need=f"a Relax function named {entry}",
            limit="it has " + (", ".join(functions) or "no function"),
            remedy="name one of its Relax functions by entry=, or pass a PrimFunc by itself",
        )
    function = _inlined(mod, entry, others)
    nested = any(isinstance(param.ty, relax.TupleType) for param in function.params)
    nested = nested or any(isinstance(field, relax.TupleType) for field in fields_of(function.ret_ty))
    if entry == "main" and not others and not nested:
        return mod
    kept = {gvar: f for gvar, f in mod.functions.items() if not isinstance(f, relax.Function)}
    main = function.with_attr("global_symbol", "main")
    made = tvm.IRModule({**kept, tvm.ir.GlobalVar("main"): main}, attrs=mod.attrs)
    return _without_tuples(made) if nested else made


def fields_of(kind: Any) -> list[Any]:
    """The types in a tuple's; of another, itself."""
    return list(kind.fields) if isinstance(kind, relax.TupleType) else [kind]


def _inlined(mod: tvm.IRModule, entry: str, others: list[str]) -> relax.Function:
    """The entry with the bodies of what it calls."""
    function, bodies = mod[entry], {name: mod[name] for name in others}
    for _ in range(DEEPEST):
        called = {name: body for name, body in bodies.items() if _calls(function, name)}
        if entry in _called(function):
            break
        if not called:
            return function
        function = function.inline_functions(called)
    raise FrontendError(
        f"The Relax function {entry!r} calls itself, or functions more than {DEEPEST} deep.",
        need="functions that do not call themselves",
        remedy="unroll the recursion",
    )


def _called(function: relax.Function) -> set[str]:
    found: set[str] = set()

    def visit(expr: Any) -> None:
        if isinstance(expr, tvm.ir.Call) and isinstance(expr.op, tvm.ir.GlobalVar):
            found.add(expr.op.name_hint)

    relax.analysis.post_order_visit(function, visit)
    return found


def _calls(function: relax.Function, name: str) -> bool:
    return name in _called(function)


def _without_tuples(mod: tvm.IRModule) -> tvm.IRModule:
    """``main`` of the tensors in its tuples, with the structure of its calls."""
    inner = mod["main"]
    params: list[relax.Var] = []
    parameters, nested = [], []
    for param in inner.params:
        leaves: list[relax.Var] = []
        value = _opened(param.ty, param.name, leaves)
        first = len(params)
        parameters.append(Parameter(param.name, _tree(param.ty, iter(range(first, first + len(leaves))))))
        params += leaves
        nested.append(value)
    builder = relax.BlockBuilder()
    called = builder.add_func(inner.without_attr("global_symbol"), "inner")
    with function_scope(builder, "flat", params, None):
        with builder.dataflow():
            result = builder.emit(relax.Call(called, nested))
            output = builder.emit_output(relax.Tuple(list(_leaves(result, inner.ret_ty))))
        builder.emit_func_output(output)
    made = builder.get()
    function = made["flat"].inline_functions({"inner": inner}).with_attr("global_symbol", "main")
    count = sum(1 for _ in _leaves(result, inner.ret_ty))
    structure = Structure(tuple(parameters), _tree(inner.ret_ty, iter(range(count))))
    kept = {gvar: f for gvar, f in mod.functions.items() if gvar.name_hint != "main"}
    flat = tvm.IRModule({**kept, tvm.ir.GlobalVar("main"): function}, attrs=mod.attrs)
    steps = [
        relax.transform.Normalize(),
        relax.transform.ConvertToDataflow(),
        relax.transform.CanonicalizeBindings(),
        relax.transform.DeadCodeElimination(),
    ]
    return tvm.ir.transform.Sequential(steps)(flat).with_attr(STRUCTURE, json.dumps(structure.to_json()))


def _opened(kind: Any, name: str, leaves: list[relax.Var]) -> Any:
    """A value of a type, of new variables for its tensors."""
    if isinstance(kind, relax.TupleType):
        return relax.Tuple([_opened(field, f"{name}_{i}", leaves) for i, field in enumerate(kind.fields)])
    leaves.append(relax.Var(name, kind))
    return leaves[-1]


def _leaves(value: Any, kind: Any) -> Iterator[Any]:
    if isinstance(kind, relax.TupleType):
        for place, field in enumerate(kind.fields):
            yield from _leaves(relax.TupleGetItem(value, place), field)
    else:
        yield value


def _tree(kind: Any, numbers: Iterator[int]) -> Tree:
    if isinstance(kind, relax.TupleType):
        return {"tuple": [_tree(field, numbers) for field in kind.fields]}
    return {"tensor": next(numbers)}
