# SPDX-License-Identifier: Apache-2.0
"""The nodes that must run -> Relax, by our converters or TVM's; each result has the standard's type."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import onnx_frontend as stock

from ...errors import FrontendError, OpenSizeError, UirError, UnsupportedOperatorError, last_line
from ...function_scope import function_scope
from ..open_expressions import expressions
from ..relax_view import dtype_of, shape_of
from .converters import CONVERTERS
from .converters.node import OnnxNode
from .converters.open_shapes import READ, SIZED
from .deciding import DECIDING
from .known import Known, VersionedNode, element_name
from .supported import REFUSED, SEQUENCE, TEXT, converts

#: What TVM's importer must see as constants, or as shapes.
DTYPES = frozenset(
    """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 float8_e4m3fn
    float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu""".split()
)


def check_operators(steps: Iterable[VersionedNode]) -> None:
    """Every node that must run has a converter, in the domain that the node names.

    Raises
    ------
    UnsupportedOperatorError
        Naming all that have none.
    """
    missing: dict[str, str] = {}
    reasons = {}
    for step in steps:
        if converts(step):
            continue
        name = step.operator
        missing.setdefault(name, step.text)
        if step.node.op_type in REFUSED:
            reasons[name] = f"{name} {REFUSED[step.node.op_type]}"
    if missing:
        raise UnsupportedOperatorError(
            f"unsupported ONNX operator{'s' if len(missing) > 1 else ''}: {', '.join(sorted(missing))}",
            where="; ".join(missing.values()),
            remedy="; ".join(reasons.values())
            or "export with standard operators, or define the operator as a model function",
        )


class PrintsOfThread(io.TextIOBase):
    """Keeps what the thread that makes it prints; what others print goes where it went before."""

    def __init__(self) -> None:
        self.said = io.StringIO()
        self._thread, self._before = threading.get_ident(), sys.stdout

    def write(self, text: str) -> int:
        return (self.said if threading.get_ident() == self._thread else self._before).write(text)

    def flush(self) -> None:
        if self._before is not None:
            self._before.flush()


class Walk:
    """Makes one Relax function of nodes.

    Parameters
    ----------
    known : Known
    inputs : sequence of onnx.ValueInfoProto
        They become parameters.
    """

    def __init__(self, known: Known, inputs: Sequence[onnx.ValueInfoProto]) -> None:
        self.known, self._inputs = known, inputs
        self.builder = relax.BlockBuilder()
        self.values: dict[str, Any] = {}

    def module(self, convert_all: Callable[[], Sequence[str]]) -> tvm.IRModule:
        """The module of the nodes that a function converts; it says which values are the results."""
        params = [self._param(value) for value in self._inputs]
        with function_scope(self.builder, "main", params):
            with self.builder.dataflow():
                results = [self.value(name) for name in convert_all()]
                output = self.builder.emit_output(results[0] if len(results) == 1 else relax.Tuple(results))
            self.builder.emit_func_output(output)
        return self.builder.get()

    def _param(self, value: onnx.ValueInfoProto) -> relax.Var:
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            raise UnsupportedOperatorError(
                f"input {value.name!r} is no tensor",
                where=str(kind),
                need="tensors as inputs",
                remedy="pass the tensors one by one",
            )
        dtype = _checked(element_name(value.type.tensor_type.elem_type), f"input {value.name!r}")
        name = re.sub(r"\W", "_", value.name) or "input"
        taken = {var.name for var in self.values.values()}
        name = name if name[0].isalpha() or name[0] == "_" else f"input_{name}"
        while name in taken:
            name += "_"
        var = relax.Var(name, relax.TensorType(expressions(self.known.shape(value.name) or ()), dtype))
        self.values[value.name] = var
        return var

    def value(self, name: str) -> Any:
        """The expression of a value; constants are made when they are first read."""
        if name not in self.values:
            array = self.known.array(name)
            if array is None:
                raise UnsupportedOperatorError(
                    f"the value {name!r} is no tensor",
                    need="tensors as outputs and operands",
                    remedy=SEQUENCE,
                )
            if self.known.is_open(name):
                self.values[name] = self._sizes(array, element_name(self.known.element(name)))
                return self.values[name]
            dtype = _checked("string" if array.dtype.kind in "OUS" else array.dtype.name, f"value {name!r}")
            self.values[name] = relax.const(tvm.runtime.tensor(np.asarray(array, order="C")), dtype)
        return self.values[name]

    def _open_deciding(self, step: VersionedNode) -> set[str]:
        """Open sizes that decide a node's shape, which its converter reads as numbers."""
        names, operation = step.node.input, step.node.op_type
        places = (*DECIDING.get(operation, ()), *READ.get(operation, ()))
        return {names[place] for place in places if place < len(names) and self.known.is_open(names[place])}

    def _sizes(self, array: np.ndarray, dtype: str) -> Any:
        """Sizes that are open, as a tensor."""
        flat = relax.op.shape_to_tensor(relax.ShapeExpr(expressions(array.flat)))
        return self.builder.emit(relax.op.astype(relax.op.reshape(flat, array.shape), dtype))

    def convert(self, step: VersionedNode) -> None:
        """Make the values of a node's results."""
        names = step.node.input
        for name in [*names, *step.node.output]:
            if name and self.known.element(name):
                _checked(element_name(self.known.element(name)), step.text)
        deciding = self._open_deciding(step)
        inputs = [None if not name or name in deciding else self.value(name) for name in names]
        out = PrintsOfThread()
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(out):
                warnings.simplefilter("ignore")
                own = CONVERTERS.get(step.operator)
                results = own(OnnxNode(step, inputs, self)) if own else None
                if results is None and deciding:
                    raise OpenSizeError(
                        f"{step.operator} goes by a size that is open.",
                        where=step.text,
                        need="numbers; sizes may be open in " + ", ".join(sorted(SIZED)),
                        remedy="leave the model to be imported for each shape",
                    )
                if results is None:
                    results = self._stock(step, inputs)
                results = [self.builder.normalize(result) for result in results]
        except UirError:
            raise
        except Exception as error:  # of the many that TVM and its importer raise
            raise FrontendError(
                f"TVM's ONNX importer fails: {last_line(error)}",
                where=_described(step, self),
                need="operands and attributes that the importer knows",
                remedy="export the model with static shapes, or with another opset",
            ) from error
        for name, result in zip(step.node.output, results, strict=False):
            if name:
                self.values[name] = self._checked_result(step, name, result)

    def _stock(self, step: VersionedNode, inputs: Sequence[Any]) -> list[Any]:
        """A node by TVM's converter."""
        importer = stock.ONNXGraphImporter({}, "float32")
        attributes = importer._parse_attr(step.node.attribute)
        attributes["tvm_custom"] = {"name": step.node.name, "num_outputs": len(step.node.output)}
        convert = stock._get_convert_map()[step.node.op_type].get_converter(step.version)
        result = convert(self.builder, stock.onnx_input(inputs), attributes, [self.values, {}])
        return self.unpacked(result)

    def unpacked(self, result: Any) -> list[Any]:
        """The tensors of a result, bound to variables."""
        if isinstance(result, list | tuple):
            return [self.builder.normalize(value) for value in result]
        if isinstance(result, relax.Expr):
            result = self.builder.normalize(result)
        if isinstance(result, relax.Tuple):
            return [self.builder.normalize(field) for field in result.fields]
        if isinstance(result.ty, relax.TupleType):
            return [self.builder.emit(relax.TupleGetItem(result, i)) for i in range(len(result.ty.fields))]
        return [result]

    def _checked_result(self, step: VersionedNode, name: str, result: Any) -> Any:
        """A result of the shape and dtype that the standard infers."""
        if not isinstance(result.ty, relax.TensorType):
            if isinstance(result.ty, relax.ShapeType):
                result = self.builder.emit(relax.op.shape_to_tensor(result))
            else:
                raise FrontendError(
                    f"{step.operator} is imported as {result.ty}",
                    where=step.text,
                    remedy="export the model with another opset",
                )
        shape, element = self.known.shape(name), self.known.element(name)
        wrong = element and dtype_of(result) != element_name(element)
        wrong = wrong or (shape is not None and shape_of(result) != shape)
        if shape_of(result) is None:
            raise UnsupportedOperatorError(
                f"{step.operator} has an output whose shape depends on data",
                where=step.text,
                need="fixed shapes",
                remedy="give constants where shapes come from",
            )
        if wrong:
            raise FrontendError(
                f"{step.operator} is imported as {shape_of(result)} {dtype_of(result)}, the standard says "
                f"{shape} {element_name(element)}",
                where=_described(step, self),
                remedy="re-run onnx.shape_inference on the model and import again",
            )
        return (
            self.builder.emit(result) if not isinstance(result, relax.Var | tvm.ir.GenericConst) else result
        )


def _checked(dtype: str, where: str) -> str:
    if dtype not in DTYPES:
        raise UnsupportedOperatorError(
            f"{dtype} is no dtype of tensors here",
            where=where,
            need=", ".join(sorted(DTYPES)),
            remedy=TEXT if dtype == "string" else "store the numbers in a wider dtype, and cast them",
        )
    return dtype


def _described(step: VersionedNode, walk: Walk) -> str:
    """A node with its operands and attributes, as errors name it."""
    operands = [
        f"{element_name(walk.known.element(name))}{list(walk.known.shape(name) or ())}" if name else "none"
        for name in step.node.input
    ]
    attributes = [a.name for a in step.node.attribute]
    text = f"{step.text} of ({', '.join(operands)})"
    return f"{text}, attributes {', '.join(attributes)}" if attributes else text
