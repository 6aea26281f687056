# SPDX-License-Identifier: Apache-2.0
"""Draws random functions.

The scalar functions keep values bounded and continuous, so that a difference between two computations stays
small unless one is wrong: selections and indices compare inputs, never computed floats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import attrs
from hypothesis import strategies as st

from .operations import COMPARE, REDUCE, scalars
from .program import HIGHEST_INDEX, Input, Program, Shape, Step

MAX_RANK, MAX_ELEMENTS = 4, 6000

_EXTENTS = st.one_of(st.integers(1, 7), st.sampled_from([1, 2, 8, 13, 16, 17, 31, 33, 64, 70]))
_OPERAND_DTYPES = {
    "float32": ("float32", "float32", "float32", "float16", "int32", "int8", "bool"),
    "float64": ("float64", "float32"),
    "int32": ("int32", "int32", "int8", "uint8", "bool"),
}
#: What an output may be cast to at the end.
_RESULTS = {"float32": ("float16", "float64"), "float64": ("float32",), "int32": ("int64", "float32")}


@st.composite
def shapes(draw: Any, largest: int = MAX_ELEMENTS) -> Shape:
    """A shape of up to four dimensions and ``largest`` elements, tails on most tiles."""
    rank = draw(st.integers(1, MAX_RANK))
    shape: list[int] = []
    for _ in range(rank):
        room = largest // max(1, math.prod(shape))
        shape.append(min(draw(_EXTENTS), max(1, room)))
    return tuple(shape)


class _Writer:
    """Draws the steps of one program."""

    def __init__(self, draw: Any, largest: int) -> None:
        self.draw, self.largest = draw, largest
        self.dtype = draw(st.sampled_from(["float32", "float32", "float32", "int32", "float64"]))
        self.inputs: list[Input] = []
        self.steps: list[tuple[Step, tuple[Any, ...]]] = []
        self.shapes: dict[Any, Shape] = {}
        self.current = self.operand(draw(shapes(largest)))
        self.results: list[Any] = []

    def input(self, shape: Shape, dtype: str) -> Any:
        """A fresh parameter."""
        key = ("x", len(self.inputs))
        self.inputs.append(Input(shape, dtype))
        self.shapes[key] = shape
        return key

    def operand(self, shape: Shape) -> Any:
        """A fresh parameter in the program's dtype, through a cast where it has another."""
        dtype = self.draw(st.sampled_from(_OPERAND_DTYPES[self.dtype]))
        fresh = self.input(shape, dtype)
        return fresh if dtype == self.dtype else self.add("cast", [fresh], shape, self.dtype)

    def add(self, op: str, sources: Sequence[Any], shape: Shape, *data: Any) -> Any:
        """One more step."""
        key = ("v", len(self.steps))
        self.steps.append((Step(op, (), shape, data), tuple(sources)))
        self.shapes[key] = shape
        return key

    @property
    def shape(self) -> Shape:
        return self.shapes[self.current]

    def broadcastable(self) -> Shape:
        """A shape that is broadcast to the current one."""
        dropped = self.draw(st.integers(0, len(self.shape) - 1))
        return tuple(1 if n == 1 or self.draw(st.booleans()) else n for n in self.shape[dropped:])

    def other(self) -> Any:
        """An earlier value of the program's dtype that is broadcast to the current shape, or a fresh one."""
        fits = [
            key
            for key, shape in self.shapes.items()
            if key[0] == "v" and len(shape) <= len(self.shape) and _fits(shape, self.shape)
        ]
        if fits and self.draw(st.booleans()):
            return self.draw(st.sampled_from(fits))
        return self.operand(self.broadcastable())

    # -- one method a kind of step

    def unary(self) -> Any:
        name = self.draw(st.sampled_from(sorted(scalars(self.dtype)[0])))
        return self.add("unary", [self.current], self.shape, name)

    def binary(self) -> Any:
        name = self.draw(st.sampled_from(sorted(scalars(self.dtype)[1])))
        return self.add("binary", [self.current, self.other()], self.shape, name)

    def where(self) -> Any:
        kind = self.draw(st.sampled_from(["int32", "float32", "int8"]))
        left, right = self.input(self.broadcastable(), kind), self.input(self.broadcastable(), kind)
        name, lazy = self.draw(st.sampled_from(sorted(COMPARE))), self.draw(st.booleans())
        return self.add("where", [left, right, self.current, self.other()], self.shape, name, lazy)

    def permute(self) -> Any:
        order = tuple(self.draw(st.permutations(range(len(self.shape)))))
        return self.add("permute", [self.current], tuple(self.shape[k] for k in order), order)

    def slice(self) -> Any:
        begin = tuple(self.draw(st.integers(0, n - 1)) for n in self.shape)
        stride = tuple(self.draw(st.sampled_from([1, 1, 1, 2, 3])) for _ in self.shape)
        rest = [-(-(n - b) // s) for n, b, s in zip(self.shape, begin, stride, strict=True)]
        shape = tuple(self.draw(st.integers(1, n)) for n in rest)
        return self.add("slice", [self.current], shape, begin, stride)

    def concat(self) -> Any:
        axis = self.draw(st.integers(0, len(self.shape) - 1))
        more = list(self.shape)
        more[axis] = self.draw(st.integers(1, 6))
        whole = tuple(n + (more[axis] if k == axis else 0) for k, n in enumerate(self.shape))
        return self.add("concat", [self.current, self.operand(tuple(more))], whole, axis)

    def pad(self) -> Any:
        before = tuple(self.draw(st.integers(0, 2)) for _ in self.shape)
        after = [self.draw(st.integers(0, 2)) for _ in self.shape]
        whole = tuple(b + n + a for b, n, a in zip(before, self.shape, after, strict=True))
        return self.add("pad", [self.current], whole, before, self.shape)

    def reduce(self) -> Any:
        axes = tuple(sorted(self.draw(st.sets(st.integers(0, len(self.shape) - 1), min_size=1))))
        keep = self.draw(st.booleans()) or len(axes) == len(self.shape)
        op = self.draw(st.sampled_from(sorted(REDUCE)))
        shape = tuple(1 if k in axes else n for k, n in enumerate(self.shape) if keep or k not in axes)
        reduced = self.add("reduce", [self.current], shape, op, axes, keep)
        if keep and self.draw(st.booleans()):
            # as normalisations do: the result meets what it was reduced from
            name = self.draw(st.sampled_from(sorted(scalars(self.dtype)[1])))
            return self.add("binary", [self.current, reduced], self.shape, name)
        return reduced

    def reshape(self) -> Any:
        shape = list(self.shape)
        if len(shape) > 1 and self.draw(st.booleans()):
            at = self.draw(st.integers(0, len(shape) - 2))
            shape[at : at + 2] = [shape[at] * shape[at + 1]]
        else:
            at = self.draw(st.integers(0, len(shape) - 1))
            factor = self.draw(st.sampled_from([d for d in range(1, shape[at] + 1) if shape[at] % d == 0]))
            shape[at : at + 1] = [shape[at] // factor, factor]
        if len(shape) > MAX_RANK:
            return self.current
        return self.add("reshape", [self.current], tuple(shape))

    def take(self) -> Any:
        # the current value is the table; indices are inputs, below HIGHEST_INDEX
        if self.shape[0] < HIGHEST_INDEX:
            return self.current
        count = self.draw(st.integers(1, 20))
        index = self.input((count,), self.draw(st.sampled_from(["int32", "int64"])))
        return self.add("take", [self.current, index], (count, *self.shape[1:]))

    def program(self) -> Program:
        """Some steps, then one or two outputs."""
        kinds = [self.unary, self.binary, self.where, self.permute, self.slice, self.concat, self.pad]
        kinds += [self.reduce, self.reduce, self.reshape, self.take, self.unary, self.binary, self.binary]
        for _ in range(self.draw(st.integers(1, 6))):
            self.current = kinds[self.draw(st.integers(0, len(kinds) - 1))]()
            if math.prod(self.shape) > 4 * self.largest:
                break
        if not self.steps:
            self.current = self.unary()
        if self.draw(st.integers(0, 4)) == 0:
            result = self.draw(st.sampled_from(_RESULTS[self.dtype]))
            self.current = self.add("cast", [self.current], self.shape, result)
        if self.current[0] == "x":
            self.current = self.unary()
        outputs = [self.current]
        used = {s for _, sources in self.steps for s in sources}
        outputs += [("v", k) for k in range(len(self.steps)) if ("v", k) not in used | {self.current}]
        if self.draw(st.integers(0, 3)) == 0:
            extra = self.draw(st.sampled_from([("v", k) for k in range(len(self.steps))]))
            outputs += [extra] if extra not in outputs else []
        number = {("x", k): k for k in range(len(self.inputs))}
        number |= {("v", k): len(self.inputs) + k for k in range(len(self.steps))}
        steps = [attrs.evolve(s, sources=tuple(number[x] for x in sources)) for s, sources in self.steps]
        return Program(self.dtype, tuple(self.inputs), tuple(steps), tuple(number[o] for o in outputs))


def _fits(shape: Shape, whole: Shape) -> bool:
    return all(a in (1, b) for a, b in zip(shape, whole[len(whole) - len(shape) :], strict=True))


@st.composite
def programs(draw: Any, largest: int = MAX_ELEMENTS) -> Program:
    """A random program, whose values have up to about ``largest`` elements."""
    return _Writer(draw, largest).program()
