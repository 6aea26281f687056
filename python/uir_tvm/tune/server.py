# SPDX-License-Identifier: Apache-2.0
"""A server that measures: TVM's RPC server, with two functions more.

    uir.tune.hello      who this is: versions, toolchain, hardware, and whether a place is here
    uir.tune.measure    jobs as JSON in, results as JSON out

Clients take a server on by what it says of itself (`checked`), or its times would be of something else.  A
session of TVM's server is a process of its own, forked where uir_tvm is imported already.  It keeps its
workers from its first job to its end, so that a job costs no start of Python.  Candidates run in those
workers: one that crashes ends a worker, not the session.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import logging
import multiprocessing.util
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import tvm_ffi

from ..errors import DeviceError, UirError
from ..network_address import Address
from ..target import registry
from .job import Job
from .key import Key, expected, key_of
from .measure import Measurer

log = logging.getLogger(__name__)

#: Functions of a session.
HELLO, MEASURE = "uir.tune.hello", "uir.tune.measure"
#: What TVM's servers import when they start.
NEEDS = ("cloudpickle", "psutil")
#: First port that is tried, and how many.
PORT, PORTS = 9090, 100
#: Seconds between looks at whether the process that started this one still lives.
WATCH = 0.5
#: Seconds before a server that ended is started again.
PAUSE = 2.0

#: Makes the measurer of a session.
Make = Callable[[], Measurer]


def start(
    tracker: Address,
    key: str,
    *,
    host: str = "0.0.0.0",
    port: int = PORT,
    address: str | None = None,
    make: Make | None = None,
    workers: int = 1,
) -> Any:
    """Start a server process that reports to a tracker.

    Parameters
    ----------
    tracker : Address
        It need not be there yet: the server asks for a minute, and again when it is lost.
    key : str
        By which clients ask for servers like this one.
    host : str
        Where to listen; default: everywhere.
    port : int
        The first that is tried.
    address : str, optional
        The name or number by which clients reach this machine; default: the one that the tracker sees.
    make : callable, optional
        Makes the measurer of a session, in the server's process; default: `measure.LocalMeasurer`.
    workers : int
        Jobs at once, of the default measurer.

    Returns
    -------
    tvm.rpc.Server
        With ``port``, ``proc`` and ``terminate()``.

    Raises
    ------
    DeviceError
        Packages that TVM's RPC needs are missing.
    """
    rpc = _rpc()
    make = make or functools.partial(_local, workers)
    return rpc.Server(
        host,
        port,
        port + PORTS,
        tracker_addr=(tracker.host, tracker.port),
        key=key,
        custom_addr=address,
        silent=True,
        server_init_callback=functools.partial(_prepare, os.getpid(), make),
    )


def serve(begin: Callable[[], Any], say: Callable[[str], None]) -> None:
    """Keep a server running until this process is interrupted.

    Parameters
    ----------
    begin : callable
        Starts it (`start`).
    say : callable
        Gets lines for people.
    """
    server = None
    try:
        while True:
            server = begin()
            say(f"listening at port {server.port}")
            while server.proc.is_alive():
                server.proc.join(1.0)
            say(f"the server process ended; starting another in {PAUSE:g} s")
            server.terminate()
            time.sleep(PAUSE)
    finally:
        if server is not None:
            server.terminate()


def _rpc() -> Any:
    """TVM's RPC, which some packages that TVM does not bring must be there for."""
    missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        raise DeviceError(
            "A server needs packages that are not installed.",
            need=", ".join(missing),
            remedy="pip install 'uir_tvm[rpc]'",
        )
    return importlib.import_module("tvm.rpc")


def _local(workers: int) -> Measurer:
    from .measure import LocalMeasurer

    return LocalMeasurer(workers=workers)


def _prepare(parent: int, make: Make) -> None:
    """In the server's process, before it listens: what sessions have."""
    _leave_after(parent)
    threading.excepthook = _end_process
    session = _Session(make)
    tvm_ffi.register_global_func(HELLO, session.hello, override=True)
    tvm_ffi.register_global_func(MEASURE, session.measure, override=True)


def _leave_after(parent: int) -> None:
    """End this process when its parent is gone; a server that nobody holds would serve for ever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH)
        os._exit(0)

    if os.getppid() == parent:
        threading.Thread(target=watch, daemon=True, name="uir-tune-watch").start()


def _end_process(failure: threading.ExceptHookArgs) -> None:
    """The thread that listens ended, as it does when a session crashes: the process is of no more use."""
    log.error("the server ends: %s", failure.exc_value)
    os._exit(1)


@attrs.define
class _Session:
    """The state of a session; made before the fork, filled after it."""

    make: Make
    measurer: Measurer | None = None

    def hello(self, text: str) -> str:
        """Who this is, for jobs of a target at a place."""
        _leave_after(os.getppid())
        asked = json.loads(str(text))
        try:
            return json.dumps(self._described(str(asked["target"]), str(asked["place"])))
        except UirError as error:
            return json.dumps({"refused": error.to_json()})

    def measure(self, text: str) -> str:
        """Results of jobs: ``{"how": "measure" or "confirm", "jobs": [...]}``."""
        asked = json.loads(str(text))
        jobs = [Job.from_json(job) for job in asked["jobs"]]
        measurer = self._own()
        results = measurer.confirm(jobs) if asked["how"] == "confirm" else measurer.measure(jobs)
        return json.dumps([result.to_json() for result in results])

    def _own(self) -> Measurer:
        if self.measurer is None:
            self.measurer = self.make()
            # when the session ends: TVM's server runs it by multiprocessing, which would wait for workers
            multiprocessing.util.Finalize(None, self.measurer.close, exitpriority=100)
        return self.measurer

    def _described(self, target: str, place: str) -> Mapping[str, Any]:
        found = registry.resolve(target, place)
        here = registry.place_of(found.target)
        if absent := here.absent():
            return {"name": socket.gethostname(), "absent": absent}
        return {
            "name": socket.gethostname(),
            "absent": "",
            "key": key_of(target, place).to_json(),
            "found": here.found() or "",
            "workers": int(getattr(self._own(), "workers", 1)),
        }


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
    if differs := ours.differs(theirs.without_toolchain):
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
