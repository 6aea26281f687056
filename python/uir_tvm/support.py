# SPDX-License-Identifier: Apache-2.0
"""``uir_tvm.supports``: where each part of a model would run, said before any machine code is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs
import tvm

from . import autoload, kernel_graph, pipeline
from .errors import (
    DynamicShapeError,
    FrontendError,
    UirError,
    UnsupportedOperatorError,
    ValueNeededError,
    first_line,
)
from .frontend.named_state import Pairs
from .frontend.open_model import OpenModel
from .import_model import Door, Shapes, Values, import_model, model_name
from .kernel_graph.nodes import CustomOp, KernelGraph
from .options import DEFAULT_TARGET, CompileOptions
from .runtime.open_programs import symbolic_programs
from .runtime.symbolic_programs import SymbolicProgram
from .sizes.symbolic_shapes import OpenSignature, Sizes
from .state_spec import StateSpec, rows_of
from .target import registry

#: Where operators may run, the best first.
PLACES = {
    "igraph": "a kernel of ours, proved as an iGraph",
    "library": "the target's library",
    "tvm": "TVM's own lowering, on the host",
    "torch": "PyTorch, at run time, on the host",
    "call": "not decided before the call, which compiles the model for its sizes and values",
    "refused": "nowhere: the model does not compile",
}

#: `uir_tvm.compile` makes a `SpecializedExecutable` where it meets these.
AT_THE_CALL = (DynamicShapeError, ValueNeededError)

#: For an operator that PyTorch computes.
REMEDY = (
    'pass converters={"library::operator": function(node, importer) -> relax.Var, or '
    "uir_tvm.InTorch(function)}, or let PyTorch compute it: the model then needs torch where it runs"
)


@attrs.frozen
class SupportRow:
    """Some operators that run together, and where.

    Attributes
    ----------
    operators : str
        The model's operators, as Relax or, where they are refused, their framework names them.
    place : str
        A key of `PLACES`.
    count : int
        How often the model has them.
    name : str
        The kernel, or the library's function.
    reason, remedy : str
        Why they are not in a better place, and what to do.
    """

    operators: str
    place: str
    count: int = 1
    name: str = ""
    reason: str = ""
    remedy: str = ""


@attrs.frozen
class Support:
    """What becomes of a model; true where all of it compiles.

    Attributes
    ----------
    model, target : str
    rows : tuple of SupportRow
        In the order of `PLACES`, refusals first.
    error : UirError, optional
        What a compilation would raise, or, for a model that is compiled at the call, what a file of it lacks.
    state : tuple of StateSpec
        What calls would leave changed for the next one, and whether it is written in place.
    opened : OpenSignature, optional
        The inputs of a model that leaves sizes open, and is compiled once for all of them.
    conditions : tuple of str
        Of these sizes, where one program serves; others get one of their own.
    """

    model: str
    target: str
    rows: tuple[SupportRow, ...]
    error: UirError | None = attrs.field(default=None, eq=False)
    state: tuple[StateSpec, ...] = ()
    opened: OpenSignature | None = attrs.field(default=None, eq=False)
    conditions: tuple[str, ...] = ()

    @property
    def signature(self) -> OpenSignature | None:
        """The inputs of a model that leaves sizes open, with its symbols; None of others."""
        opened = getattr(self.error, "model", None)
        return self.opened if opened is None else opened.signature

    def __bool__(self) -> bool:
        return self.error is None or "call" in self.counts

    @property
    def counts(self) -> dict[str, int]:
        """Nodes by place, those that there are."""
        counted = {place: sum(row.count for row in self.rows if row.place == place) for place in PLACES}
        return {place: count for place, count in counted.items() if count}

    def to_json(self) -> dict[str, Any]:
        """Plain data: the verdict, counts by place, rows, and the error."""
        return {
            "model": self.model,
            "target": self.target,
            "compiles": bool(self),
            "counts": self.counts,
            "rows": [attrs.asdict(row) for row in self.rows],
            "inputs": [str(each) for each in self.signature.inputs] if self.signature else [],
            "state": rows_of(self.state),
            "symbols": self.signature.described() if self.signature else {},
            "conditions": list(self.conditions),
            "error": self.error.to_json() if self.error is not None else None,
        }


def supports(
    model: Any,
    target: str | tvm.target.Target = DEFAULT_TARGET,
    *,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    converters: Mapping[str, Any] | None = None,
    strict: bool = False,
    dynamic_shapes: Any = None,
    shapes: Shapes = None,
    sizes: Sizes | None = None,
    values: Values = None,
    entry: str = "main",
    state: Pairs | None = None,
    name: str | None = None,
    options: CompileOptions | None = None,
) -> Support:
    """Say where each part of a model would run: iGraphs, libraries, TVM's own lowering, PyTorch, or
    nowhere.

    The model is imported and its kernels are scheduled and verified; no machine code is made.

    Parameters
    ----------
    model, target, args, kwargs, converters, strict, dynamic_shapes, shapes, sizes, values, entry, state,
    name, options
        As of `uir_tvm.compile`.

    Returns
    -------
    Support
        True where the model compiles; a refusal is a row with its reason and remedy, and no exception.

    Raises
    ------
    TargetError
        An unknown target, hardware model or device.
    """
    options = options or CompileOptions()
    autoload.register()
    spec = registry.resolve(target, options.device)
    label = name or model_name(model)
    try:
        door = Door(args, kwargs, converters, strict, dynamic_shapes, entry, state)
        mod = import_model(model, shapes, values, door, sizes)
        rows, kept = _rows(mod, spec.target, options)
    except UirError as error:
        model = error.model if isinstance(error, AT_THE_CALL) else None
        found = _for_all_sizes(model, spec.target, options, state)
        if found is None:
            return Support(label, spec.name, _refusals(error), error)
        assert model is not None
        conditions = tuple(found.to_json()["conditions"])
        made = _sorted(_open_rows(found))
        return Support(label, spec.name, made, opened=model.signature, conditions=conditions)
    return Support(label, spec.name, _sorted(rows), state=kept)


def _sorted(rows: Iterable[SupportRow]) -> tuple[SupportRow, ...]:
    order = list(PLACES)[::-1]
    return tuple(sorted(rows, key=lambda row: order.index(row.place)))


def _for_all_sizes(
    opened: OpenModel | None, target: tvm.target.Target, options: CompileOptions, state: Pairs | None
) -> SymbolicProgram | None:
    """The program of a model that leaves sizes open; None where shapes are compiled one by one."""
    if opened is None or opened.symbolic is None or state:
        return None
    found = symbolic_programs(target, options).first(opened)
    return None if found is None else found.program  # type: ignore[no-any-return]


def _open_rows(program: SymbolicProgram) -> list[SupportRow]:
    """Where the operators of a program for all sizes run."""
    assert program.whole is not None
    graph, records = program.whole.graph, program.whole.kernels.records
    later: dict[tuple[str, str], int] = {}
    for node in graph.specialized_ops:
        key = " + ".join(node.ops), node.reason
        later[key] = later.get(key, 0) + 1
    rows = _outside(graph)
    rows += [SupportRow(ops, "call", count, reason=reason) for (ops, reason), count in later.items()]
    operators, counts = _operators(graph), _counts(graph.custom_ops)
    for name in graph.kernels:
        fallback = records[name].fallback if name in records else "TVM's own lowering takes any size"
        place = "tvm" if fallback else "igraph"
        rows.append(SupportRow(" + ".join(operators[name]), place, counts[name], name, fallback))
    return rows


def _refusals(error: UirError) -> tuple[SupportRow, ...]:
    """What a model fails on."""
    if isinstance(error, AT_THE_CALL):
        return (SupportRow("the model", "call", reason=first_line(error), remedy=error.remedy),)
    operators = error.operators if isinstance(error, UnsupportedOperatorError) else ()
    if operators:
        return tuple(
            SupportRow(operator, "refused", reason=reason, remedy=remedy)
            for operator, (reason, remedy) in operators.items()
        )
    what = "the model" if isinstance(error, FrontendError) else error.where or "the model"
    return (SupportRow(what, "refused", reason=first_line(error), remedy=error.remedy),)


def _rows(
    mod: tvm.IRModule, target: tvm.target.Target, options: CompileOptions
) -> tuple[list[SupportRow], tuple[StateSpec, ...]]:
    """A row for every distinct kernel, and for every distinct call of the library; and the state."""
    if kernel_graph.calls_kernels(mod):
        functions = {gvar.name_hint: func for gvar, func in mod.functions.items()}
        kernels = {name: func for name, func in functions.items() if isinstance(func, tvm.tirx.PrimFunc)}
        names = {name: (name,) for name in kernels}
        return _kernel_rows(kernels, names, dict.fromkeys(kernels, 1), target, options), ()
    graph = kernel_graph.build(
        mod,
        target,
        fuse=options.fuse,
        fast_math=options.fast_math,
        faults=options.faults,
        precision=options.precision,
        activation=options.activation,
        convolution=options.convolution,
        fusion=options.fusion,
        attention=options.attention,
    )
    rows = _outside(graph)
    rows += _kernel_rows(graph.kernels, _operators(graph), _counts(graph.custom_ops), target, options)
    return rows, tuple(spec for _, spec in graph.state)


def _outside(graph: KernelGraph) -> list[SupportRow]:
    """What the library and PyTorch compute."""
    calls: dict[tuple[str, str], int] = {}
    for node in graph.library_ops:
        key = " + ".join(node.ops), node.function
        calls[key] = calls.get(key, 0) + 1
    rows = [
        SupportRow(operators, "library", count, function) for (operators, function), count in calls.items()
    ]
    rows += [
        SupportRow(row["operator"], "torch", row["count"], reason=row["reason"], remedy=REMEDY)
        for row in graph.summary()["opaque"]
    ]
    return rows


def _operators(graph: KernelGraph) -> dict[str, tuple[str, ...]]:
    return {node.name: node.ops for node in graph.custom_ops}


def _counts(nodes: Sequence[CustomOp]) -> dict[str, int]:
    found: dict[str, int] = {}
    for node in nodes:
        found[node.name] = found.get(node.name, 0) + 1
    return found


def _kernel_rows(
    kernels: Mapping[str, Any],
    operators: Mapping[str, tuple[str, ...]],
    counts: Mapping[str, int],
    target: tvm.target.Target,
    options: CompileOptions,
) -> list[SupportRow]:
    """Every kernel through the stages, up to its text."""
    rows = []
    with pipeline.recording(options):
        for name, func in kernels.items():
            record = pipeline.compile_kernel(func, target, name)
            place = "tvm" if record.fallback else "igraph"
            rows.append(SupportRow(" + ".join(operators[name]), place, counts[name], name, record.fallback))
    return rows
