# SPDX-License-Identifier: Apache-2.0
"""Random functions: short programs over tensors, as a TVM PrimFunc and in NumPy.

A program is a list of steps that each make one value of earlier ones and of fresh inputs.  The scalar
functions keep values bounded and continuous, so that a difference between two computations stays small
unless one is wrong: selections and indices compare inputs, never computed floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
from hypothesis import strategies as st
from tvm import te, tirx

MAX_RANK, MAX_ELEMENTS = 4, 6000
Shape = tuple[int, ...]


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


# ---- the operations: in te on elements, in NumPy on arrays -------------------------------------------------


def _logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


#: Scalar functions of floats: (te, NumPy).
FLOAT_UNARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "neg": (lambda x: -x, lambda x: -x),
    "abs": (tirx.abs, np.abs),
    "half": (lambda x: x * 0.5 + 0.25, lambda x: x * 0.5 + 0.25),
    "relu": (lambda x: tirx.max(x, _like(x, 0)), lambda x: np.maximum(x, 0)),
    "clipped exp": (lambda x: tirx.exp(tirx.min(x, _like(x, 2))), lambda x: np.exp(np.minimum(x, 2))),
    "tanh": (tirx.tanh, np.tanh),
    "sigmoid": (tirx.sigmoid, _logistic),
    "erf": (tirx.erf, lambda x: np.vectorize(math.erf, otypes=[np.float64])(x)),
    "root": (lambda x: tirx.sqrt(tirx.abs(x) + 0.25), lambda x: np.sqrt(np.abs(x) + 0.25)),
    "reciprocal root": (lambda x: tirx.rsqrt(x * x * 0.1 + 1.0), lambda x: 1 / np.sqrt(x * x * 0.1 + 1)),
    "log": (lambda x: tirx.log(tirx.abs(x) + 1.0), lambda x: np.log(np.abs(x) + 1)),
}
FLOAT_BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (lambda a, b: a + b, np.add),
    "sub": (lambda a, b: a - b, np.subtract),
    "mul": (lambda a, b: a * b * 0.25, lambda a, b: a * b * 0.25),
    "div": (lambda a, b: a / (tirx.abs(b) + 0.5), lambda a, b: a / (np.abs(b) + 0.5)),
    "max": (tirx.max, np.maximum),
    "min": (tirx.min, np.minimum),
}
INT_UNARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "neg": (lambda x: _like(x, 0) - x, lambda x: -x),
    "abs": (tirx.abs, np.abs),
    "third": (lambda x: tirx.floordiv(x, _like(x, 3)), lambda x: x // 3),
    "rest": (lambda x: tirx.floormod(x, _like(x, 7)), lambda x: x % 7),
    "bits": (lambda x: x & _like(x, 0x55), lambda x: x & 0x55),
    "shift": (lambda x: x >> _like(x, 1), lambda x: x >> 1),
}
INT_BINARY: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (lambda a, b: a + b, np.add),
    "sub": (lambda a, b: a - b, np.subtract),
    # the factors are cut to a byte, so that no chain overflows
    "mul": (lambda a, b: (a & _like(a, 63)) * (b & _like(b, 63)), lambda a, b: (a & 63) * (b & 63)),
    "max": (tirx.max, np.maximum),
    "min": (tirx.min, np.minimum),
    "xor": (lambda a, b: a ^ b, np.bitwise_xor),
}
COMPARE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "gt": (lambda a, b: a > b, np.greater),
    "le": (lambda a, b: a <= b, np.less_equal),
    "eq": (lambda a, b: tirx.EQ(a, b), np.equal),
}
REDUCE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sum": (te.sum, np.sum),
    "max": (te.max, np.max),
    "min": (te.min, np.min),
}


def _like(x: Any, value: float) -> Any:
    return tirx.const(value, x.ty.dtype if hasattr(x, "ty") else x.dtype)


def _scalars(dtype: str) -> tuple[dict[str, Any], dict[str, Any]]:
    return (INT_UNARY, INT_BINARY) if "int" in dtype else (FLOAT_UNARY, FLOAT_BINARY)


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
        f = _scalars(self.program.dtype)[0][step.data[0]][0]
        return self._compute(step, name, lambda i: f(self._at(xs[0], i)))

    def _binary(self, step: Step, xs: list[Any], name: str) -> Any:
        f = _scalars(self.program.dtype)[1][step.data[0]][0]
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


class _NumPy:
    """Values as arrays, floats in float64."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def step(self, _number: int, step: Step, xs: list[np.ndarray]) -> np.ndarray:
        value = getattr(self, f"_{step.op}")(step, xs)
        assert value.shape == step.shape, (step, value.shape)
        return value

    def _unary(self, step: Step, xs: list[np.ndarray]) -> np.ndarray:
        return _scalars(self.program.dtype)[0][step.data[0]][1](xs[0])

    def _binary(self, step: Step, xs: list[np.ndarray]) -> np.ndarray:
        return _scalars(self.program.dtype)[1][step.data[0]][1](xs[0], xs[1])

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


