# SPDX-License-Identifier: Apache-2.0
"""Graphs whose sizes are known at launch, ``sized/NAME.igraph``, for any hardware, and inputs."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping

import attrs
import numpy as np
from uir_tvm.igraph import HardwareModel, IGraph, parse_igraph
from uir_tvm.igraph.dtypes import numpy_of

FOLDER = pathlib.Path(__file__).parent / "sized"
#: What stands in the texts for the hardware and for the units of a group.
HARDWARE, UNITS = "HARDWARE", "UNITS"


@attrs.frozen
class Sized:
    """A graph with sizes.

    Attributes
    ----------
    name : of its file.
    tile : how much of the size ``n`` one unit, or one group, takes.
    exact : whether it only moves, adds and compares, so that all results agree to the bit.
    units : of a group, where it needs several.
    index : the greatest index plus one of integer inputs, by ``n``; None: integers are any small ones.
    """

    name: str
    tile: int
    exact: bool = True
    units: int = 1
    index: Callable[[int], int] | None = None

    def text(self) -> str:
        """The text of its file."""
        return (FOLDER / f"{self.name}.igraph").read_text()

    def graph(self, hardware: HardwareModel, changed: Mapping[str, str] | None = None) -> IGraph:
        """The graph for some hardware, with pieces of its text changed."""
        text = self.text()
        for old, new in (changed or {}).items():
            assert text.count(old) > 0, (self.name, old)
            text = text.replace(old, new)
        text = text.replace(HARDWARE, f'"{hardware.name}"').replace(UNITS, str(self.units))
        return parse_igraph(text, hardware)

    def points(self, graph: IGraph) -> list[int]:
        """Values of ``n`` where something may go wrong: none, one, around a tile, a prime, the greatest."""
        (size,) = graph.sizes
        step = int(size.multiple_of)
        wanted = [0, 1, self.tile - 1, self.tile, self.tile + 1, 97, int(size.high)]
        rounded = {min(-(-value // step) * step, int(size.high)) for value in wanted}
        return sorted(value for value in rounded if value >= size.low)

    def inputs(self, graph: IGraph, n: int, seed: int = 0) -> list[np.ndarray]:
        """Random inputs at a size; indices go a little beyond what there is."""
        rng = np.random.default_rng(seed)
        out = []
        for pointer in graph.params:
            if pointer.role == "out":
                continue
            count = (
                int(np.prod([dim.evaluate({"n": n}) for dim in pointer.dims]))
                if pointer.dims
                else pointer.size
            )
            dtype = numpy_of(pointer.dtype)
            if np.dtype(dtype).kind in "iu":
                high = 100 if self.index is None else self.index(n) + 2
                out.append(rng.integers(-1 if self.index else 0, high, count).astype(dtype))
            else:
                out.append(rng.standard_normal(count).astype(dtype))
        return out


#: Every one; `n` is the size of each.
SIZED = (
    Sized("exp_of_rows", 4, exact=False),
    Sized("softmax_of_rows", 2, exact=False),
    Sized("columns_with_tail", 64),
    Sized("rows_in_column_tiles", 4),
    Sized("scaled_by_a_row", 4),
    Sized("halves", 8),
    Sized("whole_numbers", 8),
    Sized("twice_in_a_row", 256),
    Sized("gathered_rows", 4, index=lambda n: n),
    Sized("counted", 4),
    Sized("product_of_rows", 16, exact=False),
    Sized("turned_around", 4),
)
#: Those whose units work together in groups.
SHARED = Sized("neighbours", 16, units=4)
