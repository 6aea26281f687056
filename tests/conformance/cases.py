# SPDX-License-Identifier: Apache-2.0
"""The table of conformance cases: every iOp, dtype and shape class.

A case is one graph with an output per scalar function of its class, each computed from operands that were
moved on chip.  `CASES` holds all of them by name, ``CLASS-DTYPE-SHAPE``.  What a target refuses is listed by
operation (`refusals.py`), so that it computes the others of the case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from uir_tvm.igraph import HardwareModel, IGraph, IOp, IPointer, ISlice, make, var
from uir_tvm.igraph.dtypes import DTYPES, numpy_of
from uir_tvm.igraph.iops import BINARY, COMPARE, IOPS, REDUCE, UNARY
from uir_tvm.igraph.sizes import elements_at

from .refusals import FP8_NAMES, Refusal, Subject, refusal_of
from .shapes import SHAPES, TABLE_ROWS, ShapeClass

#: Representative dtypes: every kind, and every width of float.
DTYPE_NAMES = ("fp64", "fp32", "fp16", "bf16", "int8", "int32", "int64", "uint8", "bool")
#: Relative (and, below one, absolute) error allowed to a target: functions of fp32 may be 4 ULP off (docs of
#: vector functions), narrow floats round once, where a value near a tie may fall on the other side.
TOLERANCE = {"fp64": 1e-13, "fp32": 6e-7, "fp16": 2e-3, "bf16": 1.6e-2, "fp8e4m3": 0.13, "fp8e5m2": 0.26}
#: Sums of some ten terms in another order: each rounding is half an ULP of a partial sum.
SUM_TOLERANCE = {"fp64": 1e-13, "fp32": 2e-6, "fp16": 8e-3, "bf16": 6e-2, "fp8e4m3": 0.26, "fp8e5m2": 0.51}


@attrs.frozen
class Operand:
    """One operand: its dtype, part of the shape class, and the interval its values come from."""

    dtype: str
    part: str = "full"
    low: float = -4.0
    high: float = 4.0
    #: Whether its values are pairwise different indices (of a scatter).
    distinct: bool = False


@attrs.frozen
class Operation:
    """One iOp with its operands; ``make(target, *sources)`` gives it, or it among others."""

    name: str
    target: Operand
    sources: tuple[Operand, ...]
    make: Callable[..., IOp | list[IOp]]
    #: Sums: their error grows with the number of terms.
    sums: bool = False
    #: Whether the target is written where it lies in dram, keeping what it held (scatter).
    in_place: bool = False

    def subject(self, kind: str) -> Subject:
        """What the tables of refusals go by."""
        dtypes = (self.target.dtype, *(source.dtype for source in self.sources))
        return Subject(kind, self.name, self.target.dtype, dtypes)


@attrs.frozen
class Case:
    """One graph and inputs for it."""

    name: str
    shape: ShapeClass
    operations: tuple[Operation, ...]

    @property
    def kind(self) -> str:
        """Its class."""
        return self.name.partition("-")[0]

    def kept(self, target: str) -> Case:
        """The case with those operations that a target must compute."""
        refused = [operation for operation, _ in self.refused(target)]
        return attrs.evolve(self, operations=tuple(o for o in self.operations if o not in refused))

    def refused(self, target: str) -> list[tuple[Operation, Refusal]]:
        """The operations that a target must refuse, and why."""
        reasons = [(o, refusal_of(target, o.subject(self.kind))) for o in self.operations]
        return [(operation, reason) for operation, reason in reasons if reason is not None]

    def only(self, operation: Operation) -> Case:
        """The case with one of its operations."""
        return attrs.evolve(self, operations=(operation,))

    def build(self, hardware: HardwareModel) -> tuple[IGraph, list[np.ndarray]]:
        """The graph for some hardware, and inputs in the order of its signature."""
        made = CaseGraph(self, self.shape, hardware)
        return made.graph, made.arrays({})

    def tolerance(self, output: int) -> float:
        """Relative error allowed to an output; 0 for what is no float."""
        operation = self.operations[output]
        table = SUM_TOLERANCE if operation.sums else TOLERANCE
        return table.get(operation.target.dtype, 0.0)


class CaseGraph:
    """The graph of a case in a shape, and inputs for it; operands of equal description share their memory.

    Parameters
    ----------
    shape : ShapeClass or OpenShape
        Where operands lie, and how a unit goes through its tiles.
    """

    def __init__(self, case: Case, shape: Any, hardware: HardwareModel) -> None:
        self.shape = shape
        self.inputs: dict[tuple[int, Operand], IPointer] = {}
        self.onchip: dict[tuple[str, str, int], IPointer] = {}
        self.outputs: list[IPointer] = []
        self.initial: list[tuple[IPointer, Operand, int]] = []
        self.body: list[Any] = []
        for operation in case.operations:
            self._add(operation)
        pointers = [*self.inputs.values(), *self.outputs, *self.onchip.values()]
        name, body = case.name.replace("-", "_"), shape.around(self.body)
        self.graph = IGraph(
            name, hardware, shape.units, 1, pointers, body, {}, tuple(shape.sizes), shape.groups
        )

    def arrays(self, sizes: Mapping[str, int]) -> list[np.ndarray]:
        """Inputs at some sizes, in the order of the signature."""
        given = [(p, operand, n) for n, ((_, operand), p) in enumerate(self.inputs.items())]
        return [values(operand, elements_at(p, sizes), n) for p, operand, n in (*given, *self.initial)]

    def _add(self, operation: Operation) -> None:
        loads: list[IOp] = []
        loaded = [self._loaded(n, operand, loads) for n, operand in enumerate(operation.sources)]
        t = operation.target
        role = "inout" if operation.in_place else "out"
        out = self.shape.dram(f"{operation.name}_out", t.dtype, t.part, role)
        self.outputs.append(out)
        outside = self.shape.outside(out, t.part)
        if operation.in_place:
            self.initial.append((out, t, len(self.outputs)))
            self.body += [*loads, *_list(operation.make(outside, *loaded))]
            return
        inside = self.shape.inside(self._chip("t", t, 0), t.part)
        made = [*loads, *_list(operation.make(inside, *loaded))]
        self.body += [*self.shape.rounds(made, inside, len(self.outputs)), make.move(outside, inside)]

    def _loaded(self, position: int, operand: Operand, loads: list[IOp]) -> ISlice:
        key = (position, operand)
        if key not in self.inputs:
            name = f"x{len(self.inputs)}"
            self.inputs[key] = self.shape.dram(name, operand.dtype, operand.part, "in")
        outside = self.shape.outside(self.inputs[key], operand.part)
        if operand.part == "table":
            return outside
        inside = self.shape.inside(self._chip("s", operand, position), operand.part)
        loads.append(make.move(inside, outside))
        return inside

    def _chip(self, side: str, operand: Operand, position: int) -> IPointer:
        key = (f"{side}_{operand.dtype}", operand.part, position)
        rows, cols = self.shape.extent(operand.part)
        name = f"{side}{position}_{operand.dtype}_{operand.part}"
        return self.onchip.setdefault(key, IPointer(name, "reg", operand.dtype, rows * cols, "tmp"))


def _list(made: IOp | list[IOp]) -> list[IOp]:
    return made if isinstance(made, list) else [made]


#: With it, most functions of the single integers of the smallest cases are not zero.
INTEGER_SEED = 0


def values(operand: Operand, size: int, seed: int) -> np.ndarray:
    """Random values of an operand's dtype in its interval."""
    rng = np.random.default_rng(seed)
    dtype, kind = numpy_of(operand.dtype), DTYPES[operand.dtype].kind
    if operand.distinct:
        return rng.permutation(max(size, TABLE_ROWS))[:size].astype(dtype)
    if kind == "float":
        return rng.uniform(operand.low, operand.high, size).astype(dtype)
    if kind == "bool":
        return rng.integers(0, 2, size).astype(dtype)
    low = 0 if kind == "uint" else int(operand.low)
    rng = np.random.default_rng((INTEGER_SEED, seed))
    return rng.integers(low, int(operand.high) + 1, size).astype(dtype)


