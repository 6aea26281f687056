# SPDX-License-Identifier: Apache-2.0
"""A program of Relay -> one Relax function: calls of functions inlined, operators by their converters."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

import attrs
import ml_dtypes
import numpy as np
import tvm
from tvm import relax, tirx

from ...errors import FrontendError, ShapeError, UirError, UnsupportedOperatorError
from ...function_scope import function_scope
from ...one_at_a_time import one_at_a_time
from ...sizes.open_size import AnySize, OpenSize
from ...sizes.size_space import SizeSpace, reading_open_sizes
from ...sizes.symbolic_shapes import OpenInput, OpenSignature
from ..normalize import normalize
from ..open_expressions import expressions
from ..open_model import BoundAtOnce, SymbolicForm, has_open_sizes
from ..relax_view import NUMPY_DTYPES, array_of, dtype_of, is_constant, shape_of
from . import relay_program as p
from .attributes import OPERATORS, resolved
from .conversion_context import ConversionContext, Value
from .operators import CONVERTERS, REFUSED

#: Functions inside functions, past which a call is one of itself.
DEPTH = 200
_NEW = "write the operator in terms of others in the model, then print it again"

Steps = Generator[Any, Any, Any]


class Activation:
    """The variables of one activation of a function, and what its nodes came to."""

    def __init__(self, outer: Activation | None = None) -> None:
        self.outer = outer
        self.values: dict[Any, Value] = {}
        self.known: dict[int, tuple[p.RelayNode, Value]] = {}

    def find(self, key: Any) -> Value | None:
        scope: Activation | None = self
        while scope is not None:
            if key in scope.values:
                return scope.values[key]
            scope = scope.outer
        return None


@attrs.frozen(eq=False)
class Closure:
    """A function and the variables that it sees."""

    function: p.Function
    scope: Activation | None


@attrs.frozen(eq=False)
class _Wanted:
    """What a step of the evaluation waits for."""

    node: p.RelayNode
    scope: Activation


def import_program(
    program: p.Program,
    params: Mapping[str, np.ndarray],
    *,
    shapes: Mapping[str, Sequence[int]],
    function: str = "main",
) -> tvm.IRModule:
    """A program's function as a normalised Relax module; see `uir_tvm.frontend.from_relay`."""
    main = program.get(function)
    if main is None:
        raise FrontendError(
            f"the module has no function {function!r}",
            limit="it has " + (", ".join(program) or "none"),
            remedy="name the model's function 'main', or say function=...",
        )
    signature = _signature(main, params, shapes)
    if signature.symbols:
        raise has_open_sizes(
            BoundAtOnce(
                signature,
                lambda sizes: import_program(
                    program, params, shapes={**shapes, **signature.shapes(sizes)}, function=function
                ),
                symbolic=SymbolicForm(
                    {name: name for name in signature.symbols},
                    lambda space: _symbolic(program, main, params, signature, space),
                    lambda sizes: None,
                    tuple(each.name for each in signature.inputs),
                ),
            )
        )
    return _module(program, main, params, shapes)


@one_at_a_time
def _symbolic(
    program: p.Program,
    main: p.Function,
    params: Mapping[str, np.ndarray],
    signature: OpenSignature,
    space: SizeSpace,
) -> tvm.IRModule:
    """The module for all sizes; what needs a number raises, and the program is imported for each shape."""
    for name in space.symbols:
        space.meet(name, tirx.Var(name, "int64"))
    with reading_open_sizes(space):
        shapes = {each.name: [space.said(str(size)) for size in each.sizes] for each in signature.inputs}
        return _module(program, main, params, shapes)


