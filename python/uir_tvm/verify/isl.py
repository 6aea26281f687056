# SPDX-License-Identifier: Apache-2.0
"""Regions as integer sets and relations of isl, with bounded effort."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import islpy

from ..igraph.bounded_isl import MAX_OPERATIONS, Exhausted, IslError, bounded, context, proved
from .region import PID, Axis, Region


class IslNames:
    """Names of one region's variables in isl: loop variables may be words that isl reserves."""

    def __init__(self, region: Region, suffix: str = "") -> None:
        self.of = {v: PID + suffix if v == PID else f"v{k}{suffix}" for k, v in enumerate(region.extents)}
        self.row, self.col = "i" + suffix, "j" + suffix


def constraints(region: Region, names: IslNames, variables: Iterable[str]) -> list[str]:
    """Domain of ``variables`` and the box of (i, j), as isl conditions."""
    out = [f"0 <= {names.of[v]} < {region.extents[v]}" for v in variables]
    if region.every > 1:
        out.append(f"{names.of[PID]} mod {region.every} = 0")
    for position, axis in ((names.row, region.rows), (names.col, region.cols)):
        out.append(f"0 <= {position} < {axis.extent}")
        out += [f"{position} >= {b.render(names.of, 'isl')}" for b in axis.lower]
        out += [f"{position} < {b.render(names.of, 'isl')}" for b in axis.upper]
    return out


def address(region: Region, names: IslNames) -> str:
    """The address of element (i, j) as isl text."""

    def part(position: str, axis: Axis) -> str:
        return f"{axis.stride}*{position}"

    base = region.offset.render(names.of, "isl")
    return f"{base} + {part(names.row, region.rows)} + {part(names.col, region.cols)}"


def points(region: Region, variables: Sequence[str], condition: str = "") -> islpy.Set:
    """``{ [a, variables..., i, j] }``: a the address of element (i, j); ``condition`` may speak of ``a``."""
    names = IslNames(region)
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
    names = IslNames(region)
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


__all__ = [
    "MAX_OPERATIONS",
    "Exhausted",
    "IslError",
    "IslNames",
    "address",
    "bounded",
    "constraints",
    "context",
    "elements",
    "maximum",
    "minimum",
    "points",
    "proved",
    "relation",
    "sample",
]
