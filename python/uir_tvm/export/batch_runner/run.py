# SPDX-License-Identifier: Apache-2.0
"""Measure the candidates of this folder on this machine, and write results.jsonl.

    python3 run.py                 check, run, compare and time every candidate that has no result yet
    python3 run.py --dry-run       check the files and say what there is to do; needs no device

It may be interrupted and started again: what is measured stays. A candidate whose results differ from the
expected ones is not timed; one that crashes or hangs ends a worker process and is noted. At the end the
default schedule of every kernel and the fastest candidate are timed once more, in turns.

Bring the folder back, or results.jsonl alone, and take the results over there:

    uir tune ... --import-results DIR

Exit codes: 0 everything is measured; 1 something remains; 2 something is missing or damaged.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import results
from measuring import result

FOLDER = os.path.dirname(os.path.abspath(__file__))
#: Seconds for a worker to start: to import what it needs, and to wake the device.
START = 180.0
#: A worker's stages (build and check, time) may each take a candidate's time limit.
STAGES_OF_A_WORKER = 2
#: Crashes of workers in a row that say that it is not the candidates.
CRASHES = 5


class MissingRequirement(Exception):
    """Something without which nothing can be measured here."""


class Worker:
    """A process that measures, ended and replaced when it hangs or crashes."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.arguments = list(arguments)
        self.process: subprocess.Popen[bytes] | None = None
        self.machine: dict[str, Any] = {}

    def ask(self, question: Mapping[str, Any], seconds: float) -> list[dict[str, Any]]:
        """What comes of some candidates: as many results."""
        count = len(question["candidates"])
        if self.process is None:
            self.start()
        assert self.process is not None and self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(question).encode() + b"\n")
            self.process.stdin.flush()
            answer = self._answer(seconds)
        except (EOFError, BrokenPipeError):
            return [result("crashed", self._end())] * count
        except TimeoutError:
            self._end()
            return [result("timeout", f"no result after {seconds:g} s")] * count
        if answer.get("last"):
            self._end()
        return answer["results"]

    def start(self) -> None:
        """Start the process.

        Raises
        ------
        MissingRequirement
            It cannot measure here.
        """
        command = [sys.executable, os.path.join(FOLDER, "run.py"), "--worker", *self.arguments]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._left = b""
        try:
            answer = self._answer(START)
        except (EOFError, TimeoutError):
            raise MissingRequirement("the worker process does not start: " + self._end()) from None
        if "missing" in answer:
            self._end()
            raise MissingRequirement(answer["missing"])
        self.machine = answer["machine"]

    def _answer(self, seconds: float) -> dict[str, Any]:
        """The next line of the process."""
        assert self.process is not None and self.process.stdout is not None
        until = time.monotonic() + seconds
        while b"\n" not in self._left:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError
            chunk = os.read(self.process.stdout.fileno(), 1 << 16)
            if not chunk:
                raise EOFError
            self._left += chunk
        line, self._left = self._left.split(b"\n", 1)
        return json.loads(line)

    def _end(self) -> str:
        """End the process; how it ended."""
        process, self.process = self.process, None
        if process is None:
            return ""
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(0.5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
        code = process.wait()
        if process.stdout is not None:
            process.stdout.close()
        return f"its process was ended by signal {-code}" if code < 0 else f"its process ended with {code}"

    close = _end


def work(manifest: dict[str, Any], options: argparse.Namespace) -> None:
    """The worker: a question a line in, an answer a line out."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    # what the device's libraries print must not come between
    os.dup2(2, 1)

    def tell(answer: Mapping[str, Any]) -> None:
        answers.write(json.dumps(answer) + "\n")

    try:
        machine = importlib.import_module(manifest["kind"]).Machine(FOLDER, manifest, options)
        tell({"machine": machine.describe()})
    except Exception as error:  # whatever is wrong here is said there
        tell({"missing": str(error) or type(error).__name__})
        return
    for line in sys.stdin:
        question = json.loads(line)
        chosen = [manifest["candidates"][number] for number in question["candidates"]]
        try:
            found = [machine.measure(chosen[0])] if question["how"] == "measure" else machine.confirm(chosen)
        except Exception as error:  # the device may be of no more use to this process
            said = f"{type(error).__name__}: {error}"
            tell({"results": [result("crashed", said)] * len(chosen), "last": True})
            return
        tell({"results": found})


class BatchSession:
    """What is measured, and what remains."""

    def __init__(self, manifest: dict[str, Any], worker: Worker) -> None:
        self.manifest, self.worker = manifest, worker
        self.path = os.path.join(FOLDER, results.RESULTS)
        self.rows = results.read(self.path)
        results.check_rows(self.rows, manifest, self.path)
        self.found = {row["candidate"]: row["result"] for row in self.rows if "candidate" in row}
        self.found.update(results.settled(manifest))
        self.confirmed = [row["confirm"] for row in self.rows if "confirm" in row]

    @property
    def remaining(self) -> list[int]:
        """Numbers of the candidates without a result."""
        return [number for number in range(len(self.manifest["candidates"])) if number not in self.found]

    def begin(self) -> None:
        """Note the machine; it must be the one that measured before, and the one that the code is for.

        Raises
        ------
        MissingRequirement
            It is another.
        """
        machine, wanted = self.worker.machine, self.manifest["hardware"]
        if machine["hardware"] != wanted:
            raise MissingRequirement(
                f"the candidates are for {wanted}; here is {machine['hardware'] or machine['name']}"
            )
        for row in self.rows:
            before = row.get("machine", machine)
            if (before["hardware"], before.get("toolchain")) != (wanted, machine.get("toolchain")):
                raise MissingRequirement(
                    f"{self.path} has results of another machine ({before}): move it away"
                )
        self._add({"machine": machine})

    def measure(self) -> None:
        """All that remains.

        Raises
        ------
        MissingRequirement
            Nothing works any more.
        """
        crashes, total = 0, len(self.manifest["candidates"])
        for number in self.remaining:
            (answer,) = self._ask("measure", [number])
            crashes = crashes + 1 if answer["outcome"] == "crashed" else 0
            self.found[number] = answer
            self._add({"candidate": number, "result": answer})
            name = self.manifest["tasks"][self.manifest["candidates"][number]["task"]]["name"]
            say(f"{number + 1}/{total} {name}: {described(answer)}")
            if crashes == CRASHES:
                raise MissingRequirement(f"{CRASHES} candidates in a row crashed: {answer['said']}")

    def confirm(self) -> None:
        """For every kernel, the default schedule and the fastest candidate in turns."""
        for task, row in enumerate(self.manifest["tasks"]):
            pair = self._pair(task)
            if not pair or any(done["candidates"] == pair for done in self.confirmed):
                continue
            answers = self._ask("confirm", pair)
            self._add({"confirm": {"candidates": pair, "results": answers}})
            say(f"{row['name']}: default {described(answers[0])}, fastest {described(answers[1])}")

    def _pair(self, task: int) -> list[int]:
        """The default and the fastest candidate of a task; empty where that is the default."""
        rows = self.manifest["candidates"]
        own = [number for number, row in enumerate(rows) if row["task"] == task]
        good = [number for number in own if self.found.get(number, {}).get("outcome") == "ok"]
        default = [number for number in good if rows[number]["default"]]
        if not default:
            return []
        best = min(good, key=lambda number: median(self.found[number]["seconds"]))
        return [] if rows[best]["default"] else [default[0], best]

    def _ask(self, how: str, numbers: Sequence[int]) -> list[dict[str, Any]]:
        rows = [self.manifest["candidates"][number] for number in numbers]
        limit = sum(float(row["settings"]["timeout_seconds"]) for row in rows) * STAGES_OF_A_WORKER
        question = {"how": how, "candidates": list(numbers)}
        return self.worker.ask(question, limit + float(self.manifest["build_seconds"]) * len(rows))

    def _add(self, row: dict[str, Any]) -> None:
        results.append(self.path, {"batch": self.manifest["id"], **row})


def median(values: Sequence[float]) -> float:
    """The middle one, or the mean of the two."""
    row = sorted(values)
    return (row[(len(row) - 1) // 2] + row[len(row) // 2]) / 2


def described(answer: Mapping[str, Any]) -> str:
    """A result in some words."""
    if answer["outcome"] != "ok":
        return f"{answer['outcome']} ({answer['said']})"
    return f"{median(answer['seconds']) * 1e6:.2f} us"


def say(line: str) -> None:
    """A line for people."""
    print(line, flush=True)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="run.py", description=__doc__, formatter_class=plain)
    parser.add_argument("--dry-run", action="store_true", help="check the files and say what there is to do")
    parser.add_argument("--device", type=int, default=0, metavar="N", help="number of the device (0)")
    parser.add_argument("--library", default="", metavar="PATH", help="the driver (libcuda.so.1)")
    parser.add_argument(
        "--run",
        default="",
        metavar="COMMAND",
        help="what runs in a project's folder (./run.sh), such as a wrapper that gets a device first",
    )
    parser.add_argument("--no-confirm", action="store_true", help="do not time the fastest ones once more")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code."""
    options = parse(arguments)
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        manifest = results.read_manifest(FOLDER)
        if options.worker:
            work(manifest, options)
            return 0
        results.check_files(FOLDER, manifest["files"])
        worker = Worker(given)
        session = BatchSession(manifest, worker)
        total = len(manifest["candidates"])
        remaining, kernels = len(session.remaining), len(manifest["tasks"])
        say(f"{manifest['target']}: {total} candidates of {kernels} kernels, {remaining} to be measured")
        if options.dry_run:
            return 0
        try:
            worker.start()
            session.begin()
            session.measure()
            if not options.no_confirm:
                session.confirm()
        finally:
            worker.close()
    except (results.Damaged, MissingRequirement) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        say("interrupted; what is measured stays, the same command carries on")
        return 1
    say(f"done: bring {results.RESULTS} back")
    return 1 if session.remaining else 0


if __name__ == "__main__":
    sys.exit(main())
