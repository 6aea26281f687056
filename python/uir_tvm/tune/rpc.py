# SPDX-License-Identifier: Apache-2.0
"""Candidates measured by other machines, on which ``uir tune-server`` runs.

Every connection is one worker of a server, held by a thread, which takes the next jobs from a common queue
when it is done with the last ones.  Another thread for each server connects while there is work: servers come
and go.  What is lost with a connection goes to others.
"""

from __future__ import annotations

import json
import logging
import queue
import socket
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any

import attrs

from ..errors import DeviceError, UirError, first_line
from ..network_address import Address
from .job import LOST, Job, Result
from .key import Key
from .measure import OnResult
from .server import BUSY, checked

log = logging.getLogger(__name__)

#: Seconds between looks at whether there is work, and whether anybody is there to do it.
TICK = 0.25
#: Seconds that connecting may take, and answering who it is; and until the next time that it is tried.
ANSWER, GREETING, RETRY = 10.0, 60.0, 1.0
#: Stages of a job, each of which may take the job's own limit.
STAGES_OF_A_JOB = 3
#: Seconds beside that: a worker starts, and starts again.
GRACE = 60.0
#: Seconds after which a connection without work is left, for other clients.
IDLE = 20.0
#: Connections that may be lost with a job.
TRIES = 3


@attrs.define(eq=False)
class _Round:
    """One call of `measure` or `confirm`."""

    jobs: Sequence[Job]
    turns: bool
    #: Numbers of the jobs that nobody has, by those that go together.
    waiting: deque[list[int]]
    results: dict[int, Result] = attrs.field(factory=dict)
    tries: Counter[int] = attrs.field(factory=Counter)
    #: Numbers of jobs whose results are there.
    news: queue.SimpleQueue[int] = attrs.field(factory=queue.SimpleQueue)

    def settle(self, numbers: Sequence[int], results: Sequence[Result]) -> None:
        """Jobs have their results."""
        for number, result in zip(numbers, results, strict=True):
            self.results[number] = result
            self.news.put(number)


