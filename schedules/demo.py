# SPDX-License-Identifier: Apache-2.0
"""Examples of recipes: show a function before and after, its iGraph, and that the numbers are right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
import tvm
from tvm import relax, tirx
from uir_tvm import hardware
from uir_tvm.extract import extract
from uir_tvm.igraph import interpreter
from uir_tvm.igraph.space import Size
from uir_tvm.igraph.tir_sizes import with_sizes
from uir_tvm.optimize import completed
from uir_tvm.schedule.driver import apply_default
from uir_tvm.schedule.recipe import Recipe

from ..options import DEFAULT_TARGET

#: Largest difference to NumPy in float64, relative to the largest result: fp32 sums of some thousand terms.
TOLERANCE = 2e-5


#: Shapes of inputs; a variable is a size that is open.
Shapes = Sequence[tuple[Any, ...]]
#: Inputs, and what NumPy says of the results.
Numbers = tuple[list[np.ndarray], list[np.ndarray]]


@attrs.frozen
class Example:
    """A function, inputs for it, and what NumPy says of its results: the last parameters, updated or new.

    Parameters
    ----------
    make : callable, optional
        Shapes of the inputs -> the same function of such inputs.
    draw : callable, optional
        Shapes of the inputs, all of them numbers -> inputs, and what NumPy says.
    """

    func: tirx.PrimFunc
    inputs: list[np.ndarray]
    expected: list[np.ndarray]
    make: Callable[[Shapes], tirx.PrimFunc] | None = None
    draw: Callable[[Shapes], Numbers] | None = None

    @classmethod
    def of(
        cls, make: Callable[[Shapes], tirx.PrimFunc], draw: Callable[[Shapes], Numbers], shapes: Shapes
    ) -> Example:
        """The example for some shapes, which can be had for others too."""
        return cls(make(shapes), *draw(shapes), make, draw)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of the inputs."""
        return [array.shape for array in self.inputs]

    def open_function(self, shapes: Sequence[tuple[int | str, ...]], sizes: dict[str, Size]) -> tirx.PrimFunc:
        """The function of inputs some of whose dimensions are sizes, by name, and what is known of them."""
        assert self.make is not None, "an example that is made for one shape"
        variables = {name: tirx.Var(name, "int64") for name in sizes}
        func = self.make([tuple(variables[d] if isinstance(d, str) else d for d in s) for s in shapes])
        return with_sizes(func, sizes)


def from_relax(
    build: Callable[..., Any],
    shapes: Sequence[tuple[int, ...]],
    reference: Callable[..., Any],
    *,
    dtypes: Sequence[str] | None = None,
    high: int | Callable[[Shapes], int] = 100,
    seed: int = 0,
) -> Example:
    """The fused PrimFunc of a small Relax expression, with random inputs.

    Parameters
    ----------
    build : callable
        Relax variables -> Relax expression.
    shapes, dtypes : sequence
        Of the inputs; float32 by default, integers are drawn below ``high``.
    high : int or callable
        A number, or one by the shapes of the inputs.
    reference : callable
        NumPy arrays (floats in float64) -> result or tuple of results.
    """
    kinds = list(dtypes or ["float32"] * len(shapes))

    def draw(shapes: Shapes) -> Numbers:
        rng = np.random.default_rng(seed)
        below = high(shapes) if callable(high) else high
        inputs = [
            rng.standard_normal(shape).astype(dtype)
            if "float" in dtype
            else rng.integers(0, below, shape).astype(dtype)
            for shape, dtype in zip(shapes, kinds, strict=True)
        ]
        results = reference(*(a.astype("float64") if a.dtype.kind == "f" else a for a in inputs))
        return inputs, list(results) if isinstance(results, tuple) else [results]

    return Example.of(lambda shapes: _fused(build, shapes, kinds), draw, shapes)


def _fused(build: Callable[..., Any], shapes: Shapes, kinds: Sequence[str]) -> tirx.PrimFunc:
    builder = relax.BlockBuilder()
    params = [
        relax.Var(f"x{i}", relax.TensorType(list(shape), dtype))
        for i, (shape, dtype) in enumerate(zip(shapes, kinds, strict=True))
    ]
    with builder.function("main", params):
        with builder.dataflow():
            out = builder.emit_output(builder.normalize(build(*params)))
        builder.emit_func_output(out)
    mod = relax.transform.DecomposeOpsForInference()(builder.get())
    return fuse_whole(relax.transform.LegalizeOps()(mod))


def fuse_whole(mod: tvm.IRModule) -> tirx.PrimFunc:
    """All of ``main``'s kernels as one PrimFunc."""
    main = mod["main"]
    inner = relax.Function(main.params, main.body, main.ret_ty, attrs=main.attrs).without_attr(
        "global_symbol"
    )
    builder = relax.BlockBuilder(
        tvm.IRModule({g: f for g, f in mod.functions.items() if isinstance(f, tirx.PrimFunc)})
    )
    gvar = builder.add_func(inner.with_attr("Primitive", True), "fused")
    params = [relax.Var(p.name, p.ty) for p in main.params]
    with builder.function("main", params):
        with builder.dataflow():
            out = builder.emit_output(relax.Call(gvar, params))
        builder.emit_func_output(out)
    merged = relax.transform.FuseTIR()(builder.get())
    return next(f for f in merged.functions.values() if isinstance(f, tirx.PrimFunc))


def show(recipe: Recipe) -> int:
    """Print before, after and the iGraph of a recipe's example; 0 where its numbers are right, else 1."""

    example = recipe.example()
    hw = hardware.get()
    scheduled = apply_default(example.func, hw)
    graph = completed(extract(scheduled, hw, name=recipe.hero.replace(" ", "_")))
    for title, body in (
        ("before", example.func.script()),
        ("after", scheduled.script()),
        ("iGraph", str(graph)),
    ):
        print(f"# ---- {title} ----\n{body}\n")

    built = tvm.compile(example.func.with_attr("global_symbol", "main"), target=DEFAULT_TARGET)
    emitted = run_built(built, example)
    ok = True
    interpreted = interpreter.run(graph, *example.inputs)
    for label, outputs in (("interpreter", interpreted), (DEFAULT_TARGET, emitted)):
        for got, want in zip(outputs, example.expected, strict=True):
            scale = max(1.0, float(np.abs(want).max(initial=0)))
            error = (
                float(np.abs(np.asarray(got, dtype="float64").reshape(want.shape) - want).max(initial=0))
                / scale
            )
            ok = ok and error <= TOLERANCE
            print(f"{label:>12}: max relative difference to NumPy {error:.2e} (limit {TOLERANCE:.0e})")
    print("numbers are right" if ok else "NUMBERS ARE WRONG")
    return 0 if ok else 1


def run_built(built: Any, example: Example) -> list[np.ndarray]:
    """Call a built PrimFunc on the example's inputs; its results, the last of its parameters."""
    shapes = [[int(d) for d in p.shape] for p in example.func.params[len(example.inputs) :]]
    outputs = [
        tvm.runtime.empty(shape, str(p.dtype))
        for shape, p in zip(shapes, example.func.params[len(example.inputs) :], strict=True)
    ]
    arguments = [tvm.runtime.tensor(a) for a in example.inputs]
    built["main"](*arguments, *outputs)
    return [o.numpy() for o in (*arguments, *outputs)[-len(example.expected) :]]
