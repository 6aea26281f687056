# SPDX-License-Identifier: Apache-2.0
"""Hooks into stock TVM: target tags, the TIR pipeline, the default Relax pipelines.

Functions and modules for other targets go through TVM's own pipelines, unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import tvm
from tvm import relax, tirx
from tvm.relax import pipeline as relax_pipeline
from tvm.tirx import compilation_pipeline as tir_pipeline

from . import target_facts, threads
from .bf16_roundings import keep_bf16_roundings
from .device.device_kernel import DeviceKernel
from .garbage import unsearched
from .target import code_parts, host_side, registry
from .target.flat_passes import FLAT, finishing
from .target.handing_over import handing_over
from .target.record import TargetRecord

if TYPE_CHECKING:
    from .stages import KernelRecord

#: Kind of hardware -> what makes code of kernels while a model compiles.
COMPILE_AHEAD: Mapping[str, Callable[[Iterable[KernelRecord]], None]] = target_facts.Facts("ahead")

_registered = False


def register() -> None:
    """Make our targets known to this process's TVM (idempotent)."""
    global _registered
    if _registered:
        return
    _registered = True
    target_facts.watch(_register_tag)
    host_side.register()
    code_parts.register()
    _register_tir_pipeline()
    _register_relax_pipelines()


def _register_tag(record: TargetRecord) -> None:
    tvm.target.register_tag(record.name, dict(record.target().export()), override=True)


def _register_tir_pipeline() -> None:
    stock = tir_pipeline.PIPELINE_MAP["s_tir"]

    def factory() -> tuple[Any, Any, Any]:
        passes, host, device = stock()
        return tvm.transform.Sequential([LowerKernels, finishing(passes)]), host, device

    tir_pipeline.register_tir_pipeline("s_tir", factory)


@tvm.transform.module_pass(opt_level=0, name="uir.LowerKernels")
def LowerKernels(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
    """Take every PrimFunc in blocks whose target is ours through the stages.

    Before: S-TIR, scheduled or not.  After: the TIR that the target made of its iGraph, or where it printed
    source the functions of `host_side`.  A function that a stage refused is for the stock pipeline to lower
    (see `uir_tvm.pipeline`), on the host where the target is a device.
    """
    with unsearched():
        return _lowered(mod)


def _lowered(mod: tvm.IRModule) -> tvm.IRModule:
    """What `LowerKernels` makes of a module."""
    from .pipeline import compile_kernel
    from .schedule.empty_loops import without_empty_loops

    records: dict[Any, KernelRecord] = {}
    for gvar, func in mod.functions.items():
        target = func.attrs.get("target") if func.attrs else None
        if isinstance(func, tirx.PrimFunc) and registry.is_ours(target) and has_blocks(func):
            threads.before_compiling()
            registry.place_of(target).say()
            made = without_empty_loops(func)
            if made is not func:
                mod = _updated(mod, {gvar: made})
            records[gvar] = compile_kernel(made, target, gvar.name_hint)
    for ahead in COMPILE_AHEAD.values():
        ahead(
            [each for record in records.values() for each in (record, *(v.record for v in record.variants))]
        )
    lowered: dict[Any, tirx.PrimFunc] = {}
    alone = len(mod.functions) == 1
    for gvar, record in records.items():
        # TVM finds out by itself which function a library's call runs, but not beside those that we add
        func = mod[gvar].with_attr(host_side.ENTRY, True) if alone else mod[gvar]
        for name, made in _functions(func, gvar.name_hint, record).items():
            lowered[gvar if name == gvar.name_hint else tvm.ir.GlobalVar(name)] = made
    return _updated(mod, lowered) if lowered else mod


def _updated(mod: tvm.IRModule, functions: Mapping[Any, tirx.PrimFunc]) -> tvm.IRModule:
    """The module with other functions in the place of its own."""
    mod = tvm.IRModule(mod.functions, attrs=mod.attrs)
    mod.update(tvm.IRModule(dict(functions)))
    return mod


def _functions(func: tirx.PrimFunc, name: str, record: KernelRecord) -> dict[str, tirx.PrimFunc]:
    """The functions that take a function's place, by name."""
    place = registry.place_of(func.attrs["target"])
    symbol = str(func.attrs.get("global_symbol", name))
    if record.refusal is not None:
        func = keep_bf16_roundings(func)
        made = {symbol: func} if place.device == "cpu" else host_side.on_host(func, symbol)
    elif isinstance(record.lowered, DeviceKernel):
        made = host_side.launching(func, symbol, record.lowered, place, record.handed)
    else:
        # what was made before was made for the target without its host
        whole = handing_over(record.lowered, record.handed)
        told = {"target": func.attrs["target"], FLAT: True}
        if host_side.ENTRY in func.attrs:
            told[host_side.ENTRY] = True
        made = {symbol: whole.with_attr(told)}
    return {name if key == symbol else key: value for key, value in made.items()}


def has_blocks(func: tirx.PrimFunc) -> bool:
    """Whether a function is S-TIR: its body starts with the root block."""
    return isinstance(func.body, tvm.s_tir.SBlockRealize)


def _register_relax_pipelines() -> None:
    for name in ("default", "default_build"):
        relax_pipeline.PIPELINE_MAP[name] = _dispatching(relax_pipeline.PIPELINE_MAP[name])
    stock = relax_pipeline.get_default_pipeline

    def get_default_pipeline(target: tvm.target.Target) -> Any:
        """The stock function's answer, or ours for a uir target."""
        return _model_passes(target) if registry.is_ours(target) else stock(target)

    relax_pipeline.get_default_pipeline = get_default_pipeline
    relax.get_default_pipeline = get_default_pipeline


def _dispatching(stock: Callable[..., Any]) -> Callable[..., Any]:
    """A pipeline factory that leaves other targets to the stock one."""

    def factory(**kwargs: Any) -> Any:
        @tvm.transform.module_pass(opt_level=0, name="uir.default_pipeline")
        def pipeline(mod: tvm.IRModule, _ctx: tvm.transform.PassContext) -> tvm.IRModule:
            target = tvm.target.Target.current(allow_none=True)
            chosen = _model_passes(target) if registry.is_ours(target) else stock(**kwargs)
            return chosen(mod)

        return pipeline

    return factory


def _model_passes(target: tvm.target.Target) -> Any:
    from .kernel_graph import relax_passes

    threads.before_compiling()
    return relax_passes(target)
