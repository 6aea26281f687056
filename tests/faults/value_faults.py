# SPDX-License-Identifier: Apache-2.0
"""Faults of what is computed: a missing, a wrong, or a misplaced iOp."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from uir_tvm.igraph import IGraph, IOp, Loop
from uir_tvm.igraph.iops import REDUCE

from .edit import (
    Candidate,
    Path,
    Plant,
    changed,
    edited,
    iops,
    places,
    shuffled,
    siblings,
    with_body,
    without_unused,
)


def _edits(
    graph: IGraph, rng: random.Random, variants: Callable[[IOp], Iterator[tuple[str, IOp | None]]]
) -> Iterator[Plant]:
    found: list[Candidate] = []
    for position, iop in iops(graph):
        for what, new in variants(iop):
            found.append((f"{what} in iOp {position} ({iop.op})", _replaced(graph, position, new)))
    yield from shuffled(found, rng)


def _replaced(graph: IGraph, position: int, new: IOp | None) -> Callable[[], IGraph]:
    return lambda: without_unused(edited(graph, position, lambda _: new))


def drop_init(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Leave out a fill, let the first contraction accumulate, or one that accumulates begin anew."""

    def variants(iop: IOp) -> Iterator[tuple[str, IOp | None]]:
        if iop.op == "fill":
            yield "no fill", None
        if iop.op == "contract":
            now = bool(iop.attrs.get("accumulate", False))
            yield f"accumulate {not now}", changed(iop, attrs={"accumulate": not now})

    yield from _edits(graph, rng, variants)


