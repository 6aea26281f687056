# SPDX-License-Identifier: Apache-2.0
"""Many machines: a real tracker, and server processes on loopback that come, sleep, hang and are killed.

Each test takes the servers that those before it left: the runner may give some of them to another process.

What is measured is how work is dealt out, so that measuring is sleeping (`sleeping.Sleeping`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import attrs
import cloudpickle
import psutil
import pytest
from tvm.rpc.tracker import Tracker as TrackerProcess
from uir_tvm.errors import DeviceError
from uir_tvm.network_address import Address
from uir_tvm.tune import server
from uir_tvm.tune.job import LOST, OK, Result
from uir_tvm.tune.key import key_of
from uir_tvm.tune.rpc import RpcMeasurer

from . import sleeping
from .sleeping import jobs, want

HOST = "127.0.0.1"
#: Keys of one server by itself, and of several.
ONE, MANY = "one", "many"
#: Three servers, whose sleep is all that they share, against one: 3 but for the messages.
FASTER = 2.2


@attrs.define
class Site:
    """A tracker, and servers by their key."""

    address: Address
    starting: dict[str, list[Future[Any]]] = attrs.field(factory=dict)

    def measurer(self, key: str, **how: Any) -> RpcMeasurer:
        """A client."""
        return RpcMeasurer(self.address.host, self.address.port, key, **how)

    def processes(self, key: str) -> list[psutil.Process]:
        """Of the servers of a key that are still there."""
        found = [future.result().proc._proc for future in self.starting[key]]
        return [psutil.Process(one.pid) for one in found if one.poll() is None]

    def left(self, key: str, count: int) -> bool:
        """Whether so many servers of a key are there, or will be soon: clients learn of an end first."""
        until = time.monotonic() + 60
        while len(self.processes(key)) > count and time.monotonic() < until:
            time.sleep(0.05)
        return len(self.processes(key)) == count


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """A tracker, three servers that are alike, and one by itself; they start while the tests begin."""
    # servers import this module's neighbours, which are not where they look for modules
    cloudpickle.register_pickle_by_value(sleeping)
    tracker = TrackerProcess(HOST, 20190, 20200, silent=True)
    made = Site(Address(HOST, tracker.port))

    def start(key: str, port: int) -> Any:
        return server.start(made.address, key, host=HOST, port=port, make=sleeping.Sleeping)

    with ThreadPoolExecutor(4) as pool:
        made.starting[ONE] = [pool.submit(start, ONE, 20200)]
        made.starting[MANY] = [pool.submit(start, MANY, 20210 + number) for number in range(3)]
        yield made
    for future in [*made.starting[ONE], *made.starting[MANY]]:
        future.result().terminate()
    tracker.terminate()


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
            for process in (*first.children(recursive=True), first):
                process.kill()

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
    (session,) = hangs.children()
    session.suspend()
    try:
        with caplog.at_level(logging.WARNING, "uir_tvm.tune.rpc"):
            results = measurer.measure(jobs(6, 0.05, limit=0.5))
        assert medians(results) == pytest.approx(want(6))
        assert {int(result.said) for result in results} <= {process.pid for process in works}
        assert "does not answer" in caplog.text
    finally:
        session.resume()
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
    assert site.left(MANY, before - 1), "a server whose session crashed leaves"
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


def test_without_servers_nothing_hangs(site: Site) -> None:
    measurer = site.measurer("nobody", patience=0.3)
    (result,) = measurer.measure(jobs(1, 0.0))
    assert result == Result(outcome=LOST, said=result.said)
    assert "no server with the key nobody" in result.said
    measurer.close()


def test_without_a_tracker() -> None:
    with pytest.raises(DeviceError, match="No tracker answers") as caught:
        RpcMeasurer(HOST, 20189, ONE)
    assert "tvm.exec.rpc_tracker" in caught.value.remedy
