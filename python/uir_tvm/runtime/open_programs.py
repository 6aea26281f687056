# SPDX-License-Identifier: Apache-2.0
"""How a model that leaves sizes open becomes programs for all sizes of a target."""

from __future__ import annotations

import tvm

from .. import kernel_graph
from ..options import CompileOptions
from ..sizes.size_space import SizeSpace
from ..target import registry
from .open_kernels import OpenKernels
from .symbolic_programs import OpenGraph, SymbolicPrograms


def symbolic_programs(target: str | tvm.target.Target, options: CompileOptions) -> SymbolicPrograms:
    """How a model is read for all sizes at once.

    Raises
    ------
    TargetError
        An unknown target, hardware model or place.
    """
    chosen = registry.resolve(target, options.device).target

    def group(module: tvm.IRModule, space: SizeSpace) -> kernel_graph.GroupedProgram:
        return kernel_graph.group(
            module,
            chosen,
            space,
            fuse=options.fuse,
            fast_math=options.fast_math,
            faults=options.faults,
            precision=options.precision,
            activation=options.activation,
            convolution=options.convolution,
            fusion=options.fusion,
            attention=options.attention,
        )

    def assemble(given: kernel_graph.GroupedProgram, space: SizeSpace) -> OpenGraph:
        kernels = OpenKernels(chosen, options, space)
        return OpenGraph(kernel_graph.assemble_open(given, chosen, space, kernels), kernels)

    # launches that are captured as one are of one shape
    return SymbolicPrograms(group, assemble=None if options.cuda_graph else assemble)
