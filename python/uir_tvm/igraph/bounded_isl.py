# SPDX-License-Identifier: Apache-2.0
"""This thread's context of isl, and questions to it with bounded effort."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

import islpy

from ..errors import VerifyError

T = TypeVar("T")

#: isl's own count of steps after which it gives up.  Steps of projections with many divisions take some
#: 10 microseconds each (measured on permutations of fused loops), so this is about half a second at worst.
MAX_OPERATIONS = 50_000

#: Sets and relations that a thread keeps by their texts: passes ask what was asked of the graph before.
MOST_KEPT = 1024

_local = threading.local()


class Exhausted(Exception):
    """isl spent its operations without an answer; the caller falls back to enumeration."""


class IslError(VerifyError):
    """A question that isl does not understand: no answer, and no lack of effort either (rule ``isl``)."""


def context() -> islpy.Context:
    """This thread's context (an isl context serves one thread)."""
    if not hasattr(_local, "context"):
        _local.context = islpy.Context()
    return _local.context


def read_set(text: str) -> islpy.Set:
    """The set of a text, in this thread's context.

    Inside of `bounded` reading has effort of its own, so that an answer does not depend on what is kept.

    Raises
    ------
    Exhausted
        Reading it takes more than the effort of `bounded`.
    """
    return _read(islpy.Set, text)


def read_map(text: str) -> islpy.Map:
    """The relation of a text, as `read_set`."""
    return _read(islpy.Map, text)


def _read(kind: type[T], text: str) -> T:
    ctx = context()
    if not hasattr(_local, "kept"):
        _local.kept = OrderedDict()
    kept: OrderedDict[tuple[type, int, str], T | None] = _local.kept
    limit = ctx.get_max_operations()
    key = (kind, limit, text)
    ctx.reset_operations()
    if key in kept:
        kept.move_to_end(key)
    else:
        try:
            kept[key] = kind.read_from_str(ctx, text)  # type: ignore[attr-defined]
        except islpy.Error:
            if not (limit and _spent(ctx)):
                raise
            kept[key] = None
        ctx.reset_operations()
        if len(kept) > MOST_KEPT:
            kept.popitem(last=False)
    found = kept[key]
    if found is None:
        raise Exhausted(text)
    return found


def bounded(question: Callable[[], T], max_operations: int = MAX_OPERATIONS) -> T:
    """The answer of ``question``, or `Exhausted` after ``max_operations``.

    Raises
    ------
    Exhausted
    IslError
        isl refuses the question for another reason: its text is malformed.
    """
    ctx = context()
    ctx.set_max_operations(max_operations)
    ctx.reset_operations()
    try:
        return question()
    except islpy.Error as error:
        # Out of operations, isl's reader reports a syntax error: the message does not tell which it was.
        if _spent(ctx):
            raise Exhausted from error
        raise IslError(
            f"isl refuses a question of the verifier: {error}", rule="isl", remedy="report it with the graph"
        ) from error
    finally:
        ctx.set_max_operations(0)
        ctx.reset_operations()


def _spent(ctx: islpy.Context) -> bool:
    """Whether the operations are spent: then isl does not even make a number."""
    try:
        islpy.Val.int_from_si(ctx, 1)
    except islpy.Error:
        return True
    return False


def proved(question: Callable[[], bool]) -> bool:
    """Whether the answer is yes within `MAX_OPERATIONS`."""
    try:
        return bounded(question)
    except Exhausted:
        return False