#: Where a function is finite, other than [-4, 4].
_DOMAINS = {
    **dict.fromkeys(("log", "log2", "log1p", "sqrt", "rsqrt", "pow", "pows"), (0.05, 9.0)),
    **dict.fromkeys(("asin", "acos", "atanh"), (-0.9, 0.9)),
    "acosh": (1.0, 4.0),
    "tan": (-1.2, 1.2),
    **dict.fromkeys(("div", "recip", "rdivs", "mod", "floordiv", "truncdiv", "truncmod"), (0.5, 9.0)),
    **dict.fromkeys(("shl", "shr"), (0.0, 6.0)),
}
_PARAMS = {"pows": [2.0], "leaky_relu": [0.125]}
#: Integer powers with an exponent that is no constant: a target may have none.
_POWER = ("pow",)


def _unary(dtype: str) -> Iterator[Operation]:
    for name, row in UNARY.items():
        if DTYPES[dtype].kind in row.kinds:
            params = _PARAMS.get(name, [3.0] * row.n_params)
            operand = Operand(dtype, "full", *_DOMAINS.get(name, (-4.0, 4.0)))
            target = Operand("bool" if row.result == "bool" else dtype)
            yield Operation(name, target, (operand,), lambda t, s, n=name, p=params: make.unary(n, t, s, p))


