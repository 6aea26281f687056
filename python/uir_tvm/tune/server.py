# SPDX-License-Identifier: Apache-2.0
"""A server that measures for other machines: JSON both ways, over connections of Python's multiprocessing.

Who connects must know the server's key, and the server shows that it does, before anything else is said
(``multiprocessing.connection`` has the protocol).  Then a client asks who this is, and takes the server on by
what it says of itself (`checked`), or its times would be of something else.  Every connection has a worker of
its own from its first job to its end: candidates run in processes, which crash without the server.
"""

from __future__ import annotations

import errno
import json
import logging
import socket
import socketserver
import threading
from collections.abc import Callable, Mapping
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any

from ..errors import DeviceError, UirError, first_line
from ..target import registry
from .job import Job
from .key import Key, expected, key_of
from .measure import LocalMeasurer, Measurer

log = logging.getLogger(__name__)

#: First port that is tried, and how many.
PORT, PORTS = 9090, 100
#: What a connection hears first: it has a worker, or there is none for it.
READY, BUSY = b"ready", b"busy"
#: Seconds after which a client that asks for nothing is taken to be gone.
SILENT = 120.0


class MeasuringServer(socketserver.ThreadingTCPServer):
    """Listens, and measures in threads; `serve_forever` runs it.

    Parameters
    ----------
    host, port : str, int
        Where to listen; the port is the first that is tried.
    key : str
        What clients have to know.
    workers : int
        Connections at once: more than 1 for modelled times only, measured ones disturb each other.
    make : callable
        Makes the measurer of a connection.

    Raises
    ------
    DeviceError
        It cannot listen there.
    """

    daemon_threads = allow_reuse_address = True

    def __init__(
        self, host: str, port: int, key: str, workers: int = 1, make: Callable[[], Measurer] = LocalMeasurer
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._key, self._make = key.encode(), make
        self._workers = threading.Semaphore(workers)
        self._measurers: list[Measurer] = []
        for number in range(port, port + PORTS):
            try:
                super().__init__((host, number), socketserver.BaseRequestHandler)
                return
            except OSError as error:
                if error.errno != errno.EADDRINUSE or number == port + PORTS - 1:
                    raise DeviceError(
                        f"A server cannot listen at {host}:{number}.",
                        need="an address of this machine, and a port that this user may take",
                        limit=str(error),
                        remedy="name another --host or --port",
                    ) from error

    @property
    def port(self) -> int:
        """At which it listens."""
        return int(self.server_address[1])

    def finish_request(self, request: Any, client_address: Any) -> None:
        """A connection, from its beginning to its end; in a thread."""
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(request.detach())
        try:
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
            if not self._workers.acquire(blocking=False):
                connection.send_bytes(BUSY)
                return
            try:
                connection.send_bytes(READY)
                self._answer(connection)
            finally:
                self._workers.release()
        except AuthenticationError:
            log.warning("%s does not know the key", client_address[0])
        except (EOFError, OSError, AssertionError) as error:
            log.info("%s has left: %s", client_address[0], first_line(error))
        except UirError as error:
            log.error("%s", error)
        finally:
            connection.close()

    def server_close(self) -> None:
        """End all workers."""
        super().server_close()
        for measurer in list(self._measurers):
            measurer.close()

    def _answer(self, connection: Connection) -> None:
        measurer = self._make()
        self._measurers.append(measurer)
        try:
            while connection.poll(SILENT):
                asked = json.loads(connection.recv_bytes())
                answer = said_of(*asked["hello"]) if "hello" in asked else measured(measurer, asked)
                connection.send_bytes(json.dumps(answer).encode())
        finally:
            self._measurers.remove(measurer)
            measurer.close()


def measured(measurer: Measurer, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Results of jobs: ``{"jobs": [...], "turns": whether they are measured in turns}``."""
    jobs = [Job.from_json(job) for job in asked["jobs"]]
    results = measurer.confirm(jobs) if asked["turns"] else measurer.measure(jobs)
    return {"results": [result.to_json() for result in results]}


def said_of(target: str, place: str) -> dict[str, Any]:
    """Who this is, for jobs of a target at a place."""
    try:
        here = registry.place_of(registry.resolve(target, place).target)
        said: dict[str, Any] = {"name": socket.gethostname(), "absent": here.absent() or ""}
        if not said["absent"]:
            said |= {"key": key_of(target, place).to_json(), "found": here.found() or ""}
        return said
    except UirError as error:
        return {"refused": error.to_json()}


def checked(address: str, target: str, place: str, said: Mapping[str, Any], others: Key | None = None) -> Key:
    """The key of a server that may measure.

    Parameters
    ----------
    address : str
        For messages.
    target, place : str
        Of the jobs.
    said : mapping
        What the server answered (`said_of`).
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
            remedy=f"tune with servers that have {place}",
        )
    theirs, ours = Key.from_json(said["key"]), expected(target, place)
    whom, differs = "this machine", ours.differs(theirs.without_toolchain)
    if not differs and others is not None:
        ours, whom = others, "the other servers, so that their times do not compare"
        differs = others.differs(theirs)
    if differs:
        raise DeviceError(
            f"Server {address} is not like {whom}.",
            need=", ".join(f"{name} {version}" for name, version in ours.versions.items()),
            limit=differs,
            remedy="install the same versions there, or tune without it",
        )
    if said["found"] and said["found"] != theirs.hardware:
        raise DeviceError(
            f"Server {address} has other hardware.",
            need=theirs.hardware,
            limit=f"its {place} is {said['found']}",
            remedy="tune with servers of one kind",
        )
    return theirs
