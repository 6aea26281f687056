# SPDX-License-Identifier: Apache-2.0
"""What stands on the host for a kernel of a device: the function that launches it, or that runs it itself.

    NAME                 takes tensors of the device, calls NAME_kernel of the runtime module with them, and
                         with the kernel's sizes: variables of the tensors' shapes, or numbers that it takes
    NAME_kernel          carries the kernel's source to `target.build.ext_dev`, which makes that module
    NAME_..._kernel      the same of each variant: NAME asks at the call for which its sizes are

and for a function that the device does not take

    NAME                 copies its tensors to the host, calls NAME_on_host, copies back what that wrote
    NAME_on_host         TVM's own lowering, for the host
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import tvm
import tvm_ffi
from tvm import tirx
from tvm.ir import PointerType, PrimType
from tvm_ffi.structural import WalkResult, structural_walk

from ..device.device_kernel import DeviceKernel
from ..function_attributes import LLVM_LEVEL
from ..igraph.space import Size
from ..igraph.tir_sizes import condition_of, launch_sizes
from .device_module import CONSTRUCTOR, saved
from .place import Place
from .registry import host_of

#: Kind of TVM target whose build function is ours.
KIND = "ext_dev"
#: Attributes of a carrier.
METADATA, SOURCE = "uir.kernel", "uir.source"
#: Attribute of the function that a library's own call runs (`lib(x, y)`).
ENTRY = "tirx.is_entry_func"
#: Position of the number whose dtype is the tensor's among the arguments of tvm_stack_make_array.
DTYPE = 4
#: tirx's calling convention of functions that others launch, which MakePackedAPI leaves alone.
DEVICE_KERNEL_LAUNCH = 2
#: As far as LLVM optimises a function that calls. Without any optimisation machine code takes longer than the
#: first level takes before it.
CALLS = 1
#: Functions of src/runtime/host_copy.cc.
TO_HOST, FROM_HOST = "uir.runtime.to_host", "uir.runtime.from_host"


def launching(
    func: tirx.PrimFunc,
    name: str,
    kernel: DeviceKernel,
    place: Place,
    variants: Sequence[tuple[Sequence[Size], DeviceKernel]] = (),
) -> dict[str, tirx.PrimFunc]:
    """The functions that stand for a kernel, by name.

    Parameters
    ----------
    func : PrimFunc
        The function that the kernel was made of: its parameters and attributes are kept.
    name : str
        Its global symbol.
    variants : sequence
        Ranges of sizes, each with the kernel that a call within them takes instead: the first that fits.

    Raises
    ------
    IGraphError
        The kernel has a size that is neither a variable of the function's nor a product of some.
    """
    entry = f"{name}_kernel"
    made = {entry: _carrier(entry, kernel, place)}
    chosen = _launch(func, entry, kernel, bool(kernel.sizes))
    for sizes, variant in reversed(variants):
        own = f"{name}{variant.name.removeprefix(kernel.name)}_kernel"
        made[own] = _carrier(own, variant, place)
        chosen = tirx.IfThenElse(condition_of(func, sizes), _launch(func, own, variant, True), chosen)
    return {name: _host_function(func, chosen), **made}


def _launch(func: tirx.PrimFunc, entry: str, kernel: DeviceKernel, is_open: bool) -> tirx.Evaluate:
    """The call of the runtime module's function; where sizes are open these are the numbers that it takes."""
    launched = launch_sizes(func, [str(size.name) for size in kernel.sizes])
    tensors = [param for param in func.params if tirx.buffer.is_buffer_var(param)] if is_open else func.params
    return tirx.Evaluate(_packed(entry, *tensors, *launched.values()))


def _carrier(entry: str, kernel: DeviceKernel, place: Place) -> tirx.PrimFunc:
    """The function that carries a kernel's source."""
    return tirx.PrimFunc([], tirx.Evaluate(tirx.const(0, "int32"))).with_attr(
        {
            "global_symbol": entry,
            "target": tvm.target.Target({"kind": KIND, "keys": ["uir"], "model": kernel.hardware}),
            "calling_conv": DEVICE_KERNEL_LAUNCH,
            METADATA: json.dumps(kernel.metadata(entry, saved(kernel, place))),
            SOURCE: kernel.source,
        }
    )