def _module(
    program: p.Program,
    main: p.Function,
    params: Mapping[str, np.ndarray],
    shapes: Mapping[str, Sequence[AnySize]],
) -> tvm.IRModule:
    """A function whose inputs have these shapes."""
    builder = relax.BlockBuilder()
    scope = Activation()
    inputs: list[relax.Var] = []
    taken: set[str] = set()
    for parameter in main.params:
        if parameter.name in params:
            scope.values[parameter.key] = _constant_parameter(parameter, params[parameter.name])
        else:
            scope.values[parameter.key] = _inputs(
                parameter, parameter.name, parameter.type, shapes, inputs, taken
            )
    with function_scope(builder, "main", inputs):
        with builder.dataflow():
            evaluation = _Evaluation(program, ConversionContext(builder))
            flat = list(_flat(evaluation.run(main.body, scope), main.body.where))
            result = flat[0] if len(flat) == 1 else relax.Tuple(flat)
            output = builder.emit_output(result)
        builder.emit_func_output(output)
    return normalize(builder.get())


def _signature(
    main: p.Function, params: Mapping[str, np.ndarray], shapes: Mapping[str, Sequence[int]]
) -> OpenSignature:
    """The tensors that a function takes; every open size (``?``) is named for its input and axis."""

    taken: set[str] = set()

    def symbol(name: str) -> str:
        name = re.sub(r"\W", "_", name)
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    def tensors(name: str, kind: p.Type) -> Iterator[OpenInput]:
        if isinstance(kind, tuple):
            for index, part in enumerate(kind):
                yield from tensors(f"{name}_{index}", part)
        elif kind is not None:
            known = kind.shape if name not in shapes else shapes[name]
            yield OpenInput(
                name,
                tuple(symbol(f"{name}_{i}") if size is None else int(size) for i, size in enumerate(known)),
                kind.dtype,
            )

    return OpenSignature(
        [
            each
            for parameter in main.params
            if parameter.name not in params
            for each in tensors(parameter.name, parameter.type)
        ]
    )


def _inputs(
    parameter: p.FunctionParameter,
    name: str,
    kind: p.Type,
    shapes: Mapping[str, Sequence[AnySize]],
    inputs: list[relax.Var],
    taken: set[str],
) -> Value:
    """The inputs that a parameter becomes: one, or one for each field of a tuple."""
    if isinstance(kind, tuple):
        return tuple(
            _inputs(parameter, f"{name}_{i}", part, shapes, inputs, taken) for i, part in enumerate(kind)
        )
    if kind is None:
        raise FrontendError(
            f"parameter {name!r} has no type of a tensor",
            where=parameter.where,
            need="%x: Tensor[(1, 2), float32]",
            remedy="run relay.transform.InferType() before the module is printed, or write the type",
        )
    shape = tuple(shapes[name]) if name in shapes else kind.shape
    fits = len(shape) == len(kind.shape) and all(
        w in (None, h) for w, h in zip(kind.shape, shape, strict=True)
    )
    if not fits or any(size is None or size < 0 for size in shape):
        said = ", ".join("?" if size is None else str(size) for size in kind.shape)
        raise ShapeError(
            f"input {name!r} has a dynamic dimension"
            if fits
            else f"input {name!r} cannot be of shape {shape}",
            where=parameter.where,
            need=f"a shape that fits ({said})",
            remedy=f"give its shape: shapes={{{name!r}: (...)}}",
        )
    unique = "".join(c if c.isalnum() or c == "_" else "_" for c in name)
    while unique in taken:
        unique += "_"
    taken.add(unique)
    if kind.dtype not in NUMPY_DTYPES and not hasattr(ml_dtypes, kind.dtype):
        raise FrontendError(
            f"input {name!r} is of no dtype: {kind.dtype!r}",
            where=parameter.where,
            need=", ".join(sorted(NUMPY_DTYPES)),
            remedy="print the module again, whole",
        )
    sizes = [size if isinstance(size, OpenSize) else int(size) for size in shape if size is not None]
    variable = relax.Var(unique, relax.TensorType(expressions(sizes), kind.dtype))
    inputs.append(variable)
    return variable


