# SPDX-License-Identifier: Apache-2.0
"""One case of a Relax operator: its tensors, their values, and the call; and the modules made of cases."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence

import attrs
import ml_dtypes
import numpy as np
import tvm
from tvm import relax

Shape = tuple[int, ...]
#: Random numbers, a shape and a dtype -> the values of a tensor.
Values = Callable[[np.random.Generator, Shape, np.dtype], np.ndarray]

#: One shape of every rank, and shapes without elements.
RANKS: tuple[Shape, ...] = ((), (5,), (3, 7), (2, 3, 5), (2, 1, 3, 4), (2, 1, 2, 3, 2), (1, 2, 1, 2, 3, 2))
EMPTY: tuple[Shape, ...] = ((0,), (3, 0), (2, 0, 4))

FLOATS = ("float32", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
#: Dtypes of which one case in `OF_RARE` is held: they run by the same code as their wider or narrower kin.
RARE = ("float8_e4m3fn", "float8_e5m2", "int16", "uint16", "uint32", "uint64")
OF_RARE = 4
NUMBERS = (*FLOATS, *INTEGERS)
ALL = (*NUMBERS, "bool")


def numpy_dtype(name: str) -> np.dtype:
    """NumPy's dtype of a name of TVM."""
    return np.dtype(getattr(ml_dtypes, name, name))


def spread(low: float, high: float) -> Values:
    """Numbers of an interval; integers of it for integers."""

    def values(rng: np.random.Generator, shape: Shape, dtype: np.dtype) -> np.ndarray:
        if dtype == np.bool_:
            return rng.integers(0, 2, shape).astype(dtype)
        if dtype.kind in "iu":
            first = max(int(np.ceil(low)), 0) if dtype.kind == "u" else int(np.ceil(low))
            return rng.integers(first, max(int(np.floor(high)), first) + 1, shape).astype(dtype)
        return rng.uniform(low, high, shape).astype(dtype)

    return values


def chosen(*numbers: float) -> Values:
    """Each of some numbers, over and over."""

    def values(rng: np.random.Generator, shape: Shape, dtype: np.dtype) -> np.ndarray:
        return np.resize(np.array(numbers, np.float64), shape).astype(dtype)

    return values


def distinct(count: int, axis: int = -1) -> Values:
    """Indices below ``count``, different from each other along an axis."""

    def values(rng: np.random.Generator, shape: Shape, dtype: np.dtype) -> np.ndarray:
        moved = np.moveaxis(np.empty(shape, dtype), axis, -1)
        for place in np.ndindex(moved.shape[:-1]):
            moved[place] = rng.permutation(count)[: moved.shape[-1]]
        return np.moveaxis(moved, -1, axis)

    return values


def shuffled(rng: np.random.Generator, shape: Shape, dtype: np.dtype) -> np.ndarray:
    """Numbers all different, so that an order among them is the only one."""
    size = int(np.prod(shape))
    if dtype.itemsize == 1 and dtype.kind not in "iub":
        # every second of a byte's floats: those near 1 among them, and no integers that it lacks
        return (0x30 + rng.permutation(size)).astype("uint8").view(dtype).reshape(shape)
    return (rng.permutation(size) - size // 2).reshape(shape).astype(dtype)


def rising(rng: np.random.Generator, shape: Shape, dtype: np.dtype) -> np.ndarray:
    """Numbers in order."""
    return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)


PLAIN = spread(-4, 4)
POSITIVE = spread(0.1, 3)
NONZERO = spread(1, 4)
UNIT = spread(-0.9, 0.9)
ABOVE_ONE = spread(1.1, 4)


@attrs.frozen
class Input:
    """A tensor that a case takes."""

    shape: Shape
    dtype: str = "float32"
    values: Values = PLAIN


@attrs.frozen
class Case:
    """One call of an operator.

    Attributes
    ----------
    operator : str
        Relax's name, without its prefix.
    variant : str
        What tells it from the operator's other cases: dtype, shape, attributes.
    inputs : tuple of Input
    call : callable
        The call, of as many variables as there are inputs.
    tolerance : float
        How many times the dtype's own tolerance it may be off.
    reference : callable, optional
        NumPy's meaning, of as many arrays, where stock TVM's numbers are not those that are wanted.
    """

    operator: str
    variant: str
    inputs: tuple[Input, ...]
    call: Callable[..., tvm.ir.Expr]
    tolerance: float = 1.0
    reference: Callable[..., np.ndarray | tuple[np.ndarray, ...]] | None = None

    @property
    def name(self) -> str:
        """Unique among all cases."""
        return f"{self.operator}-{self.variant}"

    @property
    def dtype(self) -> str:
        """The dtype that the tables list it under: that of its data, the first word of its variant."""
        return self.variant.partition("-")[0]

    @property
    def empty(self) -> bool:
        """Whether one of its tensors has no elements."""
        return any(0 in given.shape for given in self.inputs)

    def arrays(self) -> list[np.ndarray]:
        """Its inputs' values; the same at every call."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return [given.values(rng, given.shape, numpy_dtype(given.dtype)) for given in self.inputs]


def module(cases: Sequence[Case]) -> tvm.IRModule:
    """A model whose outputs are those of the cases, each on inputs of its own."""
    builder = relax.BlockBuilder()
    params = [
        [
            relax.Var(f"x{number}_{position}", relax.TensorType(given.shape, given.dtype))
            for position, given in enumerate(case.inputs)
        ]
        for number, case in enumerate(cases)
    ]
    with builder.function("main", [var for of_case in params for var in of_case]):
        with builder.dataflow():
            made = [builder.emit(case.call(*given)) for case, given in zip(cases, params, strict=True)]
            leaves = [leaf for value in made for leaf in _leaves(builder, value)]
            results = builder.emit_output(relax.Tuple(leaves) if len(leaves) > 1 else leaves[0])
        builder.emit_func_output(results)
    return builder.get()


def _leaves(builder: relax.BlockBuilder, value: tvm.ir.Expr) -> list[tvm.ir.Expr]:
    if not isinstance(value.ty, relax.TupleType):
        return [value]
    return [builder.emit(relax.TupleGetItem(value, index)) for index in range(len(value.ty.fields))]


def dtypes_of(case: Case) -> list[str]:
    """The dtypes of the tensors that a case gives, as Relax declares them."""
    made = module([case])["main"].ret_ty
    fields = made.fields if isinstance(made, relax.TupleType) else [made]
    return [str(field.dtype) for field in fields]


def text(shape: Iterable[int]) -> str:
    """A shape in a case's name."""
    return "x".join(map(str, shape)) or "scalar"
