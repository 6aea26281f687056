# SPDX-License-Identifier: Apache-2.0
"""PyTorch -> Relax, through ``torch.export`` and TVM's importer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import tvm
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program

from ..errors import FrontendError, ShapeError, UnsupportedOperatorError, first_line
from ..one_at_a_time import one_at_a_time
from .normalize import normalize, replace_main
from .torch_converters import REFUSED, REMEDY, Converter, converter_map, describe
from .torch_decompositions import decomposition_table
from .torch_graph import (
    CONSTANT_KINDS,
    drop_assertions,
    drop_constant_inputs,
    drop_empty,
    fold_constants,
    target_name,
    weights_to_inputs,
)
from .torch_promotion import promote

#: Attribute of a module: its inputs that are weights.
WEIGHTS = "uir.weights"


@one_at_a_time
def export_torch(
    module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None
) -> ExportedProgram:
    """Export a module in eval mode, with the shapes of example inputs.

    Parameters
    ----------
    module : torch.nn.Module
        Its mode is restored afterwards.
    args, kwargs
        Example inputs; their shapes and dtypes become the program's.

    Returns
    -------
    torch.export.ExportedProgram
        For `from_torch`.

    Raises
    ------
    FrontendError
        When PyTorch cannot export the module.
    """
    training = module.training
    module.eval()
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            return torch.export.export(module, tuple(args), dict(kwargs or {}))
    except Exception as error:
        raise FrontendError(
            f"torch.export cannot export {type(module).__name__}: {first_line(error)}",
            remedy="call torch.export.export on it and follow its message",
        ) from error
    finally:
        module.train(training)


@one_at_a_time
def from_torch(
    program: ExportedProgram | torch.nn.Module,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    custom_convert_map: dict[str, Converter] | None = None,
    weights_as_inputs: bool = False,
) -> tvm.IRModule:
    """Import a PyTorch model as a normalised Relax module.

    Parameters
    ----------
    program : ExportedProgram or torch.nn.Module
        A module is exported first (`export_torch`) with ``args`` and ``kwargs``.
    args, kwargs : optional
        Example inputs of a module.
    custom_convert_map : dict, optional
        Converters for further operators: name (``mul.Tensor``) -> ``function(node, importer) -> relax.Var``.
    weights_as_inputs : bool
        Whether the module's parameters become inputs of ``main``, after the caller's, in the module's order,
        instead of constants (`weights_of` names them): what is compiled is small and serves any weights of
        these shapes, but no weight is joined or packed ahead of time. Buffers stay constants.

    Returns
    -------
    tvm.IRModule
        One Relax function ``main``: parameters named after the program's tensor inputs, weights as
        constants (copies: later changes of the model do not reach them), result a tensor or, for
        several outputs, the tuple of the model's flattened tensor outputs. See `normalize` for its form.

    Raises
    ------
    UnsupportedOperatorError
        Naming the operators that have no converter, a node of each, and the remedy.
    ShapeError
        For a dynamic dimension.
    FrontendError
        For a program that changes its state, has outputs that are not tensors, or fails to import.
    """
    exported = _exported(program, args, kwargs)
    _check_inputs(exported)
    _check_shapes(exported)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # raised inside PyTorch, about PyTorch
        exported = exported.run_decompositions(decomposition_table())
    _check_outputs(exported)
    drop_assertions(exported)
    drop_constant_inputs(exported)
    weights = weights_to_inputs(exported) if weights_as_inputs else {}
    drop_empty(exported)
    fold_constants(exported)
    promote(exported)
    converters = converter_map(custom_convert_map)
    _check_operators(exported, converters)
    mod = from_exported_program(
        exported,
        unwrap_unit_return_tuple=True,
        custom_convert_map=converters,
        run_ep_decomposition=False,
    )
    mod = own_constants(normalize(mod))
    return mod.with_attr(WEIGHTS, weights) if weights else mod


def weights_of(mod: tvm.IRModule) -> dict[str, str]:
    """The inputs of ``main`` that are weights (`from_torch`), each with its name in the torch module."""
    found = dict(mod.attrs).get(WEIGHTS, {}) if mod.attrs else {}
    return {str(name): str(target) for name, target in found.items()}


def _exported(
    program: ExportedProgram | torch.nn.Module,
    args: Sequence[Any] | None,
    kwargs: Mapping[str, Any] | None,
) -> ExportedProgram:
    """The program itself, or a module's."""
    if isinstance(program, torch.nn.Module):
        if args is None and not kwargs:
            raise FrontendError(
                f"a module ({type(program).__name__}) without example inputs",
                remedy="from_torch(module, example_args), or pass the result of torch.export.export",
            )
        return export_torch(program, args or (), kwargs)
    if not isinstance(program, ExportedProgram):
        raise FrontendError(
            f"from_torch takes an ExportedProgram or a torch.nn.Module, not {type(program).__name__}",
            remedy="torch.export.export(module, example_args)",
        )
    return program


