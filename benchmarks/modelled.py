# SPDX-License-Identifier: Apache-2.0
"""What fusion saves on a device that is not at hand, as its host model counts time: *modelled*, not measured.

python benchmarks/modelled.py                         # all layers for uir-ascend, some minutes
python benchmarks/modelled.py --only gpt2_medium_b1_prefill512 --kernels
python benchmarks/modelled.py --check                 # narrow layers, computed whole, against torch

One layer of each model (`layers`) is compiled twice: as `uir_tvm.compile` does it, and with every operator a
kernel of its own (``CompileOptions(fuse=False)``).  Kernels run on the host model, which checks every access
and counts time; products of the vendor's library are timed by a roofline of the device
(`uir_tvm.hardware.library_costs`) and, at full width, not computed: times do not depend on values.  A
model's time is that of a layer by the number of its layers; embeddings and logits are left out.

``--check`` compares what narrow layers compute, both ways, with torch.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import layers

#: Batch 1 and 4: the tokens of a prompt, and one token after as many.
STEPS = tuple(layers.Step(batch, *step) for batch in (1, 4) for step in ((512, 0), (1, 512)))


@attrs.frozen
class Chart:
    """What was measured elsewhere: milliseconds of a framework's operators, and of fused kernels."""

    source: str
    times: Mapping[str, tuple[float, float]]


@attrs.frozen
class Target:
    """A target whose host model counts time, the element type to take, and what there is to compare with."""

    name: str
    dtype: torch.dtype
    chart: Chart | None = None


UNIFIED_IR = Chart(
    "charts of https://github.com/deathwings602/Unified-IR (doc/pic/end-to-end-time*.png), Ascend 910B, "
    "torch_npu and fused; read off the bars, the length of the prompts is not said",
    {
        "gpt2_medium_b1": (32.0, 17.0),
        "gpt2_medium_b4": (453.0, 287.0),
        "llama2_7b_b1": (268.0, 165.0),
        "llama2_7b_b4": (1010.0, 627.0),
    },
)
TARGETS: Mapping[str, Target] = {
    row.name: row
    for row in (Target("uir-ascend", torch.float16, UNIFIED_IR), Target("uir-bang", torch.float16))
}

#: Largest error of an element over the largest of the result: fp16 rounds after every operator, 2^-11 each.
TOLERANCE = 4e-3


def cases() -> Iterator[tuple[str, layers.Model, layers.Step]]:
    """(name, model, step) of all cases."""
    for name, model in layers.MODELS.items():
        for step in STEPS:
            yield f"{name}_{step.name}", model, step


def compiled(program: Any, target: Target, fuse: bool) -> Any:
    """The layer for the host model."""
    import uir_tvm

    options = uir_tvm.CompileOptions(device="model", fuse=fuse)
    return uir_tvm.compile(program, target.name, options=options)


def times_of(exe: Any, inputs: list[torch.Tensor]) -> dict[str, Any]:
    """Modelled figures of one layer."""
    times = exe.modelled(*inputs, library_computes=False)
    return {
        "kernels": len(times.launches),
        "library": sum(launch.library for launch in times.launches),
        "bytes": times.bytes,
        "us": 1e6 * times.seconds,
        "library_us": 1e6 * times.library_seconds,
        "table": times.table(),
        "on_host": {kernel.name: kernel.fallback for kernel in exe.info.kernels if kernel.fallback},
    }


def measure(model: layers.Model, step: layers.Step, target: Target) -> dict[str, Any]:
    """One case at full width."""
    from uir_tvm.api import import_model

    layer, inputs = layers.build(model, model.full, step, target.dtype)
    program = import_model(torch.export.export(layer, tuple(inputs)))
    row: dict[str, Any] = {"layers": model.full.layers}
    for name, fuse in (("fused", True), ("apart", False)):
        row[name] = times_of(compiled(program, target, fuse), inputs)
    fused, apart = row["fused"], row["apart"]
    if fused["on_host"] or apart["on_host"]:
        return row  # nobody times what the host computes
    row["saved"] = 1 - fused["us"] / apart["us"]
    row["ratio"] = apart["us"] / fused["us"]
    row["own_ratio"] = (apart["us"] - apart["library_us"]) / max(fused["us"] - fused["library_us"], 1e-9)
    return row


