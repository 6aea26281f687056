# SPDX-License-Identifier: Apache-2.0
"""Relax -> Program: views become layouts, everything else an operator on views."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import tvm
from tvm import relax

from ..errors import ShapeError, UirError
from ..frontend.recurrence import is_recurrence
from ..frontend.relax_view import dtype_of, integers, is_constant, op_name, permutation_of, shape_of
from ..frontend.sorting import is_sort
from ..model_state import StateEntry, state_of
from ..opaque_call import FOUND, FUNCTION, OpaqueCall
from ..sizes.size_space import open_sizes
from .integer_matmul import is_integer_matmul
from .integer_products import is_integer_product
from .op_kinds import (
    FINDING,
    INTEGER_MATMUL,
    INTEGER_PRODUCT,
    LIBRARY_SORT,
    OPAQUE,
    QUANTIZED_PRODUCT,
    RECURRENCE,
    kind_of,
)
from .program import Op, Program, StateValue, Value, View
from .quantized_weights import is_product
from .strided_views import Layout

#: Operators that are calls of functions in Relax -> which calls they are.
OUR_CALLS: dict[str, Callable[[tvm.ir.Call], bool]] = {
    QUANTIZED_PRODUCT: is_product,
    INTEGER_MATMUL: is_integer_matmul,
    INTEGER_PRODUCT: is_integer_product,
    RECURRENCE: is_recurrence,
    LIBRARY_SORT: is_sort,
}

Bound = View | tuple  # what a Relax variable stands for: a tensor or a tuple of such

# Larger index constants are not searched for a view: they are data, not positions.
INDEX_LIMIT = 1 << 20


def from_relax(mod: tvm.IRModule) -> Program:
    """Read the straight-line function ``main`` of a normalised module.

    Parameters
    ----------
    mod : tvm.IRModule
        One dataflow block of operator calls, static shapes (see `uir_tvm.frontend.normalize`).

    Returns
    -------
    Program

    Raises
    ------
    ShapeError
        For a dimension that is not a number.
    UirError
        For a binding that is neither an operator nor a tuple.
    """
    program = _Reader(mod["main"]).read()
    _take_state(program, state_of(mod))
    return program


def _take_state(program: Program, entries: Sequence[StateEntry]) -> None:
    """Put what holds the state, and its new values, behind the caller's inputs and outputs."""
    if not entries:
        return
    inputs, outputs = program.inputs, program.outputs
    held, new = [each.parameter for each in entries], [each.output for each in entries]
    program.inputs = [value for at, value in enumerate(inputs) if at not in held] + [
        inputs[at] for at in held
    ]
    program.outputs = [view for at, view in enumerate(outputs) if at not in new]
    program.output_is_tuple = len(program.outputs) != 1
    for entry in entries:
        program.state.append(StateValue(entry.name, inputs[entry.parameter], len(program.outputs)))
        program.outputs.append(outputs[entry.output])


