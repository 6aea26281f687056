# SPDX-License-Identifier: Apache-2.0
"""Quantised tensors in Relax: products with them as one operator, rows taken before they are unpacked."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

from ..frontend.main_rebuilder import MainRebuilder
from ..frontend.normalize import replace_main
from ..frontend.relax_view import address_of, dtype_of, is_constant, op_name, permutation_of, shape_of
from ..library.library_tables import LibraryTable
from ..library.quantized_attrs import takes_packing
from ..quantized import Packing
from ..quantized_calls import expanded, is_dequantize, packing_of
from .op_kinds import QUANTIZED_PRODUCT

#: The name that a product has in Relax; nothing is registered under it.
PRODUCT = "uir.quantized_matmul"
#: What `take` does with indices that are no rows; with others a taken row is no row of the bytes.
MODES = ("fast", "clip", "wrap")


def is_product(call: Any) -> bool:
    """Whether an expression is the product with a quantised tensor."""
    return op_name(call) == "call_pure_packed" and str(call.args[0].global_symbol) == PRODUCT


def product_packing(call: Any) -> Packing:
    """The packing of the weight of such a product; its operands are x, then the weight's parts."""
    return Packing.from_json(str(call.args[-1].value))


def gather_products(mod: tvm.IRModule, table: LibraryTable) -> tvm.IRModule:
    """Join quantised tensors with what reads them.

    Before: y = matmul(x, permute_dims(dequantize(w, s))); e = take(dequantize(w, s), rows).
    After: y = call_pure_packed("uir.quantized_matmul", x, w, s, ...), where the library has such a product;
    e = dequantize(take(w, rows), take(s, rows)) in Relax's operators.  Other readers have the tensor in
    Relax's operators too.

    Parameters
    ----------
    mod : tvm.IRModule
        ``main`` is one dataflow block, normalised.
    table : LibraryTable
    """
    bindings = [binding for block in mod["main"].body.blocks for binding in block.bindings]
    if not any(is_dequantize(binding.value) for binding in bindings):
        return mod
    return replace_main(mod, _Rewriter(mod["main"], table).rebuilt())


class _Rewriter(MainRebuilder):
    def __init__(self, main: relax.Function, table: LibraryTable) -> None:
        super().__init__(main)
        self.table = table
        #: Variable -> the quantised tensor that it is, and whether it is turned.
        self.weights: dict[int, tuple[Any, bool]] = {}

    def rebind(self, binding: relax.Binding) -> None:
        """A quantised tensor has no binding of its own."""
        call, key = binding.value, address_of(binding.var)
        if is_dequantize(call):
            self.weights[key] = call, False
            return
        weight = self._weight(call.args[0]) if op_name(call) == "permute_dims" else None
        if weight is not None and permutation_of(call, 2) == (1, 0):
            self.weights[key] = weight[0], not weight[1]
            return
        super().rebind(binding)

    def replacement(self, binding: relax.Binding) -> Any:
        """The call of a product, or rows taken of the parts."""
        made = self._product(binding.value)
        return self._rows(binding.value) if made is None else made

    def _weight(self, expr: Any) -> tuple[Any, bool] | None:
        return self.weights.get(address_of(expr)) if isinstance(expr, tvm.ir.Var) else None

    def value(self, expr: Any) -> Any:
        """An expression of the new function; a quantised tensor is unpacked where nothing else serves."""
        if isinstance(expr, tvm.ir.Var):
            key = address_of(expr)
            if key in self.weights and key not in self.values:
                self.values[key] = self._unpacked(*self.weights[key])
        return super().value(expr)

    def _unpacked(self, call: Any, turned: bool) -> Any:
        whole = expanded(self.builder, call, self._parts(call))
        return self.builder.emit(relax.op.permute_dims(whole)) if turned else whole

    def _parts(self, call: Any) -> list[Any]:
        return [self.value(part) for part in call.args[1:-1]]

    def _product(self, call: Any) -> Any:
        """matmul(x, permute_dims(weight)) as one call."""
        if op_name(call) != "matmul":
            return None
        weight = self._weight(call.args[1])
        if weight is None or not weight[1] or self._weight(call.args[0]) is not None:
            return None
        dequantize, dtype = weight[0], dtype_of(call.args[0])
        packing = packing_of(dequantize)
        library = self.table.takes(QUANTIZED_PRODUCT, "float32")
        if len(shape_of(call.args[0]) or ()) < 2 or not (library or dtype in self.table.unpacks):
            return None
        x, parts = self.value(call.args[0]), self._parts(dequantize)
        if library and not (takes_packing(packing) and all(map(is_constant, parts))):
            return None
        narrow = library and dtype != "float32"
        wide = self.builder.emit(relax.op.astype(x, "float32")) if narrow else x
        made = relax.TensorType(call.ty.shape, dtype_of(wide))
        told = tvm.ir.StringImm(packing.to_json())
        product = self.builder.emit(relax.op.call_pure_packed(PRODUCT, wide, *parts, told, ty_args=made))
        result = dtype_of(call)
        return product if result == dtype_of(wide) else self.builder.emit(relax.op.astype(product, result))

    def _rows(self, call: Any) -> Any:
        """take(weight, rows) of taken rows of the parts."""
        if op_name(call) != "take" or call.attrs.axis is None or str(call.attrs.mode) not in MODES:
            return None
        weight = self._weight(call.args[0])
        if weight is None or weight[1] or int(call.attrs.axis) not in (0, -2):
            return None
        emit, op, indices = self.builder.emit, relax.op, self.value(call.args[1])
        if not isinstance(indices.ty, relax.TensorType):
            return None
        flat = emit(op.reshape(indices, (-1,)))
        parts = [emit(op.take(part, flat, 0, str(call.attrs.mode))) for part in self._parts(weight[0])]
        return emit(op.reshape(expanded(self.builder, weight[0], parts), call.ty.shape))
