# SPDX-License-Identifier: Apache-2.0
"""Schedules that are found by measuring: what the pipeline asks for, whoever keeps them."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import attrs
import tvm
from tvm import tirx

from ..options import CompileOptions


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
