# SPDX-License-Identifier: Apache-2.0
"""Design spaces of numbers alone, with a time that is known of every combination: searched in no time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm_ffi.structural import WalkResult, structural_hash, structural_walk
from uir_tvm.target import registry
from uir_tvm.tune.job import Result
from uir_tvm.tune.spaces import DesignSpace
from uir_tvm.tune.task import Task

from .kernels import kernel

#: Where the fastest schedule is, of `OPTIONS` for each number.
OPTIMUM, OPTIONS = (5, 2, 6, 1, 4), 8
NAMES = tuple(f"d{number}" for number in range(len(OPTIMUM)))


def task(target: str = "uir-cpu") -> Task:
    """relu(x + y)."""
    func = kernel(target=target)
    return Task("relu", func, registry.resolve(target).target)


def space(count: int = len(OPTIMUM), recipe: str = "synthetic", tile: bool = True) -> DesignSpace:
    """So many numbers of a list, and the tile of a loop; the numbers are annotations and change nothing."""
    begun = kernel()
    sch = Schedule(begun, debug_mask="none")
    loop, inner = sch.get_loops(sch.get_child_blocks(sch.get_sblock("root"))[0])
    names = list(NAMES[:count])
    for name in names:
        rv = sch.sample_categorical(list(range(OPTIONS)), [1 / OPTIONS] * OPTIONS, decision=0)
        sch.annotate(inner, name, rv)
    if tile:
        names.append("tile")
        sch.split(loop, sch.sample_perfect_tile(loop, 2, 8, decision=[24, 1]))
    sch.annotate(inner, "recipe", recipe)
    return DesignSpace(recipe, {}, begun, sch, tuple(names))


def decided(func: tirx.PrimFunc) -> dict[str, int]:
    """What a schedule of the space decided."""
    found: dict[str, int] = {}

    def visit(loop: tirx.For) -> WalkResult:
        found.update({name: int(v) for name, v in loop.annotations.items() if name in NAMES})
        return WalkResult.ADVANCE

    structural_walk(func.body, (tirx.For, visit), order="pre")
    return found


def cost(func: tirx.PrimFunc) -> float:
    """Seconds: 1 at the optimum, more with every step away from it, not evenly."""
    values = decided(func)
    away = [abs(values[name] - best) for name, best in zip(NAMES, OPTIMUM, strict=False) if name in values]
    return (
        1.0
        + sum(a * a for a in away) / 4
        + sum((a + b) % 2 for a, b in zip(away, away[1:], strict=False)) / 8
    )


class Vague:
    """A cost model that is right up to a factor of its own for each schedule."""

    def __init__(self, off: float = 0.5) -> None:
        self.off = off

    def predict(self, graphs: Sequence[Any]) -> list[float]:
        """See `uir_tvm.tune.search.Predictor`; the graphs are functions (`without_graphs`)."""
        return [cost(g) * random.Random(structural_hash(g)).lognormvariate(0, self.off) for g in graphs]


def without_graphs(monkeypatch: Any, refuse: Any = lambda func: None) -> None:
    """Let functions stand for their iGraphs: the search is what is tested, not the verifier.

    Parameters
    ----------
    refuse : callable
        Raises for a function what the verifier would.
    """
    monkeypatch.setattr("uir_tvm.tune.candidates.extract", lambda func, hw, name: func)

    def completed(func: Any) -> Any:
        refuse(func)
        return func

    monkeypatch.setattr("uir_tvm.tune.candidates.completed", completed)


def told(candidates: Sequence[Any]) -> list[Result]:
    """Results by `cost`."""
    return [Result((cost(candidate.graph),)) for candidate in candidates]


def module_of(begun: tirx.PrimFunc) -> tvm.IRModule:
    """What traces are applied to."""
    return tvm.IRModule({"main": begun})
