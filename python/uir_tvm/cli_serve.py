# SPDX-License-Identifier: Apache-2.0
"""The command ``uir serve``."""

from __future__ import annotations

import pathlib
from typing import Any

import click

from .cli_base import ERRORS, Command, global_options
from .errors import MissingPackageError
from .options import DEFAULT_TARGET, DEVICES, CompileOptions


@click.command("serve", cls=Command)
@click.argument("model", type=click.Path(path_type=pathlib.Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True)
@click.option("--name", help="What clients call the model; default: the file's own name.")
@click.option("--target", default=DEFAULT_TARGET, show_default=True, help="See `uir targets`.")
@click.option("--device", type=click.Choice(DEVICES), help="Where a device's kernels run; `model`: here.")
@click.option("--max-length", default=512, show_default=True, help="Tokens of a prompt and its answer.")
@click.option("--weights", help="As of `uir generate`.")
@global_options
def serve_command(model: pathlib.Path, host: str, port: int, name: str | None, **given: Any) -> None:
    """Answer over HTTP with MODEL, as OpenAI's interface has it, until it is interrupted.

    MODEL is a .gguf file, a folder of transformers, or one that `uir generate --save` wrote. Answers are made
    one after the other. Whoever reaches the address may ask: it is this machine's own unless --host says
    more.

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
    from .llm import load
    from .llm.chat_server import chat_server

    options = CompileOptions(**({"device": given["device"]} if given["device"] else {}))
    with ERRORS.status(f"loading and compiling {model}"):
        made = load(
            model,
            given["target"],
            max_length=given["max_length"],
            weights=given["weights"],
            options=options,
        )
        made.generate("a", max_new_tokens=2, template=False)  # prompts and tokens are compiled now
        made.reset()
    uvicorn.run(chat_server(made, name or model.stem), host=host, port=port)
