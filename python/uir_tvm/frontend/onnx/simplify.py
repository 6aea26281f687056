# SPDX-License-Identifier: Apache-2.0
"""One walk over an ONNX graph that evaluates, expands and unrolls all that is known before it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import attrs
import numpy as np
import onnx
from onnx import helper

from ...errors import FrontendError, UnsupportedOperatorError, ValueNeededError
from .branches import BRANCHES
from .constants import evaluate
from .deciding import DECIDING, DECIDING_ELEMENTS
from .functions import body_of, expand
from .known import STANDARD_DOMAINS, Known, Step, element_name
from .rewrites import REWRITES
from .sequences import SEQUENCES

#: Element types of inputs that are known when they are empty: axes, pads.
EMPTY = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
#: Functions in functions in functions: the standard's own need five.
MAX_DEPTH = 40


@attrs.define
class Program:
    """A graph without shape arithmetic: what is left to convert, in order."""

    steps: list[Step]
    known: Known
    inputs: list[onnx.ValueInfoProto]
    outputs: list[onnx.ValueInfoProto]


class Simplifier:
    """Takes the nodes of a graph in order, and keeps those that must run.

    Parameters
    ----------
    model : onnx.ModelProto
        A checked model whose inputs have fixed shapes.
    values : mapping of str to numpy.ndarray
        Inputs that are constants in this compilation.
    """

    def __init__(self, model: onnx.ModelProto, values: Mapping[str, np.ndarray]) -> None:
        self.known = Known()
        self.opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
        self.ir_version = model.ir_version
        self.functions = {(f.domain, f.name): f for f in model.functions}
        self.steps: list[Step] = []
        #: Value -> the step that makes it.
        self.makers: dict[str, Step] = {}
        #: Sequence -> the names of its tensors.
        self.sequences: dict[str, list[str]] = {}
        self._made, self._depth = 0, 0
        graph = model.graph
        for tensor in graph.initializer:
            self.known.add_tensor(tensor)
        self._filled = frozenset(tensor.name for tensor in graph.initializer)
        self.inputs = [value for value in graph.input if value.name not in self._filled]
        for value in self.inputs:
            if value.name in values:
                self.known.add_array(value.name, values[value.name])
            else:
                self.known.types[value.name] = value.type
                if self.known.size(value.name) == 0 and value.type.tensor_type.elem_type in EMPTY:
                    dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
                    self.known.add_array(value.name, np.empty(self.known.shape(value.name) or (), dtype))
        self.inputs = [value for value in self.inputs if value.name not in values]
        self.graph = graph

    def program(self) -> Program:
        """The whole graph."""
        for node in self.graph.node:
            self.run(Step(node, self.version(node.domain)))
        return Program(self._used(), self.known, self.inputs, list(self.graph.output))

    def version(self, domain: str, inside: Step | None = None) -> int:
        """The version of a domain's operators: of the model, or of the function that a node is in."""
        if inside is not None and inside.node.domain in STANDARD_DOMAINS and domain in STANDARD_DOMAINS:
            return inside.version
        return self.opsets.get("" if domain == "ai.onnx" else domain, 1)

    def prefix(self) -> str:
        """Begins names that no other value has."""
        self._made += 1
        return f"uir.{self._made}."

    def constant(self, array: np.ndarray) -> str:
        """A new constant's name."""
        name = f"{self.prefix()}constant"
        self.known.add_array(name, array)
        return name

    def emit(
        self, operator: str, inputs: Sequence[str], step: Step, version: int = 0, **attributes: Any
    ) -> str:
        """Run one more node with one result, whose name is returned."""
        result = f"{self.prefix()}{operator}"
        self.run(Step(helper.make_node(operator, inputs, [result], **attributes), version or step.version))
        return result

    def run(self, step: Step) -> None:
        """Take one node: evaluate, expand or rewrite it, or keep it for the conversion."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise FrontendError(
                "functions of the model call each other without end",
                where=step.text,
                remedy="export the model again",
            )
        try:
            self._run(step)
        finally:
            self._depth -= 1

    def _run(self, step: Step) -> None:
        node, known = step.node, self.known
        function = self.functions.get((node.domain, node.op_type))
        if function is not None:
            self._expand(step, function)
            return
        if node.domain not in STANDARD_DOMAINS and not node.domain.startswith("ai.onnx"):
            self._keep(step)
            return
        self._decide(step)
        known.infer(step, self.opsets, self.ir_version)
        values = evaluate(step, known)
        if values is not None:
            for name, array in values.items():
                known.add_array(name, array)
            return
        if node.op_type in SEQUENCES and SEQUENCES[node.op_type](step, self):
            return
        if node.op_type in BRANCHES and BRANCHES[node.op_type](step, self):
            return
        rule = REWRITES.get(node.op_type)
        if rule is not None and rule(step, self):
            return
        body = body_of(step, known)
        if body is not None:
            self._expand(step, body)
            return
        self._keep(step)

    def _expand(self, step: Step, body: onnx.FunctionProto) -> None:
        for inner in expand(step, body, self.prefix(), self.opsets):
            self.run(inner)

    def _keep(self, step: Step) -> None:
        self.steps.append(step)
        self.makers.update({name: step for name in step.node.output if name})

    def _decide(self, step: Step) -> None:
        """Ask for the inputs that a deciding operand of the node comes from."""
        names = step.node.input
        open_ones = [
            names[place]
            for place in DECIDING.get(step.node.op_type, ())
            if place < len(names)
            and names[place]
            and not self.known.is_constant(names[place])
            and self.known.size(names[place]) != 0
        ]
        if not open_ones:
            return
        needed = self._sources(open_ones)
        if not needed:
            return
        large = [name for name in needed if (self.known.size(name) or 0) > DECIDING_ELEMENTS]
        if large or any(not self.known.types[name].HasField("tensor_type") for name in needed):
            self.refuse(
                step,
                f"has a shape or attribute that depends on the data of input {(large or needed)[0]!r}",
                f"a shape that depends on at most {DECIDING_ELEMENTS} numbers",
            )
        raise ValueNeededError(
            f"the value of input {needed[0]!r} decides a shape or attribute",
            inputs=needed,
            signature=self._signature(),
            where=step.text,
            need="its value when the model is imported",
            remedy=f"pass values={{{needed[0]!r}: ...}}, or call uir_tvm.compile, which compiles at the call",
        )

    def _signature(self) -> list[tuple[str, tuple[int, ...], str]]:
        """Name, shape and dtype of every input of the model."""
        given = [value for value in self.graph.input if value.name not in self._filled]
        return [
            (
                value.name,
                tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim),
                element_name(value.type.tensor_type.elem_type),
            )
            for value in given
        ]

    def _sources(self, names: Sequence[str]) -> list[str]:
        """The graph's inputs that values are computed from."""
        inputs = {value.name for value in self.inputs}
        found, seen, waiting = [], set(names), list(names)
        while waiting:
            name = waiting.pop()
            if name in inputs:
                found.append(name)
            maker = self.makers.get(name)
            for other in maker.node.input if maker is not None else ():
                if other and other not in seen and not self.known.is_constant(other):
                    seen.add(other)
                    waiting.append(other)
        return sorted(found)

    def refuse(self, step: Step, why: str, need: str) -> NoReturn:
        """Say that a node cannot be imported."""
        raise UnsupportedOperatorError(
            f"{step.operator} {why}",
            where=step.text,
            need=need,
            remedy="give constants where shapes come from, or run this part of the model in its framework",
        )

    def _used(self) -> list[Step]:
        """The kept steps that an output depends on, in order."""
        wanted = {value.name for value in self.graph.output}
        kept = []
        for step in reversed(self.steps):
            if any(name in wanted for name in step.node.output):
                kept.append(step)
                wanted.update(step.node.input)
                for attribute in step.node.attribute:
                    if attribute.type == onnx.AttributeProto.GRAPH:
                        wanted.update(name for inner in attribute.g.node for name in inner.input)
        return kept[::-1]
