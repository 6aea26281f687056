# SPDX-License-Identifier: Apache-2.0
"""One model on every target, in one table.

python scripts/four_targets.py                     # GPT-2, small
python scripts/four_targets.py llama --json table.json

Kernels of devices run on their host models, which check every access.  Lines are those of the emitted text
that are no comments (of uir-cpu: lowered TIR); syncs are where it waits (of uir-cpu: those of the iGraph).
Bytes are those between dram and units, the library's operators included, what the host computes left out.
On chip is the most that a kernel's text declares, work buffers included; where it declares none (registers),
what the iGraph keeps there.  The time is measured where the code runs on this machine's CPU, and *modelled*
where a host model counts it; one that counts none has none.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import statistics
import sys
import time
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))


@attrs.frozen
class Row:
    """A target of the table: what is a sync in the text of which stage, and where it runs.

    `memory` finds the sizes, in bytes, of what a kernel declares on chip; `entry` begins a kernel that
    declares its own.
    """

    target: str
    syncs: str
    device: str = "model"
    stage: str = "source"
    memory: str = ""
    entry: str = ""


TARGETS: Mapping[str, Row] = {
    row.target: row
    for row in (
        Row("uir-cpu", r"\bsync\.\w+", "auto", "optimize"),
        Row("uir-cuda", r"\b(?:__sync\w+|\w*barrier_wait\w*|bar\.sync|mbarrier\.try_wait)\b"),
        Row(
            "uir-ascend",
            r"\b(?:WaitFlag|PipeBarrier|SyncAll|CrossCoreWaitFlag)\b",
            memory=r"\bInitBuffer\(\w+, (\d+)\)",
            entry="__aicore__",
        ),
        Row("uir-bang", r"\b__sync\w*\(", memory=r"\b__(?:nram|wram|mlu_shared)__ .*char \w+\[(\d+)\]"),
    )
}


def _code_lines(text: str) -> list[str]:
    """Lines that are neither blank nor comments alone."""
    stripped = (line.strip() for line in text.splitlines())
    return [line for line in stripped if line and not line.startswith(("//", "#", "/*", "*"))]


def _texts(exe: Any, stage: str) -> list[str]:
    """Lines of code of a stage of all kernels."""
    return [line for kernel in exe.info.kernels for line in _code_lines(kernel.texts.get(stage, ""))]


def _declared(exe: Any, row: Row) -> int:
    """The most bytes on chip that a kernel's text declares."""
    most = 0
    for kernel in exe.info.kernels:
        text = "\n".join(_code_lines(kernel.texts.get(row.stage, "")))
        for part in text.split(row.entry) if row.entry else [text]:
            most = max(most, sum(map(int, re.findall(row.memory, part))))
    return most


def _time_of(exe: Any, row: Row, inputs: list[np.ndarray], repeat: int) -> tuple[float | None, str]:
    """(microseconds, how they were had)."""
    if row.device != "model":
        seconds = []
        for _ in range(repeat):
            start = time.perf_counter()
            exe(*inputs)
            seconds.append(time.perf_counter() - start)
        return 1e6 * statistics.median(seconds), "measured"
    from uir_tvm.errors import DeviceError

    try:
        return 1e6 * exe.modelled(*inputs).seconds, "modelled"
    except DeviceError:
        return None, "not counted"


def measure(row: Row, program: Any, inputs: list[np.ndarray], expected: np.ndarray, repeat: int = 5) -> dict:
    """One row of the table.

    Raises
    ------
    UirError
        The target refuses the model.
    """
    return figures(row, compiled(row, program), inputs, expected, repeat)


def compiled(row: Row, program: Any) -> Any:
    """The model for a row's target, where it runs here."""
    import uir_tvm

    return uir_tvm.compile(program, row.target, options=uir_tvm.CompileOptions(device=row.device))


def figures(row: Row, exe: Any, inputs: list[np.ndarray], expected: np.ndarray, repeat: int = 5) -> dict:
    """What is to be said of a compiled model."""
    from uir_tvm.explain import explain

    found = exe(*inputs)
    found = found[0] if isinstance(found, tuple) else found
    said = explain(exe)
    graphs = [(kernel.graph, kernel.calls) for kernel in said.kernels if kernel.graph is not None]
    microseconds, how = _time_of(exe, row, inputs, repeat)
    if any(kernel.fallback for kernel in exe.info.kernels) and how == "modelled":
        how = "modelled in part"  # nobody times what the host computes
    if row.memory:
        peak = _declared(exe, row)
    else:
        peak = max((sum(use.placed_bytes for use in graph.memory) for graph, _ in graphs), default=0)
    moved = sum(graph.traffic.dram_bytes * calls for graph, calls in graphs)
    moved += sum(work.bytes * work.calls for work in said.library)
    return {
        "target": exe.info.target,
        "kernels": sum(kernel.calls for kernel in said.kernels),
        "library": sum(work.calls for work in said.library),
        "on host": sum(bool(kernel.fallback) for kernel in exe.info.kernels),
        "lines": len(_texts(exe, "source")),
        "syncs": sum(len(re.findall(row.syncs, line)) for line in _texts(exe, row.stage)),
        "KiB moved": round(moved / 1024, 1),
        "peak KiB on chip": round(peak / 1024, 1),
        "us": None if microseconds is None else round(microseconds, 1),
        "time": how,
        "max error": float(np.abs(found - expected).max() / np.abs(expected).max()),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The rows for people."""
    names = list(rows[0])
    cells = [[_cell(row.get(name)) for name in names] for row in rows]
    widths = [max(len(name), *(len(line[k]) for line in cells)) for k, name in enumerate(names)]
    lines = ["  ".join(name.ljust(width) for name, width in zip(names, widths, strict=True))]
    lines += [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells
    ]
    return "\n".join(line.rstrip() for line in lines)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.1e}" if isinstance(value, float) and 0 < abs(value) < 0.01 else str(value)


def main() -> int:
    """The command."""
    from uir_tvm.api import import_model

    from tests.models import MODELS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default="gpt2", choices=list(MODELS))
    parser.add_argument("--scale", choices=["small", "full"], default="small")
    parser.add_argument("--targets", nargs="*", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--json", type=pathlib.Path, help="write the table to this file, too")
    arguments = parser.parse_args()
    import torch

    module, tensors = MODELS[arguments.model].build(arguments.scale)
    program = import_model(torch.export.export(module, tensors))
    inputs = [tensor.numpy() for tensor in tensors]
    with torch.no_grad():
        expected = module(*tensors).numpy()
    rows = []
    for name in arguments.targets:
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows.append(measure(TARGETS[name], program, inputs, expected))
    print(
        f"{arguments.model}, {arguments.scale}; errors are relative to the largest element of torch's result"
    )
    print(table(rows))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
