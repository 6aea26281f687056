# SPDX-License-Identifier: Apache-2.0
"""Check and time the artefacts of a folder."""

from __future__ import annotations

import json
import pathlib
import platform
import traceback
from collections.abc import Sequence
from typing import Any

import torch

from . import bundle, check, contenders, measure, models, operators, report
from .case import Case

#: Inputs of other seeds than those that are timed.
CHECKED_SEEDS = (11, 12)


def machine(gpu: bool) -> dict[str, Any]:
    """What it is measured on."""
    found: dict[str, Any] = {"python": platform.python_version(), "torch": torch.__version__}
    if gpu:
        properties = torch.cuda.get_device_properties(0)
        found |= {
            "device": properties.name,
            "multiprocessors": properties.multi_processor_count,
            "l2_bytes": properties.L2_cache_size,
            "memory_bytes": properties.total_memory,
            "cuda": torch.version.cuda,
        }
    else:
        found |= {"device": f"the host model, on {platform.processor() or platform.machine()}"}
    for package in ("triton", "jax"):
        try:
            found[package] = __import__(package).__version__
        except ImportError:
            found[package] = "absent"
    return found


def input_sets(case: Case, gpu: bool, facts: dict[str, Any]) -> list[list[torch.Tensor]]:
    """Sets that differ in all but the weights; as many as push each other out of the cache."""
    device = "cuda" if gpu else "cpu"
    first = case.tensors(0, device)
    changing = case.changing
    turning = sum(spec.nbytes for spec in case.inputs[:changing])
    # Weights beyond the cache push everything out by themselves.
    fits = case.input_bytes - turning < 2 * facts.get("l2_bytes", 0)
    count = measure.rotation(turning, facts["l2_bytes"], facts["memory_bytes"]) if gpu and fits else 1
    others = [case.tensors(seed, device)[:changing] for seed in range(1, count)]
    return [first, *[[*other, *first[changing:]] for other in others]]


def one_case(
    case: Case, row: dict[str, Any], folder: pathlib.Path, tvm: Any, facts: dict[str, Any], options: Any
) -> dict[str, Any]:
    """Errors and times of one case."""
    gpu = not options.model
    device = "cuda" if gpu else "cpu"
    found: dict[str, Any] = {
        "name": case.name,
        "group": case.group,
        "streaming": case.streaming,
        "kernels": row.get("kernels", []),
        "on_host": row.get("on_host", {}),
        "code": row.get("code", {}),
    }
    if "error" in row:
        return {**found, "failed": row["error"]}
    module = bundle.Module(tvm, folder / row["module"], gpu)
    found |= check.check(case, module, CHECKED_SEEDS[: 1 if options.model else 2], device)
    outputs = check.run(module, case.tensors(0, device))
    found["bytes"] = case.input_bytes + sum(tensor.numel() * tensor.element_size() for tensor in outputs)
    del outputs
    if not found["right"] or options.check_only:
        return found
    sets = input_sets(case, gpu, facts)
    found["input_sets"] = len(sets)
    turns, found["absent"] = contenders.turns(case, row, folder, tvm, sets, gpu, options.contenders)
    timings = measure.interleaved(turns, gpu, options.rounds)
    found["times"] = {name: timing.to_json() for name, timing in timings.items()}
    seconds = timings[contenders.OURS].median
    if options.model:
        return found | {"modelled": True}
    found["bytes_per_second"] = found["bytes"] / seconds
    if case.flops:
        found["flops_per_second"] = case.flops / seconds
    return found


def run(folder: pathlib.Path, options: Any) -> int:
    """Measure; write the table and the figures; returns how many cases are not right.

    Parameters
    ----------
    folder : Path
        What `build` filled.
    options : namespace
        ``model``, ``check_only``, ``rounds``, ``only`` and ``contenders`` (lists of names), ``out`` (Path).
    """
    built = bundle.read_cases(folder)
    gpu = not options.model
    if gpu and not torch.cuda.is_available():
        raise bundle.MissingError("torch sees no GPU: use --model for the host model")
    if (built["device"] == "gpu") != gpu:
        raise bundle.MissingError(f"{folder} was built for device {built['device']}: build it anew")
    tvm = bundle.load_runtime(folder.resolve(), gpu)
    facts = machine(gpu)
    facts["tvm"] = f"{tvm.__version__} from {pathlib.Path(tvm.__file__).parent}"
    ceilings = measure.ceilings() if gpu else {}
    rows: dict[str, dict[str, Any]] = {}
    for case in (*operators.cases(built["small"]), *models.cases(built["small"])):
        if case.name not in built["cases"] or (options.only and case.name not in options.only):
            continue
        print(case.name, flush=True)
        try:
            rows[case.name] = one_case(case, built["cases"][case.name], folder, tvm, facts, options)
        except Exception as error:
            traceback.print_exc()
            # Fields of our errors are divided by a character that no table shows.
            failed = f"{type(error).__name__}: {error}".replace("\x1f", " | ")
            rows[case.name] = {"name": case.name, "group": case.group, "failed": failed}
        if gpu:
            torch.cuda.empty_cache()
        _write(rows, facts, ceilings, options)
    print(_write(rows, facts, ceilings, options))
    return sum(not row.get("right") for row in rows.values())


def _write(rows: dict[str, Any], facts: dict[str, Any], ceilings: dict[str, float], options: Any) -> str:
    """Both files, after every case: a run that is cut short leaves what it has."""
    result = {
        "model": options.model,
        "machine": facts,
        "ceilings": ceilings,
        "cases": rows,
        "summary": report.summary(rows, ceilings),
    }
    table = report.markdown(result)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "gpu_bench.json").write_text(json.dumps(result, indent=1))
    (options.out / "gpu_bench.md").write_text(table)
    return table


def names(text: str, known: Sequence[str]) -> list[str]:
    """A list of names with commas between; ValueError for one that is not known."""
    found = [name for name in text.split(",") if name]
    unknown = [name for name in found if name not in known]
    if unknown:
        raise ValueError(f"no {', '.join(unknown)}; there are {', '.join(known)}")
    return found
