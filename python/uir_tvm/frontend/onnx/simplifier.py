# SPDX-License-Identifier: Apache-2.0
"""One walk over an ONNX graph that evaluates, expands and unrolls all that is known before it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NoReturn

import attrs
import numpy as np
import onnx
import tvm
from onnx import helper

from ...errors import FrontendError, UnsupportedOperatorError, ValueNeededError
from . import microsoft
from .branches import BRANCHES
from .checked import CHECKS
from .constants import has_reference
from .cuts import Cuts, StageRunner, reads
from .deciding import DECIDING, DECIDING_ELEMENTS
from .function_bodies import body_of, expand
from .host_operators import HOST, RAGGED, UNCONVERTED, by_standard
from .known import STANDARD_DOMAINS, Known, VersionedNode
from .open_arrays import evaluate_any
from .open_results import infer_open
from .rewrites import REWRITES
from .sequences import SEQUENCES
from .supported import REFUSED, converts
from .weight_only import KEPT_PACKED

#: Element types of inputs that are known when they are empty: axes, pads.
EMPTY = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
#: Element types of inputs on whose values a whole compilation may be specialised.
WHOLE = frozenset(
    getattr(onnx.TensorProto, name)
    for name in "BOOL INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64".split()
)
#: Functions in functions in functions: the standard's own need five.
MAX_DEPTH = 40


@attrs.define
class SimplifiedGraph:
    """A graph without shape arithmetic: what is left to convert, in order."""

    steps: list[VersionedNode]
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
    driver : StageRunner, optional
        Runs the graph up to where a value decides what follows.
    module_of : callable, optional
        The Relax module of what the driver runs.
    convert : callable, optional
        Takes each node that must run when it is met, so that the types of its results are known to what
        follows: those that ONNX's own inference does not tell of sizes that are open.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        values: Mapping[str, np.ndarray],
        driver: StageRunner | None = None,
        module_of: Callable[[SimplifiedGraph], tvm.IRModule] | None = None,
        convert: Callable[[VersionedNode], None] | None = None,
    ) -> None:
        self._convert = convert
        self.known = Known()
        self.opsets = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
        self.ir_version = model.ir_version
        self.functions = {(f.domain, f.name): f for f in model.functions}
        self.steps: list[VersionedNode] = []
        #: Value -> the step that makes it.
        self.makers: dict[str, VersionedNode] = {}
        #: Sequence -> the names of its tensors.
        self.sequences: dict[str, list[str]] = {}
        self.cuts = Cuts(self, driver, module_of)
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

    def program(self) -> SimplifiedGraph:
        """The whole graph as one stage."""
        outputs = self.simplify()
        return SimplifiedGraph(self._used(set(outputs)), self.known, self.inputs, list(self.graph.output))

    def run_stages(self) -> list[str]:
        """Let the driver run the whole graph; the names of its outputs."""
        outputs = self.simplify()
        self.cuts.results(outputs)
        return outputs

    def simplify(self) -> list[str]:
        """Take all nodes of the graph; the names of its outputs."""
        outputs = [value.name for value in self.graph.output]
        self.run_all([VersionedNode(node, self.version(node.domain)) for node in self.graph.node], outputs)
        return outputs

    def run_all(self, steps: Sequence[VersionedNode], results: Sequence[str]) -> None:
        """Take nodes in their order; their results are read by whoever called."""
        place = 0

        def read_later() -> list[str]:
            return [*(name for step in steps[place:] for name in reads(step.node)), *results]

        with self.cuts.reading(read_later):
            for place, step in enumerate(steps):  # noqa: B007  (read_later sees it)
                self.run(step)

    def stage(self, results: Sequence[str], given: AbstractSet[str]) -> SimplifiedGraph:
        """The steps that make these values of those that are given."""
        steps = self._used(set(results))
        read = dict.fromkeys(name for step in steps for name in reads(step.node) if name in given)
        inputs = self._value_infos(read) if self.cuts.held else self.inputs
        return SimplifiedGraph(steps, self.known, inputs, self._value_infos(results))

    def _value_infos(self, names: Iterable[str]) -> list[onnx.ValueInfoProto]:
        types = self.known.types
        return [
            helper.make_value_info(name, types[name])
            if name in types
            else helper.make_empty_tensor_value_info(name)
            for name in names
        ]

    def version(self, domain: str, inside: VersionedNode | None = None) -> int:
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
        self, operator: str, inputs: Sequence[str], step: VersionedNode, version: int = 0, **attributes: Any
    ) -> str:
        """Run one more node with one result, whose name is returned."""
        (result,) = self.emit_all(operator, inputs, step, 1, version, **attributes)
        return result

    def emit_all(
        self,
        operator: str,
        inputs: Sequence[str],
        step: VersionedNode,
        count: int,
        version: int = 0,
        **attributes: Any,
    ) -> list[str]:
        """Run one more node, whose results' names are returned."""
        prefix = self.prefix()
        results = [f"{prefix}{operator}{number or ''}" for number in range(count)]
        node = helper.make_node(operator, inputs, results, **attributes)
        self.run(VersionedNode(node, version or step.version))
        return results

    def run(self, step: VersionedNode) -> None:
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

    def _run(self, step: VersionedNode) -> None:
        node, known = step.node, self.known
        function = self.functions.get((node.domain, node.op_type))
        if function is not None:
            self._expand(step, function)
            return
        if node.domain not in STANDARD_DOMAINS and not node.domain.startswith("ai.onnx"):
            rule = microsoft.RULES.get(node.op_type) if node.domain == microsoft.DOMAIN else None
            if rule is None or not rule(step, self):
                self._keep(step)
            return
        self._decide(step)
        known.infer(step, self.opsets, self.ir_version)
        infer_open(step, known)
        if node.op_type in CHECKS:
            CHECKS[node.op_type](step, known)
        results = [name for name in node.output if name]
        if results and all(self._nothing(name) for name in results):
            return
        packed = KEPT_PACKED.get(node.op_type)
        if packed is not None and packed(step, self):
            return
        values = evaluate_any(step, known)
        if values is not None:
            for name, array in values.items():
                known.add_array(name, array)
            return
        if node.op_type in HOST:
            if self._convert is not None:
                self._convert(step)
            else:
                self._compute(step, RAGGED)
            return
        if node.op_type in BRANCHES and BRANCHES[node.op_type](step, self):
            return
        for rules in (SEQUENCES, REWRITES):
            rule = rules.get(node.op_type)
            if rule is not None:
                with self.cuts.keeping():
                    replaced = rule(step, self)
                if replaced:
                    return
        body = body_of(step, known)
        if body is not None:
            self._expand(step, body)
            return
        if self._computes(step):
            self._compute(step, UNCONVERTED)
            return
        self._keep(step)

    def _expand(self, step: VersionedNode, body: onnx.FunctionProto) -> None:
        self.run_all(expand(step, body, self.prefix(), self.opsets), ())

    def _keep(self, step: VersionedNode) -> None:
        if self._convert is not None:
            self._convert(step)
        self.steps.append(step)
        self.makers.update({name: step for name in step.node.output if name})
        self.cuts.made += (name for name in step.node.output if name)
        for name in step.node.output:
            if name:
                self._nothing(name)

    def _nothing(self, name: str) -> bool:
        """Know a value that has no elements; whether it is one."""
        if self.known.size(name) != 0 or not self.known.element(name):
            return False
        dtype = helper.tensor_dtype_to_np_dtype(self.known.element(name))
        self.known.add_array(name, np.empty(self.known.shape(name) or (0,), dtype))
        return True

    def _computes(self, step: VersionedNode) -> bool:
        """Whether ONNX's reference implementation stands in for the converter that a node lacks."""
        if converts(step) or step.node.op_type in REFUSED:
            return False
        values = [name for name in (*step.node.input, *step.node.output) if name]
        texts = any(self.known.element(name) == onnx.TensorProto.STRING for name in values)
        return not texts and has_reference(step)

    def _compute(self, step: VersionedNode, reason: str) -> None:
        """Run a node outside kernels."""
        if self.cuts.driver is None:
            self._need(step, [], f"{step.operator} runs outside kernels: {reason}")
        self.cuts.compute(step, reason, HOST.get(step.node.op_type, by_standard)(step))

    def know(self, step: VersionedNode, name: str) -> np.ndarray:
        """The numbers of a value, for which the graph so far runs where they are no constant."""
        if not self.known.is_constant(name):
            if self.cuts.driver is None:
                self._need(step, [], f"{step.operator} goes by the value {name!r}, which is computed")
            self.cuts.know([name])
        array = self.known.array(name)
        assert array is not None
        return array

    def _decide(self, step: VersionedNode) -> None:
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
        if needed and all(self._specializes(name) for name in needed):
            self._need(step, needed, f"the value of input {needed[0]!r} decides a shape or attribute")
        large = [name for name in open_ones if (self.known.size(name) or 0) > DECIDING_ELEMENTS]
        if large:
            size = self.known.size(large[0])
            self.refuse(
                step,
                f"has a shape or attribute that depends on the {size} numbers of {large[0]!r}",
                f"a shape that depends on at most {DECIDING_ELEMENTS} numbers",
            )
        if self.cuts.driver is None:
            self._need(step, [], f"the computed value {open_ones[0]!r} decides a shape, attribute or branch")
        self.cuts.know(open_ones)

    def _specializes(self, name: str) -> bool:
        """Whether a whole compilation for each value of an input is sensible: a few whole numbers."""
        kind = self.known.types[name]
        whole = kind.HasField("tensor_type") and kind.tensor_type.elem_type in WHOLE
        return name not in self.cuts.held and whole and (self.known.size(name) or 0) <= DECIDING_ELEMENTS

    def _need(self, step: VersionedNode, inputs: Sequence[str], what: str) -> NoReturn:
        first = inputs[0] if inputs else ""
        raise ValueNeededError(
            what,
            inputs=inputs,
            where=step.text,
            need="its value when the model is imported"
            if inputs
            else "its result before what follows can be compiled",
            remedy=f"pass values={{{first!r}: ...}} (--value {first}=...), or call uir_tvm.compile, which "
            "compiles at the call"
            if inputs
            else "call uir_tvm.compile, which compiles what follows at the call",
        )

    def _sources(self, names: Sequence[str]) -> list[str]:
        """The graph's inputs, and values of earlier stages, that values are computed from."""
        inputs = {value.name for value in self.inputs} | self.cuts.held
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

    def refuse(self, step: VersionedNode, why: str, need: str) -> NoReturn:
        """Say that a node cannot be imported."""
        raise UnsupportedOperatorError(
            f"{step.operator} {why}",
            where=step.text,
            need=need,
            remedy="give constants where shapes come from, or run this part of the model in its framework",
        )

    def _used(self, wanted: set[str]) -> list[VersionedNode]:
        """The kept steps that these values depend on, in order."""
        kept = []
        for step in reversed(self.steps):
            if any(name in wanted for name in step.node.output):
                kept.append(step)
                wanted.update(reads(step.node))
        return kept[::-1]
