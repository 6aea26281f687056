# SPDX-License-Identifier: Apache-2.0
"""Layers of Llama-2-7B's shapes on devices, *modelled*, not measured.

    python benchmarks/llama_shapes.py --target uir-bang --weights q4 --batch 1 4
    python benchmarks/llama_shapes.py --target uir-ascend --weights float16 --prompt 128 --json out.json

Two layers with random weights are compiled and run on the host model of a device: a prompt, then a token. The
vocabulary is cut to 256, so that layers are what is timed. Operators of the vendor's library are timed by a
roofline; neither they nor kernels of ours compute where times cannot depend on values
(`uir_tvm.runtime.modelled.recording`). "assumed": milliseconds of kernels whose scalar code reads what nobody
computed; with true values their times may be others.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import time
from typing import Any

import torch
import uir_tvm.llm
from rich.console import Console
from rich.table import Table
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.initialization import no_init_weights
from uir_tvm import CompileOptions
from uir_tvm.runtime.modelled import Times, recording

VOCABULARY, LAYERS, ROOM = 256, 2, 160


def model(layers: int = LAYERS) -> Any:
    """Llama-2-7B's sizes, fewer layers and words; weights that repeat random numbers, which costs less."""
    numbers = torch.randn(1 << 22, generator=torch.Generator().manual_seed(0))
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=layers,
        num_attention_heads=32,
        num_key_value_heads=32,
        max_position_embeddings=4096,
        eos_token_id=1,
    )
    with no_init_weights():
        made = LlamaForCausalLM(config).eval()
    for weight in made.parameters():
        flat = weight.data.view(-1)
        for part in flat.split(len(numbers)):
            part.copy_(0.02 * numbers[: len(part)])
    return made


def tokenizer() -> Any:
    """A word for each number of the vocabulary."""
    words = {f"w{number}": number for number in range(VOCABULARY)}
    made = Tokenizer(models.WordLevel(words, unk_token="w0"))
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="w1", unk_token="w0")


def run(target: str, weights: str, batch: int, prompt: int, made: Any) -> dict[str, Times]:
    """Modelled times of a prompt (where it has tokens) and of a token behind it."""
    loaded = uir_tvm.llm.load(
        made,
        target,
        max_length=ROOM,
        chunk=max(prompt, 2),
        tokenizer=tokenizer(),
        weights=weights,
        batch=batch,
        options=CompileOptions(device="model"),
    )
    found: dict[str, Times] = {}
    hardware = loaded.executable.hardware
    for kind, count in (("prompt", max(prompt, 2)), ("token", 1)):
        with recording(hardware=hardware, values=False) as noted:
            if kind == "token":
                loaded.decode(5 if batch == 1 else [5] * batch)
            else:
                tokens = list(range(2, 2 + count))
                loaded.prefill(tokens if batch == 1 else [tokens] * batch)
        found[kind] = noted.times
    return found


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", nargs="*", default=["uir-ascend", "uir-bang"])
    parser.add_argument("--weights", nargs="*", default=["q4", "float16"], help="as of uir_tvm.llm.load")
    parser.add_argument("--batch", nargs="*", type=int, default=[1, 4])
    parser.add_argument("--prompt", type=int, default=128, help="its tokens; 2: next to no prompt")
    parser.add_argument("--kernels", action="store_true", help="also what each kernel takes")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures to this file")
    arguments = parser.parse_args()
    rows = []
    made = model()
    for weights in arguments.weights:
        for target in arguments.target:
            for batch in arguments.batch:
                start = time.perf_counter()
                found = run(target, weights, batch, arguments.prompt, made)
                row = {"target": target, "weights": weights, "batch": batch, "prompt": arguments.prompt}
                row |= {f"{kind}_ms": 1e3 * times.seconds for kind, times in found.items()}
                row["assumed_ms"] = 1e3 * max(times.assumed_seconds for times in found.values())
                row |= {"launches": len(found["token"].launches), "took_s": time.perf_counter() - start}
                rows.append(row)
                for kind, times in found.items() if arguments.kernels else ():
                    for line in times.table():
                        print(kind, line)
                if arguments.json:
                    arguments.json.write_text(json.dumps(rows, indent=1))
    table = Table(title=f"{LAYERS} layers, modelled, not measured")
    for name in rows[0]:
        table.add_column(name)
    for row in rows:
        table.add_row(*(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
