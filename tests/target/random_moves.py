# SPDX-License-Identifier: Apache-2.0
"""Random graphs of moves: every shape of slice, box, padding and path that the printer tells apart."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from uir_tvm.igraph import HardwareModel, IGraph, IPointer, ISlice, Loop, affine, make, var
from uir_tvm.igraph.affine import Affine
from uir_tvm.igraph.dtypes import numpy_of

DTYPES = ("fp32", "fp16", "bf16", "fp64", "int8", "int64", "bool", "fp8e4m3")
#: Through what a value goes between two arrays in dram.
PATHS = ("reg", "sram", "scratch", "direct", "reg_reg")


@attrs.define
class RandomMoves:
    """Builds one graph; every unit moves tiles of its own."""

    seed: int
    groups: int = 2
    units: int = 2
    dtypes: Sequence[str] = DTYPES
    paths: Sequence[str] = PATHS
    rng: random.Random = attrs.field(init=False)
    pointers: list[IPointer] = attrs.field(factory=list)
    arrays: list[np.ndarray] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def build(self, hardware: HardwareModel, chains: int = 4) -> tuple[IGraph, list[np.ndarray]]:
        """The graph, and its arguments in the order of the signature."""
        bodies = [self._chain(n) for n in range(chains)]
        dram = [p for p in self.pointers if p.level == "dram"]
        others = [p for p in self.pointers if p.level != "dram"]
        body = [node for nodes in bodies for node in nodes]
        graph = IGraph(f"moves_{self.seed}", hardware, self.groups, self.units, [*dram, *others], body, {})
        return graph, self.arrays

    def _pointer(self, name: str, level: str, dtype: str, size: int, role: str = "tmp") -> IPointer:
        pointer = IPointer(name, level, dtype, size, role)
        self.pointers.append(pointer)
        if role != "tmp":
            values = np.random.default_rng(self.seed + len(self.pointers)).integers(0, 100, size)
            array = values.astype(numpy_of(dtype)) if role == "in" else np.zeros(size, numpy_of(dtype))
            self.arrays.append(array)
        return pointer

    def _chain(self, number: int) -> list:
        rng = self.rng
        dtype, path = rng.choice(self.dtypes), rng.choice(self.paths)
        rows, cols = rng.choice([1, 1, 2, 3, 4, 8, 16]), rng.choice([1, 3, 8, 16, 20, 24, 32, 50, 64, 128])
        if rng.random() < 0.2:
            rows, cols = cols, rows
        units, steps = self.groups * self.units, rng.choice([1, 1, 2])
        loop = f"k{number}"
        step = affine(0) if steps == 1 else var(loop)
        box = self._box(rows, cols, step)
        source = self._memory(f"x{number}", dtype, "in", rows, cols, units, steps, step)
        target = self._memory(f"y{number}", dtype, "inout", rows, cols, units, steps, step)
        pad = rng.choice([None, 3]) if dtype != "bool" else None
        loaded = source.replace(rows=box[0], cols=box[1])
        kept = ((None, None), (None, None)) if pad is not None else box
        body = self._path(number, path, dtype, target.replace(rows=kept[0], cols=kept[1]), loaded, kept, pad)
        return body if steps == 1 else [Loop(loop, steps, body)]

    def _path(
        self, number: int, path: str, dtype: str, target: ISlice, source: ISlice, box: tuple, pad: int | None
    ) -> list:
        rows, cols = source.shape
        if path == "direct":
            return [make.move(target, source, pad=pad)]
        own = self.units if path == "sram" else 4 if path == "scratch" else 1
        offset = {"sram": var("pid") % self.units, "scratch": var("pid") % 4}.get(path, affine(0))
        level = "sram" if path == "sram" else "reg"
        middle = self._pointer(f"t{number}", level, dtype, own * rows * cols)
        piece = ISlice(middle, rows * cols * offset, (rows, cols)).replace(rows=box[0], cols=box[1])
        if path != "reg_reg":
            return [make.move(piece, source, pad=pad), make.move(target, piece)]
        other = ISlice(self._pointer(f"u{number}", "reg", dtype, rows * cols), 0, (rows, cols))
        other = other.replace(rows=box[0], cols=box[1])
        return [make.move(piece, source, pad=pad), make.move(other, piece), make.move(target, other)]

    def _memory(
        self, name: str, dtype: str, role: str, rows: int, cols: int, units: int, steps: int, step: Affine
    ) -> ISlice:
        """A tile of each unit and step, apart from all others."""
        rng = self.rng
        way = rng.choice(["linear", "linear", "pitched", "turned", "strided"])
        pitch = cols + rng.choice([0, 4, 8, 16, 1])
        stride = {
            "linear": (cols, 1),
            "pitched": (pitch, 1),
            "turned": (1, rows + rng.choice([0, 4, 1])),
            "strided": (3 * cols, 2),
        }[way]
        span = (rows - 1) * stride[0] + (cols - 1) * stride[1] + 1
        tile = span + rng.choice([0, 0, 5, -span % 16])
        start = rng.choice([0, 0, 4, 1, 16])
        pointer = self._pointer(name, "dram", dtype, start + tile * units * steps, role)
        return ISlice(pointer, start + tile * (steps * var("pid") + step), (rows, cols), stride)

    def _box(self, rows: int, cols: int, step: Affine) -> tuple:
        rng = self.rng

        def side(length: int) -> tuple[Affine | None, Affine | None]:
            kind = rng.choice(["whole", "whole", "end", "vector_end", "both"])
            pid = var("pid")
            if kind == "whole":
                return (None, None)
            if kind == "vector_end":
                return (None, affine(length) - 4 * pid)
            end = affine(length + 1) - 2 * pid - step
            return (None, end) if kind == "end" else (pid % 3 - 1 + step, end)

        return side(rows), side(cols)


def build(
    seed: int, hardware: HardwareModel, chains: int = 4, **options: Any
) -> tuple[IGraph, list[np.ndarray]]:
    """The graph of a seed, and its arguments; ``options`` are fields of `RandomMoves`."""
    return RandomMoves(seed, **options).build(hardware, chains)
