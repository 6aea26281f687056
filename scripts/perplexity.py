# SPDX-License-Identifier: Apache-2.0
"""Perplexity of a GGUF file's packed weights on uir-cpu beside the same weights in fp32 by transformers.

    python scripts/perplexity.py SmolLM2-135M-Instruct.Q4_1.gguf
    python scripts/perplexity.py FILE --activation int8 --prefill
    python scripts/perplexity.py FILE --tokens 4096 --activation int8 --json out.json

The text is the language reference that comes with Python (``pydoc_data.topics``). It is cut into windows,
each of which begins anew; every token but a window's first is predicted of those before it, ours one call a
token. With --prefill each is predicted by a call for all tokens before it, as prompts are computed.
Exit code 1 where the two differ by more than 0.5 %.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pathlib
import sys
import time
import warnings
from pydoc_data.topics import topics

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TQDM_DISABLE", "1")
warnings.simplefilter("ignore")

import numpy as np
import torch
import uir_tvm.llm
from rich.console import Console

#: Tokens of a window.
WINDOW = 256
#: Of the perplexity in fp32.
LIMIT = 0.005


def loss(logits: np.ndarray, token: int) -> float:
    """Minus the logarithm of a token's probability."""
    wide = logits.astype(np.float64)
    most = wide.max()
    return float(most + np.log(np.exp(wide - most).sum()) - wide[token])


def ours(model: uir_tvm.llm.LanguageModel, windows: list[list[int]]) -> list[float]:
    """Losses of all tokens but the first of each window."""
    found = []
    for window in windows:
        model.reset()
        logits = model.prefill(window[:1])
        for place, token in enumerate(window[1:]):
            found.append(loss(logits, token))
            if place < len(window) - 2:
                logits = model.decode(token)
    return found


def ours_of_prompts(model: uir_tvm.llm.LanguageModel, windows: list[list[int]]) -> list[float]:
    """The same, all tokens before each computed in one call."""
    found = []
    for window in windows:
        for place in range(1, len(window)):
            model.tokens.clear()  # what it has is computed again
            found.append(loss(model.prefill(window[:place]), window[place]))
    return found


def theirs(path: pathlib.Path, windows: list[list[int]]) -> list[float]:
    """The same by transformers, which unpacks the weights."""
    import transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(
        str(path.parent), gguf_file=path.name, dtype=torch.float32
    ).eval()
    found = []
    with torch.no_grad():
        for window in windows:
            logits = model(torch.tensor([window])).logits[0].numpy()
            found += [loss(logits[place], token) for place, token in enumerate(window[1:])]
    return found


def main() -> int:
    """Both perplexities; 0 where they agree."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=pathlib.Path, help="a .gguf file")
    parser.add_argument("--tokens", type=int, default=2048, help="of the text, in windows of 256")
    parser.add_argument("--weights", default="packed", help="as of uir_tvm.llm.load")
    parser.add_argument("--activation", help="as of uir_tvm.llm.load")
    parser.add_argument("--cache", help="as of uir_tvm.llm.load")
    parser.add_argument("--prefill", action="store_true", help="one call for all tokens before each")
    parser.add_argument("--json", type=pathlib.Path, help="write both to this file")
    arguments = parser.parse_args()
    path = arguments.file.resolve()
    model = uir_tvm.llm.load(
        path,
        max_length=WINDOW,
        weights=arguments.weights,
        activation=arguments.activation,
        cache=arguments.cache,
    )
    text = "\n".join(topics[name] for name in sorted(topics))
    tokens = model.encode(text[: 8 * arguments.tokens], template=False)[: arguments.tokens]
    windows = [tokens[place : place + WINDOW] for place in range(0, len(tokens), WINDOW)]
    start = time.perf_counter()
    losses = {"uir-cpu": (ours_of_prompts if arguments.prefill else ours)(model, windows)}
    seconds = time.perf_counter() - start
    losses["transformers"] = theirs(path, windows)
    found = {name: math.exp(sum(each) / len(each)) for name, each in losses.items()}
    difference = found["uir-cpu"] / found["transformers"] - 1
    Console(highlight=False).print(
        f"{len(tokens)} tokens of pydoc_data.topics: perplexity {found['uir-cpu']:.4f} with weights "
        f"{arguments.weights}, activations {arguments.activation or 'exact'}, on uir-cpu ({seconds:.0f} s), "
        f"{found['transformers']:.4f} in fp32 by torch: {difference:+.4%} (limit {LIMIT:.1%})"
    )
    if arguments.json:
        arguments.json.write_text(json.dumps({"perplexity": found, "tokens": len(tokens)}, indent=1))
    return 0 if abs(difference) <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
