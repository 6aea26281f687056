# SPDX-License-Identifier: Apache-2.0
"""``uir tune-server``: what its help teaches, and what it refuses; servers are in `tune.test_rpc`."""

from __future__ import annotations

import json

from click.testing import CliRunner
from uir_tvm.cli import main


def test_help_shows_the_three_commands() -> None:
    """Of the tracker, of a server, and of whoever tunes."""
    said = CliRunner().invoke(main, ["tune-server", "--help"]).output
    for words in ("tvm.exec.rpc_tracker", "uir tune-server --tracker", "--rpc TRACKER:9190", "trust"):
        assert words in said


def test_addresses_that_are_none() -> None:
    result = CliRunner().invoke(main, ["tune-server", "--tracker", "machine", "--key", "k"])
    assert result.exit_code == 2 and "'machine' is not HOST:PORT" in result.output


def test_a_list_without_a_tracker() -> None:
    """The error names the command that starts one; port 1 is nobody's."""
    arguments = ["tune-server", "--tracker", "127.0.0.1:1", "--key", "k", "--list", "--json"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 15
    error = json.loads(result.output)
    assert error["error"] == "DeviceError" and "rpc_tracker" in error["remedy"]
