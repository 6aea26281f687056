# SPDX-License-Identifier: Apache-2.0
"""``uir tune-server``: lend this machine to those who tune."""

from __future__ import annotations

import signal
import sys
from typing import Any

import click

from ..network_address import Address
from .base import OUT, Command, emit, global_options


class ServerAddress(click.ParamType):
    """``HOST:PORT``."""

    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        try:
            return value if isinstance(value, Address) else Address.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command("tune-server", cls=Command)
@click.option(
    "--key", required=True, help="Clients must know it, and nobody else; it crosses no network in the clear."
)
@click.option("--host", default="0.0.0.0", show_default=True, help="The address to listen at.")
@click.option(
    "--port",
    type=click.IntRange(1, 65000),
    default=9090,
    show_default=True,
    help="The first port to try; a second server on this machine takes the next one.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Candidates at once: more than 1 for modelled time only, measured ones disturb each other.",
)
@global_options
@click.pass_context
def tune_server_command(ctx: click.Context, key: str, host: str, port: int, workers: int) -> None:
    """Measure candidates on this machine for `uir tune --rpc`, until it is interrupted.

    \b
    Every machine that measures runs a server; same versions, same hardware, same key:
      uir tune-server --key SECRET
    The machine that tunes names them:
      uir tune model.onnx --target uir-ascend:910b2 --database DIR --rpc HOST:9090 --rpc HOST2:9090 --key ...

    Servers may come and go while others tune. A candidate that crashes or hangs ends a worker process, not
    the server.

    Whoever knows the key can run code on this machine. What is said after that is neither hidden nor signed:
    keep servers in a network that you trust.
    """
    from ..tune.server import MeasuringServer

    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda *_: sys.exit(0))

    def say(line: str) -> None:
        emit(ctx, {"said": line}, lambda: OUT.print(line))

    with MeasuringServer(host, port, key, workers) as server:
        say(f"measuring at port {server.port}; Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("ended")
