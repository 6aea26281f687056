# SPDX-License-Identifier: Apache-2.0
"""PyTorch -> Relax, through ``torch.export`` and TVM's importer."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
import tvm
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    OutputKind,
    SymIntArgument,
    TensorArgument,
)
from torch.utils import _pytree as pytree

from ..errors import (
    FrontendError,
    TorchExportError,
    UirError,
    UnsupportedOperatorError,
    ValueNeededError,
    first_line,
    last_line,
)
from ..model_state import with_state
from ..one_at_a_time import one_at_a_time
from ..sizes.open_symbols import LEAST, LEAST_OF_MANY
from ..sizes.size_space import SizeSpace, reading_open_sizes
from ..structure import PLAIN, STRUCTURE, register
from .fold import noting
from .normalize import normalize
from .open_model import BoundAtOnce, SymbolicForm, has_open_sizes
from .torch_choices import check_choices
from .torch_constants import module_on_lent_memory, own_constants
from .torch_control import StagedProgram, control_of, has_control, unrolled
from .torch_converters import REFUSED, REMEDY, Converter, converter_map
from .torch_decompositions import decomposed
from .torch_found import PREFIX, convert_found, find_sizes, found_nodes, refused
from .torch_graph import (
    CONSTANT_KINDS,
    describe,
    drop_assertions,
    drop_constant_inputs,
    drop_constant_outputs,
    drop_empty,
    fold_constants,
    pair_constants,
    target_name,
    weights_to_inputs,
)
from .torch_known_sizes import know_sizes
from .torch_named import name_operators, split_converters
from .torch_ones import same_at_one
from .torch_opaque import obstacle
from .torch_packed_weights import pack_weights
from .torch_places import placed
from .torch_promotion import promote
from .torch_recurrent import of_any_length
from .torch_state import check_constants, entries_of, state_apart
from .torch_structure import structure_of
from .torch_symbols import OpenProgram, hold, is_open

#: Attribute of a module: its inputs that are weights.
WEIGHTS = "uir.weights"


@one_at_a_time
def export_torch(
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> ExportedProgram:
    """Export a module in eval mode, with the shapes of example inputs.

    Parameters
    ----------
    module : torch.nn.Module
        Its mode is restored afterwards.
    args, kwargs
        Example inputs; their shapes and dtypes become the program's. Dataclasses among them, and among the
        results, are registered with ``torch.utils._pytree``.
    dynamic_shapes : optional
        Which axes are of any size, as ``torch.export.export`` takes it.

    Returns
    -------
    torch.export.ExportedProgram
        For `from_torch`.

    Raises
    ------
    TorchExportError
        When PyTorch cannot export the module.
    """
    training = module.training
    module.eval()
    given = (args,) if isinstance(args, torch.Tensor) else tuple(args), dict(kwargs or {})
    _register_classes(given)
    given = distinct(given)
    try:
        with warnings.catch_warnings(), torch.no_grad(), of_any_length():
            warnings.simplefilter("ignore")
            try:
                return torch.export.export(module, *given, dynamic_shapes=dynamic_shapes)
            except Exception:
                # dataclasses among the results are seen only now
                if not _register_classes(module(*given[0], **given[1])):
                    raise
                return torch.export.export(module, *given, dynamic_shapes=dynamic_shapes)
    except Exception as error:
        broken, fixes = _constraints(str(error))
        raise TorchExportError(
            f"torch.export cannot export {type(module).__name__}: {first_line(error)}",
            need=broken,
            remedy=f"say dynamic_shapes so: {fixes}"
            if fixes
            else "call torch.export.export on it and follow its message",
        ) from error
    finally:
        module.train(training)


def _constraints(said: str) -> tuple[str, str]:
    """What PyTorch says of open sizes that it does not take, and what it suggests; empty texts else."""
    before, found, after = said.partition("Suggested fixes:")
    broken = [line.strip().removeprefix("- ") for line in before.splitlines()[1:] if line.startswith("  - ")]
    fixes = [line.strip() for line in after.split("\n\n")[0].splitlines() if "=" in line]
    return "; ".join(broken), "; ".join(fixes) if found else ""


def distinct(value: Any) -> Any:
    """A copy of every tensor that example inputs have a second time: export takes the two for one."""
    seen: set[int] = set()

    def copied(leaf: Any) -> Any:
        again = isinstance(leaf, torch.Tensor) and id(leaf) in seen
        seen.add(id(leaf))
        return leaf.detach().clone() if again else leaf

    return pytree.tree_map(copied, value)


def _register_classes(value: Any) -> bool:
    """Make PyTorch's pytrees know every dataclass in a value; whether there was one that they did not."""
    found = [each for each in pytree.tree_leaves(value) if dataclasses.is_dataclass(each)]
    found = [each for each in found if not isinstance(each, type)]
    for each in found:
        register(type(each))
    return bool(found) and (_register_classes(value) or True)


