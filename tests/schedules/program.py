# SPDX-License-Identifier: Apache-2.0
"""Random functions as data: a list of steps that each make one value of earlier ones and of fresh inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np

Shape = tuple[int, ...]
#: Integer inputs are below it, so that they are indices into every table.
HIGHEST_INDEX = 5


@attrs.frozen
class Input:
    """A parameter."""

    shape: Shape
    dtype: str


@attrs.frozen
class Step:
    """One value: ``op`` of the values numbered ``sources``, with what else the operation needs."""

    op: str
    sources: tuple[int, ...]
    shape: Shape
    data: tuple[Any, ...] = ()


@attrs.frozen
class Program:
    """Inputs are the first values, every step adds one; ``outputs`` numbers those that are returned."""

    dtype: str
    inputs: tuple[Input, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]


def random_inputs(program: Program, seed: int) -> list[np.ndarray]:
    """Arrays for the inputs; integers below `HIGHEST_INDEX`, so that comparisons often tie."""
    rng = np.random.default_rng(seed)
    return [_random(x, rng) for x in program.inputs]


def _random(x: Input, rng: np.random.Generator) -> np.ndarray:
    if x.dtype == "bool":
        return rng.integers(0, 2, x.shape).astype(np.bool_)
    if "int" in x.dtype:
        return rng.integers(0, HIGHEST_INDEX, x.shape).astype(x.dtype)
    return rng.uniform(-2, 2, x.shape).astype(x.dtype)


def describe(program: Program) -> Iterator[str]:
    """The program, a value a line."""
    for k, x in enumerate(program.inputs):
        yield f"{k}: {x.dtype}{list(x.shape)}"
    for k, s in enumerate(program.steps, len(program.inputs)):
        yield f"{k}: {s.op}{list(s.data)} of {list(s.sources)} -> {list(s.shape)}"
    yield f"outputs {list(program.outputs)} in {program.dtype}"
