# SPDX-License-Identifier: Apache-2.0
"""Functions with each of their axes open in turn, then all: one kernel for all sizes, or why there is none.

The examples of all recipes, and operators that recipes schedule otherwise (`symbolic_operators`); what came
of them is recorded (`symbolic_record`).
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import tvm
from tvm import tirx
from uir_tvm import CompileOptions
from uir_tvm.errors import NoRecipeError
from uir_tvm.igraph import IGraph, interpreter
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import sizes_at, sizes_of
from uir_tvm.pipeline import recording
from uir_tvm.schedules.demo import Example
from uir_tvm.stages import KernelRecord

from .points_around import staggered, values_around
from .symbolic_axes import Shapes, axes_of, forms_of
from .symbolic_operators import EXAMPLES

#: The least of the greatest values of sizes: short axes of examples may be longer.
LONG = 24
#: Sums of some hundred products in another order, and functions a few ULP apart, relative to the largest.
TOLERANCE = 3e-5


@attrs.frozen
class Form:
    """A function some of whose dimensions are open.

    Parameters
    ----------
    function : str
        Which, of `EXAMPLES`.
    shapes : list of tuple
        Of its inputs, with names of sizes.
    extents : dict of str to int
        What the sizes are in the example.
    least : int
        The least value of all sizes.
    """

    function: str
    shapes: Shapes
    extents: dict[str, int]
    least: int = 0

    @property
    def sizes(self) -> dict[str, Size]:
        """Its sizes by name."""
        return {name: Size(name, self.least, max(extent, LONG)) for name, extent in self.extents.items()}

    @property
    def label(self) -> str:
        """Shapes as text."""
        return " ".join("(" + ", ".join(map(str, shape)) + ")" for shape in self.shapes)

    @property
    def name(self) -> str:
        return f"{self.function} {self.label}"

    @property
    def example(self) -> Example:
        return example(self.function)

    def func(self) -> tirx.PrimFunc:
        """As a PrimFunc of its inputs and results."""
        return self.example.open_function(self.shapes, self.sizes).with_attr("global_symbol", "main")

    def numbers(self, sizes: dict[str, int]) -> tuple[list[np.ndarray], list[np.ndarray]] | None:
        """Inputs at some sizes and what NumPy says; None where it says nothing (the greatest of nothing)."""
        shapes = [tuple(sizes.get(d, d) for d in shape) for shape in self.shapes]  # type: ignore[call-overload]
        assert self.example.draw is not None
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the mean of nothing
                inputs, expected = self.example.draw(shapes)
        except ValueError:
            return None
        return (inputs, expected) if all(np.isfinite(one).all() for one in expected) else None

    def points(self, graph: IGraph) -> list[dict[str, int]]:
        """Sizes where something may go wrong: one, two, around tiles, a prime, the greatest, none.

        Where several are open, one is at a tile's end while others are elsewhere, and each is none in turn.
        """
        tiles = _tiles(graph)
        values = {
            name: values_around([t for t in tiles if t < size.high][:2], int(size.high))
            for name, size in self.sizes.items()
        }
        points = staggered(values)
        for none in values if not self.least else ():
            points.append({name: 0 if name == none else own[1] for name, own in values.items()})
        return points


@functools.cache
def example(name: str) -> Example:
    return EXAMPLES[name]()


def _tiles(graph: IGraph) -> list[int]:
    """The extents of what is moved to and from dram, and how much of a size a unit takes; greatest first."""
    found = {int(number) for number in re.findall(r"/ (\d+)", str(graph.parallel))}
    for iop, _ in graph.walk():
        for piece in (*iop.targets, *iop.sources):
            if piece.pointer.level == "dram":
                found |= {int(piece.rows), int(piece.cols)}
    return sorted(found - {1}, reverse=True)


def forms(function: str) -> Iterator[Form]:
    """Each of a function's axes open in turn, then all."""
    one = example(function)
    for shapes, extents in forms_of(one.shapes, axes_of(one.func, len(one.inputs))):
        form = Form(function, shapes, extents)
        # what follows from another dimension is no size
        if {str(v.name) for v in sizes_of(form.func())} == set(extents):
            yield form


@attrs.frozen
class Made:
    """What a target makes of a form."""

    record: KernelRecord
    call: Callable[..., Any]

    @property
    def refused(self) -> dict[str, str] | None:
        """The class of the error and its first line; None where there is one kernel for all sizes."""
        refusal = self.record.refusal
        if refusal is None:
            return None
        if isinstance(refusal.error, NoRecipeError):
            # the last of them takes everything that it can
            last = self.record.attempts[-1]
            return {"error": last.refused, "reason": last.reason}
        return {"error": type(refusal.error).__name__, "reason": str(refusal.reason).splitlines()[0]}


def make(form: Form, target: str) -> Made:
    """Build a form for a target, as stock `tvm.build` does."""
    with recording(CompileOptions(equivalence="none", database=None, faults="raise")) as records:
        built = tvm.build(tvm.IRModule({"main": form.func()}), target=target)
    (record,) = records.values()
    return Made(record, built["main"])


def widest(form: Form, target: str) -> tuple[Form, Made]:
    """A form with what a target makes of it: from nothing on; else from 1 on, where a kernel needs that."""
    made = make(form, target)
    if made.refused is not None:
        other = attrs.evolve(form, least=1)
        again = make(other, target)
        if again.refused is None:
            return other, again
    return form, made


def check(form: Form, made: Made, target: str, points: Sequence[dict[str, int]], interpreted: bool) -> int:
    """One kernel is right at these sizes; at how many of them it was called."""
    device = tvm.cpu() if target == "uir-cpu" else tvm.ext_dev(0)
    called = 0
    for sizes in points:
        numbers = form.numbers(sizes)
        if numbers is None:
            continue
        inputs, expected = numbers
        results = made.record.products["prim_func"].params[len(inputs) :]  # none where it writes an input
        given = [np.full(e.shape, 77, str(p.dtype)) for e, p in zip(expected, results, strict=False)]
        tensors = [tvm.runtime.tensor(a, device) for a in (*inputs, *given)]
        made.call(*tensors)
        called += 1
        found = [t.numpy() for t in tensors[-len(expected) :]]
        _close(found, expected, f"{form.name} at {sizes} on {target}")
        if interpreted:
            graph = made.record.products["igraph"]
            # neighbours that are walked together are one size, their product
            known = sizes_at((size.name for size in graph.sizes), sizes)
            again = interpreter.run(graph, *inputs, sizes=known)
            again = [a.reshape(e.shape) for a, e in zip(again, expected, strict=True)]
            _close(again, expected, f"{form.name} at {sizes}, interpreted")
    return called


def _close(found: Sequence[np.ndarray], expected: Sequence[np.ndarray], hint: str) -> None:
    for got, want in zip(found, expected, strict=True):
        limit = TOLERANCE * max(1.0, float(np.abs(want).max(initial=0)))
        np.testing.assert_allclose(got, want, rtol=0, atol=limit, err_msg=hint)
