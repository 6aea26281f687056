# SPDX-License-Identifier: Apache-2.0
"""What commands that ask language models have in common: options, loading, and what is said of memory."""

from __future__ import annotations

import pathlib
import time
from collections.abc import Callable
from typing import Any

import click

from ..options import ACTIVATIONS, DEFAULT_TARGET, DEVICES, CompileOptions
from .base import ERRORS

#: Options of how a model is loaded.
LOADING = (
    click.option("--target", default=DEFAULT_TARGET, show_default=True, help="See `uir targets`."),
    click.option("--device", type=click.Choice(DEVICES), help="Where a device's kernels run; `model`: here."),
    click.option("--max-length", default=512, show_default=True, help="Tokens of all prompts and answers."),
    click.option(
        "--weights",
        type=click.Choice(["packed", "float32", "float16", "fp16", "bfloat16", "bf16", "q8", "q4"]),
        help="As a GGUF file packs them, of a type, or packed anew to 8 or 4 bits.",
    ),
    click.option(
        "--cache",
        type=click.Choice(["float32", "float16", "fp16", "bfloat16", "bf16"]),
        help="The type of keys and values. Default: float16 where weights are packed, else the model's own.",
    ),
    click.option(
        "--activation",
        type=click.Choice(ACTIVATIONS),
        help="int8: products with packed weights may round activations to 8 bits a value. Default: exact.",
    ),
    click.option(
        "--save",
        type=click.Path(path_type=pathlib.Path),
        help="Also write what is compiled to this folder.",
    ),
)
#: Options that `AnswerRules.of` takes.
ANSWERS = ("max_new_tokens", "temperature", "top_k", "top_p", "repetition_penalty", "stop", "seed")


def answering(temperature: float) -> tuple[Callable[..., Any], ...]:
    """Options of how tokens are chosen, and of what ends an answer.

    Parameters
    ----------
    temperature : float
        Where none is said.
    """
    return (
        click.option("--max-new-tokens", default=128, show_default=True, help="Tokens of an answer at most."),
        click.option(
            "--temperature",
            default=temperature,
            show_default=True,
            help="0: the most likely token each time.",
        ),
        click.option(
            "--top-k", default=0, show_default=True, help="Draw among so many likely tokens; 0: all."
        ),
        click.option(
            "--top-p", default=1.0, show_default=True, help="Draw among likely tokens of this share."
        ),
        click.option("--repetition-penalty", default=1.0, show_default=True, help="Above 1: say less again."),
        click.option("--seed", type=int, help="Equal seeds draw equal tokens."),
        click.option("--stop", multiple=True, help="A text that ends an answer; as often as there are such."),
    )


def with_options(*options: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that gives a command options, in their order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def loaded_model(model: pathlib.Path, given: dict[str, Any]) -> tuple[Any, float]:
    """The model, saved where that is asked, and the seconds that it took.

    Parameters
    ----------
    model : pathlib.Path
    given : dict of str to object
        Options; those of `LOADING` are taken out.

    Raises
    ------
    GenerationError
        Options of answers that are out of their ranges, before the model is read; and as of `load`.
    """
    from ..llm import load
    from ..llm.compiled_model import AnswerRules

    AnswerRules.of(**{option: given[option] for option in ANSWERS})
    start, device = time.perf_counter(), given.pop("device")
    options = CompileOptions(**({"device": device} if device else {}))
    target, length, folder = given.pop("target"), given.pop("max_length"), given.pop("save")
    how = {name: given.pop(name) for name in ("weights", "activation", "cache")}
    with ERRORS.status(f"loading and compiling {model}"):
        made = load(model, target, max_length=length, **how, options=options)
    seconds = time.perf_counter() - start
    if folder is not None:
        with ERRORS.status(f"saving to {folder}"):
            made.save(folder)
    return made, seconds


def peak_bytes() -> int:
    """The most memory that this process held."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def memory_text(model: Any) -> str:
    """What the process and the model hold, for people."""
    return f"memory: at most {peak_bytes() / 2**20:.0f} MiB, {model.nbytes}"
