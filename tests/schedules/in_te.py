# SPDX-License-Identifier: Apache-2.0
"""Random functions as TVM PrimFuncs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tvm import te, tirx

from .operations import COMPARE, REDUCE, scalars
from .program import Program, Shape, Step


def to_prim_func(program: Program) -> tirx.PrimFunc:
    """The program as one PrimFunc, a block a step."""
    values: list[Any] = [te.placeholder(x.shape, x.dtype, f"x{k}") for k, x in enumerate(program.inputs)]
    params = list(values)
    backend = _Te(program)
    for number, step in enumerate(program.steps):
        values.append(backend.step(number, step, [values[s] for s in step.sources]))
    return te.create_prim_func(params + [values[o] for o in program.outputs])


def _aligned(index: Sequence[Any], shape: Shape) -> list[Any]:
    """The index into an operand of ``shape`` that is broadcast to the index's rank."""
    tail = index[len(index) - len(shape) :]
    return [0 if extent == 1 else i for i, extent in zip(tail, shape, strict=True)]


class _Te:
    """Values as te tensors."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def step(self, number: int, step: Step, xs: list[Any]) -> Any:
        name = f"v{number}"
        return getattr(self, f"_{step.op}")(step, xs, name)

    def _compute(self, step: Step, name: str, element: Callable[..., Any]) -> Any:
        return te.compute(step.shape, lambda *i: element(list(i)), name)

    def _at(self, x: Any, index: Sequence[Any]) -> Any:
        return x(*_aligned(index, tuple(int(n) for n in x.shape)))

    def _unary(self, step: Step, xs: list[Any], name: str) -> Any:
        f = scalars(self.program.dtype)[0][step.data[0]][0]
        return self._compute(step, name, lambda i: f(self._at(xs[0], i)))

    def _binary(self, step: Step, xs: list[Any], name: str) -> Any:
        f = scalars(self.program.dtype)[1][step.data[0]][0]
        return self._compute(step, name, lambda i: f(self._at(xs[0], i), self._at(xs[1], i)))

    def _where(self, step: Step, xs: list[Any], name: str) -> Any:
        compare, lazy = COMPARE[step.data[0]][0], step.data[1]
        choose = tirx.if_then_else if lazy else tirx.Select
        return self._compute(
            step,
            name,
            lambda i: choose(
                compare(self._at(xs[0], i), self._at(xs[1], i)), self._at(xs[2], i), self._at(xs[3], i)
            ),
        )

    def _cast(self, step: Step, xs: list[Any], name: str) -> Any:
        return self._compute(step, name, lambda i: self._at(xs[0], i).astype(step.data[0]))

    def _permute(self, step: Step, xs: list[Any], name: str) -> Any:
        inverse = np.argsort(step.data[0])
        return self._compute(step, name, lambda i: xs[0](*[i[k] for k in inverse]))

    def _slice(self, step: Step, xs: list[Any], name: str) -> Any:
        begin, stride = step.data
        return self._compute(
            step, name, lambda i: xs[0](*[b + k * s for b, k, s in zip(begin, i, stride, strict=True)])
        )

    def _concat(self, step: Step, xs: list[Any], name: str) -> Any:
        axis = step.data[0]
        first = int(xs[0].shape[axis])

        def element(i: list[Any]) -> Any:
            j = list(i)
            j[axis] = i[axis] - first
            return tirx.if_then_else(i[axis] < first, xs[0](*i), xs[1](*j))

        return self._compute(step, name, element)

    def _pad(self, step: Step, xs: list[Any], name: str) -> Any:
        before, inner = step.data

        def element(i: list[Any]) -> Any:
            j = [k - b for k, b in zip(i, before, strict=True)]
            inside = [c for k, n in zip(j, inner, strict=True) for c in (k >= 0, k < n)]
            return tirx.if_then_else(tirx.all(*inside), xs[0](*j), tirx.const(1, xs[0].dtype))

        return self._compute(step, name, element)

    def _reduce(self, step: Step, xs: list[Any], name: str) -> Any:
        op, axes, keep = step.data
        x = xs[0]
        ks = {a: te.reduce_axis((0, int(x.shape[a])), f"k{a}") for a in axes}

        def element(i: list[Any]) -> Any:
            rest = list(i) if keep else None
            index, position = [], 0
            for a in range(len(x.shape)):
                if a in ks:
                    index.append(ks[a])
                else:
                    index.append(rest[a] if rest is not None else i[position])
                    position += 1
            return REDUCE[op][0](x(*index), axis=[ks[a] for a in axes])

        return self._compute(step, name, element)

    def _reshape(self, step: Step, xs: list[Any], name: str) -> Any:
        x = xs[0]
        old = [int(n) for n in x.shape]

        def element(i: list[Any]) -> Any:
            flat: Any = 0
            for k, n in zip(i, step.shape, strict=True):
                flat = flat * n + k
            index = []
            for n in reversed(old):
                index.append(tirx.floormod(flat, n))
                flat = tirx.floordiv(flat, n)
            return x(*reversed(index))

        return self._compute(step, name, element)

    def _take(self, step: Step, xs: list[Any], name: str) -> Any:
        table, index = xs
        return self._compute(step, name, lambda i: table(index(i[0]), *i[1:]))
