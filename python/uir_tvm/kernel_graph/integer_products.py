# SPDX-License-Identifier: Apache-2.0
"""Products of bytes in Relax as one operator each, with what follows them."""

from __future__ import annotations

import json
from collections import Counter
from math import prod
from typing import Any

import numpy as np
import tvm
from tvm import relax

from ..frontend.main_rebuilder import MainRebuilder
from ..frontend.normalize import replace_main
from ..frontend.relax_view import address_of, dtype_of, integers, op_name, shape_of
from ..library.integer_attrs import IntegerAttrs, pack_integers
from ..library.library_tables import LibraryTable
from .byte_tensors import Bytes, Weight, bytes_of, packs_narrow, weight_of
from .integer_endings import EndedProduct, Ending, after
from .integer_matmul import emit_product, unfit
from .nodes import IntegerDecision
from .op_kinds import INTEGER_PRODUCT
from .program import Op, Program, Value

#: The name that a product has in Relax; nothing is registered under it.
PRODUCT = "uir.integer_product"
#: Axes of images with the channels last, and back.
LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


def is_integer_product(call: Any) -> bool:
    """Whether an expression is such a product."""
    return op_name(call) == "call_pure_packed" and str(call.args[0].global_symbol) == PRODUCT


def gather_integer_products(
    mod: tvm.IRModule, table: LibraryTable
) -> tuple[tvm.IRModule, tuple[IntegerDecision, ...]]:
    """Let products of bytes with constant weights of integers be one operator each.

    Before: a = multiply(astype(subtract(astype(x, int32), 3), float32), s);
    y = matmul(a, permute_dims(dequantize(w, t))); b = add(y, bias); q = astype(minimum(maximum(add(round(
    divide(b, r)), 5), 0), 255), uint8).
    After: q = call_pure_packed("uir.integer_product", x, packed, ...) of uint8, summed in int32.  Images lie
    with the channels last there, between permute_dims.

    Parameters
    ----------
    mod : tvm.IRModule
        ``main`` is one dataflow block, normalised.
    table : LibraryTable
    """
    rewriter = _IntegerProducts(mod["main"], table)
    rewriter.look()
    decisions = tuple(rewriter.decisions)
    if not rewriter.found:
        return mod, decisions
    return replace_main(mod, rewriter.rebuilt()), decisions


