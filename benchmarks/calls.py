# SPDX-License-Identifier: Apache-2.0
"""What a call costs beside its kernels: by inputs, kernels, state, open sizes, and CPUs that others keep.

    python benchmarks/calls.py [--rounds 40] [--json FILE]

Medians in microseconds of calls that take turns, in one process on small tensors: an executable of uir-cpu
with torch tensors, NumPy arrays and results of the caller (``out=``), stock TVM's virtual machine on tensors
that are its own already, and PyTorch.  ``kernels`` is what they take by themselves, one after another in C++,
where a model has no operators of the library.  For each busy CPU there is a process that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import pathlib
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import torch
import tvm
import tvm_ffi
import uir_tvm
from runners import stock_tvm
from torch.export import Dim

#: Calls of one contender before the next has its turn.
CALLS = 100


class Sum(torch.nn.Module):
    """One kernel of any number of inputs."""

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        total = inputs[0] * 0.5
        for each in inputs[1:]:
            total = total + each
        return total


class Chain(torch.nn.Module):
    """Kernels one after another: each normalises across what the one before left."""

    def __init__(self, kernels: int) -> None:
        super().__init__()
        self.kernels = kernels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for number in range(self.kernels):
            x = torch.softmax(x, number % 2)
        return x


class Caches(torch.nn.Module):
    """State of which every call writes a row."""

    def __init__(self, count: int) -> None:
        super().__init__()
        for number in range(count):
            self.register_buffer(f"cache{number}", torch.zeros(64, 64))
        self.count = count

    def forward(self, x: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        for number in range(self.count):
            cache = getattr(self, f"cache{number}")
            cache[place] = x
            x = x + cache[:4].sum(0, keepdim=True)
        return x


@attrs.frozen
class Case:
    """A model and what it is called with."""

    module: torch.nn.Module
    inputs: tuple[torch.Tensor, ...]
    #: Whether rows are of any number.
    is_open: bool = False
    busy: int = 0


def cases() -> dict[str, Case]:
    """All rows of the table."""

    def small(count: int, rows: int = 8) -> tuple[torch.Tensor, ...]:
        return tuple(torch.randn(rows, 64) for _ in range(count))

    def decode(count: int) -> Case:
        return Case(Caches(count), (torch.randn(1, 64), torch.tensor([3])))

    return {
        **{f"{count} inputs": Case(Sum(), small(count)) for count in (1, 2, 4, 16)},
        **{f"{count} kernels": Case(Chain(count), small(1)) for count in (2, 10, 100)},
        **{f"{count} tensors of state": decode(count) for count in (1, 8, 32)},
        **{f"{count} inputs, open size": Case(Sum(), small(count), is_open=True) for count in (1, 4)},
        "1 kernel, open size": Case(Chain(1), small(1), is_open=True),
        "10 kernels, open size": Case(Chain(10), small(1), is_open=True),
        **{f"45,440 elements, {busy} busy": Case(Chain(1), small(1, 710), busy=busy) for busy in (0, 1, 2)},
    }


def compiled(case: Case) -> Any:
    """The executable of a case."""
    rows = {0: Dim("n", min=2, max=512)}
    each = [tuple(rows for _ in case.inputs)] if isinstance(case.module, Sum) else [rows]
    sizes = each if case.is_open else None
    return uir_tvm.compile(torch.export.export(case.module.eval(), case.inputs, dynamic_shapes=sizes))


def kernel_seconds(executable: Any) -> float | None:
    """The kernels' own time, one after another; None where the library or sizes decide it."""
    main = getattr(executable, "kernel_graph", None)
    if main is None or executable.info.graph["library"] or executable.info.state:
        return None
    (code,) = executable.library.mod.imports
    total = 0.0
    for node in main.nodes:
        tensors = [*node.inputs, *node.outputs]
        given = [tvm.runtime.empty(each.shape, each.dtype) for each in tensors]
        timed = code.time_evaluator(node.name, tvm.cpu(), number=200, repeat=5)(*given)
        total += statistics.median(timed.results)
    return total


def contenders(case: Case, executable: Any) -> dict[str, Callable[[], Any]]:
    """What is timed of a case."""
    inputs, module = case.inputs, case.module
    arrays = [each.numpy().copy() for each in inputs]
    made: dict[str, Callable[[], Any]] = {
        "exe(torch)": lambda: executable(*inputs),
        "exe(numpy)": lambda: executable(*arrays),
    }
    if not case.is_open:
        bound = executable.bind(executable(*inputs))
        made["bound"] = lambda: bound(*inputs)
        made["virtual machine"] = _machine(executable, inputs)
    stateless = not (case.is_open or isinstance(module, Caches))
    if stateless:
        made["stock TVM"] = stock_tvm(module, inputs)
    made["PyTorch"] = lambda: module(*inputs)
    return made


def _machine(executable: Any, inputs: tuple[torch.Tensor, ...]) -> Callable[[], Any]:
    given = [tvm.runtime.tensor(each.numpy()) for each in inputs]
    return lambda: executable.run_tvm(*given)


def measured(case: Case, rounds: int) -> Mapping[str, float | None]:
    """Median microseconds by contender."""
    executable = compiled(case)
    found: dict[str, float | None] = {"kernels": kernel_seconds(executable)}
    with torch.no_grad():
        timed = contenders(case, executable)
        times: dict[str, list[float]] = {name: [] for name in timed}
        others = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(case.busy)]
        for each in others:
            each.start()
        for _ in range(rounds):
            for name, thunk in timed.items():
                thunk()
                for _ in range(CALLS):
                    start = time.perf_counter()
                    thunk()
                    times[name].append(time.perf_counter() - start)
        for each in others:
            each.terminate()
            each.join()
    found |= {name: statistics.median(values) for name, values in times.items()}
    return {name: None if value is None else value * 1e6 for name, value in found.items()}


def _spin() -> None:
    while True:
        pass


def main() -> None:
    """Measure, print a table, and write it."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--rounds", type=int, default=40, help="turns of each contender")
    parser.add_argument("--only", nargs="*", default=[], help="words of cases")
    parser.add_argument("--json", type=pathlib.Path, help="write everything to this file")
    arguments = parser.parse_args()
    threads = tvm_ffi.get_global_func("runtime.NumThreads")
    rows: dict[str, Mapping[str, float | None]] = {}
    columns = ["kernels", "exe(torch)", "exe(numpy)", "bound", "virtual machine", "stock TVM", "PyTorch"]
    print(" | ".join([f"{'':28}", *columns]))
    for name, case in cases().items():
        if arguments.only and not any(word in name for word in arguments.only):
            continue
        rows[name] = found = measured(case, arguments.rounds)
        cells = [f"{found[c]:{len(c)}.2f}" if found.get(c) is not None else " " * len(c) for c in columns]
        print(" | ".join([f"{name:28}", *cells]), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps({"threads": threads(), "microseconds": rows}, indent=1))


if __name__ == "__main__":
    main()
