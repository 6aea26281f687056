# SPDX-License-Identifier: Apache-2.0
"""Schedules that are found by measuring: what the pipeline asks for, whoever keeps them."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Sequence

import attrs
import tvm
from tvm import tirx

from ..bound_kernel import bound_kernel, symbols_in
from ..errors import IGraphError
from ..function_attributes import origin_of, with_attributes_of
from ..igraph.size_names import renamed
from ..igraph.tir_sizes import SIZES, sizes_of
from ..options import CompileOptions

#: Digits of an origin, as `origin_of` has them.
DIGITS = 16


@attrs.frozen
class Tuned:
    """A measured schedule of a kernel.

    Parameters
    ----------
    scheduled : PrimFunc
        The kernel, scheduled.
    options : CompileOptions
        Those of the compilation; where this machine never used the schedule, with a comparison of what it
        computes.
    works : callable
        Is told that the schedule went through all stages, comparisons too.
    """

    scheduled: tirx.PrimFunc
    options: CompileOptions
    works: Callable[[], None]


#: ``module:function`` that looks schedules up, with the arguments of `tuned_schedule`.
_lookup = ""


def look_up_by(name: str) -> None:
    """Let a function say which schedules there are, imported when a compilation first has a database."""
    global _lookup
    _lookup = name


def tuned_schedule(func: tirx.PrimFunc, target: tvm.target.Target, options: CompileOptions) -> Tuned | None:
    """The measured schedule of a kernel; None where there is none.

    Raises
    ------
    DatabaseError
        There is no database in the folder that the options name, or it is damaged.
    """
    if options.database is None or not _lookup:
        return None
    module, _, name = _lookup.partition(":")
    found: Tuned | None = getattr(importlib.import_module(module), name)(func, target, options)
    return found


def tuned_origin(func: tirx.PrimFunc) -> str:
    """By what a kernel finds its schedules: what it computes, and for which ranges of sizes that are open.

    Functions that differ in the names of their variables alone have the same.
    """
    origin = origin_of(func)
    try:
        ranges = [(int(s.low), int(s.high), int(s.multiple_of)) for s in sizes_of(func).values()]
    except IGraphError:  # which no recipe takes
        return origin
    return hashlib.sha256(f"{origin}{ranges}".encode()).hexdigest()[:DIGITS] if ranges else origin


def size_names(func: tirx.PrimFunc) -> list[str]:
    """The names of a kernel's open sizes, in order."""
    return [str(variable.name) for variable in symbols_in(func)]


def scheduled_as(func: tirx.PrimFunc, made: tirx.PrimFunc, names: Sequence[str] = ()) -> tirx.PrimFunc:
    """A kernel's schedule as it goes on through the stages: with the kernel's attributes and names of sizes.

    Parameters
    ----------
    func : PrimFunc
        The kernel.
    made : PrimFunc
        It, or an equal one, scheduled.
    names : sequence of str
        What the kernel's sizes are called in ``made``, in their order; default: as in ``func``. What is known
        of them is ``made``'s own, which may have joined some.
    """
    known = (made.attrs or {}).get(SIZES)
    other = {old: new for old, new in zip(names, size_names(func), strict=False) if old != new}

    if other:
        made = bound_kernel(
            made, {v: tvm.ir.Var(renamed(str(v.name), other), str(v.ty.dtype)) for v in symbols_in(made)}
        )
    made = with_attributes_of(made, func)
    if known is not None:
        made = made.with_attr(SIZES, {renamed(str(name), other): ends for name, ends in known.items()})
    return made