class _IntegerProducts(MainRebuilder):
    def __init__(self, main: relax.Function, table: LibraryTable) -> None:
        super().__init__(main)
        self.table = table
        self.calls = {address_of(b.var): b.value for b in self.bindings}
        self.readers: dict[int, list[tuple[Any, int]]] = {}
        self.uses: Counter[int] = Counter()
        for binding in self.bindings:
            for at, arg in enumerate(_operands(binding.value)):
                self._use(arg)
                self.readers.setdefault(address_of(arg), []).append((binding, at))
        self._use(main.body.body)
        #: Variable at which a product ends -> the product.
        self.found: dict[int, EndedProduct] = {}
        self.decisions: list[IntegerDecision] = []

    def _use(self, expr: Any) -> None:
        if isinstance(expr, tvm.ir.Var):
            self.uses[address_of(expr)] += 1
        elif isinstance(expr, tvm.ir.Tuple):
            for field in expr.fields:
                self._use(field)
        elif isinstance(expr, tvm.ir.TupleGetItem):
            self._use(expr.tuple_value)

    def look(self) -> None:
        """Find the products."""
        for binding in self.bindings:
            if op_name(binding.value) in ("matmul", "nn.conv2d"):
                self._product(binding)

    def replacement(self, binding: relax.Binding) -> Any:
        """The call of a product where it ends."""
        product = self.found.get(address_of(binding.var))
        return None if product is None else self._emit(product)

    def _definition(self, expr: Any) -> Any:
        found = self.calls.get(address_of(expr)) if isinstance(expr, tvm.ir.Var) else None
        return found if isinstance(found, tvm.ir.Call) else None

    def _product(self, binding: Any) -> None:
        """Find out what a product is, and where it ends."""
        call, image = binding.value, op_name(binding.value) == "nn.conv2d"
        x = bytes_of(call.args[0], self._definition)
        weight = None if x is None else weight_of(call.args[1], self._definition)
        if x is None or weight is None or dtype_of(call) not in ("float32", "int32"):
            return
        reason = self._refusal(call, x, weight, image)
        apart = None if reason else weight.by_output(0 if image else 1)
        if apart is None:
            why = reason or "scales of the weight differ within an output"
            self.decisions.append(IntegerDecision(binding.var.name, False, why))
            return
        numbers, scales = apart
        ending = Ending.of(scales * np.float32(x.scale), x.scaled)
        ending, end = self._ended(ending, binding, 1 if image else len(shape_of(call) or ()) - 1)
        self.found[address_of(end.var)] = EndedProduct(call, x, numbers, ending, image, end)
        self.decisions.append(IntegerDecision(binding.var.name, True))

    def _refusal(self, call: Any, x: Bytes, weight: Weight, image: bool) -> str:
        """Why a product is none of integers; empty where it is."""
        if INTEGER_PRODUCT not in self.table.functions and self.table.integer_matmul is None:
            return self.table.integers_not
        if x.scaled != (dtype_of(call) == "float32"):
            return "its operands are of other types than its result"
        if not -128 <= x.zero <= 255:
            return f"the zero point {x.zero} is no byte"
        if image:
            given = call.attrs
            layouts = (str(given.data_layout), str(given.kernel_layout), str(given.out_layout or "NCHW"))
            if layouts != ("NCHW", "OIHW", "NCHW"):
                return f"its images lie as {layouts}"
            if int(given.groups) != 1:
                return f"it has {int(given.groups)} groups of channels"
        elif weight.numbers.ndim != 2 or len(shape_of(call.args[0]) or ()) < 2:
            return "its operands are no matrices"
        greatest = x.farthest * weight.greatest(0 if image else 1)
        if greatest > np.iinfo(np.int32).max:
            return f"its sums may be as great as {greatest}, which 32 bits do not hold"
        return "" if self.table.integer_matmul is None else unfit(call, x, weight, image)

    def _ended(self, ending: Ending, binding: Any, channel: int) -> tuple[Ending, Any]:
        """How far what follows is part of the product: the last place where it may end."""
        best = ending, binding
        while True:
            key = address_of(binding.var)
            readers = self.readers.get(key, ())
            if self.uses[key] != 1 or len(readers) != 1:
                return best
            reader, place = readers[0]
            if not isinstance(reader.value, tvm.ir.Call) or shape_of(reader.value) != shape_of(binding.value):
                return best
            made = after(ending, reader.value, place, channel)
            if made is None:
                return best
            ending, binding = made, reader
            if ending.usable:
                best = ending, binding

    def _emit(self, product: EndedProduct) -> Any:
        """The call, in the order of the model."""
        emit, op = self.builder.emit, relax.op
        x = self.value(product.x.base)
        for move in product.x.moves:
            x = emit(relax.Call(move.op, [x, *map(self.value, move.args[1:])], move.attrs, move.ty_args))
        if product.image:
            x = emit(op.permute_dims(x, LAST))
        point = None if product.x.point is None else emit(op.reshape(self.value(product.x.point), (1,)))
        if self.table.integer_matmul is not None:
            made = emit_product(emit, self.table.integer_matmul, product, x, point)
        else:
            made = self._whole(product, x, point)
        return emit(op.permute_dims(made, FIRST)) if product.image else made

    def _whole(self, product: EndedProduct, x: Any, point: Any) -> Any:
        """One operator, with what follows."""
        call, numbers, ending, fields = product.call, product.numbers, product.ending, {}
        if product.image:
            for name in ("strides", "padding", "dilation"):
                fields[name] = list(integers(getattr(call.attrs, name)) or ())
            numbers = numbers.transpose(0, 2, 3, 1)
        narrow = packs_narrow(numbers)
        told = {
            **fields,
            "weight": [len(numbers), *(numbers.shape[1:3] if product.image else (1, 1))],
            "zero": product.x.zero,
            "out_zero": int(ending.zero),
            "wide": not narrow,
        }
        matrix = numbers.reshape(len(numbers), -1).astype(np.int8 if narrow else np.int16)
        packed = relax.const(pack_integers(matrix, ending.packed()))
        shape = list(call.ty.shape.values)
        shape = [shape[axis] for axis in LAST] if product.image else shape
        return self.builder.emit(
            relax.op.call_pure_packed(
                PRODUCT,
                *([x, packed] if point is None else [x, packed, point]),
                tvm.ir.StringImm(json.dumps(told)),
                ty_args=relax.TensorType(shape, ending.dtype),
            )
        )


def _operands(value: Any) -> list[Any]:
    """The expressions that an expression reads."""
    if isinstance(value, tvm.ir.Call):
        return list(value.args)
    return [value]


def integer_call(program: Program, op: Op, table: LibraryTable) -> tuple[str, IntegerAttrs, list[Value]]:
    """What the library is called with, as `library_call.library_call` says it."""
    x, shape = op.operands[0], op.operands[0].shape
    image = shape if len(shape) == 4 else (prod(shape[:-1]), 1, 1, shape[-1])
    assert op.call is not None
    attributes = IntegerAttrs(image=image, **json.loads(str(op.call.args[-1].value)))
    return table.functions[INTEGER_PRODUCT], attributes, [x.base, *(view.base for view in op.operands[1:])]
