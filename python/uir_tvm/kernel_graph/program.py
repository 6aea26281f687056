# SPDX-License-Identifier: Apache-2.0
"""The kernel graph's working form: values in memory, and operators that read strided views of them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any

import attrs
import numpy as np
import tvm
from tvm import relax

from ..quantized import Packing
from ..tensor_view import tensor_of
from .op_kinds import FINDING, OpKind, kind_of
from .strided_views import Layout, rebase


@attrs.frozen
class Quantized:
    """What a weight of few bits is unpacked of.

    Attributes
    ----------
    packing : Packing
    parts : tuple of Value
        Constants: codes, scales and, where the packing has them, offsets.
    """

    packing: Packing
    parts: tuple[Value, ...]


@attrs.define(eq=False)
class Value:
    """A tensor in memory: an input, a constant, or what an operator writes.

    Attributes
    ----------
    name, shape, dtype
        As in the source program; the name is unique.
    constant : tvm.ir.GenericConst, optional
        The constant that it is.
    producer : Op, optional
        The operator that writes it.
    storage : Layout
        Where its elements, in row-major order, lie in its buffer. Row-major itself unless a library
        operator writes it in the order that its reader wants; one flat dimension.
    in_memory : bool
        Whether kernels read it from memory, though it is one constant number: TVM must not see its value.
    memory : Value, optional
        The input in whose memory it lies, as the new value of a state (`kept_state.keep_state`).
    quantized : Quantized, optional
        What it is unpacked of by the operator that reads it; it is never in memory itself.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    constant: tvm.ir.GenericConst | None = None
    producer: Op | None = attrs.field(default=None, repr=lambda op: op.name if op else "None")
    storage: Layout = attrs.field(
        default=attrs.Factory(lambda self: Layout.contiguous([prod(self.shape)]), takes_self=True)
    )
    in_memory: bool = False
    memory: Value | None = attrs.field(default=None, repr=False)
    quantized: Quantized | None = attrs.field(default=None, repr=False)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of its buffer, or of what it is unpacked of."""
        if self.quantized is not None:
            return sum(part.nbytes for part in self.quantized.parts)
        return self.size * dtype_bytes(self.dtype)

    def view(self) -> View:
        """The whole of it, in its own shape."""
        if not self.size:
            return View(self, Layout.contiguous(self.shape))
        whole = rebase(Layout.contiguous(self.shape), self.storage)
        assert whole is not None, self
        return View(self, whole)

    @property
    def array(self) -> Any:
        """NumPy array of a constant: its own memory where NumPy knows the dtype, not to be written."""
        assert self.constant is not None
        tensor = self.constant.value
        return tensor.numpy() if self.dtype.startswith(("bfloat", "float8")) else np.from_dlpack(tensor)


@attrs.frozen(eq=False)
class View:
    """A strided reading of a value's buffer."""

    base: Value
    layout: Layout

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of what is read."""
        return self.layout.shape

    @property
    def is_whole(self) -> bool:
        """Whether it reads the value as it is."""
        return self.layout == self.base.view().layout

    def reshape(self, shape: Sequence[int]) -> View | None:
        """The same elements in another shape, if that costs nothing."""
        layout = self.layout.reshape(shape)
        return None if layout is None else View(self.base, layout)

    def broadcast(self, shape: Sequence[int]) -> View:
        """NumPy broadcasting."""
        return View(self.base, self.layout.broadcast(shape))

    @property
    def scalar(self) -> float | int | bool | None:
        """The number that it reads everywhere, if it is a constant of one element that code may hold."""
        if self.base.constant is None or self.base.size != 1 or self.base.in_memory:
            return None
        number = self.base.array.reshape(-1)[0].item()
        return number if isinstance(number, bool | int | float) else None


@attrs.define(eq=False)
class Op:
    """An operator of the program.

    Attributes
    ----------
    name : str
        Relax name without its prefix, or a name of `legalize.OWN_OPS`, or ``library.*``.
    call : tvm.ir.Call, optional
        The Relax call whose attributes and arguments that are no tensors it keeps; None for ``library.*``.
    operands : list of View
        Tensors in the order in which the call names them; those of an elementwise operator have the
        shape of its result.
    results : list of Value
        What it writes.
    attrs : dict
        Parameters of operators without a call.
    """

    name: str
    call: tvm.ir.Call | None
    operands: list[View]
    results: list[Value]
    attrs: dict[str, Any] = attrs.Factory(dict)

    @property
    def kind(self) -> OpKind:
        """Its entry in the table of kinds."""
        return kind_of(self.name)

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the first result."""
        return self.results[0].shape


@attrs.define(eq=False)
class StateValue:
    """A tensor that a call leaves changed for the next one.

    Attributes
    ----------
    name : str
        As the model calls it.
    value : Value
        The input that holds it.
    output : int
        Its new value among the program's outputs, until `kept_state.keep_state`.
    result : Value, optional
        Its new value, from then on; None: it is unchanged.
    how, why, written, copied
        As of `model_state.StateSpec`.
    """

    name: str
    value: Value
    output: int
    result: Value | None = None
    how: str = ""
    why: str = ""
    written: int = 0
    copied: int = 0


