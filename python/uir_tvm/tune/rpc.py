# SPDX-License-Identifier: Apache-2.0
"""Candidates measured by other machines: servers of a key that TVM's RPC tracker knows.

Whoever asks for results deals jobs to servers, one call in a thread for each, and takes what comes back.  It
looks for more servers meanwhile, and at every server's time limit, because a machine that hangs says nothing.
What is lost with a server goes to others.
"""

from __future__ import annotations

import importlib
import json
import logging
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

import attrs

from ..errors import UirError, first_line
from ..network_address import Address
from .job import LOST, Job, Result
from .key import Key
from .measure import OnResult
from .server import HELLO, MEASURE, checked
from .tracker import Tracker

log = logging.getLogger(__name__)

#: Seconds between looks at the tracker for servers, and at the limits of those at work.
TICK = 0.25
#: Servers that are asked for at once, and seconds that one may take to answer who it is.
ASKED, GREETING = 4, 60.0
#: Stages of a job, each of which may take the job's own limit.
STAGES_OF_A_JOB = 3
#: Seconds beside that: a worker starts, and starts again.
GRACE = 60.0
#: Seconds that a session lasts; TVM's server ends it then, should this client have vanished without a word.
LEASE = 3600
#: Seconds after which servers without work go back to the tracker, for other clients.
IDLE = 20.0
#: Servers that may be lost with a job.
TRIES = 3

#: A target and a place.
Kind = tuple[str, str]


@attrs.define(eq=False)
class _Server:
    """A server that this client holds, or has asked for."""

    #: What it is at: an answer to who it is, or the results of a batch; None: it is free.
    call: Future[Any] | None = None
    #: Until when that must be there, and until when the server is held.
    deadline: float = math.inf
    ends: float = math.inf
    session: Any = None
    address: Address | None = None
    workers: int = 1
    #: For what it may measure.
    kinds: set[Kind] = attrs.field(factory=set)
    #: Numbers of the jobs that it has.
    batch: list[int] = attrs.field(factory=list)


