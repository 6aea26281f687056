# SPDX-License-Identifier: Apache-2.0
"""Candidates measured by other machines: servers of a key that TVM's RPC tracker knows.

Every server is held by a thread, which takes the next jobs from a common queue when it is done with the last
ones.  What is lost with a server goes to others.  The thread that asked for results waits for all of them; it
looks at every server's time limit, because a machine that hangs says nothing.
"""

from __future__ import annotations

import json
import logging
import math
import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import attrs

from ..errors import DeviceError
from ..network_address import Address
from .job import LOST, Job, Result
from .key import Key
from .measure import OnResult
from .peers import Peers
from .server import HELLO, MEASURE
from .tracker import Offer, Tracker

log = logging.getLogger(__name__)

#: Seconds between looks at the tracker for servers, and at the limits of those at work.
TICK = 0.25
#: Seconds that a server may take to answer who it is.
GREETING = 60.0
#: Stages of a job, each of which may take the job's own limit.
STAGES_OF_A_JOB = 3
#: Seconds beside that: a worker starts, and starts again.
GRACE = 60.0
#: Seconds that a session lasts; TVM's server ends it then, should this client have vanished without a word.
LEASE = 3600
#: Seconds after which a server without work goes back to the tracker, for other clients.
IDLE = 20.0
#: Servers that may be lost with a job.
TRIES = 3


@attrs.define(eq=False)
class _Round:
    """One call of `measure` or `confirm`."""

    jobs: Sequence[Job]
    how: str
    #: Numbers of the jobs that nobody has.
    waiting: deque[int]
    results: dict[int, Result] = attrs.field(factory=dict)
    tries: dict[int, int] = attrs.field(factory=dict)
    #: Numbers of jobs whose results are there.
    news: queue.SimpleQueue[int] = attrs.field(factory=queue.SimpleQueue)


@attrs.define(eq=False)
class _Server:
    """A server that this client holds."""

    address: Address
    workers: int = 1
    name: str = ""
    #: What it has, of which round, and until when it must have answered.
    round: _Round | None = None
    batch: list[int] = attrs.field(factory=list)
    deadline: float = math.inf
    ends: float = math.inf