class _Reader:
    """Walks the bindings and keeps what each variable stands for."""

    def __init__(self, function: relax.Function) -> None:
        self.function = function
        self.program = Program([], [], [], isinstance(function.ret_ty, relax.TupleType), 0)
        self.env: dict[int, Bound] = {}
        self.constants: dict[int, Value] = {}

    def read(self) -> Program:
        """The whole function."""
        for param in self.function.params:
            value = self.program.fresh(param.name, _shape(param), dtype_of(param))
            self.program.inputs.append(value)
            self.env[_key(param)] = value.view()
        for block in self.function.body.blocks:
            for binding in block.bindings:
                self.env[_key(binding.var)] = self._bind(binding)
        result = self._resolve(self.function.body.body)
        self.program.outputs = list(result) if isinstance(result, tuple) else [result]
        return self.program

    def _bind(self, binding: relax.Binding) -> Bound:
        expr = binding.value
        if isinstance(expr, tvm.ir.TupleGetItem):
            fields = self._resolve(expr.tuple_value)
            assert isinstance(fields, tuple)
            return fields[int(expr.index)]
        if not isinstance(expr, tvm.ir.Call):
            return self._resolve(expr)
        if not isinstance(expr.op, tvm.ir.Op) or (op_name(expr).startswith("call_") and not _is_call(expr)):
            raise UirError(
                f"binding {binding.var.name} calls {expr.op}, which is no Relax operator",
                need="a model as the front ends make it",
                remedy="build the kernel graph before operators are lowered to call_tir",
            )
        self.program.op_count += 1
        return self._call(expr, binding.var)

    def _call(self, call: tvm.ir.Call, var: tvm.ir.Var) -> Bound:
        name = _name_of(call)
        tensors = self._tensors(call)
        view_rule = VIEWS.get(name)
        if view_rule is not None:
            view = view_rule(call, tensors)
            if view is not None:
                return view
            if name in ("reshape", "expand_dims", "squeeze", "flatten"):
                copied = self._emit("copy", None, [tensors[0]], tensors[0].shape, dtype_of(call), var).view()
                reshaped = copied.reshape(_shape(call))
                assert reshaped is not None
                return reshaped
        if name in ("full", "zeros", "ones", "full_like", "zeros_like", "ones_like"):
            return self._filled(call, name, tensors)
        if _finds(call):
            return self._found(call, tensors, var)
        if isinstance(call.ty, relax.TupleType):
            fields = [(integers(field.shape) or (), str(field.dtype)) for field in call.ty.fields]
            values = [self.program.fresh(var.name, shape, dtype) for shape, dtype in fields]
            op = Op(name, call, tensors, values)
            for value in values:
                value.producer = op
            self.program.ops.append(op)
            return tuple(value.view() for value in values)
        shape = _shape(call)
        if kind_of(name).kind == "elementwise":
            tensors = [tensor.broadcast(shape) for tensor in tensors]
        return self._emit(name, call, tensors, shape, dtype_of(call), var).view()

    def _found(self, call: tvm.ir.Call, tensors: list[View], var: tvm.ir.Var) -> Bound:
        """The results of a call that finds sizes: their shapes are in its text."""
        space = open_sizes()
        if space is None:
            raise ShapeError(
                "The shape of a tensor depends on data.",
                where=var.name,
                need="a model that is compiled with open sizes",
                remedy="call uir_tvm.compile, which finds sizes while the model runs",
            )
        said = OpaqueCall(str(call.args[-1].value)).results
        values = [
            self.program.fresh(var.name, tuple(space.said(size) for size in shape), dtype)
            for shape, dtype in said
        ]
        op = Op(FINDING, call, tensors, values)
        for value in values:
            value.producer = op
        self.program.ops.append(op)
        if isinstance(call.ty, relax.TupleType):
            return tuple(value.view() for value in values)
        return values[0].view()

    def _emit(
        self,
        name: str,
        call: tvm.ir.Call | None,
        tensors: list[View],
        shape: tuple[int, ...],
        dtype: str,
        var: tvm.ir.Var,
    ) -> Value:
        op = self.program.add_op(name, tensors, shape, dtype, call=call, hint=var.name)
        self.program.ops.append(op)
        return op.result

    def _filled(self, call: tvm.ir.Call, name: str, tensors: list[View]) -> View:
        """A tensor of one number is a constant scalar read everywhere."""
        if name.startswith("full"):
            scalar = tensors[-1]
        else:
            number = np.array(0 if name.startswith("zeros") else 1, dtype_of(call))
            scalar = self.program.constant(number).view()
        return scalar.broadcast(_shape(call))

    def _tensors(self, call: tvm.ir.Call) -> list[View]:
        """Tensor leaves of the arguments, in order."""
        views: list[View] = []
        for arg in call.args:
            if isinstance(arg.ty, relax.TensorType | relax.TupleType) and not _is_numbers(arg):
                bound = self._resolve(arg)
                views.extend(bound if isinstance(bound, tuple) else (bound,))
        return views

    def _resolve(self, expr: tvm.ir.Expr) -> Bound:
        if isinstance(expr, tvm.ir.Tuple):
            return tuple(self._resolve(field) for field in expr.fields)
        if is_constant(expr):
            key = int(expr.value.__chandle__())
            if key not in self.constants:
                self.constants[key] = self.program.fresh("const", _shape(expr), dtype_of(expr), expr)
            return self.constants[key].view()
        if isinstance(expr, tvm.ir.Var):
            return self.env[_key(expr)]
        raise UirError(
            f"the kernel graph cannot read {type(expr).__name__}",
            remedy="normalise the module: uir_tvm.frontend.normalize",
        )


def _is_call(call: tvm.ir.Call) -> bool:
    """Whether a call is one of PyTorch's operators at run time, or of `OUR_CALLS`."""
    opaque = op_name(call) == OPAQUE and str(call.args[0].global_symbol) in (FUNCTION, FOUND)
    return opaque or any(is_ours(call) for is_ours in OUR_CALLS.values())


def _name_of(call: tvm.ir.Call) -> str:
    """The operator of a call, by its name in `op_kinds`."""
    return next((name for name, is_ours in OUR_CALLS.items() if is_ours(call)), op_name(call))


