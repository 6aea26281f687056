# SPDX-License-Identifier: Apache-2.0
"""Make the primitives methods of ``tvm.s_tir.Schedule``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tvm_ffi
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import _type_checker

from .group import group_broadcast, group_reduce, group_share
from .map_to_units import map_to_units
from .move_to_hierarchy import move_to_hierarchy
from .pipeline_loop import pipeline

#: Arguments whose class does not say what is in them.
_HOLDERS = (list, tuple, dict, tvm_ffi.Array, tvm_ffi.Map)
#: What TVM puts around an instruction, to check the types of its arguments.
_CHECKS = _type_checker.type_checked(lambda: None).__code__

PRIMITIVES = (map_to_units, move_to_hierarchy, group_reduce, group_broadcast, group_share, pipeline)


def attach() -> None:
    """Add every primitive to Schedule under its own name (idempotent)."""
    for primitive in PRIMITIVES:
        setattr(Schedule, primitive.__name__, primitive)
    _remember_annotations()
    for name, method in list(vars(Schedule).items()):
        if getattr(method, "__code__", None) is _CHECKS:
            setattr(Schedule, name, _checked_once(method))


def _remember_annotations() -> None:
    """Let TVM take the annotations of its instructions apart once, not whenever one is called.

    Each call checks the types of its arguments; finding out what an annotation says takes most of that.
    """
    known = _type_checker._dispatcher
    if not hasattr(known, "cache_info"):
        _type_checker._dispatcher = functools.cache(known)


def _checked_once(method: Callable[..., Any]) -> Callable[..., Any]:
    """An instruction that checks arguments of the same classes once; sequences by what they hold, always."""
    inner: Callable[..., Any] = method.__wrapped__  # type: ignore[attr-defined]
    known: set[tuple[Any, ...]] = set()

    @functools.wraps(method)
    def run(*args: Any, **kwargs: Any) -> Any:
        key = (*map(type, args), *((name, type(value)) for name, value in kwargs.items()))
        if key in known:
            return inner(*args, **kwargs)
        made = method(*args, **kwargs)
        if not any(isinstance(value, _HOLDERS) for value in (*args, *kwargs.values())):
            known.add(key)
        return made

    return run
