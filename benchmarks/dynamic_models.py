#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models that leave sizes open, at random shapes: uir-cpu, ONNX Runtime, torch.compile(dynamic=True), torch.

    python benchmarks/dynamic_models.py                          five models, 20 shapes each
    python benchmarks/dynamic_models.py --only minilm --shapes 5 --peers uir-cpu "torch eager"

Every peer has a process of its own and gets the model once; each shape is new to it. The table has, per
model, the geometric mean over the shapes of the peer's median over ours (above 1: uir-cpu is faster), and
the median and worst seconds of the first call with a shape, what was compiled for it included. `--json FILE`
keeps every figure. A peer whose result differs from torch's is named and left out.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import pathlib
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import attrs
import numpy as np
import torch
from asked_process import Answers, AskedProcess, NoAnswer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from torch.export import Dim

from tests.models import MODELS

OURS, REFERENCE = "uir-cpu", "torch eager"
#: Relative to the largest value, as in `cpu.py`.
AGREEMENT = 2e-4
#: Seconds of timed calls with one shape, at least three calls.
TURN = 0.25
#: Seconds that a peer has until it has the model, and for sizes, what it compiles for them included.
READY, ANSWER = 1800.0, 900.0


class Convolutions(torch.nn.Module):
    """A fully convolutional network: strides, a pool and an upsampling path that is added."""

    def __init__(self) -> None:
        super().__init__()
        conv, norm = torch.nn.Conv2d, torch.nn.BatchNorm2d
        self.first = torch.nn.Sequential(conv(3, 32, 3, padding=1), norm(32), torch.nn.ReLU())
        self.second = torch.nn.Sequential(conv(32, 64, 3, padding=1), norm(64), torch.nn.ReLU())
        self.last = conv(64, 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32 (batch, 3, height, width) -> (batch, 8, height, width)."""
        return self.last(self.second(self.first(x)))


class Steps(torch.nn.Module):
    """An LSTM over sequences of 64, and a layer on its states; torch.export takes no open length of one."""

    def __init__(self) -> None:
        super().__init__()
        self.steps, self.head = torch.nn.LSTM(256, 256), torch.nn.Linear(256, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """float32 (64, batch, 256) -> (64, batch, 64)."""
        return self.head(self.steps(x)[0])


def _words(*shape: int) -> torch.Tensor:
    return torch.randint(0, 20000, shape)


@attrs.frozen
class Case:
    """A model, its symbols with their ranges, and its inputs for sizes."""

    module: Callable[[], torch.nn.Module]
    sizes: dict[str, tuple[int, int]]
    inputs: Callable[..., tuple[torch.Tensor, ...]]
    axes: tuple[dict[int, str], ...]


CASES: dict[str, Case] = {
    "minilm": Case(
        lambda: MODELS["minilm"].build()[0],
        {"batch": (1, 16), "length": (4, 256)},
        lambda n, s: (_words(n, s), torch.ones(n, s, dtype=torch.long)),
        ({0: "batch", 1: "length"}, {0: "batch", 1: "length"}),
    ),
    "gpt2": Case(
        lambda: MODELS["gpt2"].build()[0], {"length": (4, 512)}, lambda s: (_words(1, s),), ({1: "length"},)
    ),
    "vit": Case(
        lambda: MODELS["vit"].build()[0],
        {"batch": (1, 16)},
        lambda n: (torch.randn(n, *MODELS["vit"].build()[1][0].shape[1:]),),
        ({0: "batch"},),
    ),
    "convolutions": Case(
        Convolutions,
        {"batch": (1, 8), "height": (16, 160), "width": (16, 160)},
        lambda n, h, w: (torch.randn(n, 3, h, w),),
        ({0: "batch", 2: "height", 3: "width"},),
    ),
    "lstm": Case(Steps, {"batch": (1, 32)}, lambda n: (torch.randn(64, n, 256),), ({1: "batch"},)),
}


def build(name: str) -> torch.nn.Module:
    """A case's module; equal calls give equal weights."""
    torch.manual_seed(7)
    return CASES[name].module().eval().requires_grad_(False)


def chosen(name: str, count: int) -> list[tuple[int, ...]]:
    """Random sizes, all different, of at least 2."""
    rng, found = np.random.default_rng(3), dict[tuple[int, ...], None]()
    ranges = list(CASES[name].sizes.values())
    while len(found) < min(count, int(np.prod([high - max(low, 2) + 1 for low, high in ranges]))):
        found[tuple(int(rng.integers(max(low, 2), high + 1)) for low, high in ranges)] = None
    return list(found)


def dims(case: Case) -> tuple[dict[int, Any], ...]:
    named = {name: Dim(name, min=low, max=high) for name, (low, high) in case.sizes.items()}
    return tuple({axis: named[name] for axis, name in each.items()} for each in case.axes)


def example(case: Case) -> tuple[torch.Tensor, ...]:
    """Inputs of sizes that nothing else in a model has."""
    ranges = enumerate(case.sizes.values())
    return case.inputs(*(min(high, max(low, 5) + 2 * place) for place, (low, high) in ranges))


def _ours(case: Case, module: torch.nn.Module) -> Callable[..., Any]:
    import uir_tvm

    return uir_tvm.compile(module, "uir-cpu", args=example(case), dynamic_shapes=dims(case))


def _eager(case: Case, module: torch.nn.Module) -> Callable[..., Any]:
    return module


def _compiled(case: Case, module: torch.nn.Module) -> Callable[..., Any]:
    return torch.compile(module, dynamic=True)


def _onnx_runtime(case: Case, module: torch.nn.Module) -> Callable[..., Any]:
    import onnxruntime

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module, example(case), dynamo=True, verbose=False, dynamic_shapes=dims(case)
        )
    assert program is not None
    buffer = io.BytesIO(program.model_proto.SerializeToString())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = torch.get_num_threads(), 3
    session = onnxruntime.InferenceSession(buffer.getvalue(), options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    return lambda *inputs: session.run(None, dict(zip(names, (x.numpy() for x in inputs), strict=True)))


PEERS: dict[str, Callable[[Case, torch.nn.Module], Callable[..., Any]]] = {
    OURS: _ours,
    "ONNX Runtime": _onnx_runtime,
    "torch.compile": _compiled,
    REFERENCE: _eager,
}


def _first(result: Any) -> np.ndarray:
    while isinstance(result, tuple | list):
        result = result[0]
    return np.asarray(result.detach() if isinstance(result, torch.Tensor) else result)


def _prepared(name: str, peer: str, threads: int) -> tuple[float, Answers]:
    """A peer on a model in its process: seconds until it has the model; what calls it with sizes."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    start = time.perf_counter()
    case = CASES[name]
    call = PEERS[peer](case, build(name))
    return time.perf_counter() - start, {"sizes": partial(_timed, case, call)}


def _timed(case: Case, call: Callable[..., Any], *sizes: int) -> tuple[float, float, np.ndarray]:
    """Seconds of the first call with sizes, the median of later ones, the first one's result."""
    torch.manual_seed(sum(sizes))
    inputs = case.inputs(*sizes)
    start = time.perf_counter()
    result = _first(call(*inputs))
    first, times = time.perf_counter() - start, list[float]()
    end = time.perf_counter() + TURN
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call(*inputs)
        times.append(time.perf_counter() - start)
    return first, statistics.median(times), result


class Peer:
    """One peer on one model, in its own process."""

    def __init__(self, name: str, peer: str, threads: int) -> None:
        self._process = AskedProcess(_prepared, name, peer, threads)
        self.failed, self.prepare = "", 0.0
        try:
            self.prepare = self._process.first(READY)
        except NoAnswer as error:
            self.failed = str(error)

    def run(self, sizes: Sequence[int]) -> tuple[float, float, np.ndarray] | None:
        """Seconds of the first call, median seconds of others, the result; None of one that failed."""
        if self.failed:
            return None
        try:
            return self._process.ask(ANSWER, "sizes", *sizes)  # type: ignore[no-any-return]
        except NoAnswer as error:
            self.failed = str(error)
            return None

    def stop(self) -> None:
        """End the process."""
        self._process.stop()


def measure(
    name: str, peers: Sequence[str], shapes: int, threads: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """All figures of one model."""
    alive = {peer: Peer(name, peer, threads) for peer in peers}
    rows, wrong = [], dict[str, float]()
    try:
        for sizes in chosen(name, shapes):
            tell(f"{name} {'x'.join(map(str, sizes))}")
            found = {peer: made for peer, each in alive.items() if (made := each.run(sizes)) is not None}
            want = found[REFERENCE][2].astype("float64")
            for peer, (_, _, result) in found.items():
                error = float(np.abs(result - want).max()) / max(1e-30, float(np.abs(want).max()))
                if not error <= AGREEMENT:
                    wrong[peer] = max(error, wrong.get(peer, 0.0))
            rows.append(
                {
                    "sizes": list(sizes),
                    "first_s": {peer: first for peer, (first, _, _) in found.items()},
                    "median_s": {peer: median for peer, (_, median, _) in found.items()},
                }
            )
        failed = {peer: each.failed for peer, each in alive.items() if each.failed}
        prepare = {peer: each.prepare for peer, each in alive.items()}
        return {"model": name, "rows": rows, "failed": failed, "wrong": wrong, "prepare_s": prepare}
    finally:
        for each in alive.values():
            each.stop()


def ratio(figures: dict[str, Any], peer: str) -> float | None:
    """Geometric mean over the shapes of a peer's median over ours; None where it has none."""
    rows = [row["median_s"] for row in figures["rows"] if {peer, OURS} <= set(row["median_s"])]
    if not rows or {peer, OURS} & set(figures["wrong"]):
        return None
    return statistics.geometric_mean(row[peer] / row[OURS] for row in rows)


def _cell(figures: dict[str, Any], peer: str) -> str:
    found = ratio(figures, peer)
    firsts = [row["first_s"][peer] for row in figures["rows"][1:] if peer in row["first_s"]]
    if peer in figures["failed"]:
        return figures["failed"][peer]
    if peer in figures["wrong"]:
        return f"wrong by {figures['wrong'][peer]:.1e}"
    later = f"{statistics.median(firsts):.2f} / {max(firsts):.2f} s" if firsts else "-"
    return later if peer == OURS else f"{'-' if found is None else format(found, '.2f')}   ({later})"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), help="models")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS), help="who is compared")
    parser.add_argument("--shapes", type=int, default=20, help="of each model (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of each peer")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures to this file")
    given = parser.parse_args()
    peers = list(dict.fromkeys([OURS, *given.peers, REFERENCE]))
    table = Table("model", *(f"{peer}: first calls" if peer == OURS else peer for peer in peers))
    everything = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=len(given.only) * given.shapes)
        for name in given.only:
            figures = measure(
                name,
                peers,
                given.shapes,
                given.threads,
                lambda text: progress.update(task, advance=1, description=text),
            )
            everything.append(figures)
            table.add_row(name, *(_cell(figures, peer) for peer in peers))
    console = Console()
    console.print(table)
    console.print(
        "ratio of medians to uir-cpu's, geometric mean (median / worst first call with a new shape)"
    )
    for peer in peers[1:]:
        found = [each for figures in everything if (each := ratio(figures, peer)) is not None]
        if found:
            console.print(f"{peer}: {statistics.geometric_mean(found):.2f} over {len(found)} models")
    if given.json is not None:
        given.json.write_text(json.dumps(everything, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
