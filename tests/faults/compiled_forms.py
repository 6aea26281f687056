# SPDX-License-Identifier: Apache-2.0
"""Graphs that the compiler makes of functions with open sizes, one for each form in which sizes occur.

Ranges are narrow, so that every choice of the sizes is a static graph that can be looked at by itself.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs
from tvm import te, tirx, topi
from uir_tvm import CompileOptions, pipeline
from uir_tvm.igraph import IGraph
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import narrowed, with_sizes
from uir_tvm.stages import KernelRecord

from tests.device_targets import DEVICE_TARGETS
from tests.open_functions import INNER, attention_of

TARGETS = {row.name: row.target() for row in DEVICE_TARGETS}
H, K, M, N = (tirx.Var(name, "int64") for name in "hkmn")


def _windows() -> tirx.PrimFunc:
    """The greatest of two neighbours along an open axis."""
    x, r = te.placeholder((3, 4, N), name="x"), te.reduce_axis((0, 2), "r")
    y = te.compute((3, 4, N // 2), lambda i, j, k: te.max(x[i, j, 2 * k + r], axis=r), "y")
    return te.create_prim_func([x, y])


def _padded() -> tirx.PrimFunc:
    x = te.placeholder((3, 4, N), name="x")
    return te.create_prim_func([x, topi.nn.pad(x, [0, 0, 3], [0, 0, 0])])


def _softmax() -> tirx.PrimFunc:
    """Of two rows of open length in each of some batches."""
    x = te.placeholder((N, 2, M), name="x")
    return te.create_prim_func([x, topi.nn.softmax(x, -1)])


def _attention() -> tirx.PrimFunc:
    q, *rest = (
        te.placeholder((1, H, rows, 16), name=name) for name, rows in zip("qkv", (3, K, K), strict=True)
    )
    return te.create_prim_func([q, *rest, attention_of(causal=False)(q, *rest)])


@attrs.frozen
class CompiledForm:
    """One form.

    Attributes
    ----------
    func : callable
        Makes the function.
    sizes : mapping of str to (int, int)
        Ranges of its variables.
    shows : callable
        Of what was made of it: whether it has the form.
    target : str
    part : mapping of str to (int, int)
        Where it is a variant: the ranges in which it is taken.
    """

    func: Callable[[], tirx.PrimFunc]
    sizes: dict[str, tuple[int, int]]
    shows: Callable[[KernelRecord], bool]
    target: str = "uir-ascend"
    part: dict[str, tuple[int, int]] = attrs.field(factory=dict)

    def graph(self) -> IGraph:
        """The optimised graph, of which it is sure that it has the form.

        Without addresses: where loads run ahead, `at` writes the rounds that are none as slices that begin
        behind their end, and what such a write leaves of a register is told more narrowly for all sizes.
        """
        func = with_sizes(self.func(), {name: Size(name, *ends) for name, ends in self.sizes.items()})
        if self.part:
            func = narrowed(func, [Size(name, *ends) for name, ends in self.part.items()])
        target = TARGETS[self.target]
        with pipeline.recording(CompileOptions(variants="none")):
            record = pipeline.try_kernel(func.with_attr("target", target), target, "kernel")
        assert record.optimized is not None, record.fallback
        assert self.shows(record), record.optimized
        kept = {k: v for k, v in record.optimized.attrs.items() if k not in ("addresses", "peak")}
        return record.optimized.replace(attrs=kept)


def _did(*names: str) -> Callable[[KernelRecord], bool]:
    """Whether passes changed a graph."""
    return lambda record: set(names) <= {step.name for step in record.steps if step.changed}


def _has(*names: str) -> Callable[[KernelRecord], bool]:
    """Whether a graph has sizes of these names, and no others."""
    return lambda record: [str(size.name) for size in record.optimized.sizes] == list(names)  # type: ignore[union-attr]


FORMS = {
    "dealt groups of open rows": CompiledForm(
        _softmax, {"n": (47, 50), "m": (1, 3)}, _did("deal_groups", "trim_bounds")
    ),
    "dealt groups of open rows, uir-bang": CompiledForm(
        _softmax, {"n": (62, 66), "m": (1, 2)}, _did("deal_groups", "trim_bounds"), "uir-bang"
    ),
    "bounds that were trimmed": CompiledForm(
        INNER["layer norm of open rows"].func, {"n": (1, 3), "m": (1, 9)}, _did("trim_bounds")
    ),
    "a derived size, and loads of the round before": CompiledForm(
        _windows, {"n": (2, 9)}, lambda r: _has("n", "n_over_2")(r) and _did("multibuffer")(r)
    ),
    "a derived size behind a pad": CompiledForm(_padded, {"n": (0, 9)}, _has("n", "n_plus_3"), "uir-bang"),
    "attention with open heads": CompiledForm(_attention, {"h": (1, 3), "k": (1, 4)}, _has("h", "k")),
    "attention with open heads, uir-cuda": CompiledForm(
        _attention, {"h": (1, 3), "k": (1, 4)}, _has("h", "k"), "uir-cuda"
    ),
    "a variant for few and short rows": CompiledForm(
        _softmax, {"n": (1, 64), "m": (1, 40)}, _has("n", "m"), part={"n": (1, 4), "m": (1, 5)}
    ),
}
