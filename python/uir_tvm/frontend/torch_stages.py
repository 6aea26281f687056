# SPDX-License-Identifier: Apache-2.0
"""Operators that a walk over an exported program met -> an exported program of their own."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputSpec,
    TensorArgument,
)

#: Begins the names of constants that a walk computed.
NUMBER = "uir_number_"


@attrs.define(eq=False)
class WalkedTensor:
    """A tensor while a program is walked.

    Attributes
    ----------
    meta : torch.Tensor
        Without numbers.
    placeholder : str
        The program's input, weight or constant that it is; empty for any other.
    held : str
        Its name where a caller or an earlier stage gives it.
    number : torch.Tensor, optional
        Its contents where they are known.
    """

    meta: torch.Tensor
    placeholder: str = ""
    held: str = ""
    number: torch.Tensor | None = None


@attrs.define(eq=False)
class WalkStep:
    """A call of an operator, with values in the place of nodes.

    Attributes
    ----------
    node : fx.Node
        What it comes from: its name, its place in the source.
    target, args, kwargs
        As of a node.
    meta
        A tensor without numbers, or several.
    results : list of WalkedTensor
    """

    node: fx.Node
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    meta: Any
    results: list[WalkedTensor]


def values_in(tree: Any) -> Iterator[WalkedTensor]:
    """The values in nested arguments."""
    if isinstance(tree, WalkedTensor):
        yield tree
    elif isinstance(tree, Mapping):
        for item in tree.values():
            yield from values_in(item)
    elif isinstance(tree, list | tuple):
        for item in tree:
            yield from values_in(item)


def replaced(tree: Any, function: Callable[[WalkedTensor], Any]) -> Any:
    """Nested arguments with something else in the place of values."""
    if isinstance(tree, WalkedTensor):
        return function(tree)
    if isinstance(tree, Mapping):
        return {name: replaced(item, function) for name, item in tree.items()}
    if isinstance(tree, list | tuple):
        return [replaced(item, function) for item in tree]
    return tree


class StageProgram:
    """A program that makes some values.

    Parameters
    ----------
    program : ExportedProgram
        The whole: its weights and constants.
    steps : sequence of WalkStep
        Those that nothing needs are left out.
    results : list
        Values, and numbers that are returned as they are.
    whole : bool
        Whether it has all of the program's inputs, in their order; otherwise only what is read.

    Attributes
    ----------
    exported : ExportedProgram
    inputs : dict of str to str
        Placeholder -> the name of what is held.
    """

    def __init__(
        self, program: ExportedProgram, steps: Sequence[WalkStep], results: Sequence[Any], whole: bool
    ) -> None:
        self._program, self._graph = program, fx.Graph()
        self._nodes: dict[WalkedTensor, fx.Node] = {}
        self._specs: list[InputSpec] = []
        self._constants = dict(program.constants)
        self.inputs: dict[str, str] = {}
        kept = _needed(steps, results)
        made = {value for step in kept for value in step.results}
        read = dict.fromkeys(
            value for value in values_in([*[(s.args, s.kwargs) for s in kept], results]) if value not in made
        )
        numbers = [value for value in read if not value.placeholder and value.number is not None]
        for value in numbers:
            self._number(value)
        given = {value.placeholder: value for value in read if value.placeholder}
        for node, spec in zip(
            program.graph.find_nodes(op="placeholder"), program.graph_signature.input_specs, strict=True
        ):
            if whole or node.name in given:
                self._placeholder(node.name, node.meta, spec, given.get(node.name))
        for value in read:
            if value not in self._nodes:
                self._held(value)
        for step in kept:
            self._step(step)
        outputs = replaced(list(results), self._node)
        self._graph.output(tuple(outputs))
        self.exported = self._exported(outputs)

    def _exported(self, outputs: list[Any]) -> ExportedProgram:
        program = self._program
        module = fx.GraphModule(program.graph_module, self._graph)
        module.meta.update(program.graph_module.meta)
        kinds = [
            TensorArgument(name=value.name) if isinstance(value, fx.Node) else ConstantArgument("", value)
            for value in outputs
        ]
        kind = program.graph_signature.output_specs[0].kind
        targets = {spec.target for spec in self._specs}  # the import binds no more than these
        return ExportedProgram(
            root=module,
            graph=module.graph,
            graph_signature=ExportGraphSignature(
                input_specs=self._specs,
                output_specs=[OutputSpec(kind=kind, arg=value, target=None) for value in kinds],
            ),
            state_dict={name: value for name, value in program.state_dict.items() if name in targets},
            range_constraints={},
            module_call_graph=list(program.module_call_graph),
            example_inputs=None,
            constants={name: value for name, value in self._constants.items() if name in targets},
            verifiers=program.verifiers,
        )

    def _placeholder(
        self, name: str, meta: Mapping[str, Any], spec: InputSpec, value: WalkedTensor | None
    ) -> None:
        made = self._graph.placeholder(name)
        made.name, made.meta = name, dict(meta)
        self._specs.append(InputSpec(spec.kind, spec.arg, spec.target, spec.persistent))
        if value is not None:
            self._nodes[value] = made
            if value.held:
                self.inputs[name] = value.held

    def _number(self, value: WalkedTensor) -> None:
        name = f"{NUMBER}{len(self._specs)}"
        self._nodes[value] = made = self._graph.placeholder(name)
        made.name, made.meta = name, {"val": value.meta}
        self._constants[name] = value.number
        self._specs.append(InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(name=name), name))

    def _held(self, value: WalkedTensor) -> None:
        name = f"value_{len(self._specs)}"
        self._nodes[value] = made = self._graph.placeholder(name)
        made.name, made.meta = name, {"val": value.meta}
        self._specs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(name=name), None))
        self.inputs[name] = value.held

    def _node(self, value: WalkedTensor) -> fx.Node:
        return self._nodes[value]

    def _step(self, step: WalkStep) -> None:
        args, kwargs = replaced((step.args, step.kwargs), self._node)
        made = self._graph.create_node("call_function", step.target, tuple(args), kwargs, step.node.name)
        made.meta = {**step.node.meta, "val": step.meta}
        if not isinstance(step.meta, list | tuple):
            self._nodes[step.results[0]] = made
            return
        for index, value in enumerate(step.results):
            part = self._graph.create_node("call_function", operator.getitem, (made, index))
            part.meta = {**step.node.meta, "val": value.meta}
            self._nodes[value] = part


def _needed(steps: Sequence[WalkStep], results: Sequence[Any]) -> list[WalkStep]:
    """The steps that results come from, in order."""
    wanted = set(values_in(results))
    kept = []
    for step in reversed(steps):
        if any(value in wanted for value in step.results):
            kept.append(step)
            wanted.update(values_in((step.args, step.kwargs)))
    return kept[::-1]
