# SPDX-License-Identifier: Apache-2.0
"""relu(a @ b + bias) as the contraction's recipe schedules it for a GPU, in every dtype and layout."""

from __future__ import annotations

from typing import Any

import attrs
import ml_dtypes
import numpy as np
from tvm import te, tirx
from uir_tvm import hardware
from uir_tvm.igraph import IGraph
from uir_tvm.optimize import optimize
from uir_tvm.schedule import apply_default

from tests.extract.schedules import prim
from tests.extracted import extracted

#: dtype of the factors -> dtype of the sums
SUMS = {
    "float16": "float32",
    "bfloat16": "float32",
    "float8_e4m3fn": "float32",
    "float32": "float32",
    "float64": "float64",
    "int8": "int32",
    "uint8": "int32",
    "int32": "int32",
}


@attrs.frozen
class Product:
    """(rows, depth) times (depth, cols); either operand may be stored transposed."""

    rows: int
    cols: int
    depth: int
    dtype: str
    a_transposed: bool = False
    b_transposed: bool = False
    batch: int = 0

    def func(self) -> Any:
        """The PrimFunc."""
        sums = SUMS[self.dtype]
        outer = (self.batch,) if self.batch else ()

        def build(a: Any, b: Any, bias: Any) -> Any:
            k = te.reduce_axis((0, self.depth), "k")

            def factor(x: Any, p: tuple[Any, ...], i: Any, j: Any, turned: bool) -> Any:
                value = x[(*p, *((j, i) if turned else (i, j)))]
                return value if self.dtype == sums else value.astype(sums)

            def one(*at: Any) -> Any:
                *p, i, j = at
                x = factor(a, tuple(p), i, k, self.a_transposed)
                return te.sum(x * factor(b, tuple(p), k, j, self.b_transposed), axis=k)

            product = te.compute((*outer, self.rows, self.cols), one, "product")
            return te.compute(
                (*outer, self.rows, self.cols),
                lambda *at: tirx.max(product[at] + bias[at[-1]], tirx.const(0, sums)),
                "out",
            )

        a = (self.depth, self.rows) if self.a_transposed else (self.rows, self.depth)
        b = (self.cols, self.depth) if self.b_transposed else (self.depth, self.cols)
        return prim(build, ((*outer, *a), self.dtype), ((*outer, *b), self.dtype), ((self.cols,), sums))

    def graph(self, model: str = "h200", fast_math: bool = False) -> IGraph:
        """The optimised iGraph for a GPU."""
        hw = hardware.get(model, "cuda")
        made = optimize(extracted(apply_default(self.func(), hw), hw, name="product", check=False)).graph
        return made.replace(attrs={**made.attrs, "fast_math": True}) if fast_math else made

    def inputs(self, seed: int = 0) -> list[np.ndarray]:
        """Random operands; integers of both signs where they have signs."""
        rng = np.random.default_rng(seed)
        dtype = np.dtype(getattr(ml_dtypes, self.dtype, self.dtype))
        sizes = [max(1, self.batch) * n * self.depth for n in (self.rows, self.cols)]
        made = []
        for size, kind in ((sizes[0], dtype), (sizes[1], dtype), (self.cols, np.dtype(SUMS[self.dtype]))):
            whole = np.issubdtype(kind, np.integer)
            low = 0 if kind.kind == "u" else -100
            made.append((rng.integers(low, 100, size) if whole else rng.standard_normal(size)).astype(kind))
        return made
