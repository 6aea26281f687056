# SPDX-License-Identifier: Apache-2.0
"""Clean-ups of an exported program's graph: assertions, unused inputs, constant expressions."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec, TensorArgument

from .fold import GROWTH_LIMIT

# They check or constrain values and have no result that anything uses.
ASSERTIONS = frozenset(
    {
        "_assert_async.default",
        "_assert_async.msg",
        "_assert_scalar.default",
        "_assert_tensor_metadata.default",
        "sym_constrain_range.default",
        "sym_constrain_range_for_size.default",
    }
)
#: Operators that write a source into a copy of their first argument, at indices.
WRITES = frozenset(
    {
        "scatter",
        "scatter_add",
        "scatter_reduce",
        "index_put",
        "index_add",
        "index_copy",
        "slice_scatter",
        "masked_scatter",
    }
)
#: Operators that are not computed ahead of time: their results are larger than what they read.
UNFOLDED = frozenset({"uir::dequantize.default"})
CONSTANT_KINDS = frozenset({InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR})


def target_name(node: fx.Node) -> str:
    """The operator of a call as TVM's importer names it, such as ``add.Tensor``."""
    return getattr(node.target, "__name__", str(node.target))


def describe(node: fx.Node) -> str:
    """A node with the line of the model's source that made it."""
    trace = [line for line in str(node.meta.get("stack_trace") or "").splitlines() if line.strip(" ^~")]
    source = f", from: {trace[-1].strip()}" if trace else ""
    return f"node {node.name} = {target_name(node)}{source}"


def arguments(node: fx.Node, *names: str) -> dict[str, Any]:
    """The arguments of a call by name, those that are given by place included."""
    return dict(zip(names, node.args, strict=False)) | dict(node.kwargs)


def each(value: Any, rank: int) -> list[int]:
    """A number for every axis of space; PyTorch lets one stand for all."""
    items = [value] if isinstance(value, int) else [int(item) for item in value]
    return items * rank if len(items) == 1 else items


def drop_assertions(program: ExportedProgram) -> None:
    """Remove assertions: the program's shapes and dtypes are fixed, and values are the caller's."""
    graph = program.graph
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and target_name(node) in ASSERTIONS:
            graph.erase_node(node)
    graph.eliminate_dead_code()


def drop_constant_inputs(program: ExportedProgram) -> None:
    """Remove inputs that export has fixed to a Python value (None, a number, a string) and no node reads."""
    signature = program.graph_signature
    placeholders = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    kept = []
    for spec in signature.input_specs:
        if spec.kind is InputKind.USER_INPUT and isinstance(spec.arg, ConstantArgument):
            node = placeholders[spec.arg.name]
            node.replace_all_uses_with(spec.arg.value) if node.users else None
            program.graph.erase_node(node)
        else:
            kept.append(spec)
    signature.input_specs[:] = kept


def drop_constant_outputs(program: ExportedProgram) -> None:
    """Remove outputs that are Python values: the program's structure holds them."""
    signature = program.graph_signature
    (output,) = program.graph.find_nodes(op="output")
    results = output.args[0]
    assert isinstance(results, list | tuple)
    kept = [
        (spec, result)
        for spec, result in zip(signature.output_specs, results, strict=True)
        if not isinstance(spec.arg, ConstantArgument)
    ]
    signature.output_specs[:] = [spec for spec, _ in kept]
    output.args = (tuple(result for _, result in kept),)


def weights_to_inputs(program: ExportedProgram) -> dict[str, str]:
    """Make inputs of a program's parameters, after those of the caller; buffers stay constants.

    Returns
    -------
    dict of str to str
        Input -> the parameter's name in the module, in the order of the inputs.
    """
    specs = program.graph_signature.input_specs
    weights = [spec for spec in specs if spec.kind is InputKind.PARAMETER]
    others = [spec for spec in specs if spec.kind is not InputKind.PARAMETER]
    names = {spec.arg.name: str(spec.target) for spec in weights}
    for spec in weights:
        spec.kind, spec.target = InputKind.USER_INPUT, None
    specs[:] = [*others, *weights]
    graph = program.graph
    placeholders = {node.name: node for node in graph.find_nodes(op="placeholder")}
    last = placeholders[others[-1].arg.name] if others else None
    for spec in weights:
        node = placeholders[spec.arg.name]
        if last is not None:
            last.append(node)
        last = node
    return names


def drop_empty(program: ExportedProgram) -> None:
    """Remove what tensors without elements add to others: parts of a concatenation, indices to write at."""
    graph = program.graph
    for node in list(graph.nodes):
        if node.op != "call_function" or is_empty(node):
            continue
        name = target_name(node).partition(".")[0]
        if name == "cat":
            parts = node.args[0]
            assert isinstance(parts, list | tuple)
            left = [part for part in parts if not is_empty(part)]
            node.args = (left, *node.args[1:])
            if len(left) == 1 and left[0].meta["val"].dtype == node.meta["val"].dtype:
                node.replace_all_uses_with(left[0])
                graph.erase_node(node)
        elif name in WRITES and any(is_empty(source) for source in node.all_input_nodes):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def is_empty(node: Any) -> bool:
    """Whether a node is a tensor without elements."""
    return isinstance(node, fx.Node) and has_no_elements(node.meta.get("val"))


def has_no_elements(value: Any) -> bool:
    """Whether a value is a tensor with a size of 0."""
    return isinstance(value, torch.Tensor) and any(
        isinstance(size, int) and size == 0 for size in value.shape
    )


