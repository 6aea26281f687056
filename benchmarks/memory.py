#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Resident memory while a model is compiled and while it runs, beside ONNX Runtime on the same file.

    python benchmarks/memory.py                  MiniLM and GPT-2 small
    python benchmarks/memory.py --only minilm --json out.json

Each has a process of its own, which reads the ONNX file that another wrote, and holds no PyTorch. In MiB:
"weights" are the bytes of the file's initializers, "imports" is the resident size before the model is read;
"compiling" is the peak until the model is ready, "ready" the size then, "running" the peak of three calls
(VmHWM of Linux, set back before them). Kernels are found on no disk.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import pathlib
import sys
import tempfile
from collections.abc import Callable
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import numpy as np
from rich.console import Console
from rich.table import Table

CASES = ("minilm", "gpt2")
COLUMNS = ("imports", "compiling", "ready", "running")
CALLS = 3
#: What a process makes of a file: first the imports, then the model, then a call on arrays.
Call = Callable[[dict[str, np.ndarray]], Any]


def _uir() -> Callable[[str], Call]:
    from uir_tvm import _native

    _native.load(torch=False)  # as the command `uir` does
    import uir_tvm

    compile_ = uir_tvm.compile

    def ready(path: str) -> Call:
        exe = compile_(path)
        return lambda inputs: exe(*[inputs[each.name] for each in exe.info.inputs])

    return ready


def _onnx_runtime() -> Callable[[str], Call]:
    import onnxruntime

    def ready(path: str) -> Call:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return lambda inputs: session.run(None, inputs)

    return ready


PEERS: dict[str, Callable[[], Callable[[str], Call]]] = {"uir-cpu": _uir, "ONNX Runtime": _onnx_runtime}


def _status(field: str) -> int:
    """A figure of this process in bytes: VmRSS or VmHWM."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    (line,) = [each for each in lines if each.startswith(f"{field}:")]
    return int(line.split()[1]) * 1024


def _process(peer: str, path: str, inputs: dict[str, np.ndarray], link: Any) -> None:
    """In a process of its own: the figures of `COLUMNS`."""
    make = PEERS[peer]()
    imports = _status("VmRSS")
    call = make(path)
    compiling, ready = _status("VmHWM"), _status("VmRSS")
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # sets the peak back
    for _ in range(CALLS):
        call(inputs)
    link.send(dict(zip(COLUMNS, (imports, compiling, ready, _status("VmHWM")), strict=True)))


def _export(case: str, path: str, link: Any) -> None:
    """In a process of its own: the model as a file; its inputs, and the bytes of its weights."""
    import onnx
    import torch

    from tests.models import MODELS

    module, inputs = MODELS[case].build()
    program = torch.onnx.export(module, tuple(inputs), dynamo=True, verbose=False)
    assert program is not None
    model = program.model_proto
    onnx.save(model, path)
    weights = sum(
        math.prod(each.dims) * onnx.helper.tensor_dtype_to_np_dtype(each.data_type).itemsize
        for each in model.graph.initializer
    )
    names = [each.name for each in model.graph.input]
    link.send((dict(zip(names, [each.numpy() for each in inputs], strict=True)), weights))


def _apart(function: Callable[..., None], *arguments: Any) -> Any:
    """What a function sends from a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=function, args=(*arguments, theirs), daemon=True)
    process.start()
    theirs.close()
    found = ours.recv()
    process.join()
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", choices=CASES, default=CASES)
    parser.add_argument("--json", type=pathlib.Path)
    given = parser.parse_args()
    table, rows = Table("model", "weights", "", *COLUMNS), []
    for case in given.only:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["UIR_CACHE_DIR"] = folder
            path = os.path.join(folder, "model.onnx")
            inputs, weights = _apart(_export, case, path)
            for peer in PEERS:
                row = _apart(_process, peer, path, inputs)
                rows.append({"model": case, "weights": weights, "peer": peer, **row})
                table.add_row(case, f"{weights >> 20}", peer, *(f"{row[column] >> 20}" for column in COLUMNS))
    Console(soft_wrap=True).print(table)
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
