# SPDX-License-Identifier: Apache-2.0
"""The commands ``uir generate`` and ``uir chat``."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import click

from .base import ERRORS, Command, emit, global_options, state_of
from .model import LOADING, answering, loaded_model, memory_text, peak_bytes, with_options


@click.command("generate", cls=Command)
@click.argument("model", type=click.Path(path_type=pathlib.Path))
@click.option("--prompt", required=True, help="The text; - reads it from standard input.")
@click.option("--raw", is_flag=True, help="Without the model's chat template.")
@with_options(*LOADING, *answering(0.0))
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
    made, seconds = loaded_model(model, given)
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
        "peak_bytes": peak_bytes(),
        "weight_bytes": made.nbytes.weights,
        "state_bytes": made.nbytes.state,
    }

    def show() -> None:
        click.echo()
        ERRORS.print(f"{figures}, loaded in {seconds:.1f} s", highlight=False)
        ERRORS.print(memory_text(made), highlight=False)

    emit(ctx, data, show)


@click.command("chat", cls=Command)
@click.argument("model", type=click.Path(path_type=pathlib.Path))
@click.option("--system", default="", help="What the model is told first.")
@with_options(*LOADING, *answering(0.0))
@global_options
@click.pass_context
def chat_command(ctx: click.Context, model: pathlib.Path, system: str, **given: Any) -> None:
    """Talk with MODEL: a line is a question; an empty line or Ctrl-D ends.

    What was said stays in the model's state, so that an answer costs its own question alone.

    \b
    uir chat SmolLM2-135M-Instruct.Q4_1.gguf
    uir chat FOLDER --temperature 0.7 --system "You answer in one sentence."
    """
    made, seconds = loaded_model(model, given)
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
    ERRORS.print(memory_text(made), highlight=False)
