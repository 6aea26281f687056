# SPDX-License-Identifier: Apache-2.0
"""CUDA-graph capture of an executable: its launches as one, replayed from the second run on.

A captured launch has the addresses that it was captured with.  So inputs are copied to memory that stays
where it is before the first launch, results are copied from there behind the last one, and state is memory
of the executable: all launches of a program whose sizes are known are one CUDA graph.  It is looked up by the
addresses of its tensors (`src/runtime/cuda_graph.cc`): other state is captured apart.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import tvm
from tvm import relax
from tvm_ffi.structural import structural_map

from ..errors import TargetError
from ..frontend.normalize import replace_main
from ..function_scope import function_scope
from ..target import registry

#: The option of TVM's pass context that asks for it.
OPTION = "relax.backend.use_cuda_graph"
#: TVM's function that captures or replays, by number; ours, by the addresses of the tensors too; our copy.
BY_NUMBER, BY_ADDRESS = "vm.builtin.cuda_graph.run_or_capture", "uir.cuda_graph.run_or_capture"
COPY = "uir.cuda_graph.copy"
#: Attribute of ``main``: its parameters from there on stay where they are.
INPUTS = "num_input"


def asked() -> bool:
    """Whether the pass context asks for capture."""
    return bool(tvm.transform.PassContext.current().config.get(OPTION, False))


def asking(wanted: bool) -> contextlib.AbstractContextManager[object]:
    """A pass context as the current one that also asks for capture, if it is wanted."""
    if not wanted:
        return contextlib.nullcontext()
    current = tvm.transform.PassContext.current()
    return tvm.transform.PassContext(
        opt_level=current.opt_level,
        required_pass=list(current.required_pass),
        disabled_pass=list(current.disabled_pass),
        instruments=list(current.instruments or []),
        config={**dict(current.config), OPTION: True},
    )


def capture(target: tvm.target.Target | None) -> tvm.transform.Pass:
    """The pass that lifts what can be captured out of ``main``, where it is asked for.

    Before: main(x, w) calls kernels f, g, h, k in order.  After: main calls f, then
    ``vm.builtin.cuda_graph.run_or_capture`` of a function that calls g and h, then k.  TVM's runtime captures
    that function's launches when it first runs and replays them afterwards, in memory that it keeps.

    What reads an input or writes the result stays outside, since their memory differs from call to call:
    of a module of `with_fixed_memory` that is the copies.  Library operators are captured as kernels are.

    Parameters
    ----------
    target : Target, optional
        What ``main`` is compiled for; None: not known, nothing may be asked.

    Raises
    ------
    TargetError
        It is asked for, and the target is no GPU.
    """

    check(target)
    if not asked():
        return tvm.transform.Sequential([])
    return tvm.transform.Sequential([relax.transform.RewriteCUDAGraph(), _by_address])


@tvm.transform.module_pass(opt_level=0, name="uir.captured_by_address")
def _by_address(mod: tvm.IRModule, _context: tvm.transform.PassContext) -> tvm.IRModule:
    """Let captured functions be looked up by the addresses of their tensors."""

    def renamed(function: relax.ExternFunc) -> relax.ExternFunc:
        return relax.ExternFunc(BY_ADDRESS) if str(function.global_symbol) == BY_NUMBER else function

    functions = {
        name: structural_map(function, (relax.ExternFunc, renamed))
        if isinstance(function, relax.Function)
        else function
        for name, function in mod.functions_items()
    }
    return tvm.IRModule(functions, attrs=mod.attrs)


def with_fixed_memory(mod: tvm.IRModule, inputs: int) -> tvm.IRModule:
    """A module of calls whose ``main`` computes on memory that stays where it is.

    Before: main(x, state) calls kernels on x and state, and returns y.  After: it copies x to memory of its
    own, calls the same kernels on that, and returns a copy of y; what follows the inputs stays where it is.

    Parameters
    ----------
    mod : tvm.IRModule
        As `to_relax` makes it; ``main`` is one dataflow block.
    inputs : int
        How many of its parameters differ from call to call; the others are its state.
    """
    main = mod["main"]
    builder = relax.BlockBuilder()
    fixed: dict[tvm.ir.Var, tvm.ir.Expr] = {}
    with function_scope(builder, "main", list(main.params), main.attrs):
        with builder.dataflow():
            for param in main.params[:inputs]:
                fixed[param] = _copied(builder, param)
            (block,) = main.body.blocks
            for binding in block.bindings:
                value = structural_map(binding.value, (tvm.ir.Var, lambda var: fixed.get(var, var)))
                fixed[binding.var] = builder.emit(value)
            result = structural_map(main.body.body, (tvm.ir.Var, lambda var: fixed.get(var, var)))
            output = builder.emit_output(_copied(builder, result))
        builder.emit_func_output(output)
    return replace_main(mod, builder.get()["main"].with_attr(INPUTS, inputs))


def refuse_host(lowered: tvm.IRModule, reasons: Mapping[str, str]) -> None:
    """Raise TargetError where a captured function calls a kernel that is left to the host.

    Parameters
    ----------
    lowered : tvm.IRModule
        As `vm_passes` makes it.
    reasons : mapping of str to str
        By the name of each kernel that is left to the host, why.
    """
    for gvar, function in lowered.functions_items():
        if not isinstance(function, relax.Function) or gvar.name_hint == "main":
            continue
        called: set[str] = set()
        relax.analysis.post_order_visit(
            function,
            lambda expr, found=called: (
                found.add(str(expr.name_hint)) if isinstance(expr, tvm.ir.GlobalVar) else None
            ),
        )
        for name in sorted(called & reasons.keys()):
            raise TargetError(
                f"The kernel {name} cannot be captured: it is left to the host.",
                where=reasons[name],
                need="kernels of the device alone, as a captured launch waits for no host",
                remedy="compile without CompileOptions.cuda_graph",
            )


def _copied(builder: relax.BlockBuilder, value: tvm.ir.Expr) -> tvm.ir.Expr:
    """A copy of a tensor, or of a tuple of tensors; of anything else itself."""
    if isinstance(value.ty, relax.TupleType):
        # TVM's capture takes no field of a tuple that is written out
        whole = isinstance(value, relax.Tuple)
        fields = (
            list(value.fields)
            if whole
            else [builder.emit(relax.TupleGetItem(value, at)) for at in range(len(value.ty.fields))]
        )
        return relax.Tuple([_copied(builder, field) for field in fields])
    if not isinstance(value.ty, relax.TensorType):
        return value
    return builder.emit(relax.op.call_dps_packed(COPY, relax.Tuple([value]), value.ty))


def check(target: tvm.target.Target | None) -> None:
    """Raise TargetError where capture is asked for and the target is no GPU."""
    places = registry.of_target(target).places if target is not None and registry.is_ours(target) else ()
    if asked() and not any(place.captures and place.stands_for(target) for place in places):
        kind = "an unknown target" if target is None else f"a target of kind {target.kind.name}"
        raise TargetError(
            f"CUDA graphs cannot be captured for {kind}.",
            where=f"CompileOptions.cuda_graph, or {OPTION}",
            need="a GPU: the host model and the CPU run kernels at once, there is no stream to capture",
            remedy='leave the option out, or compile with device="gpu"',
        )