def to_prim_func(program: Program) -> tirx.PrimFunc:
    """The program as one PrimFunc, a block a step."""
    values: list[Any] = [te.placeholder(x.shape, x.dtype, f"x{k}") for k, x in enumerate(program.inputs)]
    params = list(values)
    backend = _Te(program)
    for number, step in enumerate(program.steps):
        values.append(backend.step(number, step, [values[s] for s in step.sources]))
    return te.create_prim_func(params + [values[o] for o in program.outputs])


def in_numpy(program: Program, arrays: Sequence[np.ndarray]) -> tuple[list[np.ndarray], float]:
    """Outputs (floats in float64), and the largest magnitude of any value on the way."""
    values: list[np.ndarray] = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]
    backend = _NumPy(program)
    for number, step in enumerate(program.steps):
        values.append(backend.step(number, step, [values[s] for s in step.sources]))
    largest = max(float(np.abs(v.astype(np.float64)).max()) for v in values)
    return [values[o] for o in program.outputs], largest


# ---- the strategy ------------------------------------------------------------------------------------------

_EXTENTS = st.one_of(st.integers(1, 7), st.sampled_from([1, 2, 8, 13, 16, 17, 31, 33, 64, 70]))
_OPERAND_DTYPES = {
    "float32": ("float32", "float32", "float32", "float16", "int32", "int8", "bool"),
    "float64": ("float64", "float32"),
    "int32": ("int32", "int32", "int8", "uint8", "bool"),
}
#: What an output may be cast to at the end.
_RESULTS = {"float32": ("float16", "float64"), "float64": ("float32",), "int32": ("int64", "float32")}


@st.composite
def shapes(draw: Any, low: int = 1) -> Shape:
    """A shape of up to four dimensions and some thousand elements, tails on most tiles."""
    rank = draw(st.integers(low, MAX_RANK))
    shape: list[int] = []
    for _ in range(rank):
        room = MAX_ELEMENTS // max(1, math.prod(shape))
        shape.append(min(draw(_EXTENTS), max(1, room)))
    return tuple(shape)


class _Writer:
    """Draws the steps of one program."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.dtype = draw(st.sampled_from(["float32", "float32", "float32", "int32", "float64"]))
        self.inputs: list[Input] = []
        self.steps: list[tuple[Step, tuple[Any, ...]]] = []
        self.shapes: dict[Any, Shape] = {}
        self.current = self.operand(draw(shapes()))
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
        name = self.draw(st.sampled_from(sorted(_scalars(self.dtype)[0])))
        return self.add("unary", [self.current], self.shape, name)

    def binary(self) -> Any:
        name = self.draw(st.sampled_from(sorted(_scalars(self.dtype)[1])))
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
            name = self.draw(st.sampled_from(sorted(_scalars(self.dtype)[1])))
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
            if math.prod(self.shape) > 4 * MAX_ELEMENTS:
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


#: Integer inputs are below it, so that they are indices into every table.
HIGHEST_INDEX = 5


def _fits(shape: Shape, whole: Shape) -> bool:
    return all(a in (1, b) for a, b in zip(shape, whole[len(whole) - len(shape) :], strict=True))


@st.composite
def programs(draw: Any) -> Program:
    """A random program."""
    return _Writer(draw).program()


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
