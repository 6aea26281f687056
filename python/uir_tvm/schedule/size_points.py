# SPDX-License-Identifier: Apache-2.0
"""Representative sizes with weights: at which a schedule for all sizes is timed, and how much each counts.

As text ``n=8,s=128:0.3`` is a size for each symbol, then the weight behind a colon (default: 1).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from ..errors import TuneError
from ..igraph.space import Size
from ..sizes.symbolic_shapes import sizes_text

#: Where users give sizes, and how they write them.
WHERE, EXAMPLE = "sizes, --sizes", "write it as n=8,s=128:0.3, a number for each symbol and a weight"
#: Values of a size in the default list, beside its least: a small call, and one that a host model still runs
#: in seconds where another size is small.
SMALL, LARGE = 16, 256


def _whole(sizes: Mapping[str, Any]) -> dict[str, int]:
    return {str(name): int(number) for name, number in sizes.items()}


@attrs.frozen
class SizePoint:
    """A number for each open size, and how much these sizes count.

    Parameters
    ----------
    sizes : mapping of str to int
        By symbol of the model, or by variable of a kernel, in order.
    weight : float
        Above 0; only their proportions matter.
    label : str
        The sizes for people, by the model's names.
    """

    sizes: Mapping[str, int] = attrs.field(converter=_whole)
    weight: float = 1.0
    label: str = ""

    def __str__(self) -> str:
        return self.label or sizes_text(self.sizes)

    @classmethod
    def of(cls, given: SizePoint | str | Mapping[str, Any] | Sequence[Any]) -> SizePoint:
        """Of what a user gives: a point, its text, its sizes, or a pair of sizes and weight.

        Raises
        ------
        TuneError
            It is none of these, or a weight that is not above 0.
        """
        if isinstance(given, SizePoint):
            return given
        weight: Any = 1
        pairs: list[tuple[Any, Any]]
        if isinstance(given, str):
            text, _, weight = given.rpartition(":") if ":" in given else (given, "", weight)
            pairs = [part.partition("=")[::2] for part in text.split(",")]
        elif isinstance(given, Mapping):
            pairs = list(given.items())
        else:
            try:
                pair: Any = given
                sizes, weight = pair
                pairs = list(dict(sizes).items())
            except (TypeError, ValueError, AttributeError):
                raise _bad(given, "sizes and a weight") from None
        names = [str(name).strip() for name, _ in pairs]
        try:
            numbers = [int(str(number)) for _, number in pairs]
            counts = float(weight)
        except (TypeError, ValueError):
            raise _bad(given, "whole numbers, and a number as weight") from None
        if not all(names) or len(set(names)) != len(names) or min(numbers, default=-1) < 0:
            raise _bad(given, "each symbol once, and sizes of 0 or more")
        if not (math.isfinite(counts) and counts > 0):
            raise _bad(given, "a weight above 0")
        return cls(dict(zip(names, numbers, strict=True)), counts)


def _bad(given: object, need: str) -> TuneError:
    return TuneError(f"{given!r} are no representative sizes.", where=WHERE, need=need, remedy=EXAMPLE)


def given_points(given: Iterable[Any], symbols: Sequence[str]) -> tuple[SizePoint, ...]:
    """What a user gives, checked against the symbols of a model; in their order.

    Raises
    ------
    TuneError
        A bad spelling or weight, an unknown symbol or one without a number, or sizes that are given twice.
    """
    found: list[SizePoint] = []
    for point in map(SizePoint.of, given):
        unknown = [name for name in point.sizes if name not in symbols]
        missing = [name for name in symbols if name not in point.sizes]
        if unknown or missing:
            raise TuneError(
                f"The model leaves no size {unknown[0]} open." if unknown else f"{missing[0]} has no number.",
                where=f"{WHERE}: {point}",
                need="a number for each of " + ", ".join(symbols) if symbols else "a model with open sizes",
                remedy=EXAMPLE if symbols else "leave --sizes out: every size of the model is known",
            )
        sizes = {name: point.sizes[name] for name in symbols}
        if any(other.sizes == sizes for other in found):
            raise _bad(str(point), "each list of sizes once")
        found.append(SizePoint(sizes, point.weight))
    return tuple(found)


def default_points(sizes: Iterable[Size]) -> tuple[SizePoint, ...]:
    """What counts where nobody says, all alike: least sizes, small ones, and each large beside small others.

    The least is 1 where a size may be that; `SMALL` and `LARGE` are taken as far as a size's range and its
    divisor admit.
    """
    known = list(sizes)
    small = {str(size.name): _down(size, SMALL) for size in known}
    tried = [{str(size.name): _up(size, 1) for size in known}, small]
    tried += [{**small, str(size.name): _down(size, LARGE)} for size in known]
    return tuple(SizePoint(dict(row)) for row in dict.fromkeys(tuple(row.items()) for row in tried))


def _up(size: Size, number: int) -> int:
    """The least value of a size from a number on."""
    step = int(size.multiple_of)
    return min(-(-max(int(size.low), number) // step) * step, int(size.high) // step * step)


def _down(size: Size, number: int) -> int:
    """The greatest value of a size up to a number; its least where that is more."""
    step = int(size.multiple_of)
    return max(min(int(size.high), number) // step * step, _up(size, 1))


def merged(points: Iterable[SizePoint]) -> tuple[SizePoint, ...]:
    """Points with the weights of equal ones added, and all weights together 1."""
    by_sizes: dict[tuple[tuple[str, int], ...], SizePoint] = {}
    for point in points:
        key = tuple(point.sizes.items())
        known = by_sizes.get(key)
        by_sizes[key] = point if known is None else attrs.evolve(known, weight=known.weight + point.weight)
    total = sum(point.weight for point in by_sizes.values())
    return tuple(attrs.evolve(point, weight=point.weight / total) for point in by_sizes.values())
