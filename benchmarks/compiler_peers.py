# SPDX-License-Identifier: Apache-2.0
"""XLA and IREE as peers: compilers that read a torch module through packages of their own.

They are compared where they are installed (`NEEDS` of `runners.py`), each by its ordinary call.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

Thunk = Callable[[], Any]
#: IREE refuses kernels that take more than 32 KiB of a stack, as one of MiniLM's layer normalisations does.
STACK = "--iree-llvmcpu-stack-allocation-limit"


def xla(module: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> Thunk:
    """XLA through jax.jit; torchax makes a function of jax of the module."""
    import jax

    with _missing_overloads():
        import torchax

        weights, function = torchax.extract_jax(module)
        jitted = jax.jit(function)
        arguments = tuple(jax.device_put(x.numpy()) for x in inputs)  # their memory, where it is aligned
        jax.block_until_ready(jitted(weights, arguments))
    return lambda: jax.block_until_ready(jitted(weights, arguments))


@contextlib.contextmanager
def _missing_overloads() -> Iterator[None]:
    """Let torchax 0.0.13 name overloads of named tensors, which torch has no longer since 2.13."""
    packet = torch._ops.OpOverloadPacket
    ordinary = packet.__getattr__

    def lenient(self: Any, name: str) -> Any:
        try:
            return ordinary(self, name)
        except AttributeError:
            if "dimname" not in name.lower() and "names" not in name:
                raise
            return object()

    packet.__getattr__ = lenient  # type: ignore[method-assign]
    try:
        yield
    finally:
        packet.__getattr__ = ordinary  # type: ignore[method-assign]


def iree(module: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> Thunk:
    """IREE's LLVM code for this CPU, read through ONNX; it has a worker for each thread of torch."""
    from iree import compiler, runtime
    from runners import onnx_bytes

    runtime.flags.parse_flags(f"--task_topology_group_count={torch.get_num_threads()}")
    with tempfile.TemporaryDirectory() as scratch:
        model, text = pathlib.Path(scratch) / "model.onnx", pathlib.Path(scratch) / "model.mlir"
        model.write_bytes(onnx_bytes(module, inputs))
        importer = [sys.executable, "-m", "iree.compiler.tools.import_onnx", str(model), "-o", str(text)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run(importer, capture_output=True, text=True, check=False, env=environment)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no import")
        code = compiler.compile_file(
            str(text),
            target_backends=["llvm-cpu"],
            input_type="onnx",
            extra_args=["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3", f"{STACK}={1 << 20}"],
        )
    config = runtime.Config("local-task")
    context = runtime.SystemContext(config=config)
    context.add_vm_module(runtime.VmModule.copy_buffer(context.instance, code))
    loaded = next(value for name, value in context.modules.items() if name != "hal")
    function = loaded["main_graph"]
    views = [config.device.from_dlpack_capsule(torch.utils.dlpack.to_dlpack(x)) for x in inputs]
    arguments = [runtime.DeviceArray(config.device, view) for view in views]  # their memory
    return lambda: function(*arguments)
