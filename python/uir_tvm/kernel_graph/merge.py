# SPDX-License-Identifier: Apache-2.0
"""A group of operators as one PrimFunc."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from math import prod
from typing import Any

import attrs
import tvm
import tvm_ffi
from tvm import relax, te, tirx

from ..bound_kernel import symbols_in
from ..errors import UnsupportedOperatorError
from ..frontend.relax_view import integers
from ..sizes.open_arithmetic import is_one, same
from ..sizes.open_size import OpenSize, expression, expressions
from ..sizes.size_space import SizeSpace, open_sizes
from .legalize import OWN_OPS, holds_tensors, legalize, with_operands
from .operator_groups import OperatorGroup, final_hero
from .program import Op, Value, View
from .simplify_tir import inline_views, plain_layouts
from .strided_views import Layout, digits, factored_shape

# Name of the function that FuseTIR merges; no operator's lowering has it.
PRIMITIVE = "uir_merged_kernel"


@attrs.frozen(eq=False)
class KernelBuffer:
    """A buffer of a kernel: the value, and the shape in which the kernel sees its memory."""

    value: Value
    shape: tuple[int, ...]


@attrs.frozen(eq=False)
class Kernel:
    """A group with its interface: what it reads from memory and what it writes there."""

    group: OperatorGroup
    inputs: list[KernelBuffer]
    outputs: list[Value]

    @property
    def is_open(self) -> bool:
        """Whether a size of it is left open."""
        shapes = [view.shape for op in self.group.ops for view in op.operands]
        shapes += [value.shape for op in self.group.ops for value in op.results]
        shapes += [parameter.shape for parameter in self.inputs]
        if any(isinstance(size, OpenSize) for shape in shapes for size in shape):
            return True
        return any(op.call is not None and any(map(_says_size, op.call.args)) for op in self.group.ops)


def _says_size(arg: tvm.ir.Expr) -> bool:
    """Whether an argument that is no tensor has a size that is no number."""
    if isinstance(arg, relax.ShapeExpr):
        return any(not isinstance(size, tirx.IntImm) for size in arg.values)
    if isinstance(arg, tvm.ir.Tuple):
        return any(map(_says_size, arg.fields))
    return isinstance(arg.ty, tvm.ir.PrimType) and not isinstance(arg, tirx.IntImm | tirx.FloatImm)


def interface(group: OperatorGroup, needed: set[Value]) -> Kernel:
    """The buffers of a group.

    Parameters
    ----------
    group : OperatorGroup
    needed : set of Value
        The values that are read outside of their group or are outputs.
    """
    readings: dict[Value, list[View]] = {}
    # an operator that is lowered whole may want its numbers as tensors
    whole = all(op.kind.kind == "opaque" for op in group.ops)
    for view in group.external():
        if whole or not _is_immediate(view):
            readings.setdefault(view.base, []).append(view)
    inputs = [KernelBuffer(views[0].base, _parameter_shape(views)) for views in readings.values()]
    outputs = [value for op in group.ops for value in op.results if value in needed]
    outputs.sort(key=lambda value: value.memory is None)  # what lies in memory of its own comes last
    return Kernel(group, inputs, outputs)


def _is_immediate(view: View) -> bool:
    """A constant number is part of the code."""
    return view.scalar is not None


def _parameter_shape(views: Sequence[View]) -> tuple[int, ...]:
    """A shape of the buffer in which every reading is an affine index along axes."""
    base = views[0].base
    whole = [view.shape for view in views if view.layout == Layout.contiguous(view.shape)]
    factored = (factored_shape(view.layout, base.size) for view in views)
    for shape in itertools.chain(whole, [base.shape], factored):
        if (
            shape is not None
            and same(prod(shape), base.size)
            and all(digits(view.layout, shape) is not None for view in views)
        ):
            return shape
    return (base.size,)


def _split(index: Any, dim: Sequence[tuple[int, Any]]) -> list[tuple[Any, Any]]:
    """The index of a dimension shared out over its atoms: (index of the atom, what the atom carries)."""
    parts, inner = [], prod(extent for extent, _ in dim)
    for position, (extent, carried) in enumerate(dim):
        inner //= extent
        part = index if is_one(inner) else tirx.indexdiv(index, expression(inner))
        parts.append((part if position == 0 else tirx.indexmod(part, expression(extent)), carried))
    return parts


def reading(view: View, shape: tuple[int, ...]) -> Any:
    """TE function that reads a buffer of this shape as the view."""
    found = digits(view.layout, shape)

    def flat(*indices: Any) -> list[Any]:
        """Address by division: only for views that no axis-aligned shape serves."""
        address = _int64(view.layout.offset)
        for index, dim in zip(indices, view.layout.dims, strict=True):
            for part, stride in _split(index, dim):
                address = address + part * expression(stride)
        coordinates = []
        for extent in reversed(shape):
            coordinates.append(tirx.indexmod(address, expression(extent)))
            address = tirx.indexdiv(address, expression(extent))
        return coordinates[::-1]

    def aligned(*indices: Any) -> list[Any]:
        assert found is not None
        dims, offsets = found
        coordinates: list[Any] = [_int64(offset) for offset in offsets]
        for index, dim in zip(indices, dims, strict=True):
            for part, digit in _split(index, [(d.extent, d) for d in dim]):
                if digit.coefficient:
                    step = part * expression(digit.coefficient)
                    coordinates[digit.position] = coordinates[digit.position] + step
        return coordinates

    def nowhere(*_indices: Any) -> list[Any]:
        """Of a view without elements, which has no place to divide."""
        return [_int64(0) for _ in shape]

    empty = any(isinstance(size, int) and size == 0 for size in view.shape)
    place = nowhere if empty else flat if found is None else aligned

    def compute(buffer: te.Tensor) -> te.Tensor:
        if not shape:
            return te.compute(expressions(view.shape), lambda *indices: buffer(), name="view")
        return te.compute(expressions(view.shape), lambda *indices: buffer(*place(*indices)), name="view")

    return compute


def _int64(size: Any) -> Any:
    return tirx.const(size, "int64") if isinstance(size, int) else expression(size)


class _Emitter:
    """Rebuilds a group's operators as Relax calls on a builder."""

    def __init__(
        self,
        builder: relax.BlockBuilder,
        parameters: dict[Value, tuple[relax.Var, tuple[int, ...]]],
        space: SizeSpace | None,
    ) -> None:
        self.builder = builder
        self.values = parameters
        self.space = space

    def read(self, view: View, scalar_ok: bool) -> tvm.ir.Expr:
        """An operand as a Relax expression of the view's shape (or a number, where that serves)."""
        number, dtype = None if view.base in self.values else view.scalar, view.base.dtype
        if number is not None and scalar_ok and not dtype.startswith("float8"):
            # of which TVM makes no number, and leaves a tensor in the kernel
            return relax.const(number, dtype)
        if number is not None:
            value = tirx.const(number, dtype)
            return self.builder.emit_te(
                lambda: te.compute(expressions(view.shape), lambda *_: value, name="view"),
                primfunc_name_hint="view",
            )
        var, shape = self.values[view.base]
        if same(view.shape, shape) and view.layout == Layout.contiguous(shape):
            return var
        if self.space is not None:
            return self._open_view(view, shape, var)
        return self.builder.emit_te(reading(view, shape), var, primfunc_name_hint="view")

    def _open_view(self, view: View, shape: tuple[int, ...], var: tvm.ir.Expr) -> tvm.ir.Expr:
        """The same where sizes are open: the function takes them as numbers, whatever its buffers say."""
        assert self.space is not None
        sizes = list(self.space.variables.values())
        buffer = te.placeholder(expressions(shape), view.base.dtype, name="buffer")
        function = te.create_prim_func([buffer, *sizes, reading(view, shape)(buffer)], "int64")
        function = function.without_attr(
            "global_symbol"
        )  # one that is seen from outside stays beside the kernel
        made = relax.TensorType(expressions(view.shape), view.base.dtype)
        return self.builder.emit(relax.call_tir(self.builder.add_func(function, "view"), [var, *sizes], made))

    def emit(self, op: Op) -> None:
        """One operator."""
        # TVM makes a number of a constant operand of a binary operator (its tables name no others).
        binary = op.kind.kind == "elementwise" and len(op.operands) == 2
        scalars = binary and any(view.scalar is None for view in op.operands)
        operands = [self.read(view, scalars) for view in op.operands]
        if op.name in OWN_OPS:
            result = OWN_OPS[op.name](self.builder, op, operands)
        else:
            assert op.call is not None
            result = self.builder.emit(with_operands(op.call, operands))
        if len(op.results) == 1:
            self.values[op.result] = (result, _shape_of(result))
            return
        for index, value in enumerate(op.results):
            field = self.builder.emit(relax.TupleGetItem(result, index))
            self.values[value] = (field, _shape_of(field))


