# SPDX-License-Identifier: Apache-2.0
"""Random functions in NumPy, which says what they are to compute."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .operations import COMPARE, REDUCE, scalars
from .program import Program, Step


def in_numpy(program: Program, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], float]:
    """Outputs (floats in float64), and the largest magnitude of any value on the way."""
    values: list[np.ndarray] = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]
    backend = _NumPy(program)
    for number, step in enumerate(program.steps):
        values.append(backend.step(number, step, [values[s] for s in step.sources]))
    largest = max(float(np.abs(v.astype(np.float64)).max()) for v in values)
    return [values[o] for o in program.outputs], largest


class _NumPy:
    """Values as arrays, floats in float64."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def step(self, _number: int, step: Step, xs: list[np.ndarray]) -> np.ndarray:
        value = getattr(self, f"_{step.op}")(step, xs)
        assert value.shape == step.shape, (step, value.shape)
        return value

    def _unary(self, step: Step, xs: list[np.ndarray]) -> np.ndarray:
        return scalars(self.program.dtype)[0][step.data[0]][1](xs[0])

    def _binary(self, step: Step, xs: list[np.ndarray]) -> np.ndarray:
        return scalars(self.program.dtype)[1][step.data[0]][1](xs[0], xs[1])

    def _where(self, step: Step, xs: list[np.ndarray]) -> np.ndarray:
        return np.where(COMPARE[step.data[0]][1](xs[0], xs[1]), xs[2], xs[3])

    def _cast(self, step: Step, xs: list[np.ndarray]) -> np.ndarray:
        to = step.data[0]
        return xs[0].astype(np.float64) if "float" in to else xs[0].astype(to)

    def _permute(self, step: Step, xs: list[np.ndarray]) -> np.ndarray:
        return xs[0].transpose(step.data[0])

    def _slice(self, step: Step, xs: list[np.ndarray]) -> np.ndarray:
        begin, stride = step.data
        cut = [slice(b, b + (n - 1) * s + 1, s) for b, n, s in zip(begin, step.shape, stride, strict=True)]
        return xs[0][tuple(cut)]

    def _concat(self, step: Step, xs: list[np.ndarray]) -> np.ndarray:
        return np.concatenate(xs, axis=step.data[0])

    def _pad(self, step: Step, xs: list[np.ndarray]) -> np.ndarray:
        before, inner = step.data
        widths = [(b, n - b - m) for b, n, m in zip(before, step.shape, inner, strict=True)]
        return np.pad(xs[0], widths, constant_values=1)

    def _reduce(self, step: Step, xs: list[np.ndarray]) -> np.ndarray:
        op, axes, keep = step.data
        return np.asarray(REDUCE[op][1](xs[0], axis=axes, keepdims=keep)).astype(xs[0].dtype)

    def _reshape(self, step: Step, xs: list[np.ndarray]) -> np.ndarray:
        return xs[0].reshape(step.shape)

    def _take(self, step: Step, xs: list[np.ndarray]) -> np.ndarray:
        return xs[0][xs[1]]
