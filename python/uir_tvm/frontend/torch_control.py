# SPDX-License-Identifier: Apache-2.0
"""Control flow of exported programs: ``cond``, ``while_loop``, ``scan`` and ``map`` as straight lines.

A walk over the graph takes the chosen branch, and writes the rounds of a loop one after the other. A
predicate that follows from constants is computed on the way. For any other the program is run so far: what
was met is a stage (`open_model.StageRunner`), whose answer decides what follows.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import attrs
import numpy as np
import torch
import tvm
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, TensorArgument

from ..errors import UnsupportedOperatorError, ValueNeededError
from ..sizes.symbolic_shapes import OpenInput, OpenSignature, Sizes
from .open_model import InputShapes, StageRunner, SymbolicForm
from .torch_graph import ASSERTIONS, target_name
from .torch_stages import NUMBER, StageProgram, WalkedTensor, WalkStep, replaced, values_in

aten = torch.ops.aten

#: Nodes that one loop may become.
UNROLLED_NODES = 20_000
#: Larger values are not computed on the way: they are data, not counters.
FOLDED_ELEMENTS = 1024

#: Imports the program of a stage.
Importer = Callable[[ExportedProgram], tvm.IRModule]


def control_of(node: fx.Node) -> str:
    """The name of a node's control flow; empty for any other node."""
    higher = isinstance(node.target, torch._ops.HigherOrderOperator)
    return target_name(node) if higher and target_name(node) in CONTROL else ""


def has_control(program: ExportedProgram) -> bool:
    """Whether a program has an operator of `CONTROL`."""
    return any(control_of(node) for node in program.graph.nodes)


def unrolled(program: ExportedProgram) -> ExportedProgram:
    """A program without control flow.

    Parameters
    ----------
    program : ExportedProgram
        Decomposed, its graphs of branches and rounds too.

    Raises
    ------
    ValueNeededError
        A predicate is computed from inputs.
    UnsupportedOperatorError
        A loop would be more than `UNROLLED_NODES` operators.
    """
    walk = ControlWalk(program, None, None)
    results = walk.results()
    return StageProgram(program, walk.steps, results, True).exported


@attrs.frozen(eq=False)
class StagedProgram:
    """A program whose control flow is decided by what it computes: an `open_model.OpenModel`.

    Parameters
    ----------
    exported : ExportedProgram
        Decomposed.
    structure : str
        How its arguments and results are nested.
    importer : callable
        The module of a stage.
    """

    exported: ExportedProgram
    structure: str | None
    importer: Importer
    _modules: dict[str, tvm.IRModule] = attrs.field(factory=dict)
    symbolic: SymbolicForm | None = attrs.field(default=None, init=False)

    @property
    def signature(self) -> OpenSignature:
        """See `OpenModel.signature`: no size is open."""
        metas = {node.name: node.meta["val"] for node in self.exported.graph.find_nodes(op="placeholder")}
        tensors = {
            spec.arg.name: metas[spec.arg.name]
            for spec in self.exported.graph_signature.input_specs
            if spec.kind is InputKind.USER_INPUT and isinstance(spec.arg, TensorArgument)
        }
        return OpenSignature(
            [
                OpenInput(name, tuple(meta.shape), str(meta.dtype).removeprefix("torch."))
                for name, meta in tensors.items()
            ]
        )

    def fixed(self, sizes: Sizes) -> StagedProgram:
        """See `OpenModel.fixed`."""
        self.signature.fixed(sizes)
        return self

    def module(self, shapes: InputShapes) -> tvm.IRModule:
        """See `OpenModel.module`; ValueNeededError says that there is none."""
        return self.importer(unrolled(self.exported))

    def run(
        self, shapes: InputShapes, values: Mapping[str, np.ndarray], driver: StageRunner
    ) -> Sequence[str]:
        """See `OpenModel.run`."""
        walk = ControlWalk(self.exported, driver, self._imported)
        results = list(values_in(walk.results()))
        walk.end_stage(results)
        return [value.held for value in results]

    def _imported(self, stage: ExportedProgram) -> tvm.IRModule:
        """The module of a stage; rounds of a loop are often one and the same program."""
        specs = stage.graph_signature.input_specs
        metas = [node.meta["val"] for node in stage.graph.find_nodes(op="placeholder")]
        rows = [
            (spec.arg.name, spec.kind.name, spec.target, meta.shape, meta.dtype)
            for spec, meta in zip(specs, metas, strict=True)
        ]
        numbers = [stage.constants[s.target].tolist() for s in specs if str(s.target).startswith(NUMBER)]
        key = f"{stage.graph} {rows} {numbers}"
        if key not in self._modules:
            self._modules[key] = self.importer(stage)
        return self._modules[key]


