# SPDX-License-Identifier: Apache-2.0
"""Relax modules with symbolic sizes: what is open, and the module for numbers in the symbols' place.

Symbols stand in the shapes of ``main``'s parameters; a parameter may also be a shape (``R.Shape``), a number
(``R.Prim``), or a tensor of unknown shape. Kernels that ``main`` calls have symbols of their own in their
buffers: each gets a copy for the shapes of its call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm
from tvm import relax, tirx

from ..bound_kernel import bound_kernel
from ..errors import FrontendError, OpenSizeError, SizeError, last_line
from ..sizes.symbolic_shapes import (
    NUMBER,
    NUMBERS,
    TENSOR,
    OpenInput,
    OpenSignature,
    Range,
    Size,
    Sizes,
    sizes_text,
)
from .kernel_symbols import with_bound_kernels
from .normalize import replace_main
from .relax_view import shape_of

_BINARY: tuple[tuple[Any, str], ...] = (
    (tirx.Add, "+"),
    (tirx.Sub, "-"),
    (tirx.Mul, "*"),
    (tirx.FloorDiv, "//"),
    (tirx.FloorMod, "%"),
)
_FUNCTIONS: tuple[tuple[Any, str], ...] = ((tirx.Min, "min"), (tirx.Max, "max"))
#: Attributes of a function in which Relax keeps ranges of symbols, and which end they are.
_RANGES = (("tir_var_lower_bound", 0), ("tir_var_upper_bound", 1))


def is_open(mod: tvm.IRModule) -> bool:
    """Whether a parameter of ``main`` has a size that is no number, or is a shape or a number itself."""
    return any(_is_open(param.ty) for param in mod["main"].params)


def _is_open(type_: Any) -> bool:
    if isinstance(type_, relax.ShapeType | tvm.ir.PrimType):
        return True
    if not isinstance(type_, relax.TensorType):
        return False
    if not isinstance(type_.shape, relax.ShapeExpr):
        return int(type_.ndim) != 0
    return any(not isinstance(size, tirx.IntImm) for size in type_.shape)


class SymbolNames:
    """Names for the variables in sizes: two variables of one name get two."""

    def __init__(self) -> None:
        self.of: dict[Any, str] = {}

    def new(self, key: Any, text: str) -> str:
        """The name of a symbol."""
        if key not in self.of:
            name = re.sub(r"\W", "_", text)
            name = name if name.isidentifier() else f"s_{name}"
            while name in self.of.values():
                name += "_"
            self.of[key] = name
        return self.of[key]

    def size(self, expr: Any) -> Size:
        """A number, or an expression as text.

        Raises
        ------
        FrontendError
            It is none that `sizes.symbolic_shapes` reads.
        """
        return int(expr) if isinstance(expr, tirx.IntImm) else self._text(expr)

    def _text(self, expr: Any) -> str:
        if isinstance(expr, tirx.IntImm):
            return str(int(expr))
        if isinstance(expr, tirx.Cast):
            return self._text(expr.value)
        for kind, sign in _BINARY:
            if isinstance(expr, kind):
                return f"({self._text(expr.a)} {sign} {self._text(expr.b)})"
        for kind, name in _FUNCTIONS:
            if isinstance(expr, kind):
                return f"{name}({self._text(expr.a)}, {self._text(expr.b)})"
        if isinstance(expr, tirx.Var):
            return self.new(expr, str(expr.name))
        raise FrontendError(
            f"The size {expr} of a parameter is no expression that is known.",
            need="numbers, variables, + - * // %, min and max",
            remedy="give the size a variable of its own",
        )

    def numbers(self, sizes: Sizes) -> dict[Any, tirx.IntImm]:
        """Numbers for the variables."""
        return {
            variable: tirx.IntImm(variable.ty.dtype, sizes[name])
            for variable, name in self.of.items()
            if isinstance(variable, tirx.Var)
        }


class OpenModule:
    """A Relax module with symbols.

    Parameters
    ----------
    mod : tvm.IRModule
        It is not changed.

    Attributes
    ----------
    signature : OpenSignature
        Symbols have the names of the module's variables; sizes of a tensor of unknown shape that of their
        input and axis: ``x_0``.

    Raises
    ------
    FrontendError
        A parameter of unknown rank or dtype, or a size that no expression of ours says.
    """

    def __init__(self, mod: tvm.IRModule) -> None:
        self.mod = mod
        self._names = SymbolNames()
        inputs = [self._input(param) for param in mod["main"].params]
        self.signature = OpenSignature(inputs, self._ranges())

    def _input(self, param: Any) -> OpenInput:
        name, type_, size = str(param.name), param.ty, self._names.size
        if isinstance(type_, tvm.ir.PrimType):
            return OpenInput(name, (size(param),), str(type_.dtype), NUMBER)
        if isinstance(type_, relax.ShapeType) and type_.values is not None:
            return OpenInput(name, tuple(map(size, type_.values)), "int64", NUMBERS)
        if isinstance(type_, relax.TensorType) and str(type_.dtype):
            if isinstance(type_.shape, relax.ShapeExpr):
                return OpenInput(name, tuple(map(size, type_.shape)), str(type_.dtype), TENSOR)
            if type_.shape is None and int(type_.ndim) >= 0:
                axes = [f"{name}_{axis}" for axis in range(int(type_.ndim))]
                unknown = tuple(self._names.new((name, text), text) for text in axes)
                return OpenInput(name, unknown, str(type_.dtype), TENSOR)
        raise FrontendError(
            f"The parameter {name!r} of main is of type {type_}.",
            need="a tensor of known rank and dtype, a shape of known rank, or a number",
            remedy='write its type: R.Tensor(("n", 64), "float32")',
        )

    @property
    def variables(self) -> dict[str, str]:
        """The name of each symbol's variable."""
        return {name: str(getattr(key, "name", name)) for key, name in self._names.of.items()}

    def whole(self) -> tvm.IRModule:
        """The module with its symbols, where they stand in the shapes of tensors alone.

        Raises
        ------
        OpenSizeError
            A parameter is no tensor of a known shape, or variables share a name.
        """
        plain = all(
            each.kind == TENSOR and isinstance(param.ty.shape, relax.ShapeExpr)
            for each, param in zip(self.signature.inputs, self.mod["main"].params, strict=True)
        )
        if not plain or len(set(self.variables.values())) < len(self.variables):
            raise OpenSizeError(
                "The module is only read for numbers.",
                need="parameters that are tensors of shapes whose variables have names of their own",
                remedy='write types such as R.Tensor(("n", 64), "float32")',
            )
        return self.mod

    def _ranges(self) -> dict[str, Range]:
        names = set(self._names.of.values())
        ends: dict[str, list[int | None]] = {}
        attrs = self.mod["main"].attrs
        for key, end in _RANGES:
            for name, limit in dict(attrs[key]).items() if attrs and key in attrs else ():
                ends.setdefault(str(name), [0, None])[end] = int(limit)
        return {name: (low or 0, high) for name, (low, high) in ends.items() if name in names}

    def bound(self, sizes: Sizes) -> tvm.IRModule:
        """The module for a size of every symbol; it shares the constants.

        Raises
        ------
        SizeError
            Relax's rules of types refuse the sizes.
        FrontendError
            A size is still unknown then: it depends on data.
        """
        try:
            main = self._main(sizes)
        except Exception as error:  # TVM's type rules raise many kinds
            raise SizeError(
                f"The model cannot be computed with {sizes_text(sizes)}.",
                need=last_line(error),
                remedy="pass sizes that fit",
            ) from error
        return with_bound_kernels(replace_main(self.mod, main))

    def _main(self, sizes: Sizes) -> relax.Function:
        numbers = self._names.numbers(sizes)
        main = self.mod["main"]
        main = main.bind_symbolic_vars(numbers) if numbers else main
        kept, changed = [], {}
        for param in main.params:
            each = next(each for each in self.signature.inputs if each.name == param.name)
            if each.kind == NUMBERS:
                changed[param] = relax.ShapeExpr([int(value) for value in param.ty.values])
                continue
            if not isinstance(param.ty.shape, relax.ShapeExpr) and int(param.ty.ndim):
                shape = [sizes[str(size)] for size in each.sizes]
                changed[param] = relax.Var(param.name, relax.TensorType(shape, param.ty.dtype))
            kept.append(changed.get(param, param))
        if changed:
            body = _Replaced(changed).visit_expr(main.body)
            main = relax.Function(kept, body, None, main.is_pure, main.attrs)
        return _cast(main)


