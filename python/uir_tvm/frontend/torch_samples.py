# SPDX-License-Identifier: Apache-2.0
"""Decompose each distinct call of an exported program once.

PyTorch's ``run_decompositions`` traces a program twice, call by call, with symbols in its shapes.  The calls
of a model are few, repeated in every layer.  So a *sample* of a program, which has one call of every kind and
inputs for its operands, is decomposed by PyTorch; what became of a call there takes its place everywhere.
"""

from __future__ import annotations

import copy
import logging
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs
import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.exported_program import ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from torch.utils import _pytree as pytree

from ..errors import first_line
from .torch_found import found_nodes
from .torch_graph import ASSERTIONS, target_name

log = logging.getLogger(__name__)

aten = torch.ops.aten

#: Written in place, and yet values: what the result is of an operand that nobody sees change.
AS_VALUES: dict[Any, Any] = {aten.detach_.default: aten.detach.default}
#: They read how a tensor lies in memory, which decompositions may change.
OF_MEMORY = (aten.as_strided.default,)
#: Of the calls of a program at most so many may be distinct: of others the sample is the program.
SHARE = 0.75

Decompose = Callable[[ExportedProgram], ExportedProgram]


def decomposed_by_samples(program: ExportedProgram, decompose: Decompose) -> ExportedProgram | None:
    """A program whose distinct calls were decomposed once each.

    Parameters
    ----------
    program : ExportedProgram
        It is not changed.
    decompose : callable
        PyTorch's ``run_decompositions``, of a whole program.

    Returns
    -------
    ExportedProgram or None
        None where that need not give what ``decompose`` does of the program itself: it changes tensors, has
        control flow or sizes that it finds, or a call whose parts hold constants; or where nearly all of its
        calls are distinct.
    """
    calls = _calls(program)
    if calls is None:
        return None
    kinds: dict[Any, fx.Node] = {}
    keys = {node: _kind(node) for node in calls}
    for node, key in keys.items():
        kinds.setdefault(key, node)
    if not calls or len(kinds) > SHARE * len(calls):
        return None
    try:
        sample = _Sample(program, kinds.values())
        parts = sample.parts(decompose)
        return (
            None if parts is None else _Assembled(program, keys, dict(zip(kinds, parts, strict=True))).made()
        )
    except _Unlike as why:
        log.info("the program is decomposed as a whole: %s", why)
        return None


class _Unlike(Exception):
    """A call has parts that do not stand for it elsewhere."""


def _calls(program: ExportedProgram) -> list[fx.Node] | None:
    """The calls that PyTorch may decompose; None where they are no functions of values alone."""
    signature = program.graph_signature
    if any(spec.kind is not OutputKind.USER_OUTPUT for spec in signature.output_specs) or found_nodes(
        program
    ):
        return None
    calls = []
    for node in program.graph.nodes:
        if node.op == "call_function":
            value = node.meta.get("val")
            if _is_plain(node):
                continue
            if not isinstance(node.target, torch._ops.OpOverload) or not _tensors(value):
                return None
            written = node.target._schema.is_mutable and node.target not in AS_VALUES
            if written or node.target in OF_MEMORY:
                return None
            if any("val" not in each.meta for each in node.all_input_nodes):
                return None
            calls.append(node)
        elif node.op == "get_attr":
            return None
        elif node.op == "placeholder" and not isinstance(node.meta.get("val"), _VALUES):
            return None
    return calls


#: What inputs are, constants included.
_VALUES = (torch.Tensor, torch.SymInt, int, float, bool, str, type(None))


def _is_plain(node: fx.Node) -> bool:
    """Whether a call computes sizes, takes a result out of several, or asserts: nothing to decompose."""
    if target_name(node) in ASSERTIONS or not isinstance(node.target, torch._ops.OpOverload):
        value = node.meta.get("val")
        return target_name(node) in ASSERTIONS or target_name(node) == "getitem" or _is_number(value)
    return _is_number(node.meta.get("val"))