def _binary(dtype: str) -> Iterator[Operation]:
    for name, row in BINARY.items():
        kind = DTYPES[dtype].kind
        if kind in row.kinds and (kind == "float" or name not in _POWER):
            operand = Operand(dtype, "full", *_DOMAINS.get(name, (-4.0, 4.0)))
            yield Operation(
                name, Operand(dtype), (operand, operand), lambda t, a, b, n=name: make.binary(n, t, a, b)
            )


def _compare(dtype: str) -> Iterator[Operation]:
    for name in COMPARE:
        few = Operand(dtype, "full", -2, 2)
        yield Operation(name, Operand("bool"), (few, few), lambda t, a, b, n=name: make.compare(n, t, a, b))


def _place(dtype: str) -> Iterator[Operation]:
    """What moves elements and computes nothing."""
    full, row, col = Operand(dtype), Operand(dtype, "row"), Operand(dtype, "col")
    yield Operation("move", full, (full,), make.move)
    yield Operation("select", full, (Operand("bool"), full, full), make.select)
    yield Operation("fill", full, (), lambda t: make.fill(t, 1))
    yield Operation("broadcast_row", full, (row,), lambda t, s: make.broadcast(t, s, "row"))
    yield Operation("broadcast_col", full, (col,), lambda t, s: make.broadcast(t, s, "col"))
    yield Operation("transpose", Operand(dtype, "turned"), (full,), make.transpose)
    if dtype != "bool":
        yield Operation("iota", full, (), lambda t: make.iota(t, 2 * var("pid") + 1, 3, 1))
    yield Operation("identity", full, (full,), _view)
    for scope in ("reg", "sram"):
        yield Operation(
            f"sync_{scope}", full, (full,), lambda t, s, at=scope: [make.move(t, s), make.sync(t, t, at)]
        )


def _view(t: ISlice, s: ISlice) -> list[IOp]:
    """The bytes of the tile seen as one row, between two moves."""
    whole = t.valid == (0, t.rows, 0, t.cols)
    flat = ISlice(t.pointer, 0, (1, t.rows * t.cols)) if whole else t
    return [make.move(t, s), make.identity([flat], [t])]


def _reduce(dtype: str) -> Iterator[Operation]:
    for name, row in REDUCE.items():
        if DTYPES[dtype].kind not in row.kinds:
            continue
        near_one = (0.8, 1.2) if name == "mul" else (-4.0, 4.0)
        for axis in ("row", "col"):
            yield Operation(
                f"{name}_{axis}",
                Operand(dtype, axis),
                (Operand(dtype, "full", *near_one),),
                lambda t, s, n=name, a=axis: make.reduce(n, t, s, a),
                sums=True,
            )


