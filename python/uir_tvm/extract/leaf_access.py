# SPDX-License-Identifier: Apache-2.0
"""What a leaf reads and writes: addresses, index values and conditions, and the form of an update."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import tvm
from tvm import tirx
from tvm_ffi.structural import structural_equal

from ..igraph.affine import Affine
from ..igraph.coordinates import joined_dims, step_along, stride_of
from ..igraph.iops_scalar import REDUCE
from ..igraph.tir_calls import call_name
from .affine_from_tir import AffineConverter, NotAffineError
from .function_pointers import FunctionPointers, Storage
from .tree_nodes import Leaf


@attrs.frozen
class AffineQuantity:
    """One affine quantity of a leaf.

    ``kind`` is ``store`` or ``guard`` (must be linear in the tile), ``load`` or ``value`` (there is
    a way around, at a price).  ``dims`` are the dimensions behind an address whose strides sizes decide.
    """

    kind: str
    expr: Affine
    dims: tuple[Affine, ...] = ()

    def stride(self, name: str) -> int | Affine | None:
        """See `stride_along`."""
        return stride_along(self.expr, name, self.dims)


def stride_along(address: Affine, name: str, dims: Sequence[Affine]) -> int | Affine | None:
    """By how much an address grows with a variable: a number, or where ``dims`` are those of its pointer a
    product of sizes that is the stride of one of them, some times; None where neither is so.
    """
    if address.is_linear_in(name):
        return address.coefficient(name)
    stride = stride_of(address, name) if dims else None
    if stride is None or stride.is_constant:
        return None
    return stride if (step_along(stride, joined_dims(dims)) or (0, 0))[1] > 0 else None


@attrs.frozen
class Update:
    """``buffer[indices] = buffer[indices] op operand``; ``op`` is a name of the reduce table or and, or."""

    op: str
    store: Any
    operand: Any


_UPDATES: dict[type, str] = {
    tirx.Add: "add",
    tirx.Mul: "mul",
    tirx.Max: "max",
    tirx.Min: "min",
    tirx.And: "and",
    tirx.Or: "or",
}


def address_of(storage: Storage, indices: Sequence[Any], converter: AffineConverter) -> Affine:
    """The flattened row-major address of an element.

    Raises
    ------
    NotAffineError
        An index is not quasi-affine.
    """
    address = storage.base
    for index, start, stride in zip(indices, storage.start, storage.strides(), strict=True):
        address = address + (converter.convert(index) - start) * stride
    return converter.space.fold(address)


def update_of(leaf: Leaf) -> Update | None:
    """The leaf as a commutative update of one buffer; None when it is something else."""
    if len(leaf.stmts) != 1 or not isinstance(leaf.stmts[0].stmt, tirx.BufferStore):
        return None
    store = leaf.stmts[0].stmt
    op = _UPDATES.get(type(store.value))
    if op is None:
        return None
    for old, operand in ((store.value.a, store.value.b), (store.value.b, store.value.a)):
        if is_same_element(old, store) and not any(
            load.source.same_as(store.buffer) for load in loads_of(operand)
        ):
            return Update(op, store, operand)
    return None


def identity_of(update: Update, dtype: str) -> Any:
    """The number that an update with changes nothing, in an iGraph dtype."""
    if update.op in ("and", "or"):
        return update.op == "and"
    return REDUCE[update.op].identity(dtype)


def is_same_element(load: Any, store: Any) -> bool:
    """Whether an expression is a load of the element that a store writes."""
    return (
        isinstance(load, tvm.ir.TensorLoad)
        and load.source.same_as(store.buffer)
        and len(load.indices) == len(store.indices)
        and all(structural_equal(a, b) for a, b in zip(load.indices, store.indices, strict=True))
    )


#: The operands of a kind of expression node, where it has others than the nodes of arithmetic.
_OPERANDS: tuple[tuple[type, Callable[[Any], list[Any]]], ...] = (
    (tvm.ir.Call, lambda expr: list(expr.args)),
    (tvm.ir.TensorLoad, lambda expr: list(expr.indices)),
    (tirx.Select, lambda expr: [expr.condition, expr.true_value, expr.false_value]),
    (tirx.Cast, lambda expr: [expr.value]),
    (tirx.Let, lambda expr: [expr.value, expr.body]),
)


@functools.cache
def _operands(kind: type) -> Callable[[Any], list[Any]]:
    """What gives the operands of a kind of node: Python asks long whether TVM's objects are of a class."""
    found = next((operands for given, operands in _OPERANDS if issubclass(kind, given)), None)
    return found or (lambda expr: [getattr(expr, name) for name in ("a", "b") if hasattr(expr, name)])