@one_at_a_time
def from_torch(
    program: ExportedProgram | torch.nn.Module,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    custom_convert_map: Mapping[str, Converter] | None = None,
    weights_as_inputs: bool = False,
    strict: bool = True,
    dynamic_shapes: Any = None,
) -> tvm.IRModule:
    """Import a PyTorch model as a normalised Relax module.

    Parameters
    ----------
    program : ExportedProgram or torch.nn.Module
        A module is exported first (`export_torch`) with ``args`` and ``kwargs``.
    args, kwargs : optional
        Example inputs of a module.
    custom_convert_map : dict, optional
        Converters for further operators by name (``mul.Tensor``; of a user's library ``my::op``, or one
        overload of it, ``my::op.out``): ``function(node, importer) -> relax.Var``, or an `InTorch`.
    weights_as_inputs : bool
        Whether the module's parameters become inputs of ``main``, after the caller's, in the module's order,
        instead of constants (`weights_of` names them): what is compiled is small and serves any weights of
        these shapes, but no weight is joined or packed ahead of time. Buffers stay constants.
    strict : bool
        Whether an operator without a converter is refused. Otherwise PyTorch computes it at run time, as a
        call of `uir_tvm.opaque_call.FUNCTION`, and complex numbers are pairs between such calls.
    dynamic_shapes : optional
        Of a module: as ``torch.export.export`` takes it.

    Returns
    -------
    tvm.IRModule
        One Relax function ``main``: parameters named after the program's tensor inputs, weights as
        constants (copies: later changes of the model do not reach them), result a tensor or, for
        several outputs, the tuple of the model's flattened tensor outputs. See `normalize` for its form. Its
        attribute `STRUCTURE` says how arguments and results are nested, but for ``weights_as_inputs``.

    Raises
    ------
    UnsupportedOperatorError
        Naming the operators that have no converter, a node of each, and the remedy.
    DynamicShapeError
        For a program with symbolic sizes; its ``model`` can be bound to some.
    ShapeError
        For a shape that depends on data.
    FrontendError
        For a program that changes its state, has no tensor among its outputs, or fails to import.
    """
    exported = exported_program(program, args, kwargs, dynamic_shapes)
    _check_inputs(exported)
    _check_complex(exported)
    converters = custom_convert_map or {}
    exported = placed(exported, split_converters(dict(converters))[0])
    open_ = is_open(exported) or bool(found_nodes(exported))
    if open_ and has_control(exported):
        raise UnsupportedOperatorError(
            "the program has control flow and symbolic sizes",
            where=", ".join(describe(node) for node in exported.graph.nodes if control_of(node)),
            need="one of the two",
            remedy="export it without dynamic_shapes, once for each shape of interest",
        )
    if open_:
        opened = OpenProgram(exported)
        bound = partial(_module_of, given=converters, weights_as_inputs=weights_as_inputs, strict=strict)
        structure = None if weights_as_inputs else structure_of(exported)
        read = partial(_symbolic_module, opened, converters, weights_as_inputs, strict)
        least = LEAST if same_at_one(exported, converters) else LEAST_OF_MANY
        whole = SymbolicForm(opened.variables, read, opened.check, asserted=opened.asserted, least=least)
        raise has_open_sizes(
            BoundAtOnce(opened.signature, lambda sizes: bound(opened.bound(sizes)), structure, symbolic=whole)
        )
    return _module_of(exported, converters, weights_as_inputs, strict)


