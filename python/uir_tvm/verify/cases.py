# SPDX-License-Identifier: Apache-2.0
"""Inputs on which two functions are compared."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import ml_dtypes
import numpy as np

from ..igraph import finite_field as field
from ..igraph.dtypes import dtype_of

#: Integers are below it, and below what is known of them as indices (`index_limits`).
HIGHEST_INTEGER = 5
#: Elements per stretch; every second stretch holds no special values, so that sums of it stay finite.
STRETCH = 16
#: One in so many elements of a stretch with special values is one.
RARITY = 6
#: What long sections are shifted by, in turns: exp of it is no number of fp32, so that a row's maximum
#: counts, and what stands in for the maximum of nothing.  A section has so many elements at least.
SECTION, SHIFTS = 128, (0.0, -150.0, 150.0)
#: Sections of an array that is longer: rows that lie within one are shifted as a whole.
SECTIONS = 6


@attrs.frozen
class FunctionBuffer:
    """One buffer of a function.

    Parameters
    ----------
    name, dtype : str
        Its name; the iGraph's name of its dtype.
    size : int
        Elements.
    limit : int
        What integers in it are below.
    """

    name: str
    dtype: str
    size: int
    limit: int = HIGHEST_INTEGER


@attrs.frozen
class Specials:
    """Which special values a case may hold.

    Parameters
    ----------
    infinite : bool
        Infinities and NaN.
    extreme : bool
        The largest and smallest magnitudes, whose sums depend on their order.
    outside : bool
        Integers that are no index of any table; what they read is defined between iGraphs only.
    shifted : bool
        Sections far from zero, also where there are no extreme magnitudes.
    """

    infinite: bool = True
    extreme: bool = True
    outside: bool = False
    shifted: bool = False


def field_arrays(parameters: Sequence[FunctionBuffer], seed: int) -> list[np.ndarray]:
    """Random residues for floats, small integers and bools for the others; flat, one per parameter."""
    rng = np.random.default_rng(seed)
    return [
        field.random_values(rng, p.size) if dtype_of(p.dtype).kind == "float" else _whole(rng, p)
        for p in parameters
    ]


def value_arrays(parameters: Sequence[FunctionBuffer], seed: int, specials: Specials) -> list[np.ndarray]:
    """Numbers between -2 and 2 mixed with special values, small integers and bools; flat."""
    rng = np.random.default_rng(seed)
    return [
        _floats(rng, p, specials, seed)
        if dtype_of(p.dtype).kind == "float"
        else _whole(rng, p, specials.outside)
        for p in parameters
    ]


def _whole(rng: np.random.Generator, p: FunctionBuffer, outside: bool = False) -> np.ndarray:
    row = dtype_of(p.dtype)
    values = rng.integers(0, 2 if row.kind == "bool" else p.limit, p.size).astype(row.numpy)
    if outside and row.kind != "bool":
        limits = np.iinfo(row.numpy)
        beyond = np.asarray([limits.min or limits.max, limits.max], row.numpy)
        place = rng.integers(0, RARITY, p.size) == 0
        values = np.where(place, beyond[rng.integers(0, 2, p.size)], values)
    return values


def _floats(rng: np.random.Generator, p: FunctionBuffer, specials: Specials, seed: int) -> np.ndarray:
    row = dtype_of(p.dtype)
    info = ml_dtypes.finfo(row.numpy)
    tiny = float(info.smallest_subnormal)
    # halves are ties of rounding
    pool = [0.0, -0.0, 0.5, -0.5, 1.5, 2.5, 1.0, -1.0, tiny, -tiny, float(info.tiny)]
    if specials.extreme:
        pool += [float(info.max), -float(info.max), float(info.max) / 2, float(info.tiny) * 3]
    if specials.infinite:
        pool += [float("nan"), float("inf"), float("-inf")]
    values = rng.uniform(-2, 2, p.size)
    chosen = np.asarray(pool)[rng.integers(0, len(pool), p.size)]
    place = (rng.integers(0, RARITY, p.size) == 0) & ((np.arange(p.size) // STRETCH) % 2 == 0)
    if specials.extreme or specials.shifted:
        section = max(SECTION, -(-p.size // SECTIONS))
        # rows that are masked as a whole, in every second case; what is one section has its turns by the seed
        masked = (-np.inf,) if specials.infinite and seed % 2 else ()
        shifts = np.asarray((*SHIFTS, *masked))
        shift = shifts[(np.arange(p.size) // section + seed) % len(shifts)]
        values, place = values + shift, place & (shift == 0)
    with np.errstate(all="ignore"):
        return np.where(place, chosen, values).astype(row.numpy)