@attrs.define(eq=False)
class _Round:
    """One call of `measure` or `confirm`."""

    jobs: Sequence[Job]
    how: str
    on_result: OnResult | None
    #: Numbers of the jobs that nobody has.
    waiting: deque[int]
    results: dict[int, Result] = attrs.field(factory=dict)
    #: Servers that were lost with a job.
    tries: Counter[int] = attrs.field(factory=Counter)

    @property
    def kinds(self) -> set[Kind]:
        """Of its jobs."""
        return {(job.target, job.place) for job in self.jobs}

    def settle(self, number: int, result: Result) -> None:
        """A job has its result."""
        self.results[number] = result
        if self.on_result is not None:
            self.on_result(number, result)


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
    ) -> None:
        self.tracker, self.key = Tracker(Address(host, port)), key
        self._patience, self._grace, self._tries = patience, grace, tries
        #: Held while jobs are dealt.
        self._lock = threading.Lock()
        self._servers: list[_Server] = []
        #: Of the servers that were accepted first: others must have the same, or times would not compare.
        self._keys: dict[Kind, Key] = {}
        self._refused: set[Address] = set()
        self._refusal = ""
        self._closed = self._silent = False
        self._looked = 0.0
        self._leaving = threading.Timer(IDLE, self._leave_idle)
        self._known = len(self.tracker.servers(key))

    @property
    def workers(self) -> int:
        """Jobs at once: of the servers that this client holds, or as many as the tracker knows servers."""
        return max(1, self._known, sum(server.workers for server in self._servers if server.kinds))

    @property
    def servers(self) -> list[str]:
        """Addresses of the servers that this client holds."""
        return [str(server.address) for server in self._servers if server.kinds]

    def key_of(self, target: str, place: str) -> Key | None:
        """Under what times of a target at a place are to be kept; None before a server said who it is."""
        return self._keys.get((target, place))

    def measure(self, jobs: Sequence[Job], on_result: OnResult | None = None) -> list[Result]:
        """The results of some jobs, in their order; see `measure.Measurer`."""
        return self._deal(_Round(jobs, "measure", on_result, deque(range(len(jobs)))))

    def confirm(self, jobs: Sequence[Job]) -> list[Result]:
        """Measure a few jobs in turns, all on one server."""
        return self._deal(_Round(jobs, "confirm", None, deque(range(len(jobs)))))

    def close(self) -> None:
        """Leave all servers; those at work end with what they have."""
        self._closed = True
        self._leaving.cancel()
        self._servers.clear()

    def _leave_idle(self) -> None:
        """Nobody asked for results for a while: servers without work go back to the tracker."""
        with self._lock:
            self._servers = [server for server in self._servers if server.call is not None]

    def _deal(self, made: _Round) -> list[Result]:
        """Results of all jobs."""
        if self._closed:
            raise RuntimeError("the measurer is closed")
        self._leaving.cancel()
        with self._lock:
            seen = time.monotonic()
            try:
                while len(made.results) < len(made.jobs):
                    self._look_for_servers(made)
                    self._give(made)
                    calls = [server.call for server in self._servers if server.call is not None]
                    if not wait(calls, TICK, FIRST_COMPLETED).done:
                        time.sleep(0 if calls else TICK)
                    self._take(made)
                    if any(server.session is not None for server in self._servers):
                        seen = time.monotonic()
                    elif time.monotonic() - seen > self._patience:
                        self._give_up(made)
            finally:
                for server in self._servers:
                    server.batch = []  # whatever comes of this round later is of no interest
                self._leaving = threading.Timer(IDLE, self._leave_idle)
                self._leaving.daemon = True
                self._leaving.start()
        return [made.results[number] for number in range(len(made.jobs))]

    def _look_for_servers(self, made: _Round) -> None:
        """Ask for one more while there is work."""
        asked = sum(server.session is None for server in self._servers)
        if made.waiting and asked < ASKED and time.monotonic() > self._looked + TICK:
            self._looked = time.monotonic()
            self._servers.append(_Server())
            self._ask(self._servers[-1], made.kinds)

    def _ask(self, server: _Server, kinds: set[Kind]) -> None:
        server.call = _called(self._answers, server, kinds)
        server.deadline = time.monotonic() + GREETING

    def _answers(self, server: _Server, kinds: set[Kind]) -> dict[Kind, Any] | None:
        """What a server says of itself, the tracker's next one where it is none yet; None: there is none."""
        if server.session is None:
            self._known = len(self.tracker.servers(self.key))
            offer = self.tracker.request(self.key) if self.tracker.free(self.key) else None
            if offer is None or offer[0] in self._refused:
                return None
            (server.address, ticket), server.ends = offer, time.monotonic() + LEASE / 2
            host, port = server.address.host, server.address.port
            server.session = importlib.import_module("tvm.rpc").connect(host, port, ticket, LEASE)
        hello = server.session.get_function(HELLO)
        asked = {kind: json.dumps({"target": kind[0], "place": kind[1]}) for kind in kinds}
        return {kind: json.loads(str(hello(text))) for kind, text in asked.items()}

    def _accept(self, server: _Server, said: Mapping[Kind, Any] | None) -> None:
        """Take a server on by what it says of itself, or refuse it, which is logged."""
        self._silent = False
        try:
            for kind, answer in (said or {}).items():
                key = checked(str(server.address), *kind, answer, self._keys.get(kind))
                self._keys.setdefault(kind, key)
                if not server.kinds:
                    log.info("server %s (%s) measures", server.address, answer["name"])
                server.kinds.add(kind)
                server.workers = max(1, int(answer["workers"]))
        except UirError as error:
            log.warning("%s", error)
            self._refusal = " ".join(str(error).split())
            assert server.address is not None
            self._refused.add(server.address)
            said = None
        if said is None:
            self._servers.remove(server)

    def _give(self, made: _Round) -> None:
        """The next jobs to servers that are free."""
        now = time.monotonic()
        for server in [server for server in self._servers if server.call is None]:
            if now > server.ends:
                self._servers.remove(server)
            elif not made.waiting:
                break
            elif not made.kinds <= server.kinds:
                self._ask(server, made.kinds - server.kinds)
            else:
                server.batch = _next_batch(made, server.workers)
                jobs = [made.jobs[number] for number in server.batch]
                server.call = _called(_measured, server.session, made.how, jobs)
                server.deadline = now + self._limit(server, made.how, jobs)

    def _limit(self, server: _Server, how: str, jobs: Sequence[Job]) -> float:
        """Seconds that a server may take for some jobs."""
        limits = [job.settings.timeout_seconds for job in jobs]
        if how == "confirm":
            # all in one process, which has that long for every stage of any of them
            return STAGES_OF_A_JOB * len(limits) * sum(limits) + self._grace
        return STAGES_OF_A_JOB * max(limits) * math.ceil(len(limits) / server.workers) + self._grace

    def _take(self, made: _Round) -> None:
        """What has come back, and what has not in its time."""
        for server in [server for server in self._servers if server.call is not None]:
            call = server.call
            assert call is not None
            if not call.done():
                if time.monotonic() > server.deadline:
                    # its thread waits in TVM's client, which cannot be interrupted, and is left there
                    self._lose(server, "it does not answer", made)
            elif (error := call.exception()) is not None:
                self._lose(server, first_line(error), made)
            else:
                server.call, found = None, call.result()
                if not isinstance(found, list):
                    self._accept(server, found)
                    continue
                numbers, server.batch = server.batch, []
                # there are no numbers of a round that was broken off
                for number, result in zip(numbers, found, strict=False):
                    made.settle(number, result)

    def _lose(self, server: _Server, why: str, made: _Round) -> None:
        """A server is gone: its jobs go to others."""
        self._servers.remove(server)
        if server.address is None:
            if not self._silent:
                log.warning("%s", why)
            self._silent = True
            return
        more = f"; what it had, {len(server.batch)} of the candidates, goes to others" if server.batch else ""
        log.warning("server %s is lost (%s)%s", server.address, why, more)
        for number in reversed(server.batch):
            made.tries[number] += 1
            if made.tries[number] < self._tries:
                made.waiting.appendleft(number)
            else:
                said = f"{self._tries} servers were lost while they measured it"
                made.settle(number, Result(outcome=LOST, said=said))

    def _give_up(self, made: _Round) -> None:
        """Without a server for long: what nobody has is lost."""
        why = self._refusal or f"no server with the key {self.key} at {self.tracker.address}"
        said = f"nobody measured it for {self._patience:g} s: {why}"
        while made.waiting:
            made.settle(made.waiting.popleft(), Result(outcome=LOST, said=said))


def _called(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """What a function gives, in a thread that does not keep this process from ending."""
    future = Future[Any]()

    def run() -> None:
        try:
            future.set_result(function(*arguments))
        except Exception as error:  # TVM's client raises whatever its C++ throws
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name="uir-rpc").start()
    return future


def _measured(session: Any, how: str, jobs: Sequence[Job]) -> list[Result]:
    """The results of jobs on a server."""
    asked = json.dumps({"how": how, "jobs": [job.to_json() for job in jobs]})
    found = [Result.from_json(row) for row in json.loads(str(session.get_function(MEASURE)(asked)))]
    assert len(found) == len(jobs), (len(found), len(jobs))
    return found


def _next_batch(made: _Round, workers: int) -> list[int]:
    """Take the jobs for a server off the queue: as many as it measures at once, or all to be confirmed."""
    if made.how == "confirm":
        numbers = list(made.waiting)
        made.waiting.clear()
        return numbers
    numbers = [made.waiting.popleft()]
    # what was lost with a server before goes alone: it may be why
    while made.waiting and len(numbers) < workers:
        if any(made.tries[number] for number in (numbers[0], made.waiting[0])):
            break
        numbers.append(made.waiting.popleft())
    return numbers