def children(expr: Any) -> list[Any]:
    """The operands of an expression node."""
    return _operands(type(expr))(expr)  # type: ignore[arg-type]


def loads_of(expr: Any) -> Iterator[Any]:
    """Every load in an expression, the inner ones of an index as well."""
    if isinstance(expr, tvm.ir.TensorLoad):
        yield expr
    for child in children(expr):
        yield from loads_of(child)


def expressions_of(leaf: Leaf) -> Iterator[Any]:
    """Every value that the leaf computes, and the indices of its stores."""
    for guarded in leaf.stmts:
        yield guarded.stmt.value
        if isinstance(guarded.stmt, tirx.BufferStore):
            yield from guarded.stmt.indices


def accesses_of(leaf: Leaf) -> Iterator[tuple[Any, Sequence[Any], bool]]:
    """(buffer, indices, whether it is written) of every access."""
    for guarded in leaf.stmts:
        if isinstance(guarded.stmt, tirx.BufferStore):
            yield guarded.stmt.buffer, guarded.stmt.indices, True
    for expr in expressions_of(leaf):
        for load in loads_of(expr):
            yield load.source, load.indices, False


class ItemCollector:
    """Collects the affine quantities of a leaf in a given choice of loops."""

    def __init__(self, memory: FunctionPointers, converter: AffineConverter) -> None:
        self.memory, self.converter = memory, converter
        self.items: list[AffineQuantity] = []

    def collect(self, leaf: Leaf) -> list[AffineQuantity]:
        """Every quantity, stores and guards first."""
        for guarded in leaf.stmts:
            for condition in guarded.conditions:
                self._condition(condition, "guard")
            if isinstance(guarded.stmt, tirx.BufferStore):
                self._access(guarded.stmt.buffer, guarded.stmt.indices, "store")
        for guarded in leaf.stmts:
            self._value(guarded.stmt.value)
        return self.items

    def _access(self, buffer: Any, indices: Sequence[Any], kind: str) -> None:
        storage = self.memory.storages[buffer]
        address = storage.base
        for index, start, stride in zip(indices, storage.start, storage.strides(), strict=True):
            try:
                address = address + (self.converter.convert(index) - start) * stride
            except NotAffineError:
                self._value(index)
        self._add(kind, self.converter.space.fold(address), storage.dims)

    def _add(self, kind: str, expr: Affine, dims: tuple[Affine, ...] = ()) -> None:
        if not expr.is_constant:
            self.items.append(AffineQuantity(kind, expr, dims))

    def _condition(self, condition: Any, kind: str) -> None:
        if self.converter.decide(condition) is not None:
            return
        if isinstance(condition, tirx.And | tirx.Or):
            self._condition(condition.a, kind)
            self._condition(condition.b, kind)
        elif isinstance(condition, tirx.Not):
            self._condition(condition.a, kind)
        elif isinstance(condition, tvm.ir.Call) and call_name(condition) == "likely":
            self._condition(condition.args[0], kind)
        elif isinstance(condition, _COMPARES) and "int" in str(condition.a.ty):
            a, b = self.converter.try_convert(condition.a), self.converter.try_convert(condition.b)
            if a is not None and b is not None:
                self._add(kind, self.converter.space.fold(a - b))
            else:
                self._value(condition.a)
                self._value(condition.b)
        else:
            for child in children(condition):
                self._value(child)

    def _value(self, expr: Any) -> None:
        if isinstance(expr, tvm.ir.TensorLoad):
            self._access(expr.source, expr.indices, "load")
            return
        if "bool" in str(getattr(expr, "ty", "")):
            self._condition(expr, "value")
            return
        if "int" in str(getattr(expr, "ty", "")):
            converted = self.converter.try_convert(expr)
            if converted is not None:
                self._add("value", converted)
                return
        for child in children(expr):
            self._value(child)


_COMPARES = (tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE)
