# SPDX-License-Identifier: Apache-2.0
"""The kernels of a program whose sizes are open: one for all sizes, or one for the sizes of each call."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import tvm
from tvm.s_tir import SBlock
from tvm_ffi.structural import structural_walk

from .. import pipeline
from ..bound_kernel import symbols_in
from ..errors import OpaqueFunctionError, OpenSizeError, last_line
from ..frontend.open_expressions import open_size_of
from ..igraph.space import Size
from ..igraph.tir_sizes import MOST, with_sizes
from ..kernel_graph import Kernel, kernels_at, with_own_sizes
from ..one_at_a_time import one_at_a_time
from ..options import CompileOptions
from ..sizes.open_arithmetic import divisor_of
from ..sizes.open_size import AnySize, OpenSize, at
from ..sizes.size_space import SizeSpace
from .kernels_by_sizes import enter

log = logging.getLogger(__name__)

#: Greatest values that are tried for a size that has none, where no kernel serves all: programs for larger
#: sizes are compiled when they are called.
LIMITS = (8192, 2048, 512)


class OpenKernels:
    """Makes the kernels of one program (`kernel_graph.build.KernelMaker`).

    Parameters
    ----------
    target : Target
    options : CompileOptions
    space : SizeSpace
        Of the sizes that are open.

    Attributes
    ----------
    records : dict of str to KernelRecord
        The kernels for all sizes, by name.
    calls : dict of str to KernelBySizes
        Those that are compiled for the sizes of a call, by their signature.
    """

    def __init__(self, target: tvm.target.Target, options: CompileOptions, space: SizeSpace) -> None:
        self._target, self._options, self._space = target, options, space
        self.records: dict[str, pipeline.KernelRecord] = {}
        self.calls: dict[str, KernelBySizes] = {}
        #: By kernel, the sizes of its own that are expressions in the program's.
        self._own: dict[str, dict[str, AnySize]] = {}

    def own(self, name: str, function: tvm.tirx.PrimFunc) -> tvm.tirx.PrimFunc:
        """The function with sizes of its own where its dimensions are no kernel's (`with_own_sizes`)."""
        made, found = with_own_sizes(function)
        sizes = {own: open_size_of(dim, self._space) for own, dim in found.items()}
        if any(size is None for size in sizes.values()):
            return function
        self._own[name] = {own: size for own, size in sizes.items() if size is not None}
        return made

    def refusal(self, name: str, function: tvm.tirx.PrimFunc) -> str:
        """Why no kernel for all sizes can be made of a function; empty where one was.

        TVM's own lowering takes functions without open sizes that we refuse, and those that we refuse at
        whatever sizes. Where a kernel can be made of it for sizes up to a number, that becomes a condition.
        """
        said = self._refusal(name, function)
        for limits in self._limits(name, function) if said else ():
            if not self._refusal(name, function, limits):
                for symbol, high in limits.items():
                    log.info("%s serves %s of at most %d", name, symbol, high)
                    self._space.limit(symbol, high)
                return ""
        return said

    def _limits(self, name: str, function: tvm.tirx.PrimFunc) -> Iterator[dict[str, int]]:
        """Greatest values of sizes that have none, or a large one: fewer sizes first, and large values."""
        own = self._own.get(name, {})
        names = {str(variable.name): [each] for each, variable in self._space.variables.items()}
        names |= {each: sorted(size.names) for each, size in own.items() if isinstance(size, OpenSize)}
        some, every = (
            list(
                dict.fromkeys(
                    each for v in symbols_in(function, outermost) for each in names.get(str(v.name), ())
                )
            )
            for outermost in (False, True)
        )
        for chosen in (some, every) if len(some) < len(every) else (every,):
            for high in LIMITS:
                limits = {name: high for name in chosen if self._space.may_limit(name, high)}
                if limits:
                    yield limits

    def _refusal(
        self, name: str, function: tvm.tirx.PrimFunc, limits: Mapping[str, int] | None = None
    ) -> str:
        """The same, with sizes up to these alone."""
        is_open = bool(_open_in(function))
        if name not in self.records:
            given = function.with_attr("target", self._target)
            if is_open:
                given = with_sizes(given, self._sizes(name, limits or {}))
            with pipeline.recording(self._options):
                self.records[name] = pipeline.try_kernel(given, self._target, name)
            self.records[name] = self._told(name, self.records[name])
        record = self.records[name]
        refusal = record.refusal
        if not is_open or refusal is None:
            return ""
        if limits is None and isinstance(refusal.error, OpaqueFunctionError):
            if not self._may_sum_nothing(function) and self._built_by_tvm(name, function):
                return ""
        del self.records[name]
        return record.fallback

    def _told(self, name: str, record: pipeline.KernelRecord) -> pipeline.KernelRecord:
        """The record of a kernel whose variants speak of sizes as the model does."""
        if not record.variants:
            return record
        told = {str(variable.name): each for each, variable in self._space.variables.items()}
        told |= {own: str(size) for own, size in self._own.get(name, {}).items()}
        return attrs.evolve(record, variants=tuple(attrs.evolve(v, told=told) for v in record.variants))

    def _may_sum_nothing(self, function: tvm.tirx.PrimFunc) -> bool:
        """Whether it reduces over what the model finds: TVM's own code begins no sum of nothing."""
        found = {str(self._space.variables[name].name) for name in self._space.found}
        return _reduces(function) and not found.isdisjoint(str(each.name) for each in _open_in(function))

    def _built_by_tvm(self, name: str, function: tvm.tirx.PrimFunc) -> bool:
        """Whether TVM's own lowering makes code of a function for all sizes."""
        try:
            with pipeline.recording(self._options), pipeline.knowing(self.records):
                tvm.compile(tvm.IRModule({name: function}), target=self._target)
        except MemoryError:
            raise
        except Exception as error:  # TVM raises many types
            log.info("TVM does not build %s for all sizes: %s", name, last_line(error))
            return False
        return True

    def _sizes(self, kernel: str, limits: Mapping[str, int]) -> dict[str, Size]:
        """What is known of each size of a kernel, by the name of its variable."""
        found: dict[str, Size] = {}
        for name, variable in self._space.variables.items():
            low, high = self._space.range_of(name)
            high = limits.get(name, high)
            found[str(variable.name)] = Size(str(variable.name), low, MOST if high is None else high)
        for name, size in self._own.get(kernel, {}).items():
            least, most = self._space.ends(size, limits)
            found[name] = Size(name, max(least or 0, 0), MOST if most is None else most, divisor_of(size))
        return found

    def sizes_at(self, name: str, function: tvm.tirx.PrimFunc, numbers: Mapping[str, int]) -> dict[str, int]:
        """The sizes of a kernel, by the names of its variables, for a number for each of the model's.

        Raises
        ------
        OpenSizeError
            One of them the model finds while it runs.
        """
        own = self._own.get(name, {})
        symbols = {str(variable.name): each for each, variable in self._space.variables.items()}
        wanted = dict.fromkeys(str(variable.name) for variable in _open_in(function))
        try:
            return {v: at(own[v], numbers) if v in own else numbers[symbols[v]] for v in wanted}
        except KeyError as error:
            raise OpenSizeError(f"the model finds {error} while it runs") from error

    def later(
        self, kernel: Kernel, signature: str, function: tvm.tirx.PrimFunc | None, reason: str
    ) -> KernelBySizes:
        """How a kernel is called that is compiled for the sizes of a call."""
        if signature not in self.calls:
            name = f"{kernel.group.name}#{uuid.uuid4().hex}"
            made = KernelBySizes(name, kernel, function, reason, self._space, self._target, self._options)
            enter(made)
            self.calls[signature] = made
        return self.calls[signature]