class RpcMeasurer:
    """Measures on every server of a key that a tracker knows or comes to know.

    Parameters
    ----------
    host, port : str, int
        The tracker's.
    key : str
        The servers' (``uir tune-server --key``).
    patience : float
        Seconds without any server after which what remains is given up as lost.
    grace : float
        Seconds that a server may take beside the time limits of its jobs before it counts as lost.
    tries : int
        Servers that may be lost with a job before it counts as lost itself: it may be what ends them.
    function : str
        The remote function that measures.

    Raises
    ------
    DeviceError
        No tracker answers there.
    """

    name = "rpc"

    def __init__(
        self,
        host: str,
        port: int,
        key: str,
        *,
        patience: float = 60.0,
        grace: float = GRACE,
        tries: int = TRIES,
        function: str = MEASURE,
    ) -> None:
        self.tracker = Tracker(Address(host, port))
        self.key = key
        self._patience, self._grace, self._tries, self._function = patience, grace, tries, function
        self._lock = threading.Condition()
        self._servers: list[_Server] = []
        self._peers = Peers()
        self._round: _Round | None = None
        self._closed = False
        self._alone_since = time.monotonic()
        self._known = len(self.tracker.servers(key))
        self._scout = threading.Thread(target=self._look_for_servers, daemon=True, name="uir-rpc-scout")
        self._scout.start()

    @property
    def workers(self) -> int:
        """Jobs at once: of the servers that this client holds, or as many as the tracker knows servers."""
        with self._lock:
            return max(1, self._known, sum(server.workers for server in self._servers if server.name))

    @property
    def servers(self) -> list[str]:
        """Addresses of the servers that this client holds."""
        with self._lock:
            return [str(server.address) for server in self._servers if server.name]

    def key_of(self, target: str, place: str) -> Key | None:
        """Under what times of a target at a place are to be kept; None before a server said who it is."""
        return self._peers.key_of(target, place)

    def measure(self, jobs: Sequence[Job], on_result: OnResult | None = None) -> list[Result]:
        """The results of some jobs, in their order; see `measure.Measurer`."""
        made = _Round(jobs, "measure", deque(range(len(jobs))))
        return self._finish(made, on_result)

    def confirm(self, jobs: Sequence[Job]) -> list[Result]:
        """Measure a few jobs in turns, all on one server."""
        return self._finish(_Round(jobs, "confirm", deque(range(len(jobs)))), None)

    def close(self) -> None:
        """Leave all servers; those at work end with what they have."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()

    def _finish(self, made: _Round, on_result: OnResult | None) -> list[Result]:
        with self._lock:
            if self._closed:
                raise RuntimeError("the measurer is closed")
            self._round = made
            self._alone_since = time.monotonic()
            self._lock.notify_all()
        try:
            for _ in made.jobs:
                number = self._next(made)
                if on_result is not None:
                    on_result(number, made.results[number])
        finally:
            with self._lock:
                # whatever comes of this round later is of no interest
                made.waiting.clear()
                self._round = None
        return [made.results[number] for number in range(len(made.jobs))]

    def _next(self, made: _Round) -> int:
        """The number of the next job with a result."""
        while True:
            try:
                return made.news.get(timeout=TICK)
            except queue.Empty:
                self._drop_what_hangs()
                self._give_up_alone(made)

    def _drop_what_hangs(self) -> None:
        now = time.monotonic()
        with self._lock:
            hanging = [server for server in self._servers if now > server.deadline]
        for server in hanging:
            # its thread waits in TVM's client, which cannot be interrupted, and is left there
            self._lose(server, "it does not answer")

    def _give_up_alone(self, made: _Round) -> None:
        """Without a server for long: what nobody has is lost."""
        with self._lock:
            if self._servers:
                self._alone_since = time.monotonic()
            elif time.monotonic() - self._alone_since > self._patience:
                why = self._peers.refusal or f"no server with the key {self.key} at {self.tracker.address}"
                said = f"nobody measured it for {self._patience:g} s: {why}"
                while made.waiting:
                    self._settle(made, made.waiting.popleft(), Result(outcome=LOST, said=said))

    def _settle(self, made: _Round, number: int, result: Result) -> None:
        made.results[number] = result
        made.news.put(number)

    def _look_for_servers(self) -> None:
        """Take every server that is free while there is work."""
        silent = False
        while not self._closed:
            with self._lock:
                wanted = self._round is not None and bool(self._round.waiting)
                if not wanted:
                    self._lock.wait(TICK)
                    continue
            try:
                offer = self.tracker.request(self.key) if self.tracker.free(self.key) else None
                self._known = len(self.tracker.servers(self.key))
                silent = False
            except DeviceError as error:
                if not silent:
                    log.warning("%s", error)
                silent, offer = True, None
            if offer is None or self._peers.refuses(offer.address):
                time.sleep(TICK)
                continue
            server = _Server(offer.address, deadline=time.monotonic() + GREETING)
            with self._lock:
                self._servers.append(server)
            arguments = (server, offer)
            threading.Thread(target=self._hold, args=arguments, daemon=True, name="uir-rpc-server").start()

    def _hold(self, server: _Server, offer: Offer) -> None:
        """The thread of a server."""
        try:
            self._work(server, offer)
        except Exception as error:  # TVM's client raises whatever its C++ throws
            self._lose(server, _first_line(error))
        else:
            with self._lock:
                if server in self._servers:
                    self._servers.remove(server)

    def _work(self, server: _Server, offer: Offer) -> None:
        from tvm import rpc

        address = offer.address
        server.ends = time.monotonic() + LEASE / 2
        session = rpc.connect(address.host, address.port, offer.ticket, session_timeout=LEASE)
        hello, measure = session.get_function(HELLO), session.get_function(self._function)
        while (batch := self._take(server)) is not None:
            made, numbers = batch
            jobs = [made.jobs[number] for number in numbers]
            for target, place in {(job.target, job.place) for job in jobs}:
                if not self._peers.knows(address, target, place):
                    said = json.loads(str(hello(json.dumps({"target": target, "place": place}))))
                    if not self._peers.accept(address, target, place, said):
                        self._return(server)
                        return
                    self._introduce(server, said)
            asked = {"how": made.how, "jobs": [job.to_json() for job in jobs]}
            answers = json.loads(str(measure(json.dumps(asked))))
            self._hand_in(server, made, numbers, [Result.from_json(answer) for answer in answers])

    def _introduce(self, server: _Server, said: dict[str, Any]) -> None:
        with self._lock:
            if not server.name:
                log.info("server %s (%s) measures", server.address, said["name"])
            server.name, server.workers = str(said["name"]), max(1, int(said["workers"]))

    def _take(self, server: _Server) -> tuple[_Round, list[int]] | None:
        """The next jobs for a server; waits for them; None: leave it."""
        idle = time.monotonic() + IDLE
        with self._lock:
            server.deadline = math.inf
            while True:
                now = time.monotonic()
                if self._closed or server not in self._servers or now > min(idle, server.ends):
                    return None
                made = self._round
                if made is not None and made.waiting:
                    break
                self._lock.wait(TICK)
            numbers = _next_batch(made, server.workers)
            server.round, server.batch = made, numbers
            server.deadline = time.monotonic() + self._limit(server, made, numbers)
            return made, numbers

    def _limit(self, server: _Server, made: _Round, numbers: Sequence[int]) -> float:
        """Seconds that a server may take for some jobs."""
        limits = [made.jobs[number].settings.timeout_seconds for number in numbers]
        if made.how == "confirm":
            # all in one process, which has that long for every stage of any of them
            return STAGES_OF_A_JOB * len(limits) * sum(limits) + self._grace
        return STAGES_OF_A_JOB * max(limits) * math.ceil(len(limits) / server.workers) + self._grace

    def _hand_in(
        self, server: _Server, made: _Round, numbers: Sequence[int], results: Sequence[Result]
    ) -> None:
        assert len(numbers) == len(results), (len(numbers), len(results))
        with self._lock:
            if server not in self._servers:
                return  # given up before: its jobs are others'
            server.round, server.batch = None, []
            for number, result in zip(numbers, results, strict=True):
                self._settle(made, number, result)

    def _return(self, server: _Server) -> None:
        """A server that is refused gives its jobs back, which are none the worse for it."""
        with self._lock:
            made = server.round
            if made is not None and server in self._servers:
                made.waiting.extendleft(reversed(server.batch))

    def _lose(self, server: _Server, why: str) -> None:
        """A server is gone: its jobs go to others."""
        with self._lock:
            if server not in self._servers:
                return
            self._servers.remove(server)
            made, numbers = server.round, server.batch
            self._alone_since = time.monotonic()
            if made is None or made is not self._round:
                log.warning("server %s is lost (%s)", server.address, why)
                return
            log.warning(
                "server %s is lost (%s); what it had, %d of the candidates, goes to others",
                server.address,
                why,
                len(numbers),
            )
            for number in reversed(numbers):
                made.tries[number] = made.tries.get(number, 0) + 1
                if made.tries[number] < self._tries:
                    made.waiting.appendleft(number)
                else:
                    said = f"{self._tries} servers were lost while they measured it"
                    self._settle(made, number, Result(outcome=LOST, said=said))
            self._lock.notify_all()


def _next_batch(made: _Round, workers: int) -> list[int]:
    """Take the jobs for a server off the queue: as many as it measures at once, or all to be confirmed."""
    if made.how == "confirm":
        numbers = list(made.waiting)
        made.waiting.clear()
        return numbers
    numbers = [made.waiting.popleft()]
    # what was lost with a server before goes alone: it may be why
    while made.waiting and len(numbers) < workers:
        if any(made.tries.get(number) for number in (numbers[0], made.waiting[0])):
            break
        numbers.append(made.waiting.popleft())
    return numbers


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