def _cast(main: relax.Function) -> relax.Function:
    """Decide casts to shapes with symbols of their own (`R.match_cast`), one after the other."""
    while found := _cast_symbols(main):
        main = main.bind_symbolic_vars(found)
    return main


def _cast_symbols(main: relax.Function) -> dict[Any, Any]:
    """What the first cast of a known shape says of symbols."""
    for block in main.body.blocks:
        for binding in block.bindings:
            if not isinstance(binding, relax.MatchCast) or not isinstance(binding.ty, relax.TensorType):
                continue
            known, wanted = shape_of(binding.value), binding.ty.shape
            if known is None or not isinstance(wanted, relax.ShapeExpr):
                continue
            found = {
                want: tirx.IntImm(want.ty.dtype, have)
                for have, want in zip(known, wanted, strict=True)
                if isinstance(want, tirx.Var)
            }
            if found:
                return found
    return {}


@relax.expr_functor.mutator
class _Replaced(relax.PyExprMutator):
    """Other expressions in the place of some variables; types of what depends on them are inferred again."""

    def __init__(self, changed: Mapping[Any, Any]) -> None:
        super().__init__()
        self._changed = changed

    def visit_var_(self, op: Any) -> Any:
        return self._changed.get(op, super().visit_var_(op))


class OpenKernel:
    """A kernel with symbols in its buffers' shapes.

    Parameters
    ----------
    func : PrimFunc
        Its parameters are buffers.
    roles_of : callable
        Whether each parameter of a kernel without symbols is ``in``, ``inout`` or ``out``.

    Attributes
    ----------
    roles : list of str
        Of its parameters.
    every : list of OpenInput
        All parameters.
    signature : OpenSignature
        What it reads.
    """

    def __init__(self, func: tirx.PrimFunc, roles_of: Callable[[tirx.PrimFunc], Sequence[Any]]) -> None:
        self.func = func
        self._names = SymbolNames()
        inputs = [
            OpenInput(str(param.name), tuple(map(self._names.size, param.ty.shape)), str(param.ty.dtype))
            for param in func.params
        ]
        # which of them it reads is the same for all sizes
        self.roles = [str(role) for role in roles_of(self.bound(dict.fromkeys(self._names.of.values(), 2)))]
        self.every = inputs
        read = [each for each, role in zip(inputs, self.roles, strict=True) if role != "out"]
        self.signature = OpenSignature(read)

    @property
    def variables(self) -> dict[str, Any]:
        """The variable of each symbol."""
        return {name: variable for variable, name in self._names.of.items()}

    def bound(self, sizes: Sizes) -> tirx.PrimFunc:
        """The kernel for a size of every symbol."""
        return bound_kernel(self.func, self._names.numbers(sizes))