def leaves_open(value: torch.Tensor) -> bool:
    """Whether a size of a tensor is open."""
    return any(isinstance(size, torch.SymInt) for size in value.shape)


def empty_operators(program: ExportedProgram) -> list[Any]:
    """The operators of a program all of whose results have no elements: nothing is known by their parts."""
    every: dict[Any, bool] = {}
    for node in program.graph.nodes:
        if not isinstance(node.target, torch._ops.OpOverload):
            continue
        value = node.meta.get("val")
        results = value if isinstance(value, list | tuple) else [value]
        none = bool(results) and all(map(has_no_elements, results))
        every[node.target] = none and every.get(node.target, True)
    return [target for target, none in every.items() if none]


def fold_constants(program: ExportedProgram) -> None:
    """Evaluate with PyTorch what depends on weights, buffers, literals and tensors without elements alone.

    Each value that the rest of the graph reads becomes a constant tensor of the program. What would
    grow by repetition (past `GROWTH_LIMIT` bytes) stays an expression.
    """
    # PyTorch's decompositions share them with the program that was given
    program._constants = dict(program.constants)
    values = constant_values(program)
    graph = program.graph
    frontier = [
        node
        for node in graph.nodes
        if node.op == "call_function"
        and isinstance(values.get(node), torch.Tensor)
        and any(user not in values for user in node.users)
    ]
    for index, node in enumerate(frontier):
        _replace(program, node, values[node].detach().contiguous(), f"folded_{index}")
    graph.eliminate_dead_code()
    graph.lint()


def pair_constants(program: ExportedProgram) -> None:
    """Let constants that are complex be pairs of floats, which an operator makes numbers of.

    Before: ``mul(x, c)`` with ``c: complex64[4]``.
    After: ``mul(x, view_as_complex(c_parts))`` with ``c_parts: float32[4, 2]``.
    """
    graph, specs = program.graph, program.graph_signature.input_specs
    tensors = {**program.state_dict, **program.constants}
    placeholders = {node.name: node for node in graph.find_nodes(op="placeholder")}
    for spec in list(specs):
        value = tensors.get(spec.target) if spec.kind in CONSTANT_KINDS else None
        if value is None or not value.is_complex():
            continue
        node = placeholders[spec.arg.name]
        with graph.inserting_before(next(n for n in graph.nodes if n.op != "placeholder")):
            number = graph.call_function(torch.ops.aten.view_as_complex.default, (node,))
        number.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(number, delete_user_cb=lambda user, number=number: user is not number)
        parts = torch.view_as_real(value.detach().resolve_conj()).contiguous()
        specs.remove(spec)
        # TVM's importer binds a constant that no input names to whichever input it met last
        program._constants = {name: held for name, held in program.constants.items() if name != spec.target}
        _replace(program, node, parts, f"{node.name}_parts")
        number.args[0].meta = {"val": torch.view_as_real(node.meta["val"])}
        graph.erase_node(node)
    graph.lint()


def constant_values(program: ExportedProgram, but: frozenset[fx.Node] = frozenset()) -> dict[fx.Node, Any]:
    """Values of the nodes that depend on no user input, nor on certain nodes."""
    tensors = {**program.state_dict, **program.constants}
    placeholders = {node.name: node for node in program.graph.find_nodes(op="placeholder")}
    values: dict[fx.Node, Any] = {
        placeholders[spec.arg.name]: tensors[spec.target]
        for spec in program.graph_signature.input_specs
        if spec.kind in CONSTANT_KINDS
    }
    for node in program.graph.nodes:
        if is_empty(node) and node not in values and not leaves_open(node.meta["val"]):
            known = node.meta["val"]
            values[node] = torch.empty(tuple(known.shape), dtype=known.dtype)
            continue
        if node.op != "call_function" or any(source not in values for source in node.all_input_nodes):
            continue
        if node in but or torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
            continue
        if target_name(node) in UNFOLDED:
            continue
        args, kwargs = fx.map_arg((node.args, node.kwargs), values.__getitem__)
        with torch.no_grad():
            result = node.target(*args, **kwargs)
        if not isinstance(result, torch.Tensor) or _pays(result, [values[n] for n in node.all_input_nodes]):
            values[node] = result
    return values


def _pays(result: torch.Tensor, sources: list[Any]) -> bool:
    """Whether a constant may stand for its expression without growing the program much."""
    replaced = sum(source.nbytes for source in sources if isinstance(source, torch.Tensor))
    return result.nbytes <= max(GROWTH_LIMIT, replaced)


def _replace(program: ExportedProgram, node: fx.Node, tensor: torch.Tensor, name: str) -> None:
    """Let a new constant tensor of the program stand for a node."""
    constant = add_constant(program, tensor, name)
    constant.meta.update(node.meta)
    node.replace_all_uses_with(constant)


def add_constant(program: ExportedProgram, tensor: torch.Tensor, name: str) -> fx.Node:
    """A new constant tensor of the program, whose constants it does not share with another."""
    graph, specs = program.graph, program.graph_signature.input_specs
    first = next(iter(graph.nodes))
    with graph.inserting_before(first):
        constant = graph.placeholder(name)
    constant.meta["val"] = tensor
    program.constants[name] = tensor
    spec = InputSpec(kind=InputKind.CONSTANT_TENSOR, arg=TensorArgument(name=constant.name), target=name)
    specs.insert(0, spec)
    return constant
