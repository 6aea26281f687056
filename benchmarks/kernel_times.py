# SPDX-License-Identifier: Apache-2.0
"""Where the time of a model goes on uir-cpu, by kernel and library operator.

    python benchmarks/kernel_times.py minilm bert      # cases of cpu.py
    python benchmarks/kernel_times.py vit --rounds 50

TVM's virtual machine calls a function around every call of the program; what it takes itself is in no figure.
Library operators are told apart by their sizes and epilogues.  Figures are medians; calls that are alike are
summed.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import statistics
import sys
import time
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import torch
import tvm
import uir_tvm
from cases import NAMES, build

#: What tells library operators apart.
TOLD = ("batch", "m", "n", "k", "input", "weight", "activation", "residual")


def kernel_times(exe: Any, inputs: list[tvm.runtime.Tensor], rounds: int) -> dict[int, tuple[str, float]]:
    """Name and median seconds of every call of the program, by its place."""
    taken: dict[int, tuple[str, list[float]]] = {}
    place, started = 0, 0.0

    def around(_: Any, symbol: str, before: bool, __: Any, *operands: Any) -> None:
        nonlocal place, started
        now = time.perf_counter()
        if before:
            started = time.perf_counter()
        elif not symbol.startswith("vm."):
            taken.setdefault(place, (name_of(symbol, operands), []))[1].append(now - started)
            place += 1

    machine = exe._vm
    machine.set_instrument(around)
    for _ in range(rounds):
        place = 0
        exe.run_tvm(*inputs)
    return {at: (name, statistics.median(times)) for at, (name, times) in taken.items()}


def name_of(symbol: str, operands: tuple[Any, ...]) -> str:
    """The name of a call: of a library operator with its sizes."""
    text = next((each for each in operands if isinstance(each, str) and each.startswith("{")), None)
    if text is None:
        return symbol
    found = json.loads(text)
    sizes = [f"{key}={found[key]}" for key in TOLD if found.get(key) not in (None, [], "none")]
    return " ".join([symbol, *sizes])


def report(name: str, rounds: int) -> None:
    """Print the table of a case."""
    module, inputs = build(name)
    with torch.no_grad():
        exe = uir_tvm.compile(torch.export.export(module, tuple(inputs)), target="uir-cpu")
    exe(*inputs)
    found = kernel_times(exe, [tvm.runtime.tensor(x.numpy()) for x in inputs], rounds)
    times: collections.Counter[str] = collections.Counter()
    counts: collections.Counter[str] = collections.Counter()
    for call, seconds in found.values():
        times[call] += seconds
        counts[call] += 1
    whole = sum(times.values())
    print(f"{name}: {whole * 1e3:.3f} ms in {len(found)} calls")
    for call, seconds in times.most_common():
        each = seconds / counts[call] * 1e6
        print(f"{seconds / whole:7.1%}  {counts[call]:3d} of {each:9.1f} us  {call}")


def main() -> None:
    """All cases that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="+", choices=NAMES)
    parser.add_argument("--rounds", type=int, default=20, help="calls of a model")
    arguments = parser.parse_args()
    for name in arguments.cases:
        report(name, arguments.rounds)


if __name__ == "__main__":
    main()
