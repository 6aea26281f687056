# SPDX-License-Identifier: Apache-2.0
"""``uir tune-server``: what its help teaches, and what it refuses; servers are in `tune.test_rpc`."""

from __future__ import annotations

import json

from click.testing import CliRunner
from uir_tvm.cli import main


def test_help_shows_both_commands() -> None:
    """Of a server, and of whoever tunes."""
    said = CliRunner().invoke(main, ["tune-server", "--help"]).output
    for words in ("uir tune-server --key", "--rpc HOST:9090", "trust"):
        assert words in said


def test_an_address_of_another_machine() -> None:
    """Nobody can listen there; the error says what to name instead. The address is one for documents."""
    result = CliRunner().invoke(main, ["tune-server", "--host", "192.0.2.1", "--key", "k", "--json"])
    assert result.exit_code == 15
    error = json.loads(result.output)
    assert error["error"] == "DeviceError" and "--host" in error["remedy"]