def _is_number(value: Any) -> bool:
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool | int | float | bool)


def _tensors(value: Any) -> bool:
    """Whether results are a tensor, or several of them."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(each, torch.Tensor) for each in value)
    return isinstance(value, torch.Tensor)


def _kind(node: fx.Node) -> Any:
    """All that a call's parts depend on: its operator, numbers, and what is known of its tensors."""
    seen: dict[int, int] = {}
    leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
    return node.target, str(spec), tuple(_fact(leaf, seen) for leaf in leaves)


def _fact(leaf: Any, seen: dict[int, int]) -> Any:
    value = leaf.meta["val"] if isinstance(leaf, fx.Node) else leaf
    if isinstance(value, torch.Tensor):
        place = seen.setdefault(id(value), len(seen))
        return place, *_facts(value)
    if isinstance(value, list | tuple):  # a result that consists of several
        return tuple(_fact(each, seen) for each in value)
    return type(value), _number(value), isinstance(leaf, fx.Node)


def _facts(value: torch.Tensor) -> tuple[Any, ...]:
    return (
        value.dtype,
        tuple(map(_number, value.shape)),
        tuple(map(_number, value.stride())),
        _number(value.storage_offset()),
        value.device,
        value.layout,
        value.requires_grad,
        value.is_conj(),
        value.is_neg(),
        isinstance(value, torch.nn.Parameter),
    )


def _number(value: Any) -> Any:
    """A number as what can be compared; 0.0 and -0.0 are two, NaN is one."""
    if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return value.node.expr
    return repr(value)


@attrs.frozen(eq=False)
class _Parts:
    """What became of a call.

    Attributes
    ----------
    nodes : tuple of Node
        Of the decomposed sample, in order, without its inputs.
    operands : mapping of Node to int
        Inputs of the sample -> which of the call's operands they are, as `_operands` counts.
    results : tuple of Node
    """

    nodes: tuple[fx.Node, ...]
    operands: Mapping[fx.Node, int]
    results: tuple[fx.Node, ...]


def _operands(node: fx.Node) -> list[fx.Node]:
    """The nodes among a call's arguments, each once."""
    return list(dict.fromkeys(node.all_input_nodes))