def wrong_pad(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Another value for the padding of a move or gather, or of a fill."""

    def variants(iop: IOp) -> Iterator[tuple[str, IOp | None]]:
        name = "value" if iop.op == "fill" else "pad"
        if name in iop.attrs and iop.target.pointer.dtype != "bool":
            for other in _other_values(iop.attrs[name]):
                yield f"{name} {other} for {iop.attrs[name]}", changed(iop, attrs={name: other})
        elif name in iop.attrs:
            yield f"{name} inverted", changed(iop, attrs={name: not iop.attrs[name]})

    yield from _edits(graph, rng, variants)


def _other_values(value: float) -> list[float]:
    if isinstance(value, float) and not math.isfinite(value):
        return [0.0]
    return [value + 1, value - 1]


def drop_iop(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Leave out one iOp that is no sync."""

    def variants(iop: IOp) -> Iterator[tuple[str, IOp | None]]:
        if iop.op != "sync":
            yield "nothing", None

    yield from _edits(graph, rng, variants)


def wrong_axis(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Reduce or broadcast along the other axis, with the operand of one row as one of one column."""

    def variants(iop: IOp) -> Iterator[tuple[str, IOp | None]]:
        if iop.op not in ("reduce", "broadcast"):
            return
        axis = "col" if iop.attrs["axis"] == "row" else "row"
        yield f"axis {axis}", changed(iop, attrs={"axis": axis})
        # the same with an operand whose shape fits: only coverage or the values can tell
        field = "targets" if iop.op == "reduce" else "sources"
        thin = getattr(iop, field)[0]
        wide = (iop.sources if iop.op == "reduce" else iop.targets)[0]
        shape = (int(wide.rows), 1) if axis == "row" else (1, int(wide.cols))
        fitted = thin.replace(shape=shape, stride=(1, 1), rows=(None, None), cols=(None, None))
        yield f"axis {axis}, operand fitted", changed(iop, attrs={"axis": axis}, **{field: [fitted]})

    yield from _edits(graph, rng, variants)


#: What a slip of the pen makes of a name: one of the same arity that differs somewhere.
SLIPS: Mapping[str, Mapping[str, str]] = {
    "binary": {
        "add": "sub", "sub": "add", "mul": "add", "div": "mul", "max": "min", "min": "max", "and": "or",
        "or": "and", "xor": "or", "shl": "shr", "shr": "shl", "floordiv": "truncdiv", "truncdiv": "floordiv",
        "mod": "truncmod", "truncmod": "mod", "pow": "mul", "atan2": "add",
    },
    "unary": {
        "adds": "subs", "subs": "adds", "muls": "adds", "divs": "muls", "maxs": "mins", "mins": "maxs",
        "rsubs": "subs", "rdivs": "divs", "exp": "exp2", "exp2": "exp", "log": "log2", "log2": "log",
        "sqrt": "rsqrt", "rsqrt": "sqrt", "recip": "neg", "abs": "neg", "neg": "abs", "sin": "cos",
        "cos": "sin", "tanh": "sigmoid", "erf": "tanh", "sigmoid": "tanh", "relu": "abs", "floor": "ceil",
        "ceil": "floor", "round": "trunc", "trunc": "round", "copy": "neg", "pows": "muls",
        "ands": "adds", "shls": "muls", "shrs": "shls",
        "isnan": "isinf", "isinf": "isfinite", "isfinite": "isnan",
    },
    "compare": {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "eq": "ne", "ne": "eq"},
}  # fmt: skip


def wrong_op(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Another operator of the same arity, parameter or rounding."""

    def variants(iop: IOp) -> Iterator[tuple[str, IOp | None]]:
        if iop.op == "reduce":
            for name in REDUCE:
                if name != iop.name:
                    yield f"{name} for {iop.name}", changed(iop, name=name)
        slip = SLIPS.get(str(iop.op), {}).get(str(iop.name))
        if slip is not None:
            yield f"{slip} for {iop.name}", changed(iop, name=slip)
        params = list(iop.attrs.get("params", ()))
        if params:
            yield "parameter + 1", changed(iop, attrs={"params": [params[0] + 1, *params[1:]]})
        if iop.op == "cast" and "round" in iop.attrs:
            yield "no rounding mode", changed(iop, attrs={"round": None})
        if iop.op == "iota":
            yield "base + 1", changed(iop, attrs={"base": iop.attrs["base"] + 1})

    yield from _edits(graph, rng, variants)


#: iOps whose operands are not interchangeable.
_ORDERED = {
    "binary": ("sub", "div", "floordiv", "mod", "truncdiv", "truncmod", "pow", "atan2", "shl", "shr"),
    "compare": ("lt", "le", "gt", "ge"),
}


def swap_operands(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Exchange the operands of an iOp that has an order."""

    def variants(iop: IOp) -> Iterator[tuple[str, IOp | None]]:
        if iop.name in _ORDERED.get(str(iop.op), ()):
            yield "operands exchanged", changed(iop, sources=list(reversed(list(iop.sources))))
        if iop.op == "select":
            mask, a, b = iop.sources
            yield "branches exchanged", changed(iop, sources=[mask, b, a])

    yield from _edits(graph, rng, variants)


# ---- the loop tree ------------------------------------------------------------------------------


def loop_extent(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """One iteration more or fewer."""
    found: list[Candidate] = []
    for path, node in places(graph.body):
        if isinstance(node, Loop):
            for extent in (node.extent - 1, node.extent + 1):
                if extent > 0:
                    text = f"loop over {node.var} {extent} times for {node.extent}"
                    found.append((text, _extended(graph, path, extent)))
    yield from shuffled(found, rng)


def _extended(graph: IGraph, path: Path, extent: int) -> Callable[[], IGraph]:
    def one(body: list[Any]) -> list[Any]:
        loop = body[path[-1]]
        body[path[-1]] = Loop(loop.var, extent, loop.body, loop.attrs)
        return body

    return lambda: with_body(graph, path, one)


def swap_iops(graph: IGraph, rng: random.Random) -> Iterator[Plant]:
    """Exchange two neighbours of which none is a sync."""
    found: list[Candidate] = []
    for path, _ in places(graph.body):
        body, at = siblings(graph, path), path[-1]
        if at + 1 < len(body) and not any(getattr(n, "op", "") == "sync" for n in body[at : at + 2]):
            found.append((f"nodes {path} and the next exchanged", _swapped(graph, path)))
    yield from shuffled(found, rng)


def _swapped(graph: IGraph, path: Path) -> Callable[[], IGraph]:
    def one(body: list[Any]) -> list[Any]:
        at = path[-1]
        body[at], body[at + 1] = body[at + 1], body[at]
        return body

    return lambda: with_body(graph, path, one)
