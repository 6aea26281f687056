# SPDX-License-Identifier: Apache-2.0
"""What is given for a model's inputs, and what its import returns, held to what the model declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from tvm import relax

from ...errors import FrontendError, ShapeError
from ...sizes.open_arithmetic import is_found
from ..relax_view import dtype_of, shape_of
from .input_shapes import graph_inputs
from .known import element_name


def checked_values(model: onnx.ModelProto, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Values of inputs, of the dtypes and shapes that the model declares."""
    inputs = {value.name: value.type.tensor_type for value in graph_inputs(model.graph)}
    for name, array in values.items():
        if name not in inputs:
            raise ShapeError(
                f"values names {name!r}, which is no input of the model",
                need=f"one of {', '.join(sorted(inputs))}",
            )
        shape = tuple(dim.dim_value for dim in inputs[name].shape.dim)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(inputs[name].elem_type)
        if np.asarray(array).shape != shape or np.asarray(array).dtype != dtype:
            raise ShapeError(
                f"the value of input {name!r} does not fit",
                need=f"{dtype} {list(shape)}",
                limit=f"given {np.asarray(array).dtype} {list(np.asarray(array).shape)}",
            )
    return {name: np.asarray(array) for name, array in values.items()}


def check_results(outputs: Sequence[onnx.ValueInfoProto], main: relax.Function) -> None:
    """The imported function returns the shapes and dtypes that the model declares."""
    body_type = main.body.body.ty  # the function's own forgets sizes that are found on the way
    results = list(body_type.fields) if isinstance(body_type, relax.TupleType) else [body_type]
    for value, result in zip(outputs, results, strict=True):
        tensor = value.type.tensor_type
        dims = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
        want_dtype = element_name(tensor.elem_type) if tensor.elem_type else None
        probe = relax.Var("result", result)
        shape = shape_of(probe)
        if shape is None:
            raise ShapeError(
                f"the shape of output {value.name!r} depends on data",
                need="fixed shapes",
                remedy="see shapes=",
            )
        wrong = tensor.HasField("shape") and (
            len(dims) != len(shape)
            or any(d is not None and not is_found(s) and d != s for d, s in zip(dims, shape, strict=False))
        )
        if wrong or (want_dtype and want_dtype != dtype_of(probe)):
            raise FrontendError(
                f"output {value.name!r} is imported as {shape} {dtype_of(probe)}, the model declares "
                f"{tuple(dims)} {want_dtype}",
                remedy="re-run onnx.shape_inference on the model and import again",
            )