def _shape_of(var: tvm.ir.Expr) -> tuple[int, ...]:
    shape = integers(var.ty.shape)
    assert shape is not None, var
    return shape


def signature(kernel: Kernel) -> str:
    """A digest that is equal for kernels with the same code."""
    numbers = {p.value: f"p{i}{p.shape}{p.value.dtype}" for i, p in enumerate(kernel.inputs)}
    lines = []
    for op in kernel.group.ops:
        reads = []
        for view in op.operands:
            what = numbers.get(view.base) or f"{view.scalar!r}:{view.base.dtype}"
            reads.append(f"{what}{view.layout.dims}{view.layout.offset}")
        for value in op.results:
            numbers[value] = f"v{len(numbers)}"
        writes = [f"{numbers[value]}{value.shape}{value.dtype}" for value in op.results]
        lines.append(f"{op.name}|{_plain_arguments(op.call)}|{op.attrs}|{reads}|{writes}")
    lines.append(str([numbers[value] for value in kernel.outputs]))
    lines.append(str([f"{p.shape}{p.value.dtype}" for p in kernel.inputs]))  # some for their shapes alone
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _plain_arguments(call: tvm.ir.Call | None) -> str:
    """Attributes and arguments that are no tensors."""
    if call is None:
        return ""
    plain = [
        str(arg) for arg in call.args if not isinstance(arg.ty, relax.TensorType) and not holds_tensors(arg)
    ]
    return f"{call.attrs}{plain}"