class ControlWalk:
    """One walk over a program.

    Parameters
    ----------
    program : ExportedProgram
    driver : StageRunner, optional
        Without one there is one stage.
    importer : Importer, optional
        Of stages.

    Attributes
    ----------
    steps : list of WalkStep
        Of the stage so far.
    """

    def __init__(
        self, program: ExportedProgram, driver: StageRunner | None, importer: Importer | None
    ) -> None:
        self.program, self.driver, self.importer = program, driver, importer
        self.steps: list[WalkStep] = []
        self._made = 0
        self._frames: list[Callable[[], Iterable[WalkedTensor]]] = []

    def results(self) -> list[Any]:
        """Walk the program; values, and what it returns beside tensors."""
        inputs = []
        nodes = self.program.graph.find_nodes(op="placeholder")
        for node, spec in zip(nodes, self.program.graph_signature.input_specs, strict=True):
            meta = node.meta.get("val")
            if not isinstance(meta, torch.Tensor):
                inputs.append(meta)
                continue
            small = spec.kind is InputKind.CONSTANT_TENSOR and meta.numel() <= FOLDED_ELEMENTS
            number = self.program.constants[spec.target] if small else None
            held = node.name if spec.kind is InputKind.USER_INPUT else ""
            inputs.append(WalkedTensor(meta, node.name, held, number))
        return list(self.graph(self.program.graph_module, inputs))

    def graph(self, module: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        """Walk a graph on these values; its results."""
        known: dict[fx.Node, Any] = {}
        nodes = list(module.graph.nodes)
        last = {source: place for place, node in enumerate(nodes) for source in node.all_input_nodes}
        given, place = iter(inputs), 0

        def read_later() -> Iterator[WalkedTensor]:
            return values_in([value for node, value in known.items() if last.get(node, -1) >= place])

        with self.reading(read_later):
            for place, node in enumerate(nodes):  # noqa: B007  (read_later sees it)
                if node.op == "placeholder":
                    known[node] = next(given)
                elif node.op == "get_attr":
                    found = operator.attrgetter(str(node.target))(module)
                    known[node] = (
                        WalkedTensor(found, number=found) if isinstance(found, torch.Tensor) else found
                    )
                elif node.op == "output":
                    return _mapped(node.args[0], known)
                elif target_name(node) not in ASSERTIONS:
                    known[node] = self._call(node, known)
        raise AssertionError("a graph has an output")

    def _call(self, node: fx.Node, known: Mapping[fx.Node, Any]) -> Any:
        """The value of a call: a tensor, or a list of several."""
        args, kwargs = _mapped(node.args, known), _mapped(dict(node.kwargs), known)
        if control_of(node):
            return CONTROL[control_of(node)](self, node, *args, **kwargs)
        if node.target is operator.getitem:
            return args[0][args[1]]
        return self.emit(node, node.target, args, kwargs, node.meta.get("val"))

    def emit(self, node: fx.Node, target: Any, args: Sequence[Any], kwargs: Any, meta: Any) -> Any:
        """The results of an operator for a node; those of small constants are constants."""
        several = isinstance(meta, list | tuple)
        results = [WalkedTensor(each) for each in (meta if several else [meta])]
        step = WalkStep(node, target, tuple(args), dict(kwargs), meta, results)
        if not _computed(step):
            self.steps.append(step)
        return results if several else results[0]

    @contextlib.contextmanager
    def reading(self, values: Callable[[], Iterable[WalkedTensor]]) -> Iterator[None]:
        """While this is open, a stage that ends keeps these values."""
        self._frames.append(values)
        try:
            yield
        finally:
            self._frames.pop()

    def know(self, value: Any, node: fx.Node) -> bool:
        """A predicate: run what it comes from where it is no constant."""
        if not isinstance(value, WalkedTensor):
            return bool(value)
        if value.number is None:
            if self.driver is None:
                raise ValueNeededError(
                    f"{target_name(node)} goes by a value that is computed",
                    inputs=(),
                    where=f"node {node.name}",
                    need="its value when the model is imported",
                    remedy="call uir_tvm.compile, which compiles what follows at the call",
                )
            self.end_stage([value])
            (array,) = self.driver.values_of([value.held])
            value.number = torch.as_tensor(array)
        return bool(value.number.reshape(-1)[0])

    def end_stage(self, wanted: Sequence[WalkedTensor]) -> None:
        """Run the steps so far, keeping what is wanted or read later."""
        assert self.driver is not None and self.importer is not None
        made = {value for step in self.steps for value in step.results}
        later = (value for frame in self._frames for value in frame() if value in made)
        live = [value for value in dict.fromkeys([*wanted, *later]) if not value.held]
        if live:
            stage = StageProgram(self.program, self.steps, live, False)
            module = self.importer(stage.exported)
            names = [f"uir.{self._made + index}" for index in range(len(live))]
            self._made += len(live)
            inputs = [stage.inputs[str(param.name)] for param in module["main"].params]
            self.driver.run(module, inputs, names)
            for value, name in zip(live, names, strict=True):
                value.held = name
        self.steps.clear()

    def stacked(self, node: fx.Node, values: Sequence[WalkedTensor]) -> WalkedTensor:
        """Values of one shape along a new first axis."""
        wide = [self.of(node, aten.unsqueeze.default, value, 0) for value in values]
        meta = torch.cat([value.meta for value in wide])
        made: WalkedTensor = self.emit(node, aten.cat.default, [wide], {}, meta)
        return made

    def computed(self, node: fx.Node, value: Any) -> Any:
        """A value that is no constant of what follows: rounds that data decide are then one program."""
        if not isinstance(value, WalkedTensor) or value.number is None:
            return value
        made = WalkedTensor(value.meta)
        self.steps.append(WalkStep(node, aten.clone.default, (value,), {}, value.meta, [made]))
        return made

    def of(self, node: fx.Node, target: Any, value: WalkedTensor, *rest: Any) -> WalkedTensor:
        """One more operator on one value."""
        made: WalkedTensor = self.emit(node, target, [value, *rest], {}, target(value.meta, *rest))
        return made


def _mapped(tree: Any, known: Mapping[fx.Node, Any]) -> Any:
    """A node's arguments with what nodes stand for."""
    if isinstance(tree, fx.Node):
        return known[tree]
    if isinstance(tree, Mapping):
        return {name: _mapped(item, known) for name, item in tree.items()}
    if isinstance(tree, list | tuple):
        return [_mapped(item, known) for item in tree]
    return tree


def _computed(step: WalkStep) -> bool:
    """Whether the numbers of an operator's results follow from constants; they are noted."""
    target, values = step.target, list(values_in((step.args, step.kwargs)))
    if not isinstance(target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded in target.tags:
        return False
    metas = [value.meta for value in step.results]
    if not all(isinstance(meta, torch.Tensor) and meta.numel() <= FOLDED_ELEMENTS for meta in metas):
        return False
    if any(value.number is None for value in values):
        return False
    args, kwargs = replaced((step.args, step.kwargs), lambda value: value.number)
    with torch.no_grad():
        found = target(*args, **kwargs)
    for value, number in zip(
        step.results, found if isinstance(found, list | tuple) else [found], strict=True
    ):
        value.number = number
    return True


def _refuse(node: fx.Node, why: str, need: str) -> NoReturn:
    raise UnsupportedOperatorError(
        f"{target_name(node)} {why}",
        where=f"node {node.name}",
        need=need,
        remedy="write the loop around the compiled model, or in terms of operators on whole tensors",
    )


def _limit(node: fx.Node, rounds: int, module: fx.GraphModule) -> None:
    count = len(module.graph.nodes)
    if rounds * count > UNROLLED_NODES:
        _refuse(
            node, f"has {rounds} rounds of {count} nodes", f"a loop that ends within {UNROLLED_NODES} nodes"
        )


def _one(result: Any) -> Any:
    """What a graph returns, by itself or in a tuple of one."""
    return result[0] if isinstance(result, list | tuple) else result


def _cond(
    walk: ControlWalk, node: fx.Node, predicate: Any, yes: Any, no: Any, operands: Sequence[Any] = ()
) -> Any:
    """``cond``: the branch that the predicate says."""
    with walk.reading(lambda: values_in(operands)):
        chosen = yes if walk.know(predicate, node) else no
    return walk.graph(chosen, operands)


def _while_loop(
    walk: ControlWalk,
    node: fx.Node,
    goes_on: Any,
    body: Any,
    carried: Sequence[Any],
    more: Sequence[Any] = (),
) -> Any:
    """``while_loop``: rounds as long as a graph of the carried values says."""
    rounds = 0
    carried = list(carried)
    with walk.reading(lambda: values_in([carried, more])):
        while True:
            predicate = _one(walk.graph(goes_on, [*carried, *more]))
            computed = isinstance(predicate, WalkedTensor) and predicate.number is None
            if not walk.know(predicate, node):
                return carried
            rounds += 1
            _limit(node, rounds, body)
            if computed:
                carried = [walk.computed(node, value) for value in carried]
            carried = list(walk.graph(body, [*carried, *more]))


def _scan(
    walk: ControlWalk,
    node: fx.Node,
    body: Any,
    states: Sequence[Any],
    rows: Sequence[Any],
    more: Sequence[Any] = (),
) -> Any:
    """``scan``: a round for each row of the inputs, which gives the next states and a row of each result."""
    length = int(rows[0].meta.shape[0])
    if not length:
        _refuse(node, "has no round", "inputs of at least one row")
    _limit(node, length, body)
    states, made = list(states), list[list[Any]]()
    with walk.reading(lambda: values_in([states, rows, more, made])):
        for number in range(length):
            now = [walk.of(node, aten.select.int, row, 0, number) for row in rows]
            results = walk.graph(body, [*states, *now, *more])
            states = list(results[: len(states)])
            made.append(list(results[len(states) :]))
        return [*states, *(walk.stacked(node, column) for column in zip(*made, strict=True))]


def _map(walk: ControlWalk, node: fx.Node, body: Any, rows: Sequence[Any], more: Sequence[Any] = ()) -> Any:
    """``map``: a scan without states."""
    return _scan(walk, node, body, [], rows, more)


#: Operator -> its walk: (walk, node, arguments) -> values of its results.
CONTROL: Mapping[str, Callable[..., Any]] = {
    "cond": _cond,
    "while_loop": _while_loop,
    "scan": _scan,
    "map_impl": _map,
}
