# SPDX-License-Identifier: Apache-2.0
"""Many machines: server processes on loopback that come, sleep, hang and are killed.

Each test takes the servers that those before it left: the runner may give some of them to another process.

What is measured is how work is dealt out, so that measuring is sleeping (`sleeping.Sleeping`).
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from uir_tvm.errors import DeviceError
from uir_tvm.network_address import Address
from uir_tvm.tune.job import LOST, OK, Result
from uir_tvm.tune.key import key_of
from uir_tvm.tune.rpc import RpcMeasurer
from uir_tvm.tune.server import MeasuringServer

from . import sleeping
from .sleeping import jobs, want

HOST, SECRET = "127.0.0.1", "open sesame"
#: Names of one server by itself, and of several.
ONE, MANY = "one", "many"
#: Three servers, whose sleep is all that they share, against one: 3 but for the messages.
FASTER = 2.2


@attrs.define
class Site:
    """Servers: a process each, and where it listens."""

    servers: dict[str, list[tuple[Any, Address]]]

    def measurer(self, name: str, key: str = SECRET, **how: Any) -> RpcMeasurer:
        """A client."""
        return RpcMeasurer([address for _, address in self.servers[name]], key, **how)

    def processes(self, name: str) -> list[Any]:
        """Of the servers of a name that are still there."""
        return [process for process, _ in self.servers[name] if process.is_alive()]

    def left(self, name: str, count: int) -> bool:
        """Whether so many servers of a name are there, or will be soon: clients learn of an end first."""
        until = time.monotonic() + 60
        while len(self.processes(name)) > count and time.monotonic() < until:
            time.sleep(0.05)
        return len(self.processes(name)) == count


def started(port: int) -> tuple[Any, Address]:
    """A process with a server."""
    server = MeasuringServer(HOST, port, SECRET, make=sleeping.Sleeping)
    process = multiprocessing.get_context("fork").Process(target=server.serve_forever, daemon=True)
    process.start()
    server.socket.close()
    return process, Address(HOST, server.port)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Three servers that are alike, and one by itself."""
    made = Site({ONE: [started(20200)], MANY: [started(20210) for _ in range(3)]})
    yield made
    for process, _ in [*made.servers[ONE], *made.servers[MANY]]:
        process.kill()


def medians(results: list[Result]) -> list[float]:
    """Of results that must be good."""
    assert [result.outcome for result in results] == [OK] * len(results), results
    return [result.median for result in results]


def rate(measurer: RpcMeasurer, count: int, seconds: float) -> float:
    """Jobs a second."""
    start = time.perf_counter()
    assert medians(measurer.measure(jobs(count, seconds))) == pytest.approx(want(count))
    return count / (time.perf_counter() - start)


def await_servers(measurer: RpcMeasurer, count: int) -> None:
    """Have the client take so many servers, by giving it work."""
    until = time.monotonic() + 60
    while len(measurer.servers) < count:
        assert time.monotonic() < until, measurer.servers
        measurer.measure(jobs(2 * count, 0.1))