def _indexed(dtype: str) -> Iterator[Operation]:
    """Rows of a table by an index, some of them outside it."""
    table, full = Operand(dtype, "table"), Operand(dtype)
    for index in ("int32", "int64"):
        rows = Operand(index, "row", -3, TABLE_ROWS + 2)
        yield Operation(f"gather_{index}", full, (table, rows), make.gather)
    yield Operation("gather_pad", full, (table, rows), lambda t, s, i: make.gather(t, s, i, pad=1))
    apart = Operand("int64", "row", distinct=True)
    yield Operation("scatter", table, (full, apart), make.scatter, in_place=True)


def _contract(dtype: str) -> Iterator[Operation]:
    if dtype == "bool":
        return
    factors = {"int32": ("int32", "int8"), "fp32": ("fp32", "fp16", "bf16")}.get(dtype, (dtype,))
    for factor in factors:
        a, b = Operand(factor, "left"), Operand(factor, "right")
        yield Operation(f"contract_{factor}", Operand(dtype), (a, b), make.contract, sums=True)


def _cast(dtype: str) -> Iterator[Operation]:
    for source in DTYPE_NAMES:
        if source != dtype:
            low = 0.0 if DTYPES[dtype].kind == "uint" else -90.0
            yield Operation(
                f"cast_{source}", Operand(dtype), (Operand(source, "full", low, 90.0),), make.cast
            )


#: Class of cases -> its operations for a dtype.
CLASSES: dict[str, Callable[[str], Iterator[Operation]]] = {
    "unary": _unary,
    "binary": _binary,
    "compare": _compare,
    "place": _place,
    "reduce": _reduce,
    "indexed": _indexed,
    "contract": _contract,
    "cast": _cast,
}


def _others() -> Iterator[Case]:
    """What many targets say they cannot do, rather than doing it wrongly."""
    one, row = SHAPES["one"], SHAPES["row"]
    for dtype in FP8_NAMES:
        widen = Operation("cast", Operand("fp32"), (Operand(dtype),), make.cast)
        yield Case(f"widen-{dtype}-row", row, (widen,))
    power = Operation(
        "pow", Operand("int32"), (Operand("int32"),) * 2, lambda t, a, b: make.binary("pow", t, a, b)
    )
    yield Case("power-int32-one", one, (power,))
    directed = Operation(
        "cast_floor", Operand("fp16"), (Operand("fp32"),), lambda t, s: make.cast(t, s, "floor")
    )
    yield Case("cast_floor-fp16-row", row, (directed,))


def _cases() -> Iterator[Case]:
    for kind, operations in CLASSES.items():
        for dtype in (*DTYPE_NAMES, *FP8_NAMES):
            made = tuple(operations(dtype))
            for shape in SHAPES.values():
                if made:
                    yield Case(f"{kind}-{dtype}-{shape.name}", shape, made)
    yield from _others()


CASES: dict[str, Case] = {case.name: case for case in _cases()}


def _is_quick(case: Case) -> bool:
    """What is refused, fp32 in every shape class, the other dtypes ragged: that has tails and boxes."""
    kind, _, rest = case.name.partition("-")
    dtype, _, shape = rest.partition("-")
    if kind == "unary" and dtype in ("fp16", "bf16"):
        return (
            False  # forty functions, each of which test_bounds.py runs on every target over the whole range
        )
    if kind not in CLASSES or dtype not in (*DTYPE_NAMES, *FP8_NAMES) or shape == "ragged":
        return True
    # forty functions take long to compile, and differ little between shapes
    return dtype == "fp32" and (kind != "unary" or shape == "column")


#: What the tests run unless they are asked for all (`UIR_TEST_ALL`): every class and dtype.
QUICK: tuple[str, ...] = tuple(name for name, case in CASES.items() if _is_quick(case))


def covered() -> set[str]:
    """Classes of iOps that some case contains."""
    from uir_tvm import hardware

    wanted = hardware.get(None, "cpu")
    names: set[str] = set()
    for case in CASES.values():
        if case.shape.name == "one":
            names |= {iop.op for iop, _ in case.build(wanted)[0].walk()}
    assert names <= set(IOPS)
    return names


__all__: Sequence[str] = ("CASES", "CLASSES", "QUICK", "Case", "CaseGraph", "Operand", "Operation", "covered")