def _finds(call: tvm.ir.Call) -> bool:
    """Whether data decide the shapes of a call's results."""
    return op_name(call) == OPAQUE and str(call.args[0].global_symbol) == FOUND


def _key(var: tvm.ir.Var) -> int:
    return int(var.__chandle__())


def _is_numbers(arg: tvm.ir.Expr) -> bool:
    """A tuple of numbers, such as the axes of strided_slice."""
    return isinstance(arg, tvm.ir.Tuple) and all(not isinstance(f.ty, relax.TensorType) for f in arg.fields)


def _shape(expr: tvm.ir.Expr) -> tuple[int, ...]:
    shape = shape_of(expr)
    if shape is None:
        raise ShapeError(
            f"the shape of a tensor is not fixed: {expr.ty}",
            need="static shapes",
            remedy="export the model once for each shape of interest",
        )
    return shape


def _reshape(call: tvm.ir.Call, tensors: list[View]) -> View | None:
    return tensors[0].reshape(_shape(call))


def _permute(call: tvm.ir.Call, tensors: list[View]) -> View | None:
    layout = tensors[0].layout
    return View(tensors[0].base, layout.permute(permutation_of(call, len(layout.dims))))


def _broadcast(call: tvm.ir.Call, tensors: list[View]) -> View | None:
    return tensors[0].broadcast(_shape(call))


def _strided_slice(call: tvm.ir.Call, tensors: list[View]) -> View | None:
    numbers = [found for arg in call.args[1:] if (found := integers(arg)) is not None]
    if len(numbers) < len(call.args) - 1:
        return None
    axes, begins, _ends, *rest = numbers
    steps = rest[0] if rest else (1,) * len(axes)
    layout = tensors[0].layout
    shape, source = _shape(call), tensors[0].shape
    for axis, begin, step in zip(axes, begins, steps, strict=True):
        axis %= len(shape)
        extent = source[axis]
        first = begin
        if isinstance(begin, int) or not call.attrs.assume_inbound:
            first = begin + extent if begin < 0 else begin
            first = min(max(first, 0), extent)
        sliced = layout.slice(axis, first, shape[axis], step) if step > 0 else None
        if sliced is None:
            return None
        layout = sliced
    return View(tensors[0].base, layout)


def _split(call: tvm.ir.Call, tensors: list[View]) -> Bound | None:
    axis = int(call.attrs.axis) % len(tensors[0].shape)
    pieces, begin = [], 0
    for field in call.ty.fields:
        extent = (integers(field.shape) or ())[axis]
        layout = tensors[0].layout.slice(axis, begin, extent)
        if layout is None:
            return None
        pieces.append(View(tensors[0].base, layout))
        begin += extent
    return tuple(pieces)


def _affine_gather(call: tvm.ir.Call, tensors: list[View]) -> View | None:
    """index_tensor with constant indices that step evenly along every axis: a view."""
    data, *indices = tensors
    strides = data.layout.strides()
    if strides is None or any(i.base.constant is None or i.base.size > INDEX_LIMIT for i in indices):
        return None
    leading = np.broadcast_shapes(*(i.shape for i in indices))
    if 0 in leading:
        return None
    address = np.zeros(leading, "int64")
    for axis, index in enumerate(indices):
        array = index.base.array
        if not index.is_whole or array.min() < 0 or array.max() >= data.shape[axis]:
            return None
        address = address + array.astype("int64") * strides[axis]
    first = int(address.flat[0])
    steps = [int(np.take(address, 1, axis).flat[0]) - first if n > 1 else 0 for axis, n in enumerate(leading)]
    expected = first + sum(
        np.arange(n).reshape([-1 if a == axis else 1 for a in range(len(leading))]) * steps[axis]
        for axis, n in enumerate(leading)
    )
    if min(steps, default=0) < 0 or not np.array_equal(np.broadcast_to(expected, leading), address):
        return None
    inner = data.layout.dims[len(indices) :]
    outer = Layout.strided(leading, steps, data.layout.offset + first)
    return View(data.base, Layout(outer.dims + inner, outer.offset))


VIEWS: dict[str, Callable[[tvm.ir.Call, list[View]], Bound | None]] = {
    "reshape": _reshape,
    "expand_dims": _reshape,
    "squeeze": _reshape,
    "flatten": _reshape,
    "permute_dims": _permute,
    "broadcast_to": _broadcast,
    "strided_slice": _strided_slice,
    "split": _split,
    "index_tensor": _affine_gather,
}
