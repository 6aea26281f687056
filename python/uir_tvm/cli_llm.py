# SPDX-License-Identifier: Apache-2.0
"""The commands ``uir generate`` and ``uir chat``."""

from __future__ import annotations

import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

import click

from .cli_base import ERRORS, Command, emit, global_options, state_of
from .options import ACTIVATIONS, DEFAULT_TARGET, DEVICES, CompileOptions

#: Options of both commands, as click takes them.
_OPTIONS = (
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
    click.option("--max-new-tokens", default=128, show_default=True, help="Tokens of an answer at most."),
    click.option("--temperature", default=0.0, show_default=True, help="0: the most likely token each time."),
    click.option("--top-k", default=0, show_default=True, help="Draw among so many likely tokens; 0: all."),
    click.option("--top-p", default=1.0, show_default=True, help="Draw among likely tokens of this share."),
    click.option("--repetition-penalty", default=1.0, show_default=True, help="Above 1: say less again."),
    click.option("--seed", type=int, help="Equal seeds draw equal tokens."),
    click.option("--stop", multiple=True, help="A text that ends an answer; as often as there are such."),
    click.option(
        "--save",
        type=click.Path(path_type=pathlib.Path),
        help="Also write what is compiled to this folder.",
    ),
)


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def _loaded(model: pathlib.Path, given: dict[str, Any]) -> tuple[Any, float]:
    """The model, saved where that is asked, and the seconds that it took."""
    from .llm import load

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


def _peak_bytes() -> int:
    """The most memory that this process held."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _memory(model: Any) -> str:
    """What the process and the model hold, for people."""
    return f"memory: at most {_peak_bytes() / 2**20:.0f} MiB, {model.nbytes}"


@click.command("generate", cls=Command)
@click.argument("model", type=click.Path(path_type=pathlib.Path))
@click.option("--prompt", required=True, help="The text; - reads it from standard input.")
@click.option("--raw", is_flag=True, help="Without the model's chat template.")
@_options
@global_options
@click.pass_context
def generate_command(ctx: click.Context, model: pathlib.Path, prompt: str, raw: bool, **given: Any) -> None:
    """Answer a prompt with MODEL, piece by piece; figures come at the end, on standard error.

    MODEL is a .gguf file, a folder of transformers, or one that --save wrote, which needs no compiling.

    \b
    uir generate SmolLM2-135M-Instruct.Q4_1.gguf --prompt "What is the capital of France?"
    uir generate FOLDER --prompt - --temperature 0.8 --seed 1 < question.txt
    uir --json generate FOLDER --prompt "Hello"      # the answer and the figures as JSON
    """
    made, seconds = _loaded(model, given)
    text = sys.stdin.read() if prompt == "-" else prompt
    pieces = made.generate(text, stream=True, template=not raw, **given)
    said = []
    for piece in pieces:
        said.append(piece)
        if not state_of(ctx)["json"]:
            click.echo(piece, nl=False)
    figures = made.figures
    data = {
        "text": "".join(said),
        "prompt_tokens": figures.prompt_tokens,
        "prompt_seconds": figures.prompt_seconds,
        "new_tokens": figures.new_tokens,
        "new_seconds": figures.new_seconds,
        "load_seconds": seconds,
        "peak_bytes": _peak_bytes(),
        "weight_bytes": made.nbytes.weights,
        "state_bytes": made.nbytes.state,
    }

    def show() -> None:
        click.echo()
        ERRORS.print(f"{figures}, loaded in {seconds:.1f} s", highlight=False)
        ERRORS.print(_memory(made), highlight=False)

    emit(ctx, data, show)


@click.command("chat", cls=Command)
@click.argument("model", type=click.Path(path_type=pathlib.Path))
@click.option("--system", default="", help="What the model is told first.")
@_options
@global_options
@click.pass_context
def chat_command(ctx: click.Context, model: pathlib.Path, system: str, **given: Any) -> None:
    """Talk with MODEL: a line is a question; an empty line or Ctrl-D ends.

    What was said stays in the model's state, so that an answer costs its own question alone.

    \b
    uir chat SmolLM2-135M-Instruct.Q4_1.gguf
    uir chat FOLDER --temperature 0.7 --system "You answer in one sentence."
    """
    made, seconds = _loaded(model, given)
    ERRORS.print(f"loaded in {seconds:.1f} s; {made.max_length} tokens of room", highlight=False)
    messages = [{"role": "system", "content": system}] if system else []
    while True:
        try:
            line = click.prompt("", prompt_suffix="> ", default="", show_default=False, err=True)
        except click.Abort:  # Ctrl-D
            break
        if not line.strip():
            break
        messages.append({"role": "user", "content": line})
        said = []
        for piece in made.generate(messages, stream=True, **given):
            said.append(piece)
            click.echo(piece, nl=False)
        click.echo()
        ERRORS.print(str(made.figures), style="dim", highlight=False)
        messages.append({"role": "assistant", "content": "".join(said)})
    ERRORS.print(_memory(made), highlight=False)
