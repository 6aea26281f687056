# SPDX-License-Identifier: Apache-2.0
"""``uir tune-server``: lend this machine to those who tune."""

from __future__ import annotations

import signal
import sys
from typing import Any

import click

from .cli_base import OUT, Command, emit, global_options
from .cli_print import table_of
from .network_address import Address


class TrackerAddress(click.ParamType):
    """``HOST:PORT``."""

    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        try:
            return value if isinstance(value, Address) else Address.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command("tune-server", cls=Command)
@click.option(
    "--tracker", type=TrackerAddress(), required=True, metavar="HOST:PORT", help="Where the tracker is."
)
@click.option(
    "--key", required=True, help="What clients ask for; machines with one key must be alike, hardware too."
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
    "--address", help="How clients reach this machine. Default: as the tracker sees it (behind NAT: say it)."
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    metavar="N",
    help="Candidates at once: more than 1 for modelled time only, measured ones disturb each other.",
)
@click.option("--list", "listing", is_flag=True, help="List the servers that the tracker knows, and leave.")
@global_options
@click.pass_context
def tune_server_command(
    ctx: click.Context,
    tracker: Address,
    key: str,
    host: str,
    port: int,
    address: str | None,
    workers: int,
    listing: bool,
) -> None:
    """Measure candidates on this machine for `uir tune --rpc`, until it is interrupted.

    \b
    One machine runs the tracker, which knows who is there:
      python -m tvm.exec.rpc_tracker --host 0.0.0.0 --port 9190
    Every machine that measures runs a server; same versions, same hardware, same key:
      uir tune-server --tracker TRACKER:9190 --key 910b
    The machine that tunes asks for them:
      uir tune model.onnx --target uir-ascend:910b2 --database DIR --rpc TRACKER:9190 --key 910b

    Servers may come and go while others tune. A candidate that crashes or hangs ends a worker process, not
    the server. pip install 'uir_tvm[rpc]' brings what TVM's RPC needs.

    Whoever reaches the tracker's or a server's port can run code on that machine: keep them in a network that
    you trust.
    """
    from .tune.tracker import Tracker

    if listing:
        client = Tracker(tracker)
        rows = [{"server": str(found), "key": key} for found in client.servers(key)]
        data = {"tracker": str(tracker), "key": key, "servers": rows, "free": client.free(key)}
        emit(ctx, data, lambda: _show(data))
        return
    from .tune import server

    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda *_: sys.exit(0))

    def begin() -> Any:
        return server.start(tracker, key, host=host, port=port, address=address, workers=workers)

    def say(line: str) -> None:
        emit(ctx, {"said": line}, lambda: OUT.print(line))

    say(f"measuring for the tracker {tracker}, key {key}; Ctrl-C ends it")
    try:
        server.serve(begin, say)
    except KeyboardInterrupt:
        say("ended")


def _show(data: dict[str, Any]) -> None:
    OUT.print(table_of(data["servers"]))
    OUT.print(f"{len(data['servers'])} servers, {data['free']} free")
