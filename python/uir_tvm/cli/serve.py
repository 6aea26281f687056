# SPDX-License-Identifier: Apache-2.0
"""The command ``uir serve``."""

from __future__ import annotations

import pathlib
from typing import Any

import click

from ..errors import MissingPackageError
from .base import ERRORS, Command, global_options
from .model import LOADING, answering, loaded_model, memory_text, with_options

#: Where neither a request nor the command says one: OpenAI's.
TEMPERATURE = 1.0


@click.command("serve", cls=Command)
@click.argument("model", type=click.Path(path_type=pathlib.Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True)
@click.option("--name", help="What clients call the model; default: the file's own name.")
@click.option("--system", default="", help="What the model is told first, where a chat tells it nothing.")
@with_options(*LOADING, *answering(TEMPERATURE))
@global_options
def serve_command(
    model: pathlib.Path, host: str, port: int, name: str | None, system: str, **given: Any
) -> None:
    """Answer over HTTP with MODEL, as OpenAI's interface has it, until it is interrupted.

    MODEL is a .gguf file, a folder of transformers, or one that `uir generate --save` wrote. Answers are made
    one after the other; what a request does not say of them is as the options say. Whoever reaches the
    address may ask: it is this machine's own unless --host says more.

    \b
    pip install 'uir_tvm[serve]'
    uir serve SmolLM2-135M-Instruct.Q4_1.gguf
    curl http://127.0.0.1:8000/v1/chat/completions -H 'Content-Type: application/json' \\
      -d '{"messages": [{"role": "user", "content": "Name a colour."}], "stream": true}'

    Clients of OpenAI take base_url="http://127.0.0.1:8000/v1" and any key.
    """
    try:
        import uvicorn
    except ImportError as error:
        raise MissingPackageError(
            "The server needs uvicorn, which is not installed.",
            limit=str(error),
            remedy="pip install 'uir_tvm[serve]'",
        ) from error
    from ..llm.chat_server import chat_server

    made, _ = loaded_model(model, given)
    app = chat_server(made, name or model.stem, defaults=given, system=system)
    with ERRORS.status(f"compiling {model}"):
        # prompts and tokens, and what chooses them, are compiled now
        made.generate("a", max_new_tokens=2, template=False, temperature=1.0, repetition_penalty=1.1)
        made.reset()
    uvicorn.run(app, host=host, port=port)
    ERRORS.print(memory_text(made), highlight=False)