class _Sample:
    """A program of calls that have nothing to do with each other.

    Parameters
    ----------
    program : ExportedProgram
    calls : iterable of Node
    """

    def __init__(self, program: ExportedProgram, calls: Iterable[fx.Node]) -> None:
        self._whole, self._calls = program, list(calls)
        self._graph = fx.Graph()
        #: By what is given, the input.
        self._inputs: dict[Any, fx.Node] = {}
        self._given: dict[fx.Node, fx.Node] = {}
        for call in self._calls:
            for operand in _operands(call):
                self._given[operand] = self._input(operand)
        outputs: list[fx.Node] = []
        self._counts: list[int] = []
        for call in self._calls:
            results = self._results(call)
            outputs += results
            self._counts.append(len(results))
        self._graph.output(tuple(outputs))
        self._outputs = outputs

    def _input(self, operand: fx.Node) -> fx.Node:
        value = operand.meta["val"]
        if isinstance(value, torch.Tensor) and getattr(value, "constant", None) is None:
            key: Any = id(value)
        elif isinstance(value, torch.SymInt):
            key = value.node.expr
        else:
            raise _Unlike(f"an operand is a {type(value).__name__}")
        if key not in self._inputs:
            made = self._inputs[key] = self._graph.placeholder(f"given_{len(self._inputs)}")
            made.meta["val"] = value
        return self._inputs[key]

    def _results(self, call: fx.Node) -> list[fx.Node]:
        args, kwargs = fx.map_arg((call.args, call.kwargs), self._given.__getitem__)
        target: Any = AS_VALUES.get(call.target, call.target)
        made = self._graph.call_function(target, args, kwargs)
        made.meta = dict(call.meta)
        value = call.meta["val"]
        if isinstance(value, torch.Tensor):
            return [made]
        results = []
        for index, each in enumerate(value):
            result = self._graph.call_function(operator.getitem, (made, index))
            result.meta = {**call.meta, "val": each}
            results.append(result)
        return results

    def _program(self) -> ExportedProgram:
        """The calls as an exported program, whose inputs are their operands."""
        inputs = list(self._inputs.values())
        specs = [InputSpec(InputKind.USER_INPUT, _argument(node), None) for node in inputs]
        results = [
            OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(node.name), None) for node in self._outputs
        ]
        root = ModuleCallSignature(
            inputs=[],
            outputs=[],
            in_spec=pytree.tree_structure((tuple(0 for _ in inputs), {})),
            out_spec=pytree.tree_structure(tuple(0 for _ in results)),
            forward_arg_names=[node.name for node in inputs],
        )
        return ExportedProgram(
            root=torch.nn.Module(),
            graph=self._graph,
            graph_signature=ExportGraphSignature(specs, results),
            state_dict={},
            range_constraints=dict(self._whole.range_constraints),
            module_call_graph=[ModuleCallEntry(fqn="", signature=root)],
            verifiers=self._whole.verifiers,
        )

    def parts(self, decompose: Decompose) -> list[_Parts] | None:
        """What became of each call."""
        try:
            made = decompose(self._program())
        except Exception as error:  # whatever PyTorch, or a user's function, raises: of the whole it is told
            raise _Unlike(first_line(error)) from error
        inputs = made.graph_signature.input_specs
        if any(spec.kind is not InputKind.USER_INPUT for spec in inputs):
            raise _Unlike("a call has constants among its parts")
        placeholders = {node.name: node for node in made.graph.find_nodes(op="placeholder")}
        names = [spec.arg.name for spec in inputs]
        inputs_of = {
            given: placeholders[name] for given, name in zip(self._inputs.values(), names, strict=True)
        }
        (output,) = made.graph.find_nodes(op="output")
        results = iter(output.args[0])
        place = {node: index for index, node in enumerate(made.graph.nodes)}
        found = []
        for call, count in zip(self._calls, self._counts, strict=True):
            own = tuple(next(results) for _ in range(count))
            if not all(isinstance(node, fx.Node) for node in own):
                raise _Unlike("a result is a number")
            operands = {
                inputs_of[self._given[node]]: index
                for index, node in reversed(list(enumerate(_operands(call))))
            }
            found.append(_Parts(tuple(sorted(_behind(own), key=place.__getitem__)), operands, own))
        return found


def _argument(node: fx.Node) -> TensorArgument | SymIntArgument:
    is_tensor = isinstance(node.meta["val"], torch.Tensor)
    return TensorArgument(node.name) if is_tensor else SymIntArgument(node.name)


def _behind(results: Iterable[fx.Node]) -> set[fx.Node]:
    """All that results are computed by, without inputs."""
    found, left = set[fx.Node](), list(results)
    while left:
        node = left.pop()
        if node in found or node.op == "placeholder":
            continue
        if node.op != "call_function":
            raise _Unlike(f"a part is no call: {node.op}")
        found.add(node)
        left += node.all_input_nodes
    return found


