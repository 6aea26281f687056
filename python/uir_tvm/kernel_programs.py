# SPDX-License-Identifier: Apache-2.0
"""One kernel that leaves sizes open as an executable: compiled once for all sizes, where that can be."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import tvm

from . import pipeline
from .errors import UirError, last_line
from .frontend.relax_symbols import OpenKernel
from .igraph.space import Size
from .igraph.tir_sizes import MOST, sizes_of
from .model_library import build_library, info_of, with_calls
from .one_at_a_time import one_at_a_time
from .options import CompileOptions
from .runtime.executable import Executable
from .runtime.model_info import ModelInfo
from .runtime.stored_programs import StoredProgram, StoredPrograms
from .runtime.symbolic_programs import SizedProgram
from .runtime.tensors import TensorSpec
from .sizes.saved_sizes import SizeText
from .sizes.symbolic_shapes import Sizes
from .target import registry


class KernelPrograms(StoredPrograms):
    """The program of one kernel for all its sizes, made when a shape first asks for it.

    Parameters
    ----------
    kernel : OpenKernel
    label : str
        The model's name.
    target, options
        As of `uir_tvm.compile`.
    alone : callable
        Compiles the kernel for some sizes alone.
    """

    def __init__(
        self,
        kernel: OpenKernel,
        label: str,
        target: str | tvm.target.Target,
        options: CompileOptions,
        alone: Callable[[Sizes], Executable],
    ) -> None:
        super().__init__(kernel.signature, (), ())
        self._kernel, self._label, self._options, self._alone = kernel, label, options, alone
        self._spec = registry.resolve(target, options.device)

    def of(self, model: object, shapes: Mapping[str, Sequence[int]]) -> SizedProgram | None:
        """See `StoredPrograms.of`."""
        self._make()
        return super().of(model, shapes)

    def first(self, model: object) -> SizedProgram | None:
        """See `StoredPrograms.first`."""
        self._make()
        return super().first(model)

    @one_at_a_time
    def _make(self) -> None:
        """The program, or the reason why there is none."""
        if self.programs or self.why_not:
            return
        try:
            self.programs = (self._made(),)
        except MemoryError:
            raise
        except Exception as error:  # TVM raises many kinds of what it cannot lower without numbers
            self.why_not = error.what if isinstance(error, UirError) else last_line(error)

    def _made(self) -> StoredProgram:
        from . import autoload, export, kernel_graph, threads
        from .frontend.from_kernel import open_module

        autoload.register()
        func, target, start = self._kernel.func, self._spec.target, time.perf_counter()
        known = {str(variable.name): size for variable, size in sizes_of(func).items()}
        mod, name = open_module(func, self._kernel.roles, self._kernel.variables)
        place = registry.place_of(target)
        place.say()
        threads.before_compiling()
        with pipeline.recording(self._options):
            record = pipeline.try_kernel(mod[name].with_attr("target", target), target, name)
        if record.refusal is not None:
            raise record.refusal.error
        with pipeline.recording(self._options) as records, pipeline.knowing({name: record}):
            library = build_library(kernel_graph.vm_passes(target)(mod), target, records, self._options)
        projects = self._spec.spec.kind in export.PROJECTS
        info = ModelInfo(
            name=self._label,
            target=self._spec.name,
            inputs=self._specs("in", "inout"),
            outputs=self._specs("out"),
            kernels=tuple(with_calls(info_of(each), mod, projects) for each in records.values()),
            graph={},
            seconds={"kernels": time.perf_counter() - start},
            relax=mod["main"].script(),
            device=place.name,
        )
        inputs, outputs = (tuple(each.name for each in specs) for specs in (info.inputs, info.outputs))
        return StoredProgram(
            tuple(self._kernel.variables),
            tuple(text for name in self._kernel.variables for text in _conditions(name, known[name])),
            {name: _usual(known[name]) for name in self._kernel.variables},
            inputs,
            outputs,
            {"groups": 1, "kernels_for_all_sizes": 1, "library": 0},
            (),
            Executable(library, info),
            alone=self._alone,
            is_new=True,
        )

    def _specs(self, *roles: str) -> tuple[TensorSpec, ...]:
        """The parameters of these roles, with their open sizes."""
        rows = zip(self._kernel.every, self._kernel.roles, strict=True)
        chosen = [each for each, role in rows if role in roles]
        return tuple(
            TensorSpec(
                each.name if roles != ("out",) else f"output{place}",
                tuple(size if isinstance(size, int) else SizeText(size) for size in each.sizes),  # type: ignore[misc]
                each.dtype,
            )
            for place, each in enumerate(chosen)
        )


def _conditions(name: str, size: Size) -> list[str]:
    """What is known of a size."""
    high = "" if size.high >= MOST else f" <= {size.high}"
    divided = [f"{name} % {size.multiple_of} == 0"] if size.multiple_of > 1 else []
    return [f"{size.low} <= {name}{high}", *divided]


def _usual(size: Size) -> int:
    """A value that a size may be."""
    step = int(size.multiple_of)
    return max(-(-int(size.low) // step), min(int(size.high), 64) // step) * step