@attrs.define(eq=False)
class Program:
    """A straight line of operators, in an order in which they can run.

    Attributes
    ----------
    ops : list of Op
    inputs : list of Value
    outputs : list of View
    output_is_tuple : bool
        Whether the function returns a tuple.
    op_count : int
        Operators of the source program (views included), for the summary.
    state : list of StateValue
    waits : dict
        Operator -> others that must run before it, beside those whose results it reads.
    positions : dict
        What is checked before a call (`known_positions.note_position`).
    """

    ops: list[Op]
    inputs: list[Value]
    outputs: list[View]
    output_is_tuple: bool
    op_count: int
    state: list[StateValue] = attrs.Factory(list)
    waits: dict[Op, list[Op]] = attrs.Factory(dict)
    positions: dict[str, dict[str, Any]] = attrs.Factory(dict)
    _names: dict[str, int] = attrs.Factory(dict)

    def fresh(
        self, name: str, shape: Iterable[int], dtype: str, constant: tvm.ir.GenericConst | None = None
    ) -> Value:
        """A value with a name of its own."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return Value(f"{name}_{count}" if count else name, tuple(shape), dtype, constant)

    def constant(self, array: Any, name: str = "const") -> Value:
        """A constant from a NumPy array."""
        return self.fresh(name, array.shape, str(array.dtype), relax.const(tensor_of(array)))

    def add_op(
        self,
        name: str,
        operands: list[View],
        shape: Sequence[int],
        dtype: str,
        *,
        call: tvm.ir.Call | None = None,
        attributes: dict[str, Any] | None = None,
        hint: str | None = None,
    ) -> Op:
        """An operator with one result; the caller places it in `ops`."""
        op = Op(name, call, operands, [], attributes or {})
        value = self.fresh(hint or name.split(".")[-1], shape, dtype)
        value.producer = op
        op.results.append(value)
        return op

    def users(self) -> dict[Value, list[tuple[Op, int]]]:
        """Readers of every value: operator and operand's index; an output is no reader here."""
        found: dict[Value, list[tuple[Op, int]]] = {}
        for op in self.ops:
            for index, view in enumerate(op.operands):
                found.setdefault(view.base, []).append((op, index))
        return found

    def output_bases(self) -> set[Value]:
        """The values that outputs read, and what the state becomes."""
        results = {state.result for state in self.state if state.result is not None}
        return {view.base for view in self.outputs} | results

    def remove_dead(self) -> None:
        """Drop operators whose results nothing reads, but for those that find sizes."""
        alive = self.output_bases()
        kept: list[Op] = []
        for op in reversed(self.ops):
            if op.name == FINDING or any(value in alive for value in op.results):
                kept.append(op)
                alive.update(view.base for view in op.operands)
                # an earlier writer of a state is needed, whether or not its rows are read before the next
                waits = self.waits.get(op, ())
                alive.update(value for each in waits for value in each.results if value.memory is not None)
        self.ops = kept[::-1]
        left = set(kept)
        self.waits = {op: [e for e in waits if e in left] for op, waits in self.waits.items() if op in left}

    def replace_value(self, old: Value, view: View) -> None:
        """Let every reader of a row-major value read this view of its shape instead, where views compose.

        Readers whose view does not compose keep the old value, which then stays alive.
        """
        for op in self.ops:
            op.operands = [compose(read, view) if read.base is old else read for read in op.operands]
        self.outputs = [compose(read, view) if read.base is old else read for read in self.outputs]

    def _before(self, op: Op) -> Iterator[Op]:
        """The operators that must run before one."""
        for view in op.operands:
            if view.base.producer is not None:
                yield view.base.producer
        yield from self.waits.get(op, ())

    def sort(self) -> None:
        """Restore an order in which every operator follows those that it reads."""
        done: set[Op] = set()
        order: list[Op] = []

        def place(op: Op) -> None:
            stack = [(op, self._before(op))]
            done.add(op)
            while stack:
                current, sources = stack[-1]
                for producer in sources:
                    if producer not in done:
                        done.add(producer)
                        stack.append((producer, self._before(producer)))
                        break
                else:
                    order.append(current)
                    stack.pop()

        for op in self.ops:
            if op not in done:
                place(op)
        self.ops = order


def compose(read: View, view: View) -> View:
    """A reading of a value as a reading of the view that holds the same elements; itself where that fails."""
    flat = view.reshape([prod(view.shape)])
    if flat is None:
        return read
    layout = rebase(read.layout, flat.layout)
    return read if layout is None else View(view.base, layout)


@functools.cache
def dtype_bytes(dtype: str) -> int:
    """Bytes of one element in memory."""
    return (tvm.DataType(dtype).bits + 7) // 8


def is_float(dtype: str) -> bool:
    """Whether elements may be NaN, infinite or a zero with a sign."""
    return dtype.startswith(("float", "bfloat"))
