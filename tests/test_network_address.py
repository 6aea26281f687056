# SPDX-License-Identifier: Apache-2.0
"""Addresses as people write them."""

from __future__ import annotations

import pytest
from uir_tvm.network_address import Address


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