def test_three_servers_and_one_that_is_killed(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """Servers join while a client waits; three do nearly three times as much; a loss costs a batch."""
    single, measurer = site.measurer(ONE), site.measurer(MANY)
    await_servers(single, 1)
    await_servers(measurer, 3)
    assert (single.workers, measurer.workers) == (1, 3)
    ratio = rate(measurer, 24, 0.25) / rate(single, 8, 0.25)
    print(f"3 servers measure {ratio:.2f} times as much as 1")
    assert ratio > FASTER

    seen: list[int] = []
    first, *others = site.processes(MANY)

    def kill_one(number: int, result: Result) -> None:
        seen.append(number)
        if len(seen) == 4:
            first.kill()

    with caplog.at_level(logging.WARNING, "uir_tvm.tune.rpc"):
        results = measurer.measure(jobs(24, 0.25), kill_one)
    assert medians(results) == pytest.approx(want(24))
    assert sorted(seen) == list(range(24)), "every result is told once"
    assert {int(result.said) for result in results} >= {process.pid for process in others}
    lost = [record.message for record in caplog.records]
    assert len(lost) == 1 and "1 of the candidates, goes to others" in lost[0], lost
    assert len(measurer.servers) == 2
    assert measurer.key_of("uir-cpu", "cpu") == key_of("uir-cpu", "cpu")
    single.close()
    measurer.close()


def test_a_server_that_hangs_is_dropped(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing comes of it, not even an end of the connection; the other servers do its work."""
    measurer = site.measurer(MANY, grace=1.0)
    hangs, *works = site.processes(MANY)
    await_servers(measurer, 1 + len(works))
    os.kill(hangs.pid, signal.SIGSTOP)
    try:
        with caplog.at_level(logging.WARNING, "uir_tvm.tune.rpc"):
            results = measurer.measure(jobs(6, 0.05, limit=0.5))
        assert medians(results) == pytest.approx(want(6))
        assert {int(result.said) for result in results} <= {process.pid for process in works}
        assert "does not answer" in caplog.text
    finally:
        os.kill(hangs.pid, signal.SIGCONT)
    measurer.close()


def test_a_job_that_ends_servers_is_given_up(site: Site) -> None:
    """It is lost after some tries; the others are measured all the same."""
    measurer = site.measurer(MANY, tries=1)
    await_servers(measurer, 2)
    before = len(site.processes(MANY))
    given = jobs(4, 0.01)
    given[1] = attrs.evolve(given[1], kernel=sleeping.CRASHES)
    first, crashed, *rest = measurer.measure(given)
    assert medians([first, *rest]) == pytest.approx([want(4)[number] for number in (0, 2, 3)])
    assert crashed.outcome == LOST and "1 servers were lost" in crashed.said
    assert site.left(MANY, before - 1), "it is gone"
    measurer.close()


def test_what_a_client_breaks_off_is_forgotten(site: Site) -> None:
    """An exception of `on_result` comes out; the next call has results of its own."""
    measurer = site.measurer(ONE)

    def stop(number: int, result: Result) -> None:
        raise TimeoutError("time is up")

    with pytest.raises(TimeoutError, match="time is up"):
        measurer.measure(jobs(9, 0.1), stop)
    assert medians(measurer.confirm(jobs(4, 0.0))) == pytest.approx(want(4))
    measurer.close()
    with pytest.raises(RuntimeError, match="closed"):
        measurer.measure(jobs(1, 0.0))


def test_a_server_without_the_place_is_refused(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """Its jobs are not measured somewhere else in silence: they are lost, and say why."""
    caplog.set_level(logging.WARNING)
    measurer = site.measurer(ONE, patience=1.0)
    job = attrs.evolve(jobs(1, 0.0)[0], target="uir-bang:mlu370-x4", place="mlu")
    (result,) = measurer.measure([job])
    assert result.outcome == LOST and "has no mlu for uir-bang:mlu370-x4" in result.said
    assert "has no mlu" in caplog.text and "remedy:" in caplog.text
    measurer.close()


def test_a_server_that_works_for_others(site: Site) -> None:
    """What nobody measures is lost; the server is there again when the other one leaves."""
    first = site.measurer(ONE)
    await_servers(first, 1)
    measurer = site.measurer(ONE, patience=0.3)
    (result,) = measurer.measure(jobs(1, 0.0))
    assert result.outcome == LOST and "no server at 127.0.0.1" in result.said
    first.close()
    await_servers(measurer, 1)
    measurer.close()


def test_who_does_not_know_the_key(site: Site) -> None:
    """Nothing is measured for it, and it hears why."""
    measurer = site.measurer(ONE, "guessed", patience=0.3)
    (result,) = measurer.measure(jobs(1, 0.0))
    assert result.outcome == LOST and "has another key" in result.said
    measurer.close()


def test_without_a_server() -> None:
    with pytest.raises(DeviceError, match="No server answers") as caught:
        RpcMeasurer([Address(HOST, 20189)], SECRET)
    assert "uir tune-server" in caught.value.remedy
