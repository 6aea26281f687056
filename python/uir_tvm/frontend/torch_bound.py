# SPDX-License-Identifier: Apache-2.0
"""An exported program for numbers in the place of its symbols.

Its graph is walked once with tensors that have no numbers (PyTorch's `FakeTensor`): what computes sizes is
folded, assertions on sizes are decided, and every node gets the shape that it has for these sizes. What comes
out is what an export without symbols gives.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import sympy
import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, ExportGraphSignature, SymIntArgument
from torch.utils import _pytree as pytree

from ..errors import SizeError, first_line
from ..sizes.symbolic_shapes import Sizes, sizes_text
from .torch_graph import ASSERTIONS, describe, target_name

#: What a value that is no tensor may be.
SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


@contextlib.contextmanager
def refused_sizes(sizes: Sizes, where: Callable[[], str] = str) -> Iterator[None]:
    """What PyTorch says of sizes that it does not take, as an error."""
    try:
        yield
    except SizeError:
        raise
    except Exception as error:  # whatever operators of PyTorch raise
        raise SizeError(
            f"The model cannot be computed with {sizes_text(sizes)}.",
            where=where(),
            need=first_line(error).removeprefix("Guard failed: "),
            remedy="pass sizes that fit, or export the model with example inputs of these sizes",
        ) from error


def broken_assertion(node: fx.Node, args: Sequence[Any], sizes: Sizes) -> SizeError:
    """The error of an assertion that does not hold."""
    return SizeError(
        f"The model does not take {sizes_text(sizes)}.",
        where=describe(node),
        need=str(args[1]) if len(args) > 1 else "what the model asserts of its sizes",
        remedy="pass other sizes",
    )


def number_of(value: Any, numbers: Mapping[Any, int]) -> Any:
    """A number or condition that has symbols, with numbers in their place; anything else as it is."""
    if not isinstance(value, SYMBOLIC):
        return value
    known = value.node.expr.subs(numbers) if isinstance(value.node.expr, sympy.Basic) else value.node.expr
    return int(known) if isinstance(value, torch.SymInt) else bool(known)


def with_numbers(value: Any, numbers: Mapping[Any, int], mode: FakeTensorMode) -> Any:
    """An input's value, with numbers in the place of symbols."""
    if not isinstance(value, torch.Tensor):
        return number_of(value, numbers)
    shape = [number_of(size, numbers) for size in value.shape]
    stride = [number_of(step, numbers) for step in value.stride()]
    with mode:
        return torch.empty_strided(shape, stride, dtype=value.dtype, device=value.device)


class Binder:
    """One walk over a program's graph.

    Parameters
    ----------
    program : ExportedProgram
    inputs : mapping of str to Any
        A tensor without symbols, or a number, for each placeholder.
    sizes : Sizes
        For messages.
    mode : FakeTensorMode
        That of the tensors: a new one, which knows nothing of symbols.
    """

    def __init__(
        self, program: ExportedProgram, inputs: Mapping[str, Any], sizes: Sizes, mode: FakeTensorMode
    ) -> None:
        self._old, self._inputs, self._sizes, self._mode = program, inputs, sizes, mode
        self._graph = fx.Graph()
        #: Node of the old graph -> its value, and what stands for it in the new graph: a node or a number.
        self._values: dict[fx.Node, Any] = {}
        self._nodes: dict[fx.Node, Any] = {}

    def program(self) -> ExportedProgram:
        """The program without symbols."""
        old = self._old
        with self._mode, torch.no_grad():
            for node in old.graph.nodes:
                getattr(self, f"_{node.op}")(node)
        module = fx.GraphModule(old.graph_module, self._graph)
        module.meta.update(old.graph_module.meta)
        return ExportedProgram(
            root=module,
            graph=module.graph,
            graph_signature=self._signature(),
            state_dict=dict(old.state_dict),
            range_constraints={},
            module_call_graph=list(old.module_call_graph),
            example_inputs=None,
            constants=dict(old.constants),  # the import adds to them what it folds
            verifiers=old.verifiers,
        )

    def _signature(self) -> ExportGraphSignature:
        """Numbers among inputs and outputs are constants now."""
        old = self._old.graph_signature
        inputs, outputs = [copy.copy(spec) for spec in old.input_specs], []
        for spec in inputs:
            if isinstance(spec.arg, SymIntArgument):
                spec.arg = ConstantArgument(name=spec.arg.name, value=self._inputs[spec.arg.name])
        (output,) = self._old.graph.find_nodes(op="output")
        for spec, result in zip(old.output_specs, output.args[0], strict=True):
            spec = copy.copy(spec)
            if isinstance(result, fx.Node) and not isinstance(self._nodes[result], fx.Node):
                spec.arg = ConstantArgument(name=spec.arg.name, value=self._nodes[result])
            outputs.append(spec)
        return ExportGraphSignature(input_specs=inputs, output_specs=outputs)

    def _placeholder(self, node: fx.Node) -> None:
        value = self._inputs[node.name]
        made = self._graph.placeholder(str(node.target))
        made.name = node.name
        made.meta = {**_said_of(node), "val": value}
        self._values[node] = value
        self._nodes[node] = value if isinstance(node.meta.get("val"), SYMBOLIC) else made

    def _get_attr(self, node: fx.Node) -> None:
        value: Any = self._old.graph_module
        for part in str(node.target).split("."):
            value = getattr(value, part)
        self._values[node], self._nodes[node] = value, self._copied(node)

    def _call_function(self, node: fx.Node) -> None:
        args, kwargs = fx.map_arg((node.args, node.kwargs), self._values.__getitem__)
        name = target_name(node)
        if name in ASSERTIONS:
            if name.startswith("_assert_scalar") and args[0] in (False, 0):
                raise broken_assertion(node, args, self._sizes)
            return
        with refused_sizes(self._sizes, lambda: describe(node)):
            value = self._computed(node.target, args, kwargs)
        self._values[node] = value
        if isinstance(value, int | float | bool):
            self._nodes[node] = value
        else:
            self._nodes[node] = self._copied(node)
            self._nodes[node].meta["val"] = value

    def _computed(self, function: Any, args: Any, kwargs: Any) -> Any:
        """What a call gives; of nothing PyTorch is asked itself, whose rules for shapes may not know it."""
        try:
            return function(*args, **kwargs)
        except Exception:
            operands = pytree.tree_leaves((args, kwargs))
            if not any(isinstance(each, torch.Tensor) and not each.numel() for each in operands):
                raise
            with unset_fake_temporarily():
                real = pytree.tree_map_only(torch.Tensor, _real, (args, kwargs))
                value = function(*real[0], **real[1])
        known = partial(self._mode.from_tensor, static_shapes=True)
        return pytree.tree_map_only(torch.Tensor, known, value)

    def _output(self, node: fx.Node) -> None:
        self._copied(node).meta.pop("val", None)  # programs of files have it

    def _copied(self, node: fx.Node) -> fx.Node:
        args, kwargs = fx.map_arg((node.args, node.kwargs), self._nodes.__getitem__)
        made = self._graph.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = _said_of(node)
        return made


def _real(value: torch.Tensor) -> torch.Tensor:
    """Zeros like a tensor that has no numbers."""
    return torch.zeros(value.shape, dtype=value.dtype)


def _said_of(node: fx.Node) -> dict[str, Any]:
    """What a program says of a node, without its shape in symbols: files have that in two places."""
    return {key: said for key, said in node.meta.items() if key != "tensor_meta"}