@one_at_a_time
def _module_of(
    exported: ExportedProgram, given: Mapping[str, Converter], weights_as_inputs: bool, strict: bool
) -> tvm.IRModule:
    """The module of a program without symbols."""
    in_torch, by_node = split_converters(dict(given))
    _check_shapes(exported)
    check_constants(exported)
    check_choices(exported)
    exported = decomposed(exported, in_torch)
    exported.range_constraints.clear()  # of symbols that are numbers by now
    exported, state = (exported, []) if weights_as_inputs else state_apart(exported)
    _check_outputs(exported)
    structure = None if weights_as_inputs else structure_of(exported)
    if has_control(exported):
        try:
            exported = unrolled(exported)
        except ValueNeededError as error:
            stage = partial(_imported, by_node=by_node, strict=strict)
            staged = not weights_as_inputs and not state
            error.model = StagedProgram(exported, structure, stage) if staged else None
            raise
    mod = _imported(exported, by_node, strict, structure, weights_as_inputs)
    return with_state(mod, entries_of(mod, state))


@one_at_a_time
def _symbolic_module(
    opened: OpenProgram,
    given: Mapping[str, Converter],
    weights_as_inputs: bool,
    strict: bool,
    space: SizeSpace,
) -> tvm.IRModule:
    """The module of a program with its symbols.

    What PyTorch, or a converter, decides by the sizes of the example inputs need not hold for others: it
    becomes a condition of the space.
    """
    with opened.decided() as decided, reading_open_sizes(space):
        in_torch, by_node = split_converters(dict(given))
        check_constants(opened.program)
        exported = decomposed(opened.program, in_torch)
        hold(decided, space)
        decided.clear()
        exported, state = (exported, []) if weights_as_inputs else state_apart(exported, True)
        _check_outputs(exported)
        structure = None if weights_as_inputs else structure_of(exported)
        find_sizes(exported, space)
        check_choices(opened.program, space)
        know_sizes(exported)
        mod = _imported(exported, by_node, strict, structure, weights_as_inputs)
        for condition, asserts in opened.asserted_of_found().items():
            space.needs.setdefault(condition, asserts)  # behind those of operators, which say more
        hold(decided, space)
        return with_state(mod, entries_of(mod, state))


@one_at_a_time
def _imported(
    exported: ExportedProgram,
    by_node: dict[str, Converter],
    strict: bool,
    structure: str | None = None,
    weights_as_inputs: bool = False,
) -> tvm.IRModule:
    """The module of a decomposed program without control flow."""
    if not weights_as_inputs:
        pack_weights(exported)
    name_operators(exported)
    drop_assertions(exported)
    drop_constant_inputs(exported)
    drop_constant_outputs(exported)
    weights = weights_to_inputs(exported) if weights_as_inputs else {}
    drop_empty(exported)
    fold_constants(exported)
    pair_constants(exported)
    promote(exported)
    names = {target_name(node) for node in exported.graph.nodes if node.op == "call_function"}
    by_node = {**by_node, **{name: convert_found for name in names if name.startswith(PREFIX)}}
    converters = converter_map(by_node)
    if not strict:
        converters = converter_map(by_node, _left_to_torch(exported, converters))
    _check_operators(exported, converters)
    try:
        mod = module_on_lent_memory(exported, converters)
    except UirError:
        raise
    except Exception as error:  # whatever TVM raises outside of a converter
        raise FrontendError(
            f"TVM's importer fails on the program: {last_line(error)}",
            need="inputs, constants and results that Relax has",
            remedy="keep what is unusual out of the exported module",
        ) from error
    with noting() as own:
        mod = normalize(mod)
    mod = own_constants(mod, own)
    if weights_as_inputs:
        return mod.with_attr(WEIGHTS, weights)
    return mod if structure is None else mod.with_attr(STRUCTURE, structure)


def weights_of(mod: tvm.IRModule) -> dict[str, str]:
    """The inputs of ``main`` that are weights (`from_torch`), each with its name in the torch module."""
    found = dict(mod.attrs).get(WEIGHTS, {}) if mod.attrs else {}
    return {str(name): str(target) for name, target in found.items()}


