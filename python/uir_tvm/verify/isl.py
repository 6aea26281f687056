# SPDX-License-Identifier: Apache-2.0
"""Regions as integer sets and relations of isl, with bounded effort."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import islpy

from ..errors import VerifyError
from .region import PID, Axis, Region

T = TypeVar("T")

#: isl's own count of steps after which it gives up.  Steps of projections with many divisions take some
#: 10 microseconds each (measured on permutations of fused loops), so this is about half a second at worst.
MAX_OPERATIONS = 50_000

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


class Names:
    """Names of one region's variables in isl: loop variables may be words that isl reserves."""

    def __init__(self, region: Region, suffix: str = "") -> None:
        self.of = {v: PID + suffix if v == PID else f"v{k}{suffix}" for k, v in enumerate(region.extents)}
        self.row, self.col = "i" + suffix, "j" + suffix


def constraints(region: Region, names: Names, variables: Iterable[str]) -> list[str]:
    """Domain of ``variables`` and the box of (i, j), as isl conditions."""
    out = [f"0 <= {names.of[v]} < {region.extents[v]}" for v in variables]
    if region.every > 1:
        out.append(f"{names.of[PID]} mod {region.every} = 0")
    for position, axis, bounds in (
        (names.row, region.rows, region.row_bounds),
        (names.col, region.cols, region.col_bounds),
    ):
        out.append(f"0 <= {position} < {axis.extent}")
        out += [f"{position} >= {b.isl_text(names.of)}" for b in bounds[0]]
        out += [f"{position} < {b.isl_text(names.of)}" for b in bounds[1]]
    return out


def address(region: Region, names: Names) -> str:
    """The address of element (i, j) as isl text."""

    def part(position: str, axis: Axis) -> str:
        return f"{axis.stride}*{position}"

    base = region.base.isl_text(names.of)
    return f"{base} + {part(names.row, region.rows)} + {part(names.col, region.cols)}"


def points(region: Region, variables: Sequence[str], condition: str = "") -> islpy.Set:
    """``{ [a, variables..., i, j] }``: a the address of element (i, j); ``condition`` may speak of ``a``."""
    names = Names(region)
    dims = ["a", *(names.of[v] for v in variables), names.row, names.col]
    clauses = [*constraints(region, names, variables), f"a = {address(region, names)}"]
    if condition:
        clauses.append(f"({condition})")
    return islpy.Set.read_from_str(context(), f"{{ [{', '.join(dims)}] : {' and '.join(clauses)} }}")


def relation(region: Region, variables: Sequence[str] = (PID,)) -> islpy.Map:
    """``{ [variables...] -> [address] }``; all other variables are projected out.

    ``relation(region)`` says which unit touches which element, ``relation(region, list(region.extents))``
    which instance of the iOp does.
    """
    names = Names(region)
    kept = [names.of[v] for v in variables]
    inner = [names.of[v] for v in region.used if v not in variables] + [names.row, names.col]
    every = [*variables, *(v for v in region.used if v not in variables)]
    clauses = [*constraints(region, names, every), f"a = {address(region, names)}"]
    text = f"{{ [{', '.join(kept)}] -> [a] : exists {', '.join(inner)} : {' and '.join(clauses)} }}"
    return islpy.Map.read_from_str(context(), text)


def elements(size: int) -> islpy.Set:
    """``{ [a] : 0 <= a < size }``."""
    return islpy.Set.read_from_str(context(), f"{{ [a] : 0 <= a < {size} }}")


def sample(points_: islpy.Set) -> list[int] | None:
    """Coordinates of some element, None when there is none."""
    point = points_.sample_point()
    if point.is_void():
        return None
    kind = islpy.dim_type.set
    return [point.get_coordinate_val(kind, k).to_python() for k in range(points_.dim(kind))]


def maximum(points_: islpy.Set) -> int:
    """The greatest value of the first coordinate of a bounded set that is not empty.

    isl's own bound of one coordinate overlooks holes that quotients leave, and its lexicographic order fails
    on some sets; whether anything lies above a value is always exact.
    """
    low, high = _first(points_), points_.dim_max_val(0).to_python()
    while low < high:
        middle = (low + high + 1) // 2
        above = points_.lower_bound_val(islpy.dim_type.set, 0, _value(middle))
        if above.is_empty():
            high = middle - 1
        else:
            low = _first(above)
    return low


def minimum(points_: islpy.Set) -> int:
    """The least value of the first coordinate of a bounded set that is not empty; see `maximum`."""
    low, high = points_.dim_min_val(0).to_python(), _first(points_)
    while low < high:
        middle = (low + high) // 2
        below = points_.upper_bound_val(islpy.dim_type.set, 0, _value(middle))
        if below.is_empty():
            low = middle + 1
        else:
            high = _first(below)
    return high


def _first(points_: islpy.Set) -> int:
    found = sample(points_)
    assert found is not None
    return found[0]


def _value(number: int) -> islpy.Val:
    return islpy.Val.int_from_si(context(), number)
