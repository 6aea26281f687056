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

from ...errors import DynamicShapeError, ValueNeededError
from ...one_at_a_time import one_at_a_time
from ...sizes.symbolic_shapes import Sizes, symbols_of
from ..normalize import normalize
from ..open_model import InputShapes, StageRunner, SymbolicForm
from .declared import check_results, checked_values
from .input_shapes import fix_shapes, signature_of
from .model_file import load
from .simplifier import SimplifiedGraph, Simplifier
from .symbolic import symbolic_module
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
        return module_of(Simplifier(loaded, checked_values(loaded, values or {})).program())
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
    return Simplifier(loaded, checked_values(loaded, values or {}), driver, module_of).run_stages()


class OpenOnnx:
    """A model that leaves sizes open, or whose values decide shapes.

    Parameters
    ----------
    model : onnx.ModelProto
    shapes, values : mapping
        What is known already, as of `from_onnx`. Inputs with a value are not among the signature's.
    """

    structure: str | None = None

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

    @property
    def symbolic(self) -> SymbolicForm:
        """See `OpenModel.symbolic`."""
        signature = self.signature
        return SymbolicForm(
            {name: name for name in signature.symbols},
            lambda space: symbolic_module(self._model, signature, self._values, space),
            lambda sizes: None,
            tuple(each.name for each in signature.inputs),
        )

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
    check_operators(program.steps)
    walk = Walk(program.known, program.inputs)

    def convert_all() -> list[str]:
        for step in program.steps:
            walk.convert(step)
        return [value.name for value in program.outputs]

    mod = normalize(walk.module(convert_all))
    check_results(program.outputs, mod["main"])
    return mod
