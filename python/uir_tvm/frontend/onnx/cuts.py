# SPDX-License-Identifier: Apache-2.0
"""Where a graph has to run before the rest of it can be imported: values that decide shapes or branches.

What stands before such a place is a stage: a Relax module of its own, which a `StageRunner` compiles and runs
while the walk waits. With the value known, the walk goes on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx
import tvm
from onnx import helper
from tvm import relax

from ..open_model import HostFunction, StageRunner
from ..relax_view import dtype_of, shape_of
from .known import VersionedNode

if TYPE_CHECKING:
    from .simplifier import SimplifiedGraph, Simplifier


def reads(node: onnx.NodeProto) -> Iterator[str]:
    """The names of values that a node reads, in its subgraphs too."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from reads(inner)
            yield from (value.name for value in graph.output)


class Cuts:
    """The stages of one walk.

    Parameters
    ----------
    simplifier : Simplifier
        The walk.
    driver : StageRunner, optional
        Without one a graph is one stage, and what needs more is refused.
    module_of : callable
        The Relax module of a stage.
    """

    def __init__(
        self,
        simplifier: Simplifier,
        driver: StageRunner | None,
        module_of: Callable[[SimplifiedGraph], tvm.IRModule] | None,
    ) -> None:
        self.simplifier, self.driver, self._module_of = simplifier, driver, module_of
        #: Values that earlier stages or the caller give.
        self.held: set[str] = set()
        #: Every value that a step made, in order.
        self.made: list[str] = []
        self._frames: list[Callable[[], Iterable[str]]] = []

    @contextlib.contextmanager
    def reading(self, names: Callable[[], Iterable[str]]) -> Iterator[None]:
        """While this is open, a stage that ends keeps the values that it names."""
        self._frames.append(names)
        try:
            yield
        finally:
            self._frames.pop()

    def keeping(self) -> contextlib.AbstractContextManager[None]:
        """While this is open, a stage that ends keeps all that is made from now on."""
        first = len(self.made)
        return self.reading(lambda: self.made[first:])

    def know(self, names: Sequence[str]) -> None:
        """Make values constants: run what they come from."""
        assert self.driver is not None
        self._end(names)
        for name, array in zip(names, self.driver.values_of(names), strict=True):
            self.simplifier.known.add_array(name, array)
            self.held.discard(name)

    def compute(self, step: VersionedNode, reason: str, function: HostFunction) -> None:
        """Run a node outside kernels, for a reason."""
        assert self.driver is not None
        known, names = self.simplifier.known, list(step.node.input)
        passed = [name for name in names if name and not known.is_constant(name)]
        self._end(passed)
        constants = {name: known.array(name) for name in names if name and known.is_constant(name)}

        def filled(given: Sequence[np.ndarray | None]) -> Sequence[np.ndarray]:
            found = {**constants, **dict(zip(passed, given, strict=True))}
            return function([found[name] if name else None for name in names])

        outputs = [name for name in step.node.output if name]
        made = self.driver.compute(step.operator, reason, filled, passed, outputs)
        for name, array in zip(outputs, made, strict=True):
            if array.size:
                kind = helper.np_dtype_to_tensor_dtype(array.dtype)
                known.types[name] = helper.make_tensor_type_proto(kind, list(array.shape))
                self.held.add(name)
                self.made.append(name)
            else:
                known.add_array(name, array)

    def results(self, names: Sequence[str]) -> None:
        """End the last stage, which makes the graph's outputs."""
        self._end(names, last=True)

    def _end(self, wanted: Sequence[str], last: bool = False) -> None:
        """End the stage: run the steps so far, keeping what is wanted or read later."""
        simplifier, given = self.simplifier, {value.name for value in self.simplifier.inputs}
        there = self.held | given
        if not last and all(name in there for name in wanted):
            return
        live = dict.fromkeys(name for name in wanted if name not in there)
        if not last:
            later = {name for frame in self._frames for name in frame()}
            later.update(name for values in simplifier.sequences.values() for name in values)
            made = {name for step in simplifier.steps for name in step.node.output if name}
            live.update(dict.fromkeys(name for name in self.made if name in made and name in later))
        if live:
            self._run(simplifier.stage(list(live), there), list(live))
        for step in simplifier.steps:
            for name in step.node.output:
                simplifier.makers.pop(name, None)
        simplifier.steps.clear()

    def _run(self, program: SimplifiedGraph, live: Sequence[str]) -> None:
        """Run a stage; its results have the types that the import gave them."""
        assert self.driver is not None and self._module_of is not None
        known, module = self.simplifier.known, self._module_of(program)
        self.driver.run(module, [value.name for value in program.inputs], live)
        returned = module["main"].ret_ty
        kinds = list(returned.fields) if isinstance(returned, relax.TupleType) else [returned]
        for name, kind in zip(live, kinds, strict=True):
            if not known.is_constant(name):
                result = relax.Var(name, kind)
                element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype_of(result)))
                known.types[name] = helper.make_tensor_type_proto(element, shape_of(result))
                self.held.add(name)
