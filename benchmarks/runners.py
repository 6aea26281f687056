# SPDX-License-Identifier: Apache-2.0
"""Who is compared: each runner turns a torch module and inputs into a function of no arguments."""

from __future__ import annotations

import importlib.util
import os
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import tvm
import uir_tvm
from case_rows import LIMIT
from compiler_peers import iree, xla
from exp_ceiling import hand_written
from tvm import relax
from uir_tvm import frontend
from uir_tvm.frontend.recurrence import expand
from uir_tvm.frontend.sorting import expand_sorts

#: Names the folder of a database, for processes of peers; there are two peers more then: what the database
#: gives, and once more what is there without it, which tells what difference processes alone make.
DATABASE, TUNED, AGAIN = "UIR_BENCH_DATABASE", "uir-cpu tuned", "uir-cpu again"
Thunk = Callable[[], Any]
Inputs = Sequence[torch.Tensor]


def torch_eager(module: torch.nn.Module, inputs: Inputs) -> Thunk:
    """torch as it is."""
    return lambda: module(*inputs)


def torch_compiled(module: torch.nn.Module, inputs: Inputs) -> Thunk:
    """torch.compile with its C++ backend, weights taken for constants."""
    from torch._inductor import config

    torch._dynamo.reset()
    config.freezing = True
    compiled = torch.compile(module)
    compiled(*inputs)
    return lambda: compiled(*inputs)


def onnx_bytes(module: torch.nn.Module, inputs: Inputs) -> bytes:
    """The module as ONNX."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(module, tuple(inputs), dynamo=True, verbose=False)
    assert program is not None
    return program.model_proto.SerializeToString()


def onnx_runtime(module: torch.nn.Module, inputs: Inputs) -> Thunk:
    """ONNX Runtime on the CPU, all graph optimisations, inputs and outputs bound to memory once."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    session = ort.InferenceSession(onnx_bytes(module, inputs), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for i, x in zip(session.get_inputs(), inputs, strict=True):
        binding.bind_ortvalue_input(i.name, ort.OrtValue.ortvalue_from_numpy(x.numpy()))
    names = [o.name for o in session.get_outputs()]
    for name in names:
        binding.bind_output(name)
    session.run_with_iobinding(binding)  # tells the shapes of the results
    outputs = binding.get_outputs()
    for name, value in zip(names, outputs, strict=True):
        binding.bind_ortvalue_output(name, value)

    def call() -> Any:
        session.run_with_iobinding(binding)
        return outputs

    return call


def stock_tvm(module: torch.nn.Module, inputs: Inputs) -> Thunk:
    """TVM's own pipeline: fused, dlight's CPU schedules where they apply, LLVM."""
    mod = expand_sorts(expand(frontend.from_torch(torch.export.export(module, tuple(inputs)))))
    target = tvm.target.Target({"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu()})
    with target:
        mod = tvm.transform.Sequential(
            [
                relax.transform.DecomposeOpsForInference(),
                relax.transform.LegalizeOps(),
                relax.transform.AnnotateTIROpPattern(),
                relax.transform.FoldConstant(),
                relax.transform.FuseOps(),
                relax.transform.FuseTIR(),
                tvm.s_tir.dlight.ApplyDefaultSchedule(tvm.s_tir.dlight.cpu.GEMV()),
            ]
        )(mod)
    vm = relax.VirtualMachine(tvm.compile(mod, target), tvm.cpu())
    arguments = [tvm.runtime.from_dlpack(x) for x in inputs]
    return lambda: vm["main"](*arguments)


def uir_cpu(module: torch.nn.Module, inputs: Inputs) -> Thunk:
    """This project: uir_tvm.compile for uir-cpu, called as the module is."""
    exe = uir_tvm.compile(torch.export.export(module, tuple(inputs)), target="uir-cpu")
    return lambda: exe(*inputs)


def uir_cpu_tuned(module: torch.nn.Module, inputs: Inputs) -> Thunk:
    """The same with the measured schedules of a database."""
    program = torch.export.export(module, tuple(inputs))
    exe = uir_tvm.compile(program, target="uir-cpu", database=os.environ[DATABASE])
    return lambda: exe(*inputs)


def uir_backend(freeze: bool, module: torch.nn.Module, inputs: Inputs) -> Thunk:
    """torch.compile with our backend; every graph must compile."""
    torch._dynamo.reset()
    backend = uir_tvm.TorchBackend(target="uir-cpu", strict=True, freeze=freeze)
    compiled = torch.compile(module, backend=backend)
    compiled(*inputs)
    return lambda: compiled(*inputs)


#: Peers that are compared where they are asked for.
ASKED: dict[str, Callable[[torch.nn.Module, Inputs], Thunk]] = {
    "backend uir": partial(uir_backend, False),
    "backend uir, frozen": partial(uir_backend, True),
    LIMIT: hand_written,
}
RUNNERS: dict[str, Callable[[torch.nn.Module, Inputs], Thunk]] = {
    "torch eager": torch_eager,
    "torch.compile": torch_compiled,
    "ONNX Runtime": onnx_runtime,
    "XLA": xla,
    "IREE": iree,
    "stock TVM": stock_tvm,
    "uir-cpu": uir_cpu,
}
#: Modules that a peer takes beside this project's -> how they are installed.
NEEDS: dict[str, tuple[tuple[str, ...], str]] = {
    "ONNX Runtime": (("onnxruntime",), "pip install -e '.[bench]'"),
    "XLA": (("jax", "torchax"), "pip install -e '.[peers]'"),
    "IREE": (("iree.compiler", "iree.runtime"), "pip install -e '.[peers]'"),
}
if DATABASE in os.environ:
    RUNNERS |= {TUNED: uir_cpu_tuned, AGAIN: uir_cpu}


def left_out(peer: str) -> str:
    """What a peer lacks on this machine and how to install it; empty where that is nothing."""
    modules, install = NEEDS.get(peer, ((), ""))
    lacking = [name for name in modules if not _found(name)]
    return f"{peer} is left out: no {', '.join(lacking)}; {install}" if lacking else ""


def _found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package above it
        return False


def outputs(result: Any) -> list[np.ndarray]:
    """All tensors of whatever a runner returns, in order, as NumPy."""
    if hasattr(result, "to_tuple"):
        result = result.to_tuple()
    if isinstance(result, tuple | list) or type(result).__name__ == "Array":
        return [array for each in result for array in outputs(each)]
    if isinstance(result, torch.Tensor):
        return [result.detach().numpy()]
    return [np.asarray(result.numpy() if hasattr(result, "numpy") else result)]


def reference(module: torch.nn.Module, inputs: Inputs) -> list[np.ndarray]:
    """What torch computes in float64."""
    wide = [x.double() if x.is_floating_point() else x for x in inputs]
    with torch.no_grad():
        return outputs(module.double()(*wide))
