# SPDX-License-Identifier: Apache-2.0
"""Where a server of the network listens, as people write it."""

from __future__ import annotations

import attrs


@attrs.frozen
class Address:
    """Where a server listens."""

    host: str
    port: int

    @staticmethod
    def parse(text: str) -> Address:
        """Of ``HOST:PORT``; a host of numbers and colons stands in brackets.

        Raises
        ------
        ValueError
            Something else.
        """
        host, colon, port = text.rpartition(":")
        if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ValueError(f"{text!r} is not HOST:PORT")
        return Address(host.removeprefix("[").removesuffix("]"), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