def merge(kernel: Kernel, name: str) -> tirx.PrimFunc:
    """The kernel of a group: parameters are its inputs, the sizes that are open, then its outputs.

    Sizes are open inside `open_size.reading_open_sizes`. They are parameters where the shapes of the buffers
    do not say all of them: all symbols of the space, in the order of `SizeSpace.symbols`.

    Parameters
    ----------
    kernel : Kernel
    name : str
        Global symbol of the function.

    Returns
    -------
    tvm.tirx.PrimFunc
        With the attributes ``uir.hero`` and ``uir.ops``.

    Raises
    ------
    Exception
        Whatever TVM raises for an operator that it cannot lower; the caller then falls back.
    """
    builder = relax.BlockBuilder()
    space = open_sizes() if kernel.is_open else None
    buffers = [
        relax.Var(f"p{index}", relax.TensorType(expressions(parameter.shape), parameter.value.dtype))
        for index, parameter in enumerate(kernel.inputs)
    ]
    params = list(buffers)
    if space is not None:
        params.append(relax.Var("sizes", relax.ShapeType(values=list(space.variables.values()))))
    with builder.function(PRIMITIVE, params, attrs={"Primitive": 1}):
        with builder.dataflow():
            emitter = _Emitter(
                builder,
                {p.value: (var, p.shape) for p, var in zip(kernel.inputs, buffers, strict=True)},
                space,
            )
            for op in kernel.group.ops:
                emitter.emit(op)
            results = [builder.emit_output(emitter.values[value][0]) for value in kernel.outputs]
        builder.emit_func_output(results[0] if len(results) == 1 else relax.Tuple(results))
    function = without_known_sizes(plain_layouts(fuse(builder.get())))
    attributes = {"uir.hero": final_hero(kernel.group), "uir.ops": [op.name for op in kernel.group.ops]}
    return inline_views(function).with_attr({"global_symbol": name, **attributes})


