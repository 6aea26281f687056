# SPDX-License-Identifier: Apache-2.0
"""Tuning that is killed at random moments and resumed loses at most what was being measured."""

from __future__ import annotations

import collections
import os
import pathlib
import random
import signal
import time

from uir_tvm.tune import ScheduleDatabase, key_of
from uir_tvm.tune.budget import Budget
from uir_tvm.tune.journal import Journal, Trial

from tests.asked import asked

from .fakes import COLUMNS, FakeMeasurer, fastest, seconds_of, session, tasks

#: How often it is killed; fifty times with ``UIR_TEST_ALL=1``.
KILLS = asked(20, 50)
#: Seconds of a measurement, and part of what all of them take that a run lives at most.
EACH, LIFE = 0.001, 0.25


def run(folder: pathlib.Path, log: pathlib.Path, life: float) -> bool:
    """Tune in a process of its own, which is killed after so many seconds; whether it ended before."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            session(folder, FakeMeasurer(log, seconds=EACH), Budget(trials=10_000)).run()
            code = 0
        finally:
            os._exit(code)
    end = time.monotonic() + life
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0, "the run failed"
            return True
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1] == 0


def logged(log: pathlib.Path) -> list[str]:
    return log.read_text().splitlines() if log.exists() else []


def journalled(folder: pathlib.Path) -> list[str]:
    """What the journal knows to be measured, the compiler's own schedules included."""
    lines = Journal(folder, key_of(tasks()[0].target)).lines()
    trials = [line for line in lines if isinstance(line, Trial)]
    return [f"{t.kernel}: {t.candidate['columns'] if t.candidate else None}" for t in trials]


def test_killed_and_resumed(tmp_path: pathlib.Path) -> None:
    """Kills, each at a random moment; the last run of every database goes to the end.

    The fake measurer writes what it measured into a log before it says so: all of it must be in the journal
    but for the one measurement whose result was on its way.
    """
    seed = int(os.environ.get("UIR_TEST_SEED", time.time_ns() % 2**32))
    print(f"UIR_TEST_SEED={seed}")
    rng = random.Random(seed)
    # what all forks need is loaded once
    session(tmp_path / "warm", FakeMeasurer(), Budget(trials=8)).run()
    begin = time.monotonic()
    assert run(tmp_path / "whole", tmp_path / "log", 60.0)
    life = LIFE * (time.monotonic() - begin)
    kills = rounds = 0
    while kills < KILLS:
        folder, log = tmp_path / f"db{rounds}", tmp_path / f"log{rounds}"
        rounds += 1
        lost: collections.Counter[str] = collections.Counter()
        ended = False
        while not ended:
            known = len(logged(log))
            ended = run(folder, log, rng.uniform(0, life) if kills < KILLS else 60.0)
            kills += not ended
            ScheduleDatabase(folder).entries()  # it loads
            new, kept = logged(log)[known:], set(journalled(folder))
            assert set(new[:-1]) <= kept, f"lost with seed {seed}: {set(new) - kept}"
            lost.update(set(new) - kept)
        counts = collections.Counter(logged(log))
        assert all(count == 1 + lost[name] for name, count in counts.items()), "something was measured again"
        assert len(counts) == len(tasks()) * (1 + len(COLUMNS))
        for task in tasks():
            entry = ScheduleDatabase(folder).best(task.func, task.target)
            assert entry is not None and entry.mean == seconds_of(task.name, fastest(task.name))
    print(f"{kills} kills in {rounds} databases")