def exported_program(
    program: ExportedProgram | torch.nn.Module,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> ExportedProgram:
    """The program itself, or a module's (`export_torch`).

    Raises
    ------
    FrontendError
        It is neither, or a module without example inputs.
    """
    if isinstance(program, torch.nn.Module):
        if args is None and not kwargs:
            raise FrontendError(
                f"a module ({type(program).__name__}) without example inputs",
                need="arguments whose shapes and dtypes the model is compiled for",
                remedy="pass args=(...) and kwargs={...}, or the result of torch.export.export",
            )
        return export_torch(program, args or (), kwargs, dynamic_shapes)
    if not isinstance(program, ExportedProgram):
        raise FrontendError(
            f"from_torch takes an ExportedProgram or a torch.nn.Module, not {type(program).__name__}",
            remedy="torch.export.export(module, example_args)",
        )
    return program


def _check_inputs(program: ExportedProgram) -> None:
    """Every input is a tensor, a size, or a value that export has fixed."""
    for spec in program.graph_signature.input_specs:
        if spec.kind in CONSTANT_KINDS:
            continue
        usable = isinstance(spec.arg, TensorArgument | SymIntArgument | ConstantArgument)
        if spec.kind is not InputKind.USER_INPUT or not usable:
            raise FrontendError(
                f"input {spec.arg.name!r} is no tensor ({spec.kind.name}, {type(spec.arg).__name__})",
                remedy="pass tensors to the model, and fix other values in the module",
            )


def _check_complex(program: ExportedProgram) -> None:
    """No input and no output is complex: between kernels such tensors are pairs, which no caller expects."""
    names = {*program.graph_signature.user_inputs, *program.graph_signature.user_outputs}
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.name in names and isinstance(value, torch.Tensor) and value.is_complex():
            raise FrontendError(
                f"{node.name!r}, an input or output of the model, is complex",
                where=f"{value.dtype} {tuple(value.shape)}",
                need="real tensors at the model's borders",
                remedy="pass and return torch.view_as_real of it",
            )


def _check_shapes(program: ExportedProgram) -> None:
    """No tensor has a shape that depends on data."""
    for node in program.graph.nodes:
        value = node.meta.get("val")
        for part in value if isinstance(value, list | tuple) else (value,):
            if isinstance(part, torch.Tensor) and any(not isinstance(size, int) for size in part.shape):
                raise refused(node)


def _check_outputs(program: ExportedProgram) -> None:
    """Every output is a user's: a tensor, or a constant beside tensors."""
    tensors = 0
    for spec in program.graph_signature.output_specs:
        if spec.kind is not OutputKind.USER_OUTPUT:
            raise FrontendError(
                f"the model changes its state while it runs ({spec.kind.name}: {spec.target!r})",
                remedy="call eval() before export; return the new state as an output instead of storing it",
            )
        constant = isinstance(spec.arg, ConstantArgument) and isinstance(spec.arg.value, PLAIN)
        if not isinstance(spec.arg, TensorArgument) and not constant:
            raise FrontendError(
                f"an output of the model is no tensor: {getattr(spec.arg, 'value', spec.arg)!r}",
                remedy="wrap the model in a module that returns tensors and constants only",
            )
        tensors += not constant
    if not tensors:
        raise FrontendError(
            "no output of the model is a tensor",
            remedy="return what the model computes, not numbers of it",
        )


def _left_to_torch(program: ExportedProgram, converters: Mapping[str, Converter]) -> dict[str, str]:
    """The operators without a converter that PyTorch can compute at run time, each with the reason."""
    nodes = [node for node in program.graph.nodes if node.op == "call_function"]
    missing = [node for node in nodes if target_name(node) not in converters]
    never = {target_name(node) for node in missing if obstacle(node)}
    return {
        name: REFUSED.get(name, "has no converter")
        for node in missing
        if (name := target_name(node)) not in never
    }


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
        operators={name: (REFUSED.get(name, "has no converter"), REMEDY) for name in missing},
    )
