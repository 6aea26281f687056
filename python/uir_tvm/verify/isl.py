# SPDX-License-Identifier: Apache-2.0
"""Regions as integer sets and relations of isl, with bounded effort."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import islpy

from ..igraph.affine import Affine, affine, var
from ..igraph.bounded_isl import (
    MAX_OPERATIONS,
    Exhausted,
    IslError,
    bounded,
    context,
    proved,
    read_map,
    read_set,
)
from ..igraph.space import Space
from .digits import Digits
from .region import PID, Region
from .sized_launch import STATIC, SizedLaunch

_NO_DIGITS = Digits({}, {}, {}, [], Space({}))


class IslNames:
    """Names of one region's variables in isl: loop variables and sizes may be words that isl reserves.

    Sizes are parameters of isl's sets: what is so is so for each of their values.
    """

    def __init__(self, region: Region, suffix: str = "") -> None:
        #: The digits of variables, where sizes make quotients and remainders of them costly.
        self.digits = _NO_DIGITS if region.launch.static else region.digits
        self.of = {v: PID + suffix if v == PID else f"v{k}{suffix}" for k, v in enumerate(region.extents)}
        self.of |= size_names(region.launch)
        self.digit_of = {digit: f"d{k}{suffix}" for k, digit in enumerate(self.digits.ranges)}
        self.row, self.col = "i" + suffix, "j" + suffix

    @property
    def inner(self) -> list[str]:
        """Names that every text with `constraints` quantifies."""
        return list(self.digit_of.values())

    def text(self, value: Affine) -> str:
        """An expression as isl text."""
        return self.digits.within(value).render({**self.of, **self.digit_of}, "isl")

    def digit_clauses(self, variables: Iterable[str]) -> list[str]:
        """What the digits of variables are."""
        names = {**self.of, **self.digit_of}
        out = [f"{low} <= {self.digit_of[d]} <= {high}" for d, (low, high) in self.digits.ranges.items()]
        sums = [(var(v), self.digits.sums[v]) for v in variables if v in self.digits.sums]
        for value, total in (*sums, *self.digits.equations):
            out.append(f"{value.render(names, 'isl')} = {total.render(names, 'isl')}")
        return out


def size_names(launch: SizedLaunch) -> dict[str, str]:
    """What the sizes are called in isl, the same in all sets about one graph."""
    return {name: f"s{k}" for k, name in enumerate(launch.names)}


def header(launch: SizedLaunch) -> str:
    """What stands before the text of a set about a graph: the sizes as parameters; nothing where there
    are none.
    """
    return "" if launch.static else f"[{', '.join(size_names(launch).values())}] -> "


def size_clauses(launch: SizedLaunch) -> list[str]:
    """The values that sizes admit, as isl conditions."""
    out = []
    for size, name in zip(launch.sizes, size_names(launch).values(), strict=True):
        out.append(f"{size.low} <= {name} <= {size.high}")
        if size.multiple_of > 1:
            out.append(f"{name} mod {size.multiple_of} = 0")
    return out


def constraints(region: Region, names: IslNames, variables: Iterable[str]) -> list[str]:
    """Domain of ``variables`` and the box of (i, j), as isl conditions."""
    variables = list(variables)
    out = [f"0 <= {names.of[v]} < {region.extents[v]}" for v in variables]
    out += size_clauses(region.launch)
    if region.launch.pid_end is not None:
        unit = names.of[PID] if PID in variables else "0"
        out.append(f"{unit} < {region.launch.pid_end.render(names.of, 'isl')}")
    out += names.digit_clauses(variables)
    if region.every > 1:
        out.append(f"{names.of[PID]} mod {region.every} = 0")
    for position, axis in ((names.row, region.rows), (names.col, region.cols)):
        out.append(f"0 <= {position} < {axis.extent}")
        out += [f"{position} >= {names.text(b)}" for b in axis.lower]
        out += [f"{position} < {names.text(b)}" for b in axis.upper]
    return out


def place(region: Region, names: IslNames) -> list[str]:
    """Where element (i, j) is, as isl text: its address; its coordinates where strides are sizes.

    Raises
    ------
    Exhausted
        The coordinates are not known.
    """
    if region.coordinates is None:
        raise Exhausted(f"no coordinates of {region.offset}")
    places = list(map(names.text, region.coordinates))
    for at, axis in ((names.row, region.rows), (names.col, region.cols)):
        places[axis.dim] += f" + {axis.stride}*{at}"
    return places


def place_names(count: int) -> list[str]:
    """What the numbers that `place` gives are called: ``a``, or ``a0``, ``a1``, ..."""
    return ["a"] if count == 1 else [f"a{k}" for k in range(count)]


def placed(region: Region, names: IslNames) -> tuple[list[str], list[str]]:
    """The names of where element (i, j) is, and the clauses that say so."""
    at = place(region, names)
    return place_names(len(at)), [f"{a} = {text}" for a, text in zip(place_names(len(at)), at, strict=True)]


def points(region: Region, variables: Sequence[str], condition: str = "") -> islpy.Set:
    """``{ [a, variables..., i, j] }``: a the address of element (i, j); ``condition`` may speak of ``a``."""
    names = IslNames(region)
    at, where = placed(region, names)
    dims = [*at, *(names.of[v] for v in variables), names.row, names.col]
    clauses = [*constraints(region, names, variables), *where]
    if condition:
        clauses.append(f"({condition})")
    text = (
        f"{header(region.launch)}{{ [{', '.join(dims)}] : {quantified(names.inner)}{' and '.join(clauses)} }}"
    )
    return read_set(text)


def quantified(names: Sequence[str]) -> str:
    """``exists NAMES : ``; nothing where there are none."""
    return f"exists {', '.join(names)} : " if names else ""


def relation(region: Region, variables: Sequence[str] = (PID,)) -> islpy.Map:
    """``{ [variables...] -> [address] }``; all other variables are projected out.

    ``relation(region)`` says which unit touches which element, ``relation(region, list(region.extents))``
    which instance of the iOp does.
    """
    names = IslNames(region)
    kept = [names.of[v] for v in variables]
    inner = [names.of[v] for v in region.used if v not in variables] + [names.row, names.col, *names.inner]
    every = [*variables, *(v for v in region.used if v not in variables)]
    at, where = placed(region, names)
    clauses = [*constraints(region, names, every), *where]
    conditions = f"exists {', '.join(inner)} : {' and '.join(clauses)}"
    text = f"{header(region.launch)}{{ [{', '.join(kept)}] -> [{', '.join(at)}] : {conditions} }}"
    return read_map(text)


def elements(count: Affine | int, launch: SizedLaunch = STATIC, dims: Sequence[Affine] = ()) -> islpy.Set:
    """``{ [a] : 0 <= a < count }``, for all sizes; the coordinates in ``dims`` where strides are sizes."""
    counts = list(dims) or [affine(count)]
    ends = [one.render(size_names(launch), "isl") for one in counts]
    at = place_names(len(counts))
    clauses = [*(f"0 <= {a} < {end}" for a, end in zip(at, ends, strict=True)), *size_clauses(launch)]
    text = f"{header(launch)}{{ [{', '.join(at)}] : {' and '.join(clauses)} }}"
    return read_set(text)


def some_sizes(found: islpy.Set, launch: SizedLaunch) -> dict[str, int]:
    """The sizes of some element of a set that is not empty."""
    at = sample(_sizes_of(found, launch))
    assert at is not None
    return dict(zip(launch.names, at, strict=True))


def least_sizes(found: islpy.Set, launch: SizedLaunch) -> dict[str, int]:
    """The sizes of an element of a set that is not empty: the first the least, then the second, and so on."""
    left = _sizes_of(found, launch)
    values: dict[str, int] = {}
    for name in launch.names:
        values[name] = minimum(left)
        left = left.fix_val(islpy.dim_type.set, 0, _value(values[name]))
        left = left.project_out(islpy.dim_type.set, 0, 1)
    return values


def at_sizes(found: islpy.Set, sizes: Mapping[str, int]) -> islpy.Set:
    """What a set is at values of its parameters, in their order."""
    for k, value in enumerate(sizes.values()):
        found = found.fix_val(islpy.dim_type.param, k, _value(value))
    return found


def _sizes_of(found: islpy.Set, launch: SizedLaunch) -> islpy.Set:
    """``{ [sizes...] }`` of which a set has an element."""
    sizes = islpy.Set.from_params(found.params())
    return sizes.move_dims(islpy.dim_type.set, 0, islpy.dim_type.param, 0, len(launch.sizes))


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
    "at_sizes",
    "bounded",
    "constraints",
    "context",
    "elements",
    "header",
    "least_sizes",
    "maximum",
    "minimum",
    "place",
    "place_names",
    "placed",
    "points",
    "quantified",
    "proved",
    "read_map",
    "read_set",
    "relation",
    "sample",
    "size_clauses",
    "size_names",
    "some_sizes",
]