def without_known_sizes(function: tirx.PrimFunc) -> tirx.PrimFunc:
    """The function without the parameters for sizes, where each size is a dimension of some buffer."""
    if unsaid_sizes(function):
        return function
    buffers = [param for param in function.params if tirx.is_buffer_var(param)]
    return tirx.PrimFunc(buffers, function.body, function.ret_type, function.attrs)


def unsaid_sizes(function: tirx.PrimFunc) -> list[tvm.ir.Var]:
    """The sizes that a function takes as numbers, and that no buffer has as a dimension."""
    buffers = [param for param in function.params if tirx.is_buffer_var(param)]
    numbers = [param for param in function.params if not tirx.is_buffer_var(param)]
    alone = {dim for buffer in buffers for dim in buffer.shape if isinstance(dim, tvm.ir.Var)}
    used = {*symbols_in(function), *tirx.analysis.undefined_vars(function.body, buffers)}
    return [param for param in numbers if param in used and param not in alone]


def fuse(mod: tvm.IRModule) -> tirx.PrimFunc:
    """Lower the one primitive function of a module to a PrimFunc of as many blocks as it has operators."""
    mod = legalize(mod)
    function = mod[PRIMITIVE]
    wrapper = relax.BlockBuilder(mod)
    params = [relax.Var(param.name, param.ty) for param in function.params]
    with wrapper.function("main", params):
        result = wrapper.emit(relax.Call(mod.get_global_var(PRIMITIVE), params))
        wrapper.emit_func_output(result)
    try:
        mod = relax.transform.FuseTIR()(wrapper.get())
    except Exception:  # of the many that TVM raises; what cannot be merged may be whole already
        alone = _only_kernel(mod, function)
        if alone is None:
            raise
        return alone
    merged = [f for var, f in mod.functions_items() if isinstance(f, tirx.PrimFunc)]
    if len(merged) != 1:
        raise UnsupportedOperatorError(
            f"TVM makes {len(merged)} functions of these operators, not one.",
            where=", ".join(_operators(function)),
            remedy="express the model by other operators",
        )
    return merged[0]


def _operators(function: relax.Function) -> list[str]:
    """What a function of Relax calls, by name."""
    calls = [binding.value for block in function.body.blocks for binding in block.bindings]
    return [str(getattr(call.op, "name", call.op)) for call in calls if isinstance(call, tvm.ir.Call)]


def _only_kernel(mod: tvm.IRModule, function: relax.Function) -> tirx.PrimFunc | None:
    """The kernel of a function that calls one, on its parameters in their order, and returns what that gives.

    There is nothing to merge, and FuseTIR takes no kernel that describes its buffers by itself.
    """
    calls = [
        binding.value
        for block in function.body.blocks
        for binding in block.bindings
        if isinstance(binding.value, tvm.ir.Call)
    ]
    if len(calls) != 1 or not isinstance(calls[0].args[0], tvm.ir.GlobalVar):
        return None
    (call,) = calls
    given = call.args[1].fields if isinstance(call.args[1], tvm.ir.Tuple) else []
    results = function.ret_ty.fields if isinstance(function.ret_ty, relax.TupleType) else [function.ret_ty]
    made = call.ty.fields if isinstance(call.ty, relax.TupleType) else [call.ty]
    straight = len(given) == len(function.params) and all(
        a.same_as(b) for a, b in zip(given, function.params, strict=True)
    )
    same = len(results) == len(made) and all(
        tvm_ffi.structural_equal(a, b) for a, b in zip(results, made, strict=True)
    )
    kernel = mod[call.args[0]]
    return kernel if straight and same else None
