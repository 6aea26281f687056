# SPDX-License-Identifier: Apache-2.0
"""Who is compared: our module, stock TVM's, torch eager and compiled, and XLA by jax."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import bundle
from .case import Case
from .measure import Turn, captured
from .ops import TorchOps

OURS, STOCK, EAGER, COMPILED, TUNED, XLA = "uir", "tvm", "eager", "compile", "max-autotune", "jax"
NAMES = (OURS, STOCK, EAGER, COMPILED, TUNED, XLA)
PEERS = NAMES[1:]


def _tvm_stream(stream: Any) -> Any:
    """torch's stream as TVM's."""
    import tvm_ffi

    return tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", torch.cuda.current_device()), stream.cuda_stream)


def _same_stream(_: Any) -> Any:
    return contextlib.nullcontext()


def _graphed(name: str, calls: Sequence[Callable[[], Any]], gpu: bool, stream_of: Any) -> Turn:
    """A replayed graph of all calls where they can be captured, else the calls one by one."""
    # All results live at once, as they will under capture, when no allocator may ask the driver for more.
    warm = [call() for call in calls]
    del warm

    def plain() -> Any:
        for call in calls:
            call()

    if not gpu:
        return Turn(name, plain, len(calls))
    torch.cuda.synchronize()
    try:
        return Turn(name, captured(calls, stream_of), len(calls), graph=True)
    except RuntimeError as error:
        print(f"  {name}: not captured, launched one by one ({str(error).splitlines()[0]})")
        torch.cuda.synchronize()
        return Turn(name, plain, len(calls))


def module_turn(name: str, module: bundle.Module, sets: Sequence[Sequence[torch.Tensor]], gpu: bool) -> Turn:
    """An exported module on its input sets; equal tensors of the sets are one tensor of TVM."""
    known: dict[int, Any] = {}

    def shared(tensor: torch.Tensor) -> Any:
        if id(tensor) not in known:
            known[id(tensor)] = module.to_device(tensor)
        return known[id(tensor)]

    arguments = [[shared(tensor) for tensor in tensors] for tensors in sets]
    calls = [lambda args=args: module.main(*args) for args in arguments]
    return _graphed(name, calls, gpu, _tvm_stream)


def torch_turn(name: str, case: Case, sets: Sequence[Sequence[torch.Tensor]], gpu: bool) -> Turn:
    """torch as it is, or through torch.compile."""
    ops = TorchOps()

    def function(*tensors: torch.Tensor) -> Any:
        return case.function(ops, *tensors)

    if name != EAGER:
        torch.compiler.reset()
        # Its own graphs are off: all contenders are captured alike.
        options: dict[str, Any] = {"triton.cudagraphs": False, "max_autotune": name == TUNED}
        function = torch.compile(function, dynamic=False, fullgraph=True, options=options)
    calls = [lambda tensors=tensors: function(*tensors) for tensors in sets]
    with torch.no_grad():
        turn = _graphed(name, calls, gpu, _same_stream)
    launch = turn.launch

    def without_gradients() -> Any:
        with torch.no_grad():
            return launch()

    turn.launch = without_gradients
    return turn


def jax_turn(case: Case, sets: Sequence[Sequence[torch.Tensor]], gpu: bool) -> Turn:
    """XLA: one program with a call for each input set, so that its own launches are not what is measured."""
    import jax

    from .ops import JaxOps

    ops = JaxOps()
    known: dict[int, Any] = {}

    def shared(tensor: torch.Tensor) -> Any:
        if id(tensor) not in known:
            # Without its 64-bit mode, which nobody uses on a GPU, jax has no int64.
            narrow = tensor.int() if tensor.dtype == torch.int64 else tensor
            known[id(tensor)] = jax.dlpack.from_dlpack(narrow.contiguous())
        return known[id(tensor)]

    arguments = [[shared(tensor) for tensor in tensors] for tensors in sets]
    program = jax.jit(lambda all_sets: [case.call(ops, tensors) for tensors in all_sets])
    jax.block_until_ready(program(arguments))
    return Turn(XLA, lambda: program(arguments), len(sets), finish=jax.block_until_ready)


def turns(
    case: Case,
    row: dict[str, Any],
    folder: pathlib.Path,
    tvm: Any,
    sets: Sequence[Sequence[torch.Tensor]],
    gpu: bool,
    wanted: Sequence[str],
) -> tuple[list[Turn], dict[str, str]]:
    """The contenders that are here, and why others are not."""

    def exported(name: str, file: str) -> Turn:
        return module_turn(name, bundle.Module(tvm, folder / file, gpu), sets, gpu)

    ready: list[Turn] = []
    absent: dict[str, str] = {}
    makers: dict[str, Callable[[], Turn]] = {
        OURS: lambda: exported(OURS, row["module"]),
        STOCK: lambda: exported(STOCK, row["stock"]["module"]),
        EAGER: lambda: torch_turn(EAGER, case, sets, gpu),
        COMPILED: lambda: torch_turn(COMPILED, case, sets, gpu),
        TUNED: lambda: torch_turn(TUNED, case, sets, gpu),
        XLA: lambda: jax_turn(case, sets, gpu),
    }
    for name in wanted:
        if name == STOCK and "module" not in row.get("stock", {}):
            absent[name] = row.get("stock", {}).get("error", "not built")
            continue
        try:
            ready.append(makers[name]())
        except Exception as error:
            absent[name] = f"{type(error).__name__}: {error}"[:300]
            print(f"  {name}: {absent[name]}")
            if name == OURS:
                raise
    return ready, absent