def check(model: layers.Model, step: layers.Step, target: Target) -> dict[str, Any]:
    """Errors of a narrow layer against torch, computed whole."""
    narrow = attrs.evolve(step, tokens=min(step.tokens, 32), cached=min(step.cached, 32))
    layer, inputs = layers.build(model, model.narrow, narrow, target.dtype)
    wanted = layer(*inputs)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    program = torch.export.export(layer, tuple(inputs))
    errors = {}
    for name, fuse in (("fused", True), ("apart", False)):
        found = compiled(program, target, fuse)(*inputs)
        found = found if isinstance(found, tuple) else (found,)
        errors[name] = max(
            float((a.float() - b.float()).abs().max() / b.float().abs().max())
            for a, b in zip(found, wanted, strict=True)
        )
    return errors


def line(name: str, row: dict[str, Any]) -> str:
    """A row of the table."""
    fused, apart = row["fused"], row["apart"]
    if "saved" not in row:
        left = ", ".join({**fused["on_host"], **apart["on_host"]})
        return f"| {name} | {apart['kernels']} | {fused['kernels']} | not timed: the host computes {left} |"
    return (
        f"| {name} | {apart['kernels']} | {fused['kernels']} | {apart['bytes'] / 1e6:.0f} | "
        f"{fused['bytes'] / 1e6:.0f} | {apart['us']:.0f} | {fused['us']:.0f} | {fused['library_us']:.0f} | "
        f"{row['saved']:.0%} | {row['ratio']:.2f} | {row['own_ratio']:.1f} | "
        f"{row['layers'] * fused['us'] / 1e3:.2f} |"
    )


HEAD = (
    "| layer, step | kernels apart | fused | MB apart | fused | modelled us apart | fused | library | "
    "saved | ratio | without library | all layers, ms |\n|" + "---|" * 12
)


def kernels_text(row: dict[str, Any]) -> str:
    """Every kernel of a fused layer."""
    lines = []
    for way in ("fused", "apart"):
        lines += [f"  {way}:"]
        lines += ["    " + ", ".join(f"{k} {v}" for k, v in kernel.items()) for kernel in row[way]["table"]]
    return "\n".join(lines)


def chart_text(chart: Chart) -> str:
    """What the charts say."""
    rows = [
        f"  {name}: {before:g} ms by torch_npu, {after:g} ms fused, ratio {before / after:.2f}"
        for name, (before, after) in chart.times.items()
    ]
    return "\n".join([f"measured elsewhere ({chart.source}):", *rows])


def say(text: str) -> None:
    """Progress."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", choices=list(TARGETS), default="uir-ascend")
    parser.add_argument("--only", nargs="*", default=[], help="names of cases")
    parser.add_argument("--check", action="store_true", help="compare narrow layers with torch instead")
    parser.add_argument("--kernels", action="store_true", help="list every kernel")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures to this file")
    arguments = parser.parse_args()
    target = TARGETS[arguments.target]
    chosen = [case for case in cases() if not arguments.only or case[0] in arguments.only]
    result: dict[str, Any] = {"target": target.name, "dtype": str(target.dtype), "times": "modelled"}
    rows: dict[str, Any] = {}
    wrong = 0
    print(f"{target.name}, {target.dtype}, host model: times are modelled, not measured")
    if not arguments.check:
        print(HEAD, flush=True)
    for number, (name, model, step) in enumerate(chosen, 1):
        start = time.perf_counter()
        if arguments.check:
            rows[name] = check(model, step, target)
            wrong += max(rows[name].values()) > TOLERANCE
            print(name, ", ".join(f"{way} {error:.1e}" for way, error in rows[name].items()), flush=True)
        else:
            rows[name] = measure(model, step, target)
            print(line(name, rows[name]), flush=True)
            if arguments.kernels:
                print(kernels_text(rows[name]), flush=True)
        say(f"{number} of {len(chosen)}: {name}, {time.perf_counter() - start:.0f} s")
        if arguments.json:
            arguments.json.write_text(json.dumps({**result, "cases": rows}, indent=1))
    if target.chart is not None and not arguments.check:
        print(chart_text(target.chart))
    if wrong:
        print(f"{wrong} of {len(chosen)} err by more than {TOLERANCE}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