def on_host(func: tirx.PrimFunc, name: str) -> dict[str, tirx.PrimFunc]:
    """The functions that run on the host what the device does not take, by name."""
    target = func.attrs["target"]
    host = host_of(target)
    inner = f"{name}_on_host"
    written = _written(func)
    # numbers go as they are
    copies = {
        tirx.Var(f"host_{param.name}", PointerType(PrimType("void"))): param
        for param in func.params
        if tirx.buffer.is_buffer_var(param)
    }
    steps: list[Any] = []
    for copy, param in copies.items():
        call = _packed(TO_HOST, param, tvm.ir.StringImm(str(param.dtype)))
        steps.append(tirx.Bind(copy, tvm.ir.Call(call.op, call.args, call.attrs, ret_ty=copy.ty)))
    arguments = {param: copy for copy, param in copies.items()}
    steps.append(tirx.Evaluate(tirx.call_cpacked(inner, *(arguments.get(p, p) for p in func.params))))
    for copy, param in copies.items():
        steps.append(tirx.Evaluate(_packed(FROM_HOST, copy, param, param.name in written)))
    # a function for the host is one whose host is the host: MakePackedAPI passes over others
    moved = func.with_attr({"global_symbol": inner, "target": host.with_host(host)}).without_attr(ENTRY)
    return {name: _host_function(func, tirx.SeqStmt(steps)), inner: moved}


def build_carriers(mod: tvm.IRModule, _target: tvm.target.Target) -> tvm_ffi.Module:
    """The runtime module of the kernels that carriers carry; TVM calls it as ``target.build.ext_dev``."""
    carriers = [func for _, func in mod.functions_items()]
    metadata = {"kernels": [json.loads(str(func.attrs[METADATA])) for func in carriers]}
    sources = [str(func.attrs[SOURCE]) for func in carriers]
    return tvm_ffi.get_global_func(CONSTRUCTOR)(json.dumps(metadata), sources, [{} for _ in carriers])


def register() -> None:
    """Let TVM find `build_carriers`."""
    tvm_ffi.register_global_func(f"target.build.{KIND}", build_carriers, override=True)


def _host_function(func: tirx.PrimFunc, body: Any) -> tirx.PrimFunc:
    """The function with a body that calls; it has no blocks any more, and little for LLVM to optimise."""
    made = tirx.PrimFunc(func.params, body, func.ret_type, func.attrs, func.span)
    made = made.with_attr(LLVM_LEVEL, CALLS)
    return made.without_attr("s_tir") if "s_tir" in (func.attrs or {}) else made


def _packed(*args: Any) -> Any:
    """A packed call whose tensors of narrow floats are described as integers of their size.

    TVM's legalisation of narrow floats, which comes later, would describe them as the floats that it computes
    with.
    """
    call = tirx.call_packed(*args)
    return tvm.ir.Call(call.op, [_as_integers(arg) for arg in call.args], call.attrs, ret_ty=call.ty)


def _as_integers(arg: Any) -> Any:
    if not (isinstance(arg, tvm.ir.Call) and arg.op.name == "tirx.tvm_stack_make_array"):
        return arg
    fields = list(arg.args)
    dtype = tvm.DataType(str(fields[DTYPE].ty))
    if str(dtype).startswith(("bfloat", "float8")):
        fields[DTYPE] = tirx.const(0, f"uint{dtype.bits}")
    return tvm.ir.Call(arg.op, fields, arg.attrs, ret_ty=arg.ty)


def _written(func: tirx.PrimFunc) -> set[str]:
    """Names of the parameters that a function may write: those that it stores to or hands to a call."""
    names: set[str] = set()

    def store(statement: tirx.BufferStore) -> WalkResult:
        names.add(str(statement.buffer.name))
        return WalkResult.ADVANCE

    def call(expr: tvm.ir.Call) -> WalkResult:
        # an extern function (a sort, a scan) gets the buffer itself
        names.update(str(arg.name) for arg in expr.args if isinstance(arg, tirx.Var))
        return WalkResult.ADVANCE

    structural_walk(func.body, [(tirx.BufferStore, store), (tvm.ir.Call, call)], order="pre")
    return names & {str(param.name) for param in func.params}


__all__: Sequence[str] = ["build_carriers", "launching", "on_host", "register"]