def _open_in(function: tvm.tirx.PrimFunc) -> list[Any]:
    """The sizes of a kernel that are open: those of its dimensions, and those that are parameters alone."""
    plain = [param for param in function.params if not tvm.tirx.is_buffer_var(param)]
    return list(dict.fromkeys([*symbols_in(function), *plain]))


def _reduces(function: tvm.tirx.PrimFunc) -> bool:
    """Whether a block of it begins with a value that it then adds to."""
    found: list[bool] = []
    structural_walk(function.body, (SBlock, lambda block: found.append(block.init is not None)))
    return any(found)


@attrs.define(eq=False, weakref_slot=True)
class KernelBySizes:
    """A kernel that is compiled for the sizes of a call, when it is first called with them.

    Attributes
    ----------
    name : str
        One wherever the model is saved and loaded.
    kernel : Kernel
        With open sizes.
    function : PrimFunc or None
        The same as one function with open sizes; None where TVM lowers it for numbers alone.
    reason : str
        Why no kernel serves all sizes.
    made : dict
        The records of what was compiled, by sizes in the order of the space's symbols.
    """

    name: str
    kernel: Kernel
    function: tvm.tirx.PrimFunc | None
    reason: str
    space: SizeSpace
    _target: tvm.target.Target
    options: CompileOptions
    made: dict[tuple[int, ...], tuple[pipeline.KernelRecord, ...]] = attrs.Factory(dict)

    def to_json(self) -> str:
        """The name under which a call asks for it."""
        return self.name

    @one_at_a_time
    def make(self, sizes: tuple[int, ...]) -> Callable[..., None]:
        """The kernel for these sizes: a function of inputs and outputs."""
        numbers = dict(zip(self.space.names, sizes, strict=True))
        keys = [str(key) for key in self._target.keys]
        steps = kernels_at(self.kernel, self.space, numbers, keys, self.name.partition("#")[0])
        functions = {step.name: step.function for step in steps}
        with pipeline.recording(self.options) as records:
            library = tvm.compile(tvm.IRModule(dict(functions)), target=self._target)
        self.made[sizes] = tuple(records.values())
        if len(steps) == 1:
            return library[steps[0].name]  # type: ignore[no-any-return]

        def run(*tensors: Any) -> None:
            """One function after the other; what only they read is of this call."""
            known = dict(enumerate(tensors))
            for step in steps:
                for place, shape, dtype in step.makes:
                    known[place] = tvm.runtime.empty(shape, dtype, tensors[0].device)
                given = [
                    known[place] if shape is None else known[place]._create_view(shape)
                    for place, shape in step.tensors
                ]
                library[step.name](*given)

        return run