class _Assembled:
    """A program with parts in the place of its calls.

    Parameters
    ----------
    program : ExportedProgram
    kinds : mapping of Node to Any
        The kind of every call.
    parts : mapping of Any to _Parts
        By kind.
    """

    def __init__(
        self, program: ExportedProgram, kinds: Mapping[fx.Node, Any], parts: Mapping[Any, _Parts]
    ) -> None:
        self._old, self._kinds, self._parts = program, kinds, parts
        self._graph = fx.Graph()
        #: Node of the program -> what stands for it: a node, or several.
        self._new: dict[fx.Node, Any] = {}
        #: Size -> the node that has it.
        self._sizes: dict[Any, fx.Node] = {}
        self._places: dict[Any, tuple[fx.Node, int]] = {}

    def made(self) -> ExportedProgram:
        """The program."""
        for node in self._old.graph.nodes:
            if node in self._kinds:
                self._new[node] = self._spliced(node, self._parts[self._kinds[node]])
            elif (several := self._several(node)) is not None:
                self._new[node] = several[node.args[1]]
            else:
                self._new[node] = self._copied(node)
        self._graph.eliminate_dead_code()
        return self._program()

    def _several(self, node: fx.Node) -> Any:
        """The results of a call of which a node takes one; None of any other node."""
        source = node.args[0] if node.target is operator.getitem else None
        found = self._new.get(source) if isinstance(source, fx.Node) else None
        return found if isinstance(found, list) else None

    def _program(self) -> ExportedProgram:
        old = self._old
        signature = ExportGraphSignature(
            [copy.copy(spec) for spec in old.graph_signature.input_specs], self._outputs()
        )
        module = fx.GraphModule(torch.nn.Module(), self._graph)
        module.meta.update(old.graph_module.meta)
        return ExportedProgram(
            root=module,
            graph=module.graph,
            graph_signature=signature,
            state_dict=dict(old.state_dict),
            range_constraints=dict(old.range_constraints),
            module_call_graph=list(old.module_call_graph),
            example_inputs=old.example_inputs,
            constants=dict(old.constants),
            verifiers=old.verifiers,
        )

    def _outputs(self) -> list[OutputSpec]:
        (output,) = self._graph.find_nodes(op="output")
        made = []
        for spec, result in zip(self._old.graph_signature.output_specs, output.args[0], strict=True):
            spec = copy.copy(spec)
            if isinstance(result, fx.Node):
                spec.arg = copy.copy(spec.arg)
                spec.arg.name = result.name
            made.append(spec)
        return made

    def _copied(self, node: fx.Node) -> fx.Node:
        args, kwargs = fx.map_arg((node.args, node.kwargs), self._one)
        made = self._graph.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        if node.op == "placeholder":
            made.name = node.name  # some names are given back only so
        made.meta = dict(node.meta)
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            self._sizes.setdefault(value.node.expr, made)
        elif node.op == "placeholder" and isinstance(value, torch.Tensor):
            for axis, size in enumerate(value.shape):
                if isinstance(size, torch.SymInt):
                    self._places.setdefault(size.node.expr, (made, axis))
        return made

    def _one(self, node: fx.Node) -> fx.Node:
        made: fx.Node = self._new[node]
        return made

    def _spliced(self, call: fx.Node, parts: _Parts) -> Any:
        """The parts of a call in its place."""
        operands = _operands(call)
        made = {given: self._new[operands[at]] for given, at in parts.operands.items()}
        for node in parts.nodes:
            value = node.meta.get("val")
            if isinstance(value, torch.SymInt):
                made[node] = self._size(node)
                continue
            args, kwargs = fx.map_arg((node.args, node.kwargs), lambda each: self._part(each, made))
            made[node] = self._graph.create_node(node.op, node.target, args, kwargs, node.name)
            made[node].meta = {**call.meta, "val": value}
        results = [made[result] for result in parts.results]
        return results[0] if isinstance(call.meta["val"], torch.Tensor) else results

    def _part(self, node: fx.Node, made: Mapping[fx.Node, fx.Node]) -> fx.Node:
        return made[node] if node in made else self._size(node)

    def _size(self, node: fx.Node) -> fx.Node:
        """The size that a node of the sample computes: from the program's inputs."""
        value = node.meta.get("val")
        if not isinstance(value, torch.SymInt):
            raise _Unlike("a call's parts read what is no operand of it")
        expr = value.node.expr
        if expr not in self._sizes:
            if expr in self._places:
                made = self._graph.call_function(aten.sym_size.int, self._places[expr])
            elif node.op == "call_function" and node.target is not aten.sym_size.int:
                args, kwargs = fx.map_arg((node.args, node.kwargs), self._size)
                made = self._graph.create_node(node.op, node.target, args, kwargs)
            else:
                raise _Unlike(f"no input has the size {expr}")
            made.meta["val"] = value
            self._sizes[expr] = made
        return self._sizes[expr]
