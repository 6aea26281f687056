# SPDX-License-Identifier: Apache-2.0
"""ONNX -> Relax, through TVM's importer."""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence

import attrs
import numpy as np
import onnx
import tvm
from tvm import relax

from ...errors import DynamicShapeError, FrontendError, ShapeError, ValueNeededError
from ...one_at_a_time import one_at_a_time
from ...symbolic_shapes import Sizes, symbols_of
from ..normalize import normalize
from ..open_model import InputShapes, StageRunner, SymbolicForm
from ..relax_view import dtype_of, shape_of
from .input_shapes import fix_shapes, graph_inputs, signature_of
from .known import element_name
from .model_file import load
from .simplifier import SimplifiedGraph, Simplifier
from .walk import Walk, check_operators


@one_at_a_time
def from_onnx(
    model: str | os.PathLike[str] | onnx.ModelProto,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, np.ndarray] | None = None,
) -> tvm.IRModule:
    """Import an ONNX model as a normalised Relax module.

    Parameters
    ----------
    model : path or onnx.ModelProto
        A model is not changed.
    shapes : mapping of str to sequence of int, optional
        Sizes for inputs with dynamic dimensions. A symbol (``batch``) fixed for one input is fixed for all.
    values : mapping of str to numpy.ndarray, optional
        Inputs that are constants: those that decide shapes or attributes (axes, pads, repeats) must be. They
        are no parameters of the result.

    Returns
    -------
    tvm.IRModule
        The form that `from_torch` returns: one Relax function ``main``, parameters named after the model's
        inputs (characters that no identifier has become ``_``), initializers as constants, result a
        tensor or the tuple of the model's outputs.

    Raises
    ------
    ModelFormatError
        For a file that is missing, truncated or no ONNX model, and for a model that breaks ONNX's rules.
    UnsupportedOperatorError
        Naming the operators that have no converter, the first node of each, and the remedy.
    ShapeError
        For a dynamic dimension that ``shapes`` does not fix, naming the input, and for a wrong shape.
    ValueNeededError
        For an input that decides a shape or attribute and is not in ``values``.
    FrontendError
        Where the importer fails on an operator.
    """
    loaded = load(model)
    try:
        fix_shapes(loaded, shapes or {})
        return module_of(Simplifier(loaded, _checked_values(loaded, values or {})).program())
    except (DynamicShapeError, ValueNeededError) as error:
        error.model = OpenOnnx(load(model), shapes or {}, values or {})
        raise


@one_at_a_time
def run_onnx(
    model: str | os.PathLike[str] | onnx.ModelProto,
    driver: StageRunner,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    values: Mapping[str, np.ndarray] | None = None,
) -> list[str]:
    """Import an ONNX model in stages, each of which runs before the next is imported.

    Parameters
    ----------
    model, shapes, values
        As of `from_onnx`.
    driver : StageRunner
        Has the model's inputs, compiles and runs the stages.

    Returns
    -------
    list of str
        The names of the model's outputs; the driver has them.
    """
    loaded = load(model)
    fix_shapes(loaded, shapes or {})
    return Simplifier(loaded, _checked_values(loaded, values or {}), driver, module_of).run_stages()


class OpenOnnx:
    """A model that leaves sizes open, or whose values decide shapes.

    Parameters
    ----------
    model : onnx.ModelProto
    shapes, values : mapping
        What is known already, as of `from_onnx`. Inputs with a value are not among the signature's.
    """

    structure: str | None = None
    symbolic: SymbolicForm | None = None

    def __init__(
        self,
        model: onnx.ModelProto,
        shapes: Mapping[str, Sequence[int]],
        values: Mapping[str, np.ndarray],
    ) -> None:
        self._model, self._shapes, self._values = model, dict(shapes), dict(values)
        every = signature_of(copy.deepcopy(model))
        fixed = every.fixed(every.sizes_said(shapes))
        inputs = [
            attrs.evolve(each, sizes=tuple(self._shapes.get(each.name, each.sizes)))
            for each in fixed.inputs
            if each.name not in self._values
        ]
        self.signature = attrs.evolve(fixed, inputs=inputs)

    def fixed(self, sizes: Sizes) -> OpenOnnx:
        """See `OpenModel.fixed`."""
        shapes = {
            each.name: tuple(int(size) for size in each.sizes)
            for each in self.signature.fixed(sizes).inputs
            if not any(symbols_of(size) for size in each.sizes)
        }
        made = OpenOnnx(self._model, {**self._shapes, **shapes}, self._values)
        made.signature = self.signature.fixed(sizes)
        return made

    def module(self, shapes: InputShapes) -> tvm.IRModule:
        """See `OpenModel.module`."""
        return from_onnx(self._model, shapes={**self._shapes, **shapes}, values=self._values)

    def run(
        self, shapes: InputShapes, values: Mapping[str, np.ndarray], driver: StageRunner
    ) -> Sequence[str]:
        """See `OpenModel.run`."""
        every = {**self._shapes, **shapes}, {**self._values, **values}
        return run_onnx(self._model, driver, shapes=every[0], values=every[1])


def module_of(program: SimplifiedGraph) -> tvm.IRModule:
    """The Relax module of a program, with the types that the standard infers."""
    check_operators(program)
    mod = normalize(Walk(program).module())
    _check_results(program, mod["main"])
    return mod


def _checked_values(model: onnx.ModelProto, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
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


def _check_results(program: SimplifiedGraph, main: relax.Function) -> None:
    """The imported function returns the shapes and dtypes that the model declares."""
    body_type = main.ret_ty
    results = list(body_type.fields) if isinstance(body_type, relax.TupleType) else [body_type]
    for value, result in zip(program.outputs, results, strict=True):
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
            or any(d is not None and d != s for d, s in zip(dims, shape, strict=False))
        )
        if wrong or (want_dtype and want_dtype != dtype_of(probe)):
            raise FrontendError(
                f"output {value.name!r} is imported as {shape} {dtype_of(probe)}, the model declares "
                f"{tuple(dims)} {want_dtype}",
                remedy="re-run onnx.shape_inference on the model and import again",
            )
