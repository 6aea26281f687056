# SPDX-License-Identifier: Apache-2.0
"""Which dimensions of a function's inputs may be sizes, and which of them are one size.

Dimensions that one variable of a block walks are tied, and so are those of buffers in between: a bias is as
long as the rows that it is added to.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
from tvm import tirx
from tvm.ir import TensorLoad
from tvm.s_tir import SBlock
from tvm_ffi.structural import structural_walk

#: Names of sizes, in the order of the dimensions.
NAMES = "nmkabcd"

#: Shapes with the names of sizes among their dimensions.
Shapes = list[tuple[int | str, ...]]


@attrs.frozen
class Axis:
    """Dimensions that are one size: (input, dimension) of each, and how long they are."""

    places: tuple[tuple[int, int], ...]
    extent: int


class _Classes:
    """What is tied to what."""

    def __init__(self) -> None:
        self.parent: dict[object, object] = {}

    def of(self, item: object) -> object:
        while self.parent.setdefault(item, item) != item:
            item = self.parent[item]
        return item

    def tie(self, one: object, other: object) -> None:
        self.parent[self.of(one)] = self.of(other)


def axes_of(func: tirx.PrimFunc, inputs: int) -> list[Axis]:
    """The axes of a function's first parameters, in the order of their dimensions; sizes of 1 have none."""
    classes = _Classes()
    structural_walk(func.body, (SBlock, lambda block: _tie(block, classes)))
    found: dict[object, list[tuple[int, int]]] = {}
    extents: dict[object, int] = {}
    for position, param in enumerate(func.params[:inputs]):
        for place, extent in enumerate(param.shape):
            if int(extent) > 1:
                owner = classes.of((param, place))
                found.setdefault(owner, []).append((position, place))
                extents[owner] = int(extent)
    return [Axis(tuple(places), extents[owner]) for owner, places in found.items()]


def _tie(block: SBlock, classes: _Classes) -> None:
    variables = {item.var for item in block.iter_vars}

    def access(buffer: object, indices: object) -> None:
        for place, index in enumerate(indices):  # type: ignore[arg-type,var-annotated]
            if index in variables:
                classes.tie((buffer, place), index)

    structural_walk(block.body, (TensorLoad, lambda load: access(load.source, load.indices)))
    structural_walk(block.body, (tirx.BufferStore, lambda store: access(store.buffer, store.indices)))
    if block.init is not None:
        structural_walk(block.init, (tirx.BufferStore, lambda store: access(store.buffer, store.indices)))


def forms_of(shapes: list[tuple[int, ...]], axes: list[Axis]) -> Iterator[tuple[Shapes, dict[str, int]]]:
    """Each axis open in turn, then all of them: shapes with names of sizes, and the extents of these."""
    turns = [[axis] for axis in axes] + ([axes] if len(axes) > 1 else [])
    for turn in turns:
        named = {place: NAMES[k] for k, axis in enumerate(turn) for place in axis.places}
        yield (
            [
                tuple(named.get((position, place), extent) for place, extent in enumerate(shape))
                for position, shape in enumerate(shapes)
            ],
            {NAMES[k]: axis.extent for k, axis in enumerate(turn)},
        )
