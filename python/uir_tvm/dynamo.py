# SPDX-License-Identifier: Apache-2.0
"""``torch.compile(model, backend="uir")``: graphs of PyTorch's tracer as executables.

A graph is compiled when it is first called, for the shapes of that call; others make another executable.
A graph that only computes is exported as it stands. One that changes its arguments, returns views of them or
needs gradients goes through AOTAutograd first, which makes graphs of it that only compute, forward and
backward.
"""

from __future__ import annotations

import collections
import concurrent.futures
import contextvars
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from functorch.compile import make_boxed_func
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind

from . import api
from .errors import FrontendError, UirError, first_line
from .frontend.torch import distinct
from .options import DEFAULT_TARGET, CompileOptions
from .runtime import Executable, SpecializedExecutable

R = TypeVar("R")

log = logging.getLogger(__name__)

#: What the ``options`` of ``torch.compile`` may say.
OPTIONS = ("target", "strict", "freeze", "converters", "compile_options")
#: Executables that one graph keeps: of the shapes used last.
KEPT = 16


class TorchBackend:
    """A backend for ``torch.compile``.

    Parameters
    ----------
    target : str
        As of `uir_tvm.compile`.
    strict : bool
        Whether a graph that cannot be compiled, or an operator without a converter, is an error. Otherwise
        PyTorch runs it; a warning says why of a graph, and the executable's report of an operator.
    freeze : bool
        Whether parameters become constants, which libraries pack ahead of time: later changes of the model do
        not reach them. Otherwise they are arguments. Graphs with gradients freeze nothing.
    converters : mapping, optional
        As of `uir_tvm.compile`.
    compile_options : CompileOptions, optional
        As ``options`` of `uir_tvm.compile`.

    Attributes
    ----------
    executables : list of Executable or SpecializedExecutable
        What was compiled, in the order of the first calls.
    eager : list of str
        Why a graph was left to PyTorch, one for each.
    """

    def __init__(
        self,
        target: str = DEFAULT_TARGET,
        *,
        strict: bool = False,
        freeze: bool = False,
        converters: Mapping[str, Any] | None = None,
        compile_options: CompileOptions | None = None,
    ) -> None:
        self.target, self.strict, self.freeze = target, strict, freeze
        self.converters, self.compile_options = converters, compile_options
        self.executables: list[Executable | SpecializedExecutable] = []
        self.eager: list[str] = []

    def __call__(self, graph: fx.GraphModule, inputs: Sequence[Any], **_: Any) -> Callable[..., Any]:
        """What takes a graph's place (the protocol of ``torch.compile``)."""
        gradients = torch.is_grad_enabled() and any(
            isinstance(value, torch.Tensor) and value.requires_grad for value in inputs
        )
        return self._differentiated(graph, inputs) if gradients else _Graph(self, graph)

    def _differentiated(self, graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        """A graph by way of AOTAutograd."""
        return aot_autograd(fw_compiler=self._part, bw_compiler=self._part)(graph, inputs)

    def _part(self, graph: fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        return make_boxed_func(_Graph(self, graph, pure=True))

    def compiled(self, program: ExportedProgram) -> Executable | SpecializedExecutable:
        """The executable of an exported graph."""
        exe = api.compile(
            program,
            self.target,
            converters=self.converters,
            strict=self.strict,
            options=self.compile_options,
            name="graph",
        )
        assert isinstance(exe, Executable | SpecializedExecutable), "graphs of PyTorch name no state"
        self.executables.append(exe)
        return exe


class _Graph:
    """One graph: compiled for the shapes of its calls, or left to PyTorch.

    Parameters
    ----------
    backend : TorchBackend
    graph : GraphModule
    pure : bool
        Whether it is known to change nothing and to return no views of its arguments.
    """

    def __init__(self, backend: TorchBackend, graph: fx.GraphModule, pure: bool = False) -> None:
        self.backend, self.graph, self.pure = backend, graph, pure
        self._kept: collections.OrderedDict[Any, Callable[..., Any]] = collections.OrderedDict()
        self._told = False

    def __call__(self, *args: Any) -> Any:
        key = tuple(_kind_of(value) for value in args)
        if key not in self._kept:
            self._kept[key] = self._compiled(args)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key](*args)

    def _compiled(self, args: Sequence[Any]) -> Callable[..., Any]:
        """What runs arguments of these shapes."""
        try:
            return self._executable(args)
        except Exception as error:  # whatever an export raises
            if self.backend.strict:
                if isinstance(error, UirError):
                    raise
                raise FrontendError(
                    f"torch.export cannot export a graph of torch.compile: {first_line(error)}",
                    where=_first_operators(self.graph),
                    remedy='without "strict" PyTorch runs it',
                ) from error
            reason = error.what if isinstance(error, UirError) else first_line(error)
        self.backend.eager.append(reason)
        if not self._told:
            log.warning("a graph (%s) is left to PyTorch: %s", _first_operators(self.graph), reason)
        self._told = True
        return self.graph

    def _executable(self, args: Sequence[Any]) -> Callable[..., Any]:
        frozen = [
            index
            for index, value in enumerate(args)
            if self.backend.freeze and not self.pure and isinstance(value, torch.nn.Parameter)
        ]
        module = _Frozen(self.graph, {index: args[index] for index in frozen}) if frozen else self.graph
        passed = [index for index in range(len(args)) if index not in frozen]
        program = _alone(_exported, module, tuple(args[index] for index in passed))
        if not self.pure and not _is_pure(program):
            return self.backend._differentiated(self.graph, args)
        exe = _alone(self.backend.compiled, program)

        def run(*values: Any) -> Any:
            return exe(*[values[index] for index in passed])

        return run


def _exported(module: torch.nn.Module, args: tuple[Any, ...]) -> ExportedProgram:
    with torch.no_grad():
        return torch.export.export(module, distinct(args))


def _alone(function: Callable[..., R], *args: Any) -> R:
    """Call in a thread of its own: where AOTAutograd runs graphs, a thread's dispatch leaves out tracing."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(contextvars.copy_context().run, function, *args).result()


class _Frozen(torch.nn.Module):
    """A graph some of whose arguments are constants, by place."""

    def __init__(self, graph: fx.GraphModule, constants: Mapping[int, torch.Tensor]) -> None:
        super().__init__()
        self.graph, self.places = graph, tuple(constants)
        for place, value in constants.items():
            self.register_buffer(f"constant_{place}", value.detach())

    def forward(self, *args: Any) -> Any:
        """The graph's results."""
        rest, values = iter(args), []
        for place in range(len(args) + len(self.places)):
            values.append(getattr(self, f"constant_{place}") if place in self.places else next(rest))
        return self.graph(*values)


def _kind_of(value: Any) -> Any:
    """What of an argument decides the executable."""
    return (tuple(value.shape), value.dtype) if isinstance(value, torch.Tensor) else value


def _is_pure(program: ExportedProgram) -> bool:
    """Whether a graph changes no argument, and no result shares memory with another or with an argument."""
    specs = program.graph_signature.output_specs
    if any(spec.kind is not OutputKind.USER_OUTPUT for spec in specs):
        return False
    (output,) = program.graph.find_nodes(op="output")
    roots = [_root(node) for node in output.args[0] if isinstance(node, fx.Node)]
    return len(set(roots)) == len(roots) and all(root.op != "placeholder" for root in roots)


def _root(node: fx.Node) -> fx.Node:
    """Where the memory of a result comes from, by what the operators' schemas say of views."""
    while isinstance(node.target, torch._ops.OpOverload):
        arguments = enumerate(node.target._schema.arguments)
        aliased = [index for index, argument in arguments if argument.alias_info is not None]
        source = node.args[aliased[0]] if aliased and aliased[0] < len(node.args) else None
        if not isinstance(source, fx.Node):
            break
        node = source
    return node


def _first_operators(graph: fx.GraphModule) -> str:
    """A graph in some words."""
    names = [node.name for node in graph.graph.nodes if node.op.startswith("call_")]
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more operators" if len(names) > 4 else "")


def backend(
    graph: fx.GraphModule, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, **_: Any
) -> Callable[..., Any]:
    """The backend ``uir`` of ``torch.compile``, whose ``options`` are the parameters of `TorchBackend`.

    Raises
    ------
    FrontendError
        An option that there is not; with ``strict``, a graph that cannot be compiled.
    """
    unknown = sorted(set(options or {}) - set(OPTIONS))
    if unknown:
        raise FrontendError(
            f"the backend uir has no option {', '.join(unknown)}",
            need="one of " + ", ".join(OPTIONS),
            remedy=f'torch.compile(model, backend="uir", options={{"target": "{DEFAULT_TARGET}"}})',
        )
    return TorchBackend(**(options or {}))(graph, inputs)
