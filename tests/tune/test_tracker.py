# SPDX-License-Identifier: Apache-2.0
"""Addresses, and what is no tracker; questions to a real one are in `test_rpc`."""

from __future__ import annotations

import socket
import threading

import pytest
from uir_tvm.errors import DeviceError
from uir_tvm.network_address import Address
from uir_tvm.tune.tracker import Tracker


@pytest.mark.parametrize(
    ("text", "host", "port"), [("machine:9190", "machine", 9190), ("[::1]:80", "::1", 80)]
)
def test_addresses(text: str, host: str, port: int) -> None:
    """Read, and written the same again."""
    address = Address.parse(text)
    assert (address.host, address.port) == (host, port)
    assert str(address) == text


@pytest.mark.parametrize("text", ["machine", "machine:", ":9190", "machine:x", "machine:0", "machine:65536"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        Address.parse(text)


def test_what_is_no_tracker() -> None:
    """Something else that answers is told from a tracker."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(4)
                connection.sendall(b"HTTP/1.1 400")

        thread = threading.Thread(target=answer)
        thread.start()
        port = listening.getsockname()[1]
        with pytest.raises(DeviceError, match="No tracker answers") as caught:
            Tracker(Address("127.0.0.1", port)).servers("k")
        thread.join()
    assert "no tracker" in caught.value.limit
