# SPDX-License-Identifier: Apache-2.0
"""The machine code of a model's kernels in a few modules, made by as many threads.

TVM gives LLVM all functions for the host as one module, which one thread compiles, and once more one when a
function is first asked for.  The kernels of a model do not call each other: they are compiled side by side,
and the modules imported by the first of them, where TVM finds them by name.  A module is optimised as far as
its functions ask for (`LLVM_LEVEL`): vectors and the order of loops are chosen before LLVM sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import attrs
import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir.transform import PassContext
from tvm_ffi.structural import WalkResult, structural_walk

from .. import environment
from ..argument_checks import is_called_by_a_program
from ..function_attributes import LLVM_LEVEL

#: What TVM makes machine code by, and the kind of the modules.
BUILD, LLVM = "target.build.llvm", "llvm"
#: What TVM puts before the names of functions in machine code.
PREFIX = "__tvm_ffi_"
#: What names of calls begin with that ask for another function, of the module or of those that it imports.
ASKING = "tirx.tvm_call_"
#: Calls and stores of a part that is worth a module of its own: what every module has takes some 6 ms.
WORTH = 300
#: The level of LLVM's optimisation of what asks for none, and TVM's name of it.
FULL, OPTION = 3, "opt-level"

_registered = False


@attrs.frozen
class _Function:
    """A function for the host, how much there is of it, and how far it is optimised."""

    variable: tvm.ir.GlobalVar
    function: tirx.PrimFunc
    weight: int
    level: int


def register() -> None:
    """Let TVM make the code of models in parts (idempotent)."""
    global _registered
    stock = None if _registered else tvm_ffi.get_global_func(BUILD, allow_missing=True)
    if stock is None:
        return
    _registered = True

    def build(mod: tvm.IRModule, target: tvm.target.Target) -> tvm_ffi.Module:
        return _built(mod, target, stock)

    tvm_ffi.register_global_func(BUILD, build, override=True)


def make_ready(library: tvm_ffi.Module) -> None:
    """Let the parts of a library be compiled to the end side by side, before a function is asked for.

    Parameters
    ----------
    library : tvm_ffi.Module
        With what it imports; of what was loaded from a file, nothing is left to do.
    """
    parts = list(_parts_of(library))
    if parts:
        _together(_first_function, parts)


def _built(mod: tvm.IRModule, target: tvm.target.Target, stock: Callable[..., Any]) -> tvm_ffi.Module:
    """The code of a module for the host, by TVM's own function."""
    context = PassContext.current()
    parts = _divided(mod) if is_called_by_a_program() and not context.instruments else []
    if len(parts) < 2:
        return stock(mod, _at_level(target, mod))

    def compiled(part: tvm.IRModule) -> tvm_ffi.Module:
        # what is current is so in a thread
        with PassContext(opt_level=context.opt_level, config=dict(context.config)):
            return stock(part, _at_level(target, part))

    first, *others = _together(compiled, parts)
    for other in others:
        first.import_module(other)
    return first


def _together(function: Callable[[Any], Any], values: Sequence[Any]) -> list[Any]:
    if len(values) == 1:
        return [function(values[0])]
    with ThreadPoolExecutor(min(len(values), environment.num_threads())) as pool:
        return list(pool.map(function, values))


def _at_level(target: tvm.target.Target, mod: tvm.IRModule) -> tvm.target.Target:
    """The target at which LLVM optimises a module as far as one of its functions asks for."""
    level = max((_level(function) for function in mod.functions.values()), default=FULL)
    # a level that the target names is the user's
    if level == FULL or OPTION in target.attrs:
        return target
    return tvm.target.Target({**dict(target.export()), OPTION: level})


def _level(function: Any) -> int:
    return int((function.attrs or {}).get(LLVM_LEVEL, FULL))


def _divided(mod: tvm.IRModule) -> list[tvm.IRModule]:
    """A module in parts of like size, of each level as many as threads at most; none where it is one.

    What is too little for a module of its own is optimised further than it asks for, with others.
    """
    if mod.attrs:
        return []
    functions = []
    for variable, function in mod.functions_items():
        weight = _weight(function)
        if weight is None:
            return []
        functions.append(_Function(variable, function, weight, _level(function)))
    parts: list[tvm.IRModule] = []
    left: list[_Function] = []
    levels = sorted({each.level for each in functions})
    for level in levels:
        left += [each for each in functions if each.level == level]
        if level == levels[-1] or sum(each.weight for each in left) >= WORTH:
            parts += _alike(left)
            left = []
    return parts if len(parts) > 1 else []


def _alike(functions: list[_Function]) -> list[tvm.IRModule]:
    """Functions in modules of like size, as many as there are threads, or as are worth it."""
    most = min(environment.num_threads(), len(functions))
    count = max(1, min(most, sum(each.weight for each in functions) // WORTH))
    # the heaviest first, each to the part that has least; in what order functions come says nothing then
    parts: list[list[_Function]] = [[] for _ in range(count)]
    for each in sorted(functions, key=lambda f: (-f.weight, str(f.variable.name_hint))):
        min(parts, key=lambda part: sum(f.weight for f in part)).append(each)
    return [tvm.IRModule({f.variable: f.function for f in part}) for part in parts if part]


def _weight(function: Any) -> int | None:
    """How many calls and stores a function has; None where it asks for another, or is none of TIR."""
    if not isinstance(function, tirx.PrimFunc):
        return None
    found, alone = 0, True

    def store(_statement: tirx.BufferStore) -> WalkResult:
        nonlocal found
        found += 1
        return WalkResult.ADVANCE

    def call(expr: tvm.ir.Call) -> WalkResult:
        nonlocal found, alone
        found += 1
        if isinstance(expr.op, tvm.ir.GlobalVar) or str(getattr(expr.op, "name", "")).startswith(ASKING):
            alone = False
        return WalkResult.ADVANCE

    structural_walk(function.body, [(tirx.BufferStore, store), (tvm.ir.Call, call)], order="pre")
    return found if alone else None


def _parts_of(library: tvm_ffi.Module) -> Iterator[tvm_ffi.Module]:
    if library.kind == LLVM:
        yield library
    for imported in library.imports:
        yield from _parts_of(imported)


def _first_function(part: tvm_ffi.Module) -> None:
    """Ask for a function: TVM compiles all of its module then."""
    names = list(part.get_function("get_func_names")())
    if names:
        part.get_function(str(names[0]).removeprefix(PREFIX))
