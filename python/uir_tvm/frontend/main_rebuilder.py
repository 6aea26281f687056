# SPDX-License-Identifier: Apache-2.0
"""A new ``main`` of an old one, binding by binding."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

from ..function_scope import function_scope
from .relax_view import address_of


class MainRebuilder:
    """Builds ``main`` anew; a subclass says what stands for some of its bindings.

    Parameters
    ----------
    main : relax.Function
        One dataflow block, normalised.

    Attributes
    ----------
    builder : relax.BlockBuilder
        Of the new function.
    bindings : list of relax.Binding
        Of the old one, in order.
    values : dict
        Address of a variable of the old function -> the expression that stands for it.
    """

    def __init__(self, main: relax.Function) -> None:
        self.main = main
        self.builder = relax.BlockBuilder()
        self.bindings = [binding for block in main.body.blocks for binding in block.bindings]
        self.values: dict[int, Any] = {}

    def rebuilt(self) -> relax.Function:
        """The new function."""
        with function_scope(self.builder, "main", list(self.main.params), self.main.attrs):
            with self.builder.dataflow():
                for binding in self.bindings:
                    self.rebind(binding)
                output = self.builder.emit_output(self.value(self.main.body.body))
            self.builder.emit_func_output(output)
        return self.builder.get()["main"]

    def replacement(self, binding: relax.Binding) -> Any:
        """What stands for a binding; None: the same expression of the new values."""
        return None

    def rebind(self, binding: relax.Binding) -> None:
        """Add a binding to the new function."""
        key = address_of(binding.var)
        made = self.replacement(binding)
        if made is None:
            made = self.value(binding.value)
            if isinstance(binding, relax.MatchCast):
                made = self.builder.match_cast(made, binding.ty)
            elif not isinstance(made, tvm.ir.Var | tvm.ir.Tuple):
                made = self.builder.emit(made)
        self.values[key] = made

    def value(self, expr: Any) -> Any:
        """An expression of the old function in the new one."""
        if isinstance(expr, tvm.ir.Var):
            return self.values.get(address_of(expr), expr)
        if isinstance(expr, tvm.ir.Tuple):
            return relax.Tuple([self.value(field) for field in expr.fields])
        if isinstance(expr, tvm.ir.TupleGetItem):
            whole = self.value(expr.tuple_value)
            if isinstance(whole, tvm.ir.Tuple):
                return whole.fields[int(expr.index)]
            return relax.TupleGetItem(whole, expr.index)
        if isinstance(expr, tvm.ir.Call):
            return relax.Call(expr.op, [self.value(arg) for arg in expr.args], expr.attrs, expr.ty_args)
        return expr
