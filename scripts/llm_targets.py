# SPDX-License-Identifier: Apache-2.0
"""A language model of a GGUF file, cut to its first layers, on every target, and what the whole would take.

    python scripts/llm_targets.py SmolLM2-135M-Instruct.Q4_1.gguf
    python scripts/llm_targets.py FILE --targets uir-ascend --weights float16 --json out.json
    python scripts/llm_targets.py FILE --targets uir-bang --max-length 2048 --prompt 256

The cut has the file's own weights. A prompt and a few tokens after it run on the host model of each device,
which checks every access; their tokens are compared with those of uir-cpu. Where a host model counts time,
the whole model's is that of a cut to two layers, and for every further layer what a third one adds (of one
layer alone what layers share is fused with it): times do not depend on values, and launches run one after the
other. They are *modelled*, not measured. "Apart" is with every operator a kernel of its own
(``CompileOptions(fuse=False)``).
Exit code 1 when tokens differ or a kernel has no iGraph.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TQDM_DISABLE", "1")

import uir_tvm.llm
from rich.console import Console
from rich.table import Table
from uir_tvm import CompileOptions
from uir_tvm.runtime.modelled import Times, recording
from uir_tvm.target import registry

CPU = "uir-cpu"
#: Tokens of the prompt, tokens after it, the first of them, and the tokens that the state has room for.
PROMPT, STEPS, FIRST, ROOM = 16, 4, 100, 32


def cut(model: Any, layers: int) -> Any:
    """The first layers of a model of transformers of the kind of Llama; weights are shared."""
    weights = {id(each): each for each in (*model.parameters(), *model.buffers())}
    made = copy.deepcopy(model, weights)  # all its parts with one configuration
    made.model.layers = made.model.layers[:layers]
    made.config.num_hidden_layers = layers
    return made


@attrs.frozen
class Run:
    """A prompt and tokens after it on one target.

    Attributes
    ----------
    tokens : list of int
        The most likely ones, behind the prompt and behind each token.
    prompt, token : Times
        Modelled, of the prompt and of the first token after it.
    kernels, library : int
        What a token launches.
    without : dict of str to str
        Kernels without an iGraph, and operators outside of kernels, with the reason.
    """

    tokens: list[int]
    prompt: Times
    token: Times
    kernels: int
    library: int
    without: dict[str, str]


def run(
    model: Any,
    tokenizer: Any,
    target: str,
    fuse: bool = True,
    steps: int = STEPS,
    prompt: Sequence[int] = range(FIRST, FIRST + PROMPT),
    room: int = ROOM,
) -> Run:
    """Compile a model for a target (devices: for their host models), and let it go on with a prompt.

    Raises
    ------
    UirError
        The target refuses the model.
    """
    options = CompileOptions(fuse=fuse, device="auto" if target == CPU else "model")
    made = uir_tvm.llm.load(
        model, target, max_length=room, chunk=len(prompt), tokenizer=tokenizer, options=options
    )
    exe, tokens, times = made.executable, list[int](), list[Times]()
    logits = np.empty(0)
    for step in range(steps + 1):
        with recording(hardware=exe.hardware) as found:
            logits = made.prefill(list(prompt)) if not step else made.decode(tokens[-1])
        tokens.append(int(logits.argmax()))
        times.append(found.times)
    one = exe.specialized(*made.inputs(len(prompt), np.zeros((1, 1), np.int64)))
    shapes = exe.specialized(*made.inputs(0, np.zeros((1, len(prompt)), np.int64))), one
    without = {each.name: each.fallback for exe in shapes for each in exe.info.kernels if each.fallback}
    without |= exe.report()["outside_kernels"]
    graph = one.info.graph
    return Run(tokens, times[0], times[1], graph["custom"], graph["library"], without)


def whole(two: float, three: float, layers: int) -> float:
    """What a model of equal layers takes, of what cuts to two and to three take."""
    return two + (layers - 2) * (three - two)


def compared(
    read: Any, form: str, targets: Sequence[str], say: Any, tokens: int = PROMPT, room: int = ROOM
) -> list[dict[str, Any]]:
    """A row for each target: tokens, kernels, and modelled figures of the whole model."""
    prompt = range(FIRST, FIRST + tokens)
    model, tokenizer = read
    layers = model.config.num_hidden_layers
    rows, wanted = [], list[int]()
    for target in dict.fromkeys((CPU, *targets)):
        say(f"{form}: {target} ...")
        found = run(cut(model, 2), tokenizer, target, prompt=prompt, room=room)
        wanted = wanted or found.tokens
        row: dict[str, Any] = {
            "weights": form,
            "target": target,
            "tokens": found.tokens,
            "as uir-cpu": sum(a == b for a, b in zip(found.tokens, wanted, strict=True)),
            "kernels": found.kernels,
            "library": found.library,
            "without an iGraph": found.without,
        }
        if found.token.launches:
            for way, fuse in (("fused", True), ("apart", False)):
                given = {"fuse": fuse, "steps": 1, "prompt": prompt, "room": room}
                two = found if fuse else run(cut(model, 2), tokenizer, target, **given)
                three = run(cut(model, 3), tokenizer, target, **given)
                row[way] = {
                    "prompt_seconds": whole(two.prompt.seconds, three.prompt.seconds, layers),
                    "token_seconds": whole(two.token.seconds, three.token.seconds, layers),
                    "launches": whole(len(two.token.launches), len(three.token.launches), layers),
                }
        rows.append(row)
    return rows


def tables(rows: Sequence[dict[str, Any]], layers: int, tokens: int = PROMPT) -> list[Table]:
    """Who computes the same, and what the whole model would take."""
    same = Table(title=f"{tokens} tokens and {STEPS} after them, 2 layers")
    for name in ("weights", "target", "tokens as uir-cpu", "kernels", "library", "without an iGraph"):
        same.add_column(name, justify="left" if name in ("weights", "target") else "right")
    times = Table(title=f"all {layers} layers, modelled, not measured")
    names = ("weights", "target", "", "launches", f"prompt of {tokens}, ms", "token, ms", "tokens/s", "ratio")
    for name in names:
        times.add_column(name, justify="left" if name in ("weights", "target", "") else "right")
    for row in rows:
        count = f"{row['as uir-cpu']} of {STEPS + 1}"
        without = ", ".join(row["without an iGraph"]) or "none"
        same.add_row(row["weights"], row["target"], count, str(row["kernels"]), str(row["library"]), without)
        for way in ("fused", "apart") if "fused" in row else ():
            each = row[way]
            times.add_row(
                row["weights"],
                row["target"],
                way,
                str(each["launches"]),
                f"{1e3 * each['prompt_seconds']:.2f}",
                f"{1e3 * each['token_seconds']:.2f}",
                f"{1 / each['token_seconds']:.0f}",
                f"{each['token_seconds'] / row['fused']['token_seconds']:.2f}",
            )
    return [same, times]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """The command."""
    from uir_tvm.llm.read_model import read_model

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=pathlib.Path, help="a .gguf file")
    parser.add_argument("--targets", nargs="*", default=list(registry.TARGETS), choices=[*registry.TARGETS])
    parser.add_argument("--weights", nargs="*", default=["packed", "float16"], help="as of load")
    parser.add_argument("--prompt", type=int, default=PROMPT, help="tokens of the prompt")
    parser.add_argument("--max-length", type=int, default=ROOM, help="tokens that the state has room for")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures to this file")
    arguments = parser.parse_args()
    sizes = arguments.prompt, arguments.max_length
    if not 1 <= sizes[0] <= sizes[1] - STEPS:
        parser.error(f"--prompt {sizes[0]}: at least 1, and {STEPS} fewer than --max-length {sizes[1]}")
    rows, layers = [], 0
    for form in arguments.weights:
        read = read_model(arguments.file, form)
        layers = read[0].config.num_hidden_layers
        rows += compared(read, form, arguments.targets, _say, *sizes)
        if arguments.json:
            arguments.json.write_text(json.dumps({"layers": layers, "rows": rows}, indent=1))
    for table in tables(rows, layers, arguments.prompt):
        Console(width=120).print(table)
    wrong = [row for row in rows if row["as uir-cpu"] != STEPS + 1 or row["without an iGraph"]]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