class RpcMeasurer:
    """Measures on servers of other machines.

    Parameters
    ----------
    servers : sequence of Address
        Some may come later, or go.
    key : str
        What the servers want to hear of who connects (``uir tune-server --key``).
    patience : float
        Seconds without any server after which what remains is given up as lost.
    grace : float
        Seconds that a server may take beside the time limits of its jobs before it counts as lost.
    tries : int
        Connections that may be lost with a job before it counts as lost itself: it may be what ends them.

    Raises
    ------
    DeviceError
        Nobody answers at any of the addresses.
    """

    name = "rpc"

    def __init__(
        self,
        servers: Sequence[Address],
        key: str,
        *,
        patience: float = 60.0,
        grace: float = GRACE,
        tries: int = TRIES,
    ) -> None:
        self._addresses, self._key = tuple(servers), key.encode()
        self._patience, self._grace, self._tries = patience, grace, tries
        self._lock = threading.Condition()
        self._held: list[Address] = []
        #: Of the servers that were accepted first: others must have the same, or times would not compare.
        self._keys: dict[tuple[str, str], Key] = {}
        self._refused: dict[Address, str] = {}
        self._round: _Round | None = None
        self._closed = False
        self._require_one()
        for address in self._addresses:
            threading.Thread(target=self._dial, args=(address,), daemon=True, name="uir-dial").start()

    @property
    def workers(self) -> int:
        """Jobs at once: connections that are held, or servers where there are none yet."""
        return len(self._held) or len(self._addresses)

    @property
    def servers(self) -> list[str]:
        """Addresses of the servers that measure for this client, once for each of their workers."""
        return [str(address) for address in self._held]

    def key_of(self, target: str, place: str) -> Key | None:
        """Under what times of a target at a place are to be kept; None before a server said who it is."""
        return self._keys.get((target, place))

    def measure(self, jobs: Sequence[Job], on_result: OnResult | None = None) -> list[Result]:
        """The results of some jobs, in their order; see `measure.Measurer`."""
        return self._finish(_Round(jobs, False, deque([at] for at in range(len(jobs)))), on_result)

    def confirm(self, jobs: Sequence[Job]) -> list[Result]:
        """Measure a few jobs in turns, all on one server."""
        return self._finish(_Round(jobs, True, deque([[*range(len(jobs))]] if jobs else [])), None)

    def close(self) -> None:
        """Leave all servers; those at work end with what they have."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()

    def _require_one(self) -> None:
        why = {}
        for address in self._addresses:
            try:
                socket.create_connection((address.host, address.port), ANSWER).close()
                return
            except OSError as error:
                why[str(address)] = first_line(error)
        raise DeviceError(
            f"No server answers at {', '.join(why) or 'no address'}.",
            need="a machine that measures",
            limit="; ".join(why.values()),
            remedy="start one there: uir tune-server --key KEY",
        )

    def _finish(self, made: _Round, on_result: OnResult | None) -> list[Result]:
        with self._lock:
            if self._closed:
                raise RuntimeError("the measurer is closed")
            self._round = made
            self._lock.notify_all()
        seen = time.monotonic()
        try:
            while len(made.results) < len(made.jobs) or not made.news.empty():
                try:
                    number = made.news.get(timeout=TICK)
                except queue.Empty:
                    seen = self._give_up_alone(made, seen)
                    continue
                if on_result is not None:
                    on_result(number, made.results[number])
        finally:
            with self._lock:
                made.waiting.clear()  # whatever comes of this round later is of no interest
                self._round = None
        return [made.results[number] for number in range(len(made.jobs))]

    def _give_up_alone(self, made: _Round, seen: float) -> float:
        """Without a server for long what nobody has is lost; when there was one."""
        with self._lock:
            if self._held:
                return time.monotonic()
            if time.monotonic() - seen > self._patience:
                why = (
                    "; ".join(self._refused.values())
                    or f"no server at {', '.join(map(str, self._addresses))}"
                )
                lost = Result(outcome=LOST, said=f"nobody measured it for {self._patience:g} s: {why}")
                while made.waiting:
                    numbers = made.waiting.popleft()
                    made.settle(numbers, [lost] * len(numbers))
        return seen

    def _dial(self, address: Address) -> None:
        """The thread of a server: connects while there is work, until it has no more workers."""
        while not self._closed and address not in self._refused:
            with self._lock:
                if self._round is None or not self._round.waiting:
                    self._lock.wait()
                    continue
            try:
                connection = self._connected(address)
            except UirError as error:
                self._refuse(address, error)
            except (OSError, EOFError, AssertionError) as error:
                log.debug("server %s: %s", address, first_line(error))
                time.sleep(RETRY)
            else:
                arguments = (address, connection)
                with self._lock:
                    self._held.append(address)
                threading.Thread(target=self._hold, args=arguments, daemon=True, name="uir-server").start()

    def _connected(self, address: Address) -> Connection:
        """A connection to a server, which knows the key as well.

        Raises
        ------
        DeviceError
            It does not.
        OSError, EOFError
            It is not there, or busy.
        """
        opened = socket.create_connection((address.host, address.port), ANSWER)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.settimeout(None)
        connection = Connection(opened.detach())
        try:
            answer_challenge(connection, self._key)
            deliver_challenge(connection, self._key)
        except AuthenticationError as error:
            raise DeviceError(
                f"Server {address} has another key.",
                need="its --key",
                limit=str(error),
                remedy="give the key that `uir tune-server` was started with",
            ) from error
        if connection.recv_bytes() == BUSY:
            raise BlockingIOError("it works for others")
        return connection

    def _hold(self, address: Address, connection: Connection) -> None:
        """The thread of a connection: what waits is measured there."""
        kinds: set[tuple[str, str]] = set()
        try:
            while (taken := self._take()) is not None:
                made, numbers = taken
                jobs = [made.jobs[number] for number in numbers]
                try:
                    for kind in {(job.target, job.place) for job in jobs} - kinds:
                        said = _answer(connection, {"hello": kind}, GREETING)
                        with self._lock:
                            key = checked(str(address), *kind, said, self._keys.get(kind))
                            self._keys.setdefault(kind, key)
                        kinds.add(kind)
                        log.info("server %s (%s) measures %s", address, said["name"], kind[0])
                    asked = {"turns": made.turns, "jobs": [job.to_json() for job in jobs]}
                    rows = _answer(connection, asked, self._limit(jobs))["results"]
                except UirError as error:
                    self._refuse(address, error)
                    made.waiting.appendleft(numbers)  # which is none the worse for it
                    return
                except (OSError, EOFError, ValueError) as error:
                    self._lose(address, str(error) or "it has ended", made, numbers)
                    return
                made.settle(numbers, [Result.from_json(row) for row in rows])
        finally:
            connection.close()
            with self._lock:
                self._held.remove(address)

    def _take(self) -> tuple[_Round, list[int]] | None:
        """The next jobs; waits for them; None: leave the server."""
        idle = time.monotonic() + IDLE
        with self._lock:
            while not self._closed and time.monotonic() < idle:
                if self._round is not None and self._round.waiting:
                    return self._round, self._round.waiting.popleft()
                self._lock.wait(TICK)
        return None

    def _limit(self, jobs: Sequence[Job]) -> float:
        """Seconds that a server may take for some jobs: for every stage of any of them that long."""
        limits = [job.settings.timeout_seconds for job in jobs]
        return STAGES_OF_A_JOB * len(limits) * sum(limits) + self._grace

    def _refuse(self, address: Address, error: UirError) -> None:
        """A server may not measure, which is said once."""
        log.warning("%s", error)
        self._refused[address] = " ".join(str(error).split())

    def _lose(self, address: Address, why: str, made: _Round, numbers: list[int]) -> None:
        """A connection is gone: its jobs go to others."""
        log.warning(
            "server %s is lost (%s); what it had, %d of the candidates, goes to others",
            address,
            why,
            len(numbers),
        )
        with self._lock:
            made.tries.update(numbers)
            if self._round is made and made.tries[numbers[0]] < self._tries:
                made.waiting.appendleft(numbers)
                self._lock.notify_all()
                return
        said = f"{self._tries} servers were lost while they measured it"
        made.settle(numbers, [Result(outcome=LOST, said=said)] * len(numbers))


def _answer(connection: Connection, asked: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """What a server says to something, in so many seconds."""
    connection.send_bytes(json.dumps(asked).encode())
    if not connection.poll(seconds):
        raise TimeoutError("it does not answer")
    answer: dict[str, Any] = json.loads(connection.recv_bytes())
    return answer
