# SPDX-License-Identifier: Apache-2.0
"""A program whose operators are grouped into kernels: once for all sizes that are open, then in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import attrs
import tvm
from tvm import relax

from ..errors import OpenSizeError
from ..frontend.relax_view import integer, op_name
from ..library.library_tables import LibraryTable
from ..sizes.open_size import OpenSize, at
from ..sizes.size_space import SizeSpace, reading_open_sizes
from .attention import AttentionDecision
from .from_relax import OUR_CALLS
from .fusion import Fusion
from .merge import Kernel
from .nodes import IntegerDecision
from .op_kinds import OPAQUE
from .operator_groups import OperatorGroup
from .program import Op, Program, Value, View
from .strided_views import Layout, merge_atoms

T = TypeVar("T")


@attrs.frozen(eq=False)
class GroupedProgram:
    """Operators in groups that become one kernel each, and what was decided on the way.

    Attributes
    ----------
    program : Program
    groups : list of OperatorGroup
        In an order in which they can run.
    fusion : Fusion
    table : LibraryTable
    decisions : list of AttentionDecision
    integers : tuple of IntegerDecision
    op_count, unfused, faults
        As of `build_with` and `KernelGraph`.
    """

    program: Program
    groups: list[OperatorGroup]
    fusion: Fusion
    table: LibraryTable
    decisions: list[AttentionDecision]
    integers: tuple[IntegerDecision, ...]
    op_count: int
    unfused: int
    faults: str

    def at(self, space: SizeSpace, sizes: Mapping[str, int]) -> GroupedProgram:
        """The same in numbers, for sizes that meet the space's conditions; it shares the constants.

        Raises
        ------
        OpenSizeError
            An operator is described by more than its shapes.
        """
        with reading_open_sizes(space):
            return _InNumbers(sizes).whole(self)


def kernel_in_numbers(kernel: Kernel, space: SizeSpace, sizes: Mapping[str, int]) -> Kernel:
    """One kernel for sizes that meet the space's conditions, whatever computes what it reads."""
    with reading_open_sizes(space):
        numbers = _InNumbers(sizes)
        for view in kernel.group.external():
            numbers.cut(view.base)
        return numbers.whole(kernel)


class _InNumbers:
    """Copies a program's objects, each once, with numbers for the sizes that are open."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self._copies: dict[int, Any] = {}
        #: Objects whose copies have no attributes yet.
        self._waiting: list[Any] = []
        self._cut: set[Value] = set()

    def whole(self, given: T) -> T:
        """What refers to operators; no recursion along them, which a long model would exhaust."""
        made: T = self.copy(given)
        while self._waiting:
            each = self._waiting.pop()
            for name in _fields(each):
                object.__setattr__(self._copies[id(each)], name, self.copy(getattr(each, name)))
        return made

    def cut(self, value: Value) -> None:
        """Take a value by itself, without what computes it."""
        if value not in self._cut:
            self._cut.add(value)
            made = Value(
                value.name,
                self.copy(value.shape),
                value.dtype,
                value.constant,
                None,
                self._layout(value.storage),
                value.in_memory,
                None if value.memory is None else self._cut_memory(value.memory),
            )
            self._copies[id(value)] = made

    def _cut_memory(self, value: Value) -> Value:
        self.cut(value)
        made: Value = self._copies[id(value)]
        return made

    def copy(self, given: Any) -> Any:
        """An object of the program, or a container of such."""
        if isinstance(given, OpenSize):
            return at(given, self._sizes)
        if isinstance(given, str | int | float | None):
            return given
        if isinstance(given, tuple | list | set | frozenset):
            return type(given)(map(self.copy, given))
        if isinstance(given, dict):
            return {self.copy(key): self.copy(value) for key, value in given.items()}
        if isinstance(given, Layout):
            return self._layout(given)
        if isinstance(given, View):
            return View(self.copy(given.base), self._layout(given.layout))
        if id(given) not in self._copies:
            self._fill(given)
        return self._copies[id(given)]

    def _layout(self, given: Layout) -> Layout:
        """With the atoms that it would have if it had been made of numbers."""
        dims = tuple(merge_atoms(self.copy(dim)) for dim in given.dims)
        return Layout(dims, self.copy(given.offset))

    def _fill(self, given: Any) -> None:
        """The copy of an object that is itself, made before what it refers to."""
        if isinstance(given, tvm.ir.Call):
            self._copies[id(given)] = self._call(given)
        elif isinstance(given, Program):
            self._copies[id(given)] = self._program(given)
        elif isinstance(given, Value | Op | OperatorGroup | Fusion):
            self._copies[id(given)] = object.__new__(type(given))
            self._waiting.append(given)
        elif attrs.has(type(given)) and not isinstance(given, LibraryTable):
            made = {field.name: self.copy(getattr(given, field.name)) for field in attrs.fields(type(given))}
            self._copies[id(given)] = type(given)(**{name.lstrip("_"): each for name, each in made.items()})
        else:
            self._copies[id(given)] = given

    def _program(self, given: Program) -> Program:
        """Names are one for all copies."""
        made = Program([], [], [], given.output_is_tuple, given.op_count, names=given._names)
        made.ops, made.inputs, made.outputs = map(self.copy, (given.ops, given.inputs, given.outputs))
        made.state, made.waits = self.copy(given.state), self.copy(given.waits)
        made.positions = given.positions
        return made

    def _call(self, call: tvm.ir.Call) -> tvm.ir.Call:
        """A call of Relax whose arguments that are no tensors are numbers."""
        if op_name(call) == OPAQUE and not any(ours(call) for ours in OUR_CALLS.values()):
            raise OpenSizeError(
                "An operator that PyTorch computes is described by numbers.",
                need="operators that have kernels",
                remedy="compile the model for each shape",
            )
        args = [self._argument(arg) for arg in call.args]
        return relax.Call(call.op, args, call.attrs, call.ty_args)

    def _argument(self, arg: tvm.ir.Expr) -> tvm.ir.Expr:
        if isinstance(arg, relax.ShapeExpr):
            return relax.ShapeExpr([self._number(value) for value in arg.values])
        if isinstance(arg, tvm.ir.Tuple):
            return relax.Tuple([self._argument(field) for field in arg.fields])
        return self._number(arg) if isinstance(arg.ty, tvm.ir.PrimType) else arg

    def _number(self, value: Any) -> Any:
        found = None if isinstance(value, tvm.tirx.IntImm | tvm.tirx.FloatImm) else integer(value)
        return value if found is None else tvm.tirx.IntImm(value.ty.dtype, at(found, self._sizes))


def _fields(given: Any) -> list[str]:
    """The names of an object's attributes."""
    return (
        list(vars(given))
        if hasattr(given, "__dict__")
        else [field.name for field in attrs.fields(type(given))]
    )
