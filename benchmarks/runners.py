# SPDX-License-Identifier: Apache-2.0
"""Who is compared: each runner turns a torch module and inputs into a function of no arguments."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
import tvm
import uir_tvm
from tvm import relax
from uir_tvm import frontend
from uir_tvm.frontend.recurrence import expand

#: Names the folder of a database, for processes of peers; there are two peers more then: what the database
#: gives, and once more what is there without it, which tells what difference processes alone make.
DATABASE, TUNED, AGAIN = "UIR_BENCH_DATABASE", "uir-cpu tuned", "uir-cpu again"
Thunk = Callable[[], Any]
Inputs = Sequence[torch.Tensor]


def torch_eager(module: torch.nn.Module, inputs: Inputs) -> Thunk:
    """torch as it is."""
    return lambda: module(*inputs)


def torch_compiled(module: torch.nn.Module, inputs: Inputs) -> Thunk:
    """torch.compile with its C++ backend."""
    torch._dynamo.reset()
    compiled = torch.compile(module)
    compiled(*inputs)
    return lambda: compiled(*inputs)


def onnx_runtime(module: torch.nn.Module, inputs: Inputs) -> Thunk:
    """ONNX Runtime on the CPU, all graph optimisations, bound inputs and outputs."""
    import onnxruntime as ort

    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(module, tuple(inputs), dynamo=True, verbose=False)
    assert program is not None
    buffer.write(program.model_proto.SerializeToString())
    options = ort.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    session = ort.InferenceSession(buffer.getvalue(), options, providers=["CPUExecutionProvider"])
    feed = {i.name: x.numpy() for i, x in zip(session.get_inputs(), inputs, strict=True)}
    return lambda: session.run(None, feed)


def stock_tvm(module: torch.nn.Module, inputs: Inputs) -> Thunk:
    """TVM's own pipeline: fused, dlight's CPU schedules where they apply, LLVM."""
    mod = expand(frontend.from_torch(torch.export.export(module, tuple(inputs))))
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
    arguments = [tvm.runtime.tensor(x.numpy()) for x in inputs]
    return lambda: vm["main"](*arguments)


def uir_cpu(module: torch.nn.Module, inputs: Inputs) -> Thunk:
    """This project: uir_tvm.compile for uir-cpu."""
    exe = uir_tvm.compile(torch.export.export(module, tuple(inputs)), target="uir-cpu")
    arguments = [tvm.runtime.tensor(x.numpy()) for x in inputs]
    return lambda: exe.run_tvm(*arguments)


def uir_cpu_tuned(module: torch.nn.Module, inputs: Inputs) -> Thunk:
    """The same with the measured schedules of a database."""
    program = torch.export.export(module, tuple(inputs))
    exe = uir_tvm.compile(program, target="uir-cpu", database=os.environ[DATABASE])
    arguments = [tvm.runtime.tensor(x.numpy()) for x in inputs]
    return lambda: exe.run_tvm(*arguments)


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
}
RUNNERS: dict[str, Callable[[torch.nn.Module, Inputs], Thunk]] = {
    "torch eager": torch_eager,
    "torch.compile": torch_compiled,
    "ONNX Runtime": onnx_runtime,
    "stock TVM": stock_tvm,
    "uir-cpu": uir_cpu,
}
if DATABASE in os.environ:
    RUNNERS |= {TUNED: uir_cpu_tuned, AGAIN: uir_cpu}


def first_output(result: Any) -> np.ndarray:
    """The first tensor of whatever a runner returns, as NumPy."""
    while isinstance(result, tuple | list) or type(result).__name__ == "Array":
        result = result[0]
    if hasattr(result, "to_tuple"):
        result = result.to_tuple()[0]
    return (
        result.detach().numpy()
        if isinstance(result, torch.Tensor)
        else np.asarray(result.numpy() if hasattr(result, "numpy") else result)
    )