def _constant_parameter(parameter: p.FunctionParameter, value: np.ndarray) -> tvm.ir.Expr:
    kind = parameter.type
    if isinstance(kind, p.TensorType):
        fits = len(kind.shape) == value.ndim and all(
            want in (None, have) for want, have in zip(kind.shape, value.shape, strict=True)
        )
        if not fits or str(value.dtype) != kind.dtype:
            raise FrontendError(
                f"the value of parameter {parameter.name!r} is {value.shape} {value.dtype}",
                where=parameter.where,
                need=f"{kind.shape} {kind.dtype}",
                remedy="pass the parameters that were saved with this module",
            )
    return relax.const(value, str(value.dtype))


def _flat(value: Value, where: str) -> Generator[tvm.ir.Expr, None, None]:
    if isinstance(value, tuple):
        for part in value:
            yield from _flat(part, where)
    elif isinstance(value, Closure):
        raise FrontendError("the model's result is a function", where=where, remedy="call it in the model")
    else:
        yield value


class _Evaluation:
    """Values of nodes, each made once in its activation; without recursion, for networks are deep."""

    def __init__(self, program: p.Program, context: ConversionContext) -> None:
        self.program, self.context, self.depth = program, context, 0

    def run(self, node: p.RelayNode, scope: Activation) -> Value:
        stack: list[tuple[Steps, p.RelayNode, Activation]] = [(self._steps(node, scope), node, scope)]
        answer: Value = None
        while stack:
            steps, at, within = stack[-1]
            try:
                wanted = steps.send(answer)
            except StopIteration as stop:
                answer = stop.value
                within.known[id(at)] = (at, answer)
                stack.pop()
                continue
            known = wanted.scope.known.get(id(wanted.node))
            if known is not None:
                answer = known[1]
                continue
            stack.append((self._steps(wanted.node, wanted.scope), wanted.node, wanted.scope))
            answer = None
        return answer

    def _steps(self, node: p.RelayNode, scope: Activation) -> Steps:
        if isinstance(node, p.Constant):
            return relax.const(node.value, str(node.value.dtype))
        if isinstance(node, p.Local):
            value = scope.find(node.key)
            if value is None:
                raise FrontendError(
                    f"variable %{node.name} is not known here",
                    where=node.where,
                    need="a parameter, or a binding before it (a function that calls itself is not taken)",
                    remedy="print the module again, whole",
                )
            return value
        if isinstance(node, p.Tuple):
            fields = []
            for field in node.fields:
                fields.append((yield _Wanted(field, scope)))
            return tuple(fields)
        if isinstance(node, p.TupleItem):
            value = yield _Wanted(node.value, scope)
            if not isinstance(value, tuple) or not 0 <= node.index < len(value):
                raise FrontendError(
                    f"there is no field {node.index}",
                    where=node.where,
                    limit=f"a tuple of {len(value)}" if isinstance(value, tuple) else "it is no tuple",
                    remedy="print the module again, whole",
                )
            return value[node.index]
        if isinstance(node, p.Bound):
            return (yield from self._bound(node, scope))
        if isinstance(node, p.Function):
            return Closure(node, scope)
        if isinstance(node, p.Global):
            if node.name not in self.program:
                raise FrontendError(
                    f"there is no function @{node.name}",
                    where=node.where,
                    limit="the module has " + ", ".join(self.program),
                    remedy="print the module again, whole",
                )
            return Closure(self.program[node.name], None)
        if isinstance(node, p.Branch):
            return (yield from self._branch(node, scope))
        if isinstance(node, p.Call):
            return (yield from self._call(node, scope))
        name = getattr(node, "name", type(node).__name__)
        raise FrontendError(
            f"{name} is no value by itself",
            where=node.where,
            need="a call, a variable or a constant",
            remedy="print the module again, whole",
        )

    def _bound(self, node: p.Bound, scope: Activation) -> Steps:
        at: p.RelayNode = node
        while isinstance(at, p.Bound):
            scope.values[at.key] = yield _Wanted(at.value, scope)
            at = at.body
        return (yield _Wanted(at, scope))

    def _branch(self, node: p.Branch, scope: Activation) -> Steps:
        """Either side where the condition is constant; else both, of which one is selected: Relay is pure."""
        condition = yield _Wanted(node.condition, scope)
        context = self._at("if", node.where)
        if is_constant(condition):
            return (
                yield _Wanted(node.then if array_of(condition).all() else node.otherwise, Activation(scope))
            )
        sides = []
        for side in (node.then, node.otherwise):
            sides.append((yield _Wanted(side, Activation(scope))))
        return self._selected(context, self._at("if", node.where).where, condition, *sides)

    def _selected(
        self, context: ConversionContext, where: str, condition: Value, then: Value, otherwise: Value
    ) -> Value:
        if isinstance(then, tuple) and isinstance(otherwise, tuple) and len(then) == len(otherwise):
            pairs = zip(then, otherwise, strict=True)
            return tuple(self._selected(context, where, condition, a, b) for a, b in pairs)
        types = [
            (shape_of(side), dtype_of(side)) if isinstance(side, tvm.ir.Expr) else None
            for side in (then, otherwise)
        ]
        if types[0] is None or types[0] != types[1]:
            raise FrontendError(
                "the sides of a branch differ in type",
                where=where,
                limit=f"{types[0]} and {types[1]}",
                remedy="give both sides one type",
            )
        return context.emit(relax.op.where(condition, then, otherwise))

    def _at(self, operator: str, where: str) -> ConversionContext:
        self.context.operator, self.context.where = operator, where
        return self.context

    def _call(self, node: p.Call, scope: Activation) -> Steps:
        args = []
        for arg in node.args:
            args.append((yield _Wanted(arg, scope)))
        if isinstance(node.callee, p.Operator):
            return self._converted(node, node.callee.name, args)
        callee = yield _Wanted(node.callee, scope)
        if not isinstance(callee, Closure) or len(args) != len(callee.function.params):
            limit = (
                f"it takes {len(callee.function.params)}" if isinstance(callee, Closure) else "no function"
            )
            raise FrontendError(
                f"a call with {len(args)} arguments",
                where=node.where,
                limit=limit,
                remedy="print the module again",
            )
        self.depth += 1
        if self.depth > DEPTH:
            raise FrontendError(
                "a function calls itself",
                where=node.where,
                need="functions that can be inlined",
                remedy="unroll the recursion before the module is printed",
            )
        inner = Activation(callee.scope)
        for parameter, value in zip(callee.function.params, args, strict=True):
            inner.values[parameter.key] = value
        result = yield _Wanted(callee.function.body, inner)
        self.depth -= 1
        return result

    def _converted(self, node: p.Call, name: str, args: list[Value]) -> Value:
        convert = CONVERTERS.get(name)
        if convert is None:
            known = name in OPERATORS
            raise UnsupportedOperatorError(
                f"unsupported Relay operator: {name}"
                + ("" if known else " (TVM 0.16 has none of this name)"),
                where=node.where,
                limit=REFUSED.get(name, ""),
                remedy=_NEW,
            )
        attributes = resolved(name, node.kind, node.attributes, node.where)
        context = self._at(name, node.where)
        try:
            return convert(context, attributes, *args)
        except UirError:
            raise
        except Exception as error:  # of the many that TVM's type rules raise
            lines = [line for line in str(error).strip().splitlines() if line.strip()]
            types = ", ".join(str(getattr(arg, "ty", type(arg).__name__)) for arg in args)
            raise FrontendError(
                f"operator {name!r} does not take these arguments: "
                + (lines[-1].strip() if lines else type(error).__name__),
                where=node.where,
                limit=types,
                remedy="check the types of the arguments, or print the module again",
            ) from error
