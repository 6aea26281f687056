# SPDX-License-Identifier: Apache-2.0
"""Which servers' times can be compared: those of this version, for this hardware, with one toolchain."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

import attrs

from ..errors import DeviceError, UirError
from ..network_address import Address
from .key import TOOLCHAIN, Key, expected

log = logging.getLogger(__name__)


class Peers:
    """What servers said of themselves.

    The first that is accepted for a target at a place gives the key under which times are kept; those that
    come later must have the same one, toolchain included, or the times would be of different code.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: dict[tuple[str, str], Key] = {}
        self._accepted: set[tuple[Address, str, str]] = set()
        self._refused: set[Address] = set()
        #: Of the last server that was refused, in a line; empty where none was.
        self.refusal = ""

    def key_of(self, target: str, place: str) -> Key | None:
        """The servers' key; None before the first is accepted."""
        with self._lock:
            return self._keys.get((target, place))

    def knows(self, address: Address, target: str, place: str) -> bool:
        """Whether a server was accepted for a target at a place."""
        with self._lock:
            return (address, target, place) in self._accepted

    def refuses(self, address: Address) -> bool:
        """Whether a server was refused."""
        with self._lock:
            return address in self._refused

    def accept(self, address: Address, target: str, place: str, said: Mapping[str, Any]) -> bool:
        """Take a server on by what it says of itself, or refuse it, which is logged."""
        with self._lock:
            try:
                key = checked(str(address), target, place, said, self._keys.get((target, place)))
            except UirError as error:
                log.warning("%s", error)
                self.refusal = " ".join(str(error).split())
                self._refused.add(address)
                return False
            self._keys.setdefault((target, place), key)
            self._accepted.add((address, target, place))
            return True


def checked(address: str, target: str, place: str, said: Mapping[str, Any], others: Key | None = None) -> Key:
    """The key of a server that may measure.

    Parameters
    ----------
    address : str
        For messages.
    target, place : str
        Of the jobs.
    said : mapping
        What the server's ``uir.tune.hello`` answered.
    others : Key, optional
        Of the servers that were accepted before.

    Raises
    ------
    DeviceError
        It has other versions or other hardware, or cannot measure there at all.
    """
    refused = said.get("refused")
    if refused is not None:
        raise DeviceError(
            f"Server {address} cannot measure {target}: {refused['what']}",
            need=refused["need"],
            limit=refused["limit"],
            remedy=refused["remedy"] or "start it where that is so",
        )
    if said["absent"]:
        raise DeviceError(
            f"Server {address} has no {place} for {target}.",
            need="a machine with one, or jobs for its host model",
            limit=str(said["absent"]),
            remedy=f"give servers without {place} another --key",
        )
    theirs = Key.from_json(said["key"])
    ours = expected(target, place)
    without_tool = attrs.evolve(theirs, versions=_without_tool(theirs.versions))
    if differs := ours.differs(without_tool):
        raise DeviceError(
            f"Server {address} is not like this machine.",
            need=", ".join(f"{name} {version}" for name, version in ours.versions.items()),
            limit=differs,
            remedy="install the same versions there, or give it another --key",
        )
    if said["found"] and said["found"] != theirs.hardware:
        raise DeviceError(
            f"Server {address} has other hardware.",
            need=theirs.hardware,
            limit=f"its {place} is {said['found']}",
            remedy="give servers of each kind a --key of their own",
        )
    if others is not None and (differs := others.differs(theirs)):
        raise DeviceError(
            f"Server {address} is not like the other servers, so that their times do not compare.",
            need=", ".join(f"{name} {version}" for name, version in others.versions.items()),
            limit=differs,
            remedy="install the same there, or give it another --key",
        )
    return theirs


def _without_tool(versions: Mapping[str, str]) -> dict[str, str]:
    return {name: version for name, version in versions.items() if name != TOOLCHAIN}
