# SPDX-License-Identifier: Apache-2.0
"""What is known of a graph's values before it runs: types, shapes, and numbers of those that are constant."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import attrs
import numpy as np
import onnx
from onnx import defs, helper, numpy_helper, shape_inference

from ...sizes.open_size import AnySize, OpenSize

#: Constants of more bytes are not shown to shape inference, which needs only their types.
SHOWN_BYTES = 1 << 14
#: Arrays of more bytes are made anew whenever they are asked for: each is a copy of what the file holds.
KEPT_BYTES = 1 << 16
STANDARD_DOMAINS = frozenset({"", "ai.onnx"})


@attrs.frozen(eq=False)
class VersionedNode:
    """A node and the version of its domain's operators that it means."""

    node: onnx.NodeProto
    version: int

    @property
    def operator(self) -> str:
        """Its operator, with the domain where that is not the standard's."""
        node = self.node
        return node.op_type if node.domain in STANDARD_DOMAINS else f"{node.domain}::{node.op_type}"

    @property
    def schema(self) -> defs.OpSchema | None:
        """The standard's description of the operator; None where there is none."""
        domain = "" if self.node.domain in STANDARD_DOMAINS else self.node.domain
        try:
            return defs.get_schema(self.node.op_type, self.version, domain)
        except defs.SchemaError:
            return None

    @property
    def text(self) -> str:
        """How errors name it."""
        outputs = ", ".join(repr(name) for name in self.node.output if name)
        return f"node {self.node.name or '(unnamed)'} = {self.operator}, output {outputs}"


def element_name(element: int) -> str:
    """The name of an element type of ``onnx.TensorProto``: ``float32``, ``string``."""
    if element == onnx.TensorProto.STRING:
        return "string"
    return helper.tensor_dtype_to_np_dtype(element).name if element else "unknown"


def attributes_of(step: VersionedNode) -> dict[str, object]:
    """A node's attributes, with the defaults of its schema."""
    schema = step.schema
    found = {}
    for name, attribute in (schema.attributes if schema else {}).items():
        if attribute.default_value.name:
            found[name] = helper.get_attribute_value(attribute.default_value)
    found.update({a.name: helper.get_attribute_value(a) for a in step.node.attribute if not a.ref_attr_name})
    return found


def is_open(array: np.ndarray) -> bool:
    """Whether elements are sizes that a model leaves open."""
    return array.dtype == object and any(isinstance(each, OpenSize) for each in array.flat)


def of_sizes(sizes: np.ndarray | Sequence[AnySize]) -> np.ndarray:
    """Whole numbers as an array: of `OpenSize`, where some are, else of int64; truths as bools."""
    array = np.asarray(sizes, object)
    if is_open(array):
        return array
    truths = array.size and all(isinstance(each, bool | np.bool_) for each in array.flat)
    return array.astype(bool if truths else np.int64)


class Known:
    """Types and numbers of values, by name.

    Shapes may hold sizes that a model leaves open (`OpenSize`): in types they are named parameters.
    """

    def __init__(self) -> None:
        self.types: dict[str, onnx.TypeProto] = {}
        #: Open sizes by the parameter that they are in types.
        self._open: dict[str, OpenSize] = {}
        self._arrays: dict[str, np.ndarray] = {}
        self._tensors: dict[str, onnx.TensorProto] = {}

    def add_tensor(self, tensor: onnx.TensorProto) -> None:
        """A constant in the form of the file; it is read when its numbers are asked for."""
        self._tensors[tensor.name] = tensor
        self.types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))

    def add_array(self, name: str, array: np.ndarray) -> None:
        """A constant; open sizes are of the element type that the value has, or int64."""
        self._arrays[name] = array
        element = (
            self.element(name) or onnx.TensorProto.INT64
            if is_open(array)
            else helper.np_dtype_to_tensor_dtype(array.dtype)
        )
        self.add_type(name, element, array.shape)

    def add_type(self, name: str, element: int, shape: Sequence[AnySize]) -> None:
        """What a tensor is; sizes may be open."""
        self.types[name] = helper.make_tensor_type_proto(element, [self._dim(size) for size in shape])

    def _dim(self, size: AnySize) -> int | str:
        """A size in a type: a name that no model uses stands for an open one."""
        if not isinstance(size, OpenSize):
            return int(size)
        name = f"uir: {size}"
        self._open[name] = size
        return name

    def is_constant(self, name: str) -> bool:
        """Whether the numbers are known."""
        return name in self._arrays or name in self._tensors

    def is_open(self, name: str) -> bool:
        """Whether it is a constant that holds open sizes."""
        return name in self._arrays and is_open(self._arrays[name])

    def array(self, name: str) -> np.ndarray | None:
        """The numbers of a constant, else None."""
        array = self._arrays.get(name)
        if array is None and name in self._tensors:
            array = numpy_helper.to_array(self._tensors[name])
            if array.nbytes <= KEPT_BYTES:
                self._arrays[name] = array
        return array

    def integers(self, name: str) -> list[int] | None:
        """The numbers of a constant as a list, else None; they may be open sizes."""
        array = self.array(name)
        if array is None:
            return None
        return list(array.flat) if is_open(array) else [int(number) for number in array.reshape(-1)]

    def constants(self) -> Iterable[str]:
        """The names of all constants."""
        return {**self._tensors, **self._arrays}.keys()

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The shape, where every size is known, or is an open size (`OpenSize`)."""
        kind = self.types.get(name)
        if kind is None or not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
            return None
        sizes: list[AnySize] = []
        for dim in kind.tensor_type.shape.dim:
            if dim.HasField("dim_value"):
                sizes.append(dim.dim_value)
            elif dim.dim_param in self._open:
                sizes.append(self._open[dim.dim_param])
            else:
                return None
        return tuple(sizes)

    def element(self, name: str) -> int:
        """The element type as a number of ``onnx.TensorProto``; 0 where it is unknown."""
        kind = self.types.get(name)
        return kind.tensor_type.elem_type if kind is not None and kind.HasField("tensor_type") else 0

    def size(self, name: str) -> int | None:
        """How many elements; None where that is unknown."""
        shape = self.shape(name)
        return None if shape is None else math.prod(shape)

    def infer(self, step: VersionedNode, opsets: Mapping[str, int], ir_version: int) -> None:
        """Find the types of a node's outputs."""
        schema = step.schema
        inputs = [name for name in step.node.input if name]
        if schema is None or any(name not in self.types for name in inputs):
            return
        shown = {name: self._shown(name) for name in inputs}
        try:
            found = shape_inference.infer_node_outputs(
                schema,
                step.node,
                {name: self.types[name] for name in inputs},
                {name: tensor for name, tensor in shown.items() if tensor is not None},
                opset_imports=[
                    helper.make_opsetid(domain, version)
                    for domain, version in {**opsets, step.node.domain: step.version}.items()
                ],
                ir_version=ir_version,
            )
        except (shape_inference.InferenceError, onnx.checker.ValidationError, ValueError, RuntimeError):
            return  # the conversion of the node says what is wrong
        self.types.update({name: kind for name, kind in found.items() if kind.WhichOneof("value")})

    def _shown(self, name: str) -> onnx.TensorProto | None:
        """A small constant as shape inference reads it."""
        if not self.is_constant(name) or self.is_open(name):
            return None
        if name not in self._tensors and self._arrays[name].nbytes <= SHOWN_BYTES:
            self._tensors[name] = numpy_helper.from_array(self._arrays[name], name)
        tensor = self._tensors.get(name)
        return tensor if tensor is not None and (self.size(name) or 0) * 8 <= SHOWN_BYTES else None
