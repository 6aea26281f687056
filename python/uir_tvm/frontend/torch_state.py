# SPDX-License-Identifier: Apache-2.0
"""State of exported programs: buffers and arguments that a call changes."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import torch
import tvm
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.utils import _pytree as pytree

from ..errors import FrontendError
from ..model_state import StateEntry

#: Outputs that are new values of what the program was given.
CHANGES = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)
#: A name, and the value before the first call.
Initial = tuple[str, torch.Tensor]


def check_constants(program: ExportedProgram) -> None:
    """Refuse a program that changes tensors which its module does not register: PyTorch loses these changes.

    Raises
    ------
    FrontendError
        It names the tensors.
    """
    specs = program.graph_signature.input_specs
    constants = {s.arg.name: str(s.target) for s in specs if s.kind is InputKind.CONSTANT_TENSOR}
    changed = [
        constants[node.name]
        for call in program.graph.nodes
        for node in _changed(call)
        if node.name in constants
    ]
    if changed:
        raise FrontendError(
            "the model changes tensors that it does not register",
            where=", ".join(dict.fromkeys(changed)),
            need="state in buffers (register_buffer), or among the arguments",
            remedy="register them, or export with strict=True, which finds the buffers that they are",
        )


def _changed(call: fx.Node) -> list[fx.Node]:
    """The tensors that a call writes."""
    schema = getattr(call.target, "_schema", None)
    if call.op != "call_function" or schema is None:
        return []
    rows = zip(schema.arguments, call.args, strict=False)
    written = [value for each, value in rows if each.alias_info is not None and each.alias_info.is_write]
    return [node for node in written if isinstance(node, fx.Node)]


def state_apart(program: ExportedProgram, is_open: bool = False) -> tuple[ExportedProgram, list[Initial]]:
    """A decomposed program whose state is inputs and outputs behind all others, and what it begins as.

    A changed argument begins as the example that the program was exported with, else as zeros; in its place
    the caller passes nothing.

    Raises
    ------
    FrontendError
        It changes an argument, and has open sizes.
    """
    signature = program.graph_signature
    changes = [spec for spec in signature.output_specs if spec.kind in CHANGES]
    if not changes:
        return program, []
    arguments = [str(spec.target) for spec in changes if spec.kind is OutputKind.USER_INPUT_MUTATION]
    if arguments and is_open:
        raise FrontendError(
            "the model changes arguments, and leaves sizes open",
            where=", ".join(arguments),
            need="state in buffers (register_buffer) where sizes are open",
            remedy="register them, or fix all sizes: sizes={...} (--size)",
        )
    tensors = {**program.state_dict, **program.constants}
    places = {str(spec.target): spec for spec in signature.input_specs if spec.target is not None}
    given = {spec.arg.name: spec for spec in signature.input_specs if spec.kind is InputKind.USER_INPUT}
    examples = _examples(program)
    module = copy.copy(program.graph_module)
    graph = module.graph = copy.deepcopy(program.graph)
    nodes = {node.name: node for node in graph.find_nodes(op="placeholder")}
    inputs, held, initial = list(signature.input_specs), [], []
    for change in changes:
        is_buffer = change.kind is OutputKind.BUFFER_MUTATION
        spec = places[change.target] if is_buffer else given[change.target]
        name, node = str(change.target), nodes[spec.arg.name]
        value = tensors[name] if is_buffer else examples.get(name)
        initial.append((name, torch.zeros(_shape(node), dtype=_dtype(node)) if value is None else value))
        at = inputs.index(spec)
        inputs.remove(spec)
        if not is_buffer:
            with graph.inserting_before(node):
                left = graph.placeholder(f"{node.name}_given")
            left.meta["val"] = None
            constant = ConstantArgument(left.name, None)
            inputs.insert(at, InputSpec(InputKind.USER_INPUT, constant, None))
        held.append((node, InputSpec(InputKind.USER_INPUT, TensorArgument(name=node.name), None)))
    last = next(iter(reversed(graph.find_nodes(op="placeholder"))))
    for node, _ in held:
        if node is not last:
            last.append(node)
            last = node
    (output,) = graph.find_nodes(op="output")
    rows = list(zip(signature.output_specs, output.args[0], strict=True))
    results = [row for row in rows if row[0].kind not in CHANGES]
    new = [
        (OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(name=node.name), None), node)
        for change in changes
        for spec, node in rows
        if spec is change
    ]
    output.args = (tuple(node for _, node in (*results, *new)),)
    specs = [*inputs, *(spec for _, spec in held)]
    targets = {spec.target for spec in specs}
    made = ExportedProgram(
        root=module,
        graph=graph,
        graph_signature=ExportGraphSignature(specs, [spec for spec, _ in (*results, *new)]),
        state_dict={name: value for name, value in program.state_dict.items() if name in targets},
        range_constraints=dict(program.range_constraints),
        module_call_graph=list(program.module_call_graph),
        example_inputs=None,
        constants={name: value for name, value in program.constants.items() if name in targets},
        verifiers=program.verifiers,
    )
    return made, initial


def entries_of(mod: tvm.IRModule, initial: Sequence[Initial]) -> list[StateEntry]:
    """The state of an imported module: the last of its inputs and results."""
    main = mod["main"]
    count = len(initial)
    results = len(main.ret_ty.fields) if count else 0
    return [
        StateEntry(name, len(main.params) - count + at, results - count + at, _held(value))
        for at, (name, value) in enumerate(initial)
    ]


def _held(value: torch.Tensor) -> tvm.runtime.Tensor:
    """A copy of a tensor."""
    own = value.detach().cpu().contiguous()
    if own.dtype == torch.bool:  # which TVM knows as a byte where memory is shared
        return tvm.runtime.tensor(own.numpy())
    return tvm.runtime.from_dlpack(own.clone(memory_format=torch.contiguous_format))


def _shape(node: fx.Node) -> tuple[int, ...]:
    return tuple(int(size) for size in node.meta["val"].shape)


def _dtype(node: fx.Node) -> torch.dtype:
    dtype: torch.dtype = node.meta["val"].dtype
    return dtype


def _examples(program: ExportedProgram) -> dict[str, torch.Tensor]:
    """Example inputs by the names of their placeholders."""
    specs = [spec for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    leaves = pytree.tree_leaves(program.example_inputs) if program.example_inputs else []
    if len(leaves) != len(specs):
        return {}
    rows = zip(specs, leaves, strict=True)
    return {spec.arg.name: leaf for spec, leaf in rows if isinstance(leaf, torch.Tensor)}
