# SPDX-License-Identifier: Apache-2.0
"""The machine code of a lowered model, and what is known of its kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import partial
from typing import Any

import attrs
import tvm
from tvm import relax, tirx

from . import pipeline
from .argument_checks import called_by_a_program
from .device.device_kernel import DeviceKernel
from .errors import UirError, UnsupportedOperatorError, last_line
from .kernel_graph.nodes import KernelGraph
from .large_constants import without_large
from .options import CompileOptions
from .runtime.executable_state import is_zeros
from .runtime.model_info import KernelInfo, StepRows
from .runtime.stage_texts import StageTexts
from .stages import Variant
from .state_spec import StateSpec


def build_library(
    mod: tvm.IRModule,
    target: tvm.target.Target,
    records: Mapping[str, pipeline.KernelRecord],
    options: CompileOptions,
) -> tvm.runtime.Module:
    """The machine code of a model; UnsupportedOperatorError where TVM fails on what is left to it.

    A kernel that TVM cannot build is left to TVM's own lowering, as where a stage has a fault.
    """
    try:
        return _built(mod, target)
    except UirError:
        raise
    except Exception as error:  # of the many that TVM raises
        left = {record.name for record in records.values() if record.refusal}
        found = {} if options.faults == "raise" else _unbuildable(mod, target, options)
        broken = {name: fault for name, fault in found.items() if name not in left}
        if not broken:
            if not left:
                raise
            raise _not_lowered(left, error) from error
    try:
        with pipeline.leaving(broken):
            return _built(mod, target)
    except UirError:
        raise
    except Exception as error:
        raise _not_lowered(left | set(broken), error) from error


def _built(mod: tvm.IRModule, target: tvm.target.Target) -> tvm.runtime.Module:
    small, constants = without_large(mod)
    with called_by_a_program():
        made = relax.build(small, target, relax_pipeline=None)
    constants.put_back(made)
    return made


def _not_lowered(left: Set[str], error: Exception) -> UnsupportedOperatorError:
    return UnsupportedOperatorError(
        f"TVM's own lowering fails on kernels without an iGraph: {', '.join(sorted(left))}",
        where=last_line(error),
        need="kernels that TVM lowers for the host, where none of ours fits",
        remedy="compute these operators in another dtype, or express the model by others",
    )


def _unbuildable(
    mod: tvm.IRModule, target: tvm.target.Target, options: CompileOptions
) -> dict[str, Exception]:
    """The kernels that TVM cannot build by themselves, and what it raises."""
    found: dict[str, Exception] = {}
    for variable, func in mod.functions.items():
        if not isinstance(func, tirx.PrimFunc):
            continue
        try:
            with pipeline.recording(options):
                tvm.compile(tvm.IRModule({variable: func}), target)
        except MemoryError:
            raise
        except Exception as error:  # whatever TVM raises
            found[variable.name_hint] = error
    return found


def info_of(record: pipeline.KernelRecord) -> KernelInfo:
    products = [(stage, record.products.get(stage.name)) for stage in pipeline.STAGES]
    texts = StageTexts(
        {stage.name: partial(_text, stage, made) for stage, made in products if made is not None}
    )
    seconds = dict(record.seconds)
    steps = StepRows(lambda: [step.to_json() for step in record.steps])
    name, why = record.name, record.fallback
    attempts = [attempt.to_json() for attempt in record.attempts]
    phases, code = record.num_phases, _code_of(record)
    return KernelInfo(
        name,
        record.hero,
        record.recipe,
        why,
        texts,
        seconds,
        phases,
        steps,
        code,
        attempts,
        record.kept,
        [_variant(variant) for variant in record.variants],
    )


def _variant(variant: Variant) -> dict[str, Any]:
    """What is kept of a variant; of a printed one all that a project needs of it."""
    source = variant.record.products.get("source")
    if variant.record.refusal is not None or not isinstance(source, DeviceKernel):
        return variant.to_json()
    return {**variant.to_json(), "source": source.source, "code": source.described()}


def _text(stage: pipeline.Stage, product: Any) -> str:
    return str(product.script()) if stage.name == "tir" else stage.dump(product)


def specs_of(graph: KernelGraph, initial: Sequence[tvm.runtime.Tensor]) -> tuple[StateSpec, ...]:
    """The state of a graph, and which of it begins as zeros."""
    rows = zip((spec for _, spec in graph.state), initial, strict=True)
    return tuple(attrs.evolve(spec, zeros=is_zeros(value)) for spec, value in rows)


def with_calls(kernel: KernelInfo, mod: tvm.IRModule, projects: bool) -> KernelInfo:
    """A kernel with what is known of its function.

    Parameters
    ----------
    projects : bool
        Whether its target has projects: of a kernel that the device does not take they need its C.

    Returns
    -------
    KernelInfo
        Of one with open sizes the shapes of its tensors too, from which a call learns the sizes: ``shapes``,
        a name or a number for each dimension, None for any other expression.
    """
    from .export.host_code import host_code

    if kernel.name not in {variable.name_hint for variable in mod.get_global_vars()}:
        return kernel
    func = mod[kernel.name]
    if kernel.fallback:
        code = {"host": host_code(func, kernel.name)} if projects else {}
        return attrs.evolve(kernel, code={**kernel.code, **code}) if code else kernel
    params = [param for param in func.params if tirx.buffer.is_buffer_var(param)]
    shapes = [[_dimension(dim) for dim in param.shape] for param in params]
    if all(isinstance(dim, int) for shape in shapes for dim in shape):
        return kernel
    return attrs.evolve(kernel, code={**kernel.code, "shapes": shapes})


def _dimension(dim: Any) -> str | int | None:
    if isinstance(dim, tvm.ir.Var):
        return str(dim.name)
    return int(dim) if isinstance(dim, tirx.IntImm) else None


def _code_of(record: pipeline.KernelRecord) -> dict[str, Any]:
    """How a printed kernel is launched, what its printer decided and what the compiler says of it."""
    source, cubin = record.products.get("source"), record.products.get("cubin")
    code: dict[str, Any] = {}
    if isinstance(source, DeviceKernel):
        code |= source.described()
    if cubin is not None:
        code["compiler"] = cubin.described()
    return code
