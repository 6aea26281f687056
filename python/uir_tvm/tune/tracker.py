# SPDX-License-Identifier: Apache-2.0
"""TVM's RPC tracker as its clients see it, with an end to every wait.

The protocol is that of ``tvm.rpc.tracker``: a magic number both ways, then messages of JSON behind their
length.  TVM's own client (``tvm.rpc.connect_tracker``) waits without end for a server that is free.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from typing import Any

import attrs
from tvm.rpc import base

from ..errors import DeviceError
from ..network_address import Address

#: Seconds that a tracker may take to answer.
ANSWER = 10.0


@attrs.frozen
class Tracker:
    """Questions to a tracker, each over a connection of its own.

    Parameters
    ----------
    address : Address
    """

    address: Address

    def servers(self, key: str) -> list[Address]:
        """The servers of a key, free or not.

        Raises
        ------
        DeviceError
            No tracker answers there.
        """
        rows = self._summary()["server_info"]
        found = [row["addr"] for row in rows if row["key"] == f"server:{key}"]
        return sorted((Address(str(host), int(port)) for host, port in found), key=str)

    def free(self, key: str) -> int:
        """How many servers of a key nobody uses.

        Raises
        ------
        DeviceError
            No tracker answers there.
        """
        return int(self._summary()["queue_info"].get(key, {}).get("free", 0))

    def request(self, key: str, seconds: float = 1.0) -> tuple[Address, str] | None:
        """A server of a key for this client alone, and the ticket that it wants to hear of who connects.

        It is kept for some seconds.  None where none is free within so many.

        Raises
        ------
        DeviceError
            No tracker answers there.
        """
        with self._connected() as connection:
            base.sendjson(connection, [base.TrackerCode.REQUEST, key, "", 1])
            connection.settimeout(seconds)
            try:
                status, value = base.recvjson(connection)
            except TimeoutError:
                return None  # the tracker drops what a closed connection asked for
        if status != base.TrackerCode.SUCCESS:
            return None
        host, port, ticket = value
        return Address(str(host), int(port)), str(ticket)

    def _summary(self) -> dict[str, Any]:
        with self._connected() as connection:
            base.sendjson(connection, [base.TrackerCode.SUMMARY])
            status, value = base.recvjson(connection)
        if status != base.TrackerCode.SUCCESS:
            raise self._silent("it gives no summary")
        return value

    @contextlib.contextmanager
    def _connected(self) -> Iterator[socket.socket]:
        try:
            with socket.create_connection((self.address.host, self.address.port), ANSWER) as connection:
                connection.sendall(struct.pack("<i", base.RPC_TRACKER_MAGIC))
                if struct.unpack("<i", base.recvall(connection, 4))[0] != base.RPC_TRACKER_MAGIC:
                    raise self._silent("what answers there is no tracker")
                yield connection
        except (OSError, ValueError, struct.error) as error:
            raise self._silent(str(error)) from error

    def _silent(self, why: str) -> DeviceError:
        ports = f"--port {self.address.port} --port-end {self.address.port + 1}"
        return DeviceError(
            f"No tracker answers at {self.address}.",
            need="TVM's RPC tracker",
            limit=why,
            remedy=f"start one: python -m tvm.exec.rpc_tracker --host 0.0.0.0 {ports}",
        )
