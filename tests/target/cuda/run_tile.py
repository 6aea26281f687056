# SPDX-License-Identifier: Apache-2.0
"""One iOp between moves on the host model and in the interpreter, on given values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
from uir_tvm import hardware
from uir_tvm.igraph import IGraph, IOp, IPointer, ISlice, interpreter, make
from uir_tvm.igraph.dtypes import DTYPES
from uir_tvm.runtime.kernel import run_igraph
from uir_tvm.target.cuda.lower import lower

_NAMES = {row.numpy: name for name, row in DTYPES.items()}


@attrs.frozen
class Piece:
    """An operand: its values (2-D), its valid box, and where its tile lies on chip (None: in dram)."""

    values: np.ndarray
    rows: Any = (None, None)
    cols: Any = (None, None)
    level: str | None = "reg"

    @property
    def dtype(self) -> str:
        """Its dtype in an iGraph."""
        return _NAMES[self.values.dtype]


def run(
    target: Piece,
    sources: Sequence[Piece],
    build: Callable[..., IOp],
    *,
    layouts: dict[str, list[int]] | None = None,
    keep: bool = False,
) -> tuple[np.ndarray, np.ndarray, str]:
    """What the model gives, what the interpreter gives, and the text.

    The target holds `target.values` before where ``keep`` is set.  On-chip tiles are named t, s0, s1, ...
    """
    pointers: list[IPointer] = []
    body: list[IOp] = []
    arrays: list[np.ndarray] = []

    def pointer(name: str, level: str, piece: Piece, role: str = "tmp") -> IPointer:
        pointers.append(IPointer(name, level, piece.dtype, piece.values.size, role))
        return pointers[-1]

    def tile(of: IPointer, piece: Piece, *, whole: bool = False) -> ISlice:
        boxes = {} if whole else {"rows": piece.rows, "cols": piece.cols}
        return ISlice(of, 0, piece.values.shape, **boxes)

    loaded = []
    for number, piece in enumerate(sources):
        outside = pointer(f"x{number}", "dram", piece, "in")
        arrays.append(piece.values)
        if piece.level is None:
            loaded.append(tile(outside, piece))
            continue
        inside = pointer(f"s{number}", piece.level, piece)
        # what lies outside of the box is loaded too: it must not count
        body.append(make.move(tile(inside, piece, whole=True), tile(outside, piece, whole=True)))
        if piece.level == "sram":
            body.append(make.sync(ISlice(inside), ISlice(inside), "sram"))
        loaded.append(tile(inside, piece))
    role = "inout" if keep else "out"
    out = pointer("y", "dram", target, role)
    if keep:
        arrays.append(target.values)
    if target.level is None:
        body.append(build(tile(out, target), *loaded))
    else:
        held = pointer("t", target.level, target)
        body += [build(tile(held, target), *loaded), make.move(tile(out, target), tile(held, target))]
    pointers.sort(key=lambda one: one.level != "dram")
    graph = IGraph("tile", hardware.get("h200", "cuda"), 1, 1, pointers, body, {"layouts": layouts or {}})
    (got,) = run_igraph(graph, "uir-cuda", *arrays, device="model")
    (wanted,) = interpreter.run(graph, *arrays, allow_unwritten=True)
    return got.reshape(-1), wanted.reshape(-1), str(lower(graph))
