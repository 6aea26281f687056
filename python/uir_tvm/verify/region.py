# SPDX-License-Identifier: Apache-2.0
"""Regions: the elements that one iOp touches through one slice, as a function of pid and loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import attrs
import numpy as np

from ..igraph.affine import Affine, affine
from ..igraph.coordinates import coordinates_of, joined_dims, step_along
from ..igraph.dealt import says_so
from ..igraph.nodes import ISlice
from ..igraph.once import once
from ..igraph.points import chunks, number
from ..igraph.space import Space
from .digits import Digits
from .launch_range import range_at_launch
from .sized_launch import PID as PID
from .sized_launch import STATIC, SizedLaunch


@attrs.frozen
class Axis:
    """One axis of a region: positions ``max(0, *lower) <= x < min(extent, *upper)``, ``stride`` apart.

    Attributes
    ----------
    dim : int
        The dimension (of the region's ``dims``) whose index goes on by ``stride``; -1: the last.
    pitch : Affine or None
        Elements from one position to the next, where sizes decide it.
    """

    extent: int
    stride: int
    lower: tuple[Affine, ...] = ()
    upper: tuple[Affine, ...] = ()
    dim: int = -1
    pitch: Affine | None = None

    @property
    def step(self) -> Affine | int:
        """Elements from one position to the next."""
        return self.stride if self.pitch is None else self.pitch

    def at(self, values: Mapping[str, int]) -> Axis:
        """The axis at values of the sizes."""
        lower, upper = ([b.substitute(values) for b in bounds] for bounds in (self.lower, self.upper))
        stride = self.stride if self.pitch is None else self.pitch.evaluate(values)
        return Axis(self.extent, stride, tuple(lower), tuple(upper))

    def narrowed(self, other: Axis) -> Axis:
        """Only the positions that ``other`` has too."""
        lower, upper = self.lower + other.lower, self.upper + other.upper
        if lower or upper:
            lower, upper = tuple(dict.fromkeys(lower)), tuple(dict.fromkeys(upper))
        return Axis(self.extent, self.stride, lower, upper, self.dim, self.pitch)


@attrs.frozen(slots=False, eq=False)
class Region:
    """The elements at ``offset + i*rows.stride + j*cols.stride`` of a pointer, (i, j) within both axes.

    Attributes
    ----------
    extents : Mapping[str, int]
        Every variable of the domain and how many values it has: ``pid`` first, then loops outermost first.
    every : int
        Only units with ``pid % every == 0`` take part (leaders of the groups of a group form).
    launch : SizedLaunch
        The sizes on which offset, bounds and the number of units may depend.
    dims : tuple of Affine
        The dimensions of a pointer with strides of sizes (`igraph.coordinates.joined_dims`); else none.
    known : Space or None
        What is known of ``extents`` and the sizes, where regions of one domain share it.
    """

    offset: Affine
    rows: Axis
    cols: Axis
    extents: Mapping[str, int]
    every: int = 1
    launch: SizedLaunch = STATIC
    dims: tuple[Affine, ...] = ()
    known: Space | None = attrs.field(default=None, repr=False)

    @once
    def coordinates(self) -> tuple[Affine, ...] | None:
        """Where row and column 0 are, an index for each of ``dims``; None where that is not known.

        Rows and columns go on along a dimension each.  A pointer without ``dims`` has one, its addresses.
        What lies before the start of its dimension everywhere is at the end of the row before: the address
        ``n*i + n - 1 - j`` of ``(m, n)`` is ``(i, n - 1 - j)``, and not ``(i + 1, -1 - j)``.
        """
        if not self.dims:
            return (self.offset,)
        if any(a.pitch is not None and a.dim < 0 for a in (self.rows, self.cols)):
            return None
        parts = coordinates_of(self.offset, self.dims, self.space)
        if parts is None:
            return None
        found = list(parts)
        for dim in range(len(found) - 1, 0, -1):
            if any(self.range(end)[1] < 0 for end in self._along(dim, found[dim]).corners(True)):
                found[dim] = self.space.fold(found[dim] + self.dims[dim])
                found[dim - 1] = self.space.fold(found[dim - 1] - 1)
        return tuple(found)

    def along(self, dim: int) -> Region:
        """The indices of one dimension as addresses of their own; asked where `coordinates` are known."""
        assert self.coordinates is not None
        return self._along(dim, self.coordinates[dim])

    def _along(self, dim: int, index: Affine) -> Region:
        last = max(len(self.dims), 1) - 1  # without dimensions there is one, of addresses

        def part(a: Axis) -> Axis:
            goes_on = dim == (last if a.dim < 0 else a.dim)
            if a.pitch is None and goes_on:
                return a
            return attrs.evolve(a, stride=a.stride if goes_on else 0, dim=-1, pitch=None)

        rows, cols = part(self.rows), part(self.cols)
        return attrs.evolve(self, offset=index, rows=rows, cols=cols, dims=())

    def corners(self, high: bool) -> Iterator[Affine]:
        """Expressions of which each bounds all addresses of the same pid and loops, from above or below."""

        def ends(a: Axis) -> list[Affine]:
            if (a.stride > 0) == high:
                return [affine((a.extent - 1) * a.step), *((b - 1) * a.step for b in a.upper)]
            return [affine(0), *(b * a.step for b in a.lower)]

        for row, col in product(ends(self.rows), ends(self.cols)):
            yield self.offset + row + col

    @once
    def key(self) -> tuple[object, ...]:
        """Equal for two regions exactly when they touch the same elements by the same formula."""

        def axis(a: Axis) -> tuple[object, ...]:
            return (a.extent, str(a.step), tuple(map(str, a.lower)), tuple(map(str, a.upper)))

        used = tuple((v, self.extents[v]) for v in self.used)
        return (str(self.offset), axis(self.rows), axis(self.cols), used, self.every, self.extents[PID])

    @once
    def memo(self) -> dict[str, Any]:
        """What rules found out about it, by whatever names they agree on."""
        return {}

    @once
    def space(self) -> Space:
        """What is known of pid, the loops and the sizes."""
        return self.known or Space({**self.extents, **{str(size.name): size for size in self.launch.sizes}})

    def range(self, value: Affine) -> tuple[int, int]:
        """The least and the greatest value of an expression over the domain, or beyond."""
        if self.launch.static:
            return self.space.range(value)
        return range_at_launch(value, self.space, self.launch)

    @once
    def digits(self) -> Digits:
        """The digits that quotients and remainders in the region's expressions cut its variables into."""
        return Digits.of([*(self.coordinates or ()), *self.bounds], self.extents, self.space)

    def at(self, values: Mapping[str, int]) -> Region:
        """The static region at values of the sizes."""
        if self.launch.static:
            return self

        units = self.launch.units(self.extents[PID], values)
        return Region(
            self.offset.substitute(values),
            self.rows.at(values),
            self.cols.at(values),
            {**self.extents, PID: units},
            self.every,
        )

    @property
    def bounds(self) -> tuple[Affine, ...]:
        """The lower and upper bounds of both axes."""
        return (*self.rows.lower, *self.rows.upper, *self.cols.lower, *self.cols.upper)

    @once
    def used(self) -> list[str]:
        """The variables that the region depends on, in the order of ``extents``."""
        seen = {v for e in (self.offset, *self.bounds) for v in e.variables()}
        if self.every > 1:
            seen.add(PID)
        return [v for v in self.extents if v in seen]

    @property
    def whole(self) -> bool:
        """Whether the box is the whole shape, on every unit."""
        return not self.bounds and self.every == 1

    def num_envs(self, variables: Sequence[str]) -> int:
        """How many values ``variables`` have together."""
        return number(variables, self.extents)

    def num_points(self, variables: Sequence[str]) -> int:
        """How many (variables, i, j) there are at most."""
        return self.num_envs(variables) * self.rows.extent * self.cols.extent

    def grids(self, variables: Sequence[str], chunk: int) -> Iterator[dict[str, np.ndarray]]:
        """Every value of ``variables`` (mixed radix, the last fastest), ``chunk`` at a time, leaders only."""
        for env in chunks(variables, self.extents, chunk):
            if self.every > 1 and PID in env:
                leaders = env[PID] % self.every == 0
                env = {name: values[leaders] for name, values in env.items()}
            yield env if env else {PID: np.zeros(1, dtype=np.int64)}

    def box(self, env: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(row_begin, row_end, col_begin, col_end) at each point of ``env``, clamped into the shape."""
        shape = next(iter(env.values())).shape

        def ends(a: Axis) -> tuple[np.ndarray, np.ndarray]:
            low, high = np.zeros(shape, np.int64), np.full(shape, a.extent, np.int64)
            for bound in a.lower:
                low = np.maximum(low, bound.values(env))
            for bound in a.upper:
                high = np.minimum(high, bound.values(env))
            return low, high

        return (*ends(self.rows), *ends(self.cols))

    def places(self, env: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """(address, whether it is valid) at each point of ``env``, each of shape (points, rows, cols)."""
        i = np.arange(self.rows.extent, dtype=np.int64)[None, :, None]
        j = np.arange(self.cols.extent, dtype=np.int64)[None, None, :]
        r0, r1, c0, c1 = (ends[:, None, None] for ends in self.box(env))
        valid = (i >= r0) & (i < r1) & (j >= c0) & (j < c1)
        if self.every > 1 and PID in env:
            valid &= (env[PID] % self.every == 0)[:, None, None]
        base = np.broadcast_to(self.offset.values(env), next(iter(env.values())).shape)[:, None, None]
        return base + i * self.rows.stride + j * self.cols.stride, valid


def region_of(
    piece: ISlice,
    extents: Mapping[str, int],
    every: int = 1,
    launch: SizedLaunch = STATIC,
    tiles: Affine | None = None,
    known: Space | None = None,
) -> Region:
    """The valid box of a slice as a region; where ``tiles`` is given, empty where it is not positive."""

    dims = joined_dims(piece.pointer.dims)
    rows = _axis(int(piece.rows), piece.stride[0], piece.valid[:2], dims)
    ends = (piece.row_end, piece.col_end)
    if tiles is not None and not any(end is not None and says_so(end, tiles) for end in ends):
        rows = attrs.evolve(rows, upper=(*rows.upper, tiles * rows.extent))
    return Region(
        piece.offset,
        rows,
        _axis(int(piece.cols), piece.stride[1], piece.valid[2:], dims),
        extents,
        every,
        launch,
        dims if len(dims) > 1 else (),
        known,
    )


def _axis(
    extent: int, stride: Affine | int, ends: tuple[Affine | None, ...], dims: tuple[Affine, ...]
) -> Axis:
    lower, upper = (() if end is None else (end,) for end in ends)
    if not isinstance(stride, Affine):
        return Axis(extent, int(stride), lower, upper)
    dim, step = step_along(stride, dims) or (-1, 1)
    return Axis(extent, step, lower, upper, dim, stride)