def _check_inputs(program: ExportedProgram) -> None:
    """Every input is a tensor of fixed shape, or a value that export has fixed."""
    shapes = {node.name: node.meta.get("val") for node in program.graph.find_nodes(op="placeholder")}
    for spec in program.graph_signature.input_specs:
        if spec.kind in CONSTANT_KINDS:
            continue
        value = shapes.get(spec.arg.name)
        usable = isinstance(spec.arg, TensorArgument | ConstantArgument)
        if spec.kind is not InputKind.USER_INPUT or not usable:
            raise FrontendError(
                f"input {spec.arg.name!r} is no tensor ({spec.kind.name}, {type(spec.arg).__name__})",
                remedy="pass tensors to the model, and fix other values in the module",
            )
        if isinstance(value, torch.Tensor) and any(not isinstance(size, int) for size in value.shape):
            raise ShapeError(
                f"input {spec.arg.name!r} has a dynamic dimension",
                where=f"shape {tuple(str(size) for size in value.shape)}",
                need="fixed shapes",
                remedy="export without dynamic_shapes, once for each shape of interest",
            )


def _check_shapes(program: ExportedProgram) -> None:
    """No tensor has a shape that depends on data."""
    for node in program.graph.nodes:
        value = node.meta.get("val")
        for part in value if isinstance(value, list | tuple) else (value,):
            if isinstance(part, torch.Tensor) and any(not isinstance(size, int) for size in part.shape):
                raise ShapeError(
                    f"the shape of {target_name(node)!r} depends on data",
                    where=f"{describe(node)}, shape {tuple(str(size) for size in part.shape)}",
                    need="fixed shapes",
                    remedy="use torch.where, or a mask as a factor, in place of a selection of elements",
                )


def _check_outputs(program: ExportedProgram) -> None:
    """Every output is a user's, and a tensor."""
    for spec in program.graph_signature.output_specs:
        if spec.kind is not OutputKind.USER_OUTPUT:
            raise FrontendError(
                f"the model changes its state while it runs ({spec.kind.name}: {spec.target!r})",
                remedy="call eval() before export; return the new state as an output instead of storing it",
            )
        if not isinstance(spec.arg, TensorArgument):
            raise FrontendError(
                f"an output of the model is no tensor: {getattr(spec.arg, 'value', spec.arg)!r}",
                remedy="wrap the model in a module that returns tensors only",
            )


def _check_operators(program: ExportedProgram, converters: Mapping[str, Converter]) -> None:
    """Every operator has a converter."""
    missing: dict[str, torch.fx.Node] = {}
    for node in program.graph.nodes:
        if node.op == "call_function" and target_name(node) not in converters:
            missing.setdefault(target_name(node), node)
    if not missing:
        return
    reasons = [f"{name} {REFUSED[name]}" for name in missing if name in REFUSED]
    raise UnsupportedOperatorError(
        f"unsupported PyTorch operator{'s' if len(missing) > 1 else ''}: {', '.join(sorted(missing))}",
        where="; ".join(describe(node) for node in missing.values()),
        remedy="; ".join([*reasons, REMEDY]),
    )


def own_constants(mod: tvm.IRModule) -> tvm.IRModule:
    """Copy the constants of a module, which the importer shares with PyTorch's tensors."""
    return replace_main(mod, _CopyConstants().visit_expr(mod["main"]))


@relax.expr_functor.mutator
class _CopyConstants(relax.PyExprMutator):
    """Equal objects become one copy, so that shared weights stay shared."""

    def __init__(self) -> None:
        super().__init__()
        self._copies: dict[int, tvm.ir.Expr] = {}

    def visit_generic_const_(self, op: tvm.ir.GenericConst) -> tvm.ir.Expr:
        if not isinstance(op.ty, relax.TensorType):
            return op
        key = int(op.value.__chandle__())
        if key not in self._copies:
            self._copies[key] = relax.const(tvm.runtime.tensor(op.value.numpy()), str(op.ty.dtype))
        return self._copies[key]
