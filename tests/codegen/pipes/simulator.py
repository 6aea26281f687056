# SPDX-License-Identifier: Apache-2.0
"""Runs a planned kernel and says what is wrong with its syncs, by the happens-before graph of all events.

It knows nothing of how the planner works: all iterations are run, bytes are lists of intervals, and what
comes before an event is the set of all its ancestors.

    start(i) -> done(i)                        an instruction takes time
    start(i) -> start of the pipe's next       a pipe starts what it got in order
    done(i) -> set                             a flag goes up when all earlier ones of its pipe are done
    set -> wait -> start of the pipe's next    and holds the waiting pipe; if that issues the others, all
    done(i) -> barrier -> start of the pipe's next
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Data = dict[str, Any]
Intervals = list[tuple[int, int]]

IDS = 6
ISSUER = "S"
#: Pipes that run what they got one after the other.
SERIAL = {"S", "IO", "MOVE", "COMPUTE"}


def findings(
    body: list[Data],
    planned: Data,
    without: int | None = None,
    first: bool = False,
    env: dict[str, int] | None = None,
) -> list[str]:
    """Races, flags set while they may be up, waits without a set, flags left up.

    Parameters
    ----------
    body : list of dict
        The kernel that was planned.
    planned : dict
        What the planner gave back.
    without : int, optional
        Number of a sync that is left out.
    first : bool
        Stop at the first finding.
    env : dict, optional
        Values of names that no loop binds.
    """
    machine = _Machine(list(_instructions(body)), without)
    for message in machine.run(planned["body"], env or {}):
        machine.found.append(message)
        if first or message.startswith("deadlock"):
            return machine.found
    machine.found += [
        f"left up: {pair} {number}" for (pair, number), up in machine.up.items() if up is not None
    ]
    return machine.found


def ordered(
    body: list[Data], planned: Data, env: dict[str, int]
) -> Callable[[int, int, str | None, int], bool]:
    """Asks whether conflicting instances of two instructions are ordered.

    ``(first, second, carried, distance)``: numbers of the instructions in program order; the loop by whose
    iterations they differ and by how many, or None and 0 for the same iteration of all common loops.
    True only where there are such instances.
    """
    machine = _Machine(list(_instructions(body)), None)
    for _ in machine.run(planned["body"], env):
        pass

    def holds(first: int, second: int, carried: str | None, distance: int) -> bool:
        there = [
            (a, b)
            for a in machine.instances[first]
            for b in machine.instances[second]
            if a.start < b.start and _differ(a.env, b.env) == (carried, distance) and _conflict(a, b)
        ]
        return bool(there) and all(machine.ancestors[b.start] >> a.start + 1 & 1 for a, b in there)

    return holds


def _differ(a: dict[str, int], b: dict[str, int]) -> tuple[str | None, int]:
    """The outermost common loop in which two instances differ, and by how much."""
    for name in a:
        if name not in b:
            break
        if a[name] != b[name]:
            return name, b[name] - a[name]
    return None, 0


def _conflict(a: _Instance, b: _Instance) -> bool:
    return any(m == n and (v or w) and _meet(x, y) for m, x, v in a.touches for n, y, w in b.touches)


def _instructions(body: list[Data]) -> Iterator[Data]:
    for node in body:
        if node["kind"] == "instruction":
            yield node
        else:
            yield from _instructions(node["body"])


def _bytes(region: Data, env: dict[str, int]) -> Intervals:
    """Begins and ends of its runs, merged."""
    starts = [_value(region["begin"], env)]
    for count, stride in region["dims"]:
        starts = [s + i * stride for s in starts for i in range(count)]
    merged: Intervals = []
    for start in sorted(set(starts)):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], start + region["bytes"]))
        else:
            merged.append((start, start + region["bytes"]))
    return merged


def _meet(a: Intervals, b: Intervals) -> bool:
    if a[-1][1] <= b[0][0] or b[-1][1] <= a[0][0]:
        return False
    if len(a) == 1 and len(b) == 1:
        return True
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i][1] <= b[j][0]:
            i += 1
        elif b[j][1] <= a[i][0]:
            j += 1
        else:
            return True
    return False


_compiled: dict[str, Any] = {}


def _value(expr: Any, env: dict[str, int]) -> int:
    text = str(expr)
    code = _compiled.get(text)
    if code is None:
        code = _compiled[text] = compile(text.replace("/", "//"), "address", "eval")
    return int(eval(code, {}, env))


@dataclass
class _Instance:
    """One run of an instruction: its event, its iterations, (memory, bytes, written) of what it touches."""

    index: int
    start: int
    env: dict[str, int]
    touches: list[tuple[str, Intervals, bool]]


@dataclass
class _Pipe:
    """Ancestors of its next event, and its instructions' numbers."""

    before: int = 0
    done: int = 0


@dataclass
class _Machine:
    instructions: list[Data]
    without: int | None
    pipes: dict[str, _Pipe] = field(default_factory=dict)
    up: dict[tuple[str, int], int | None] = field(default_factory=dict)
    last_wait: dict[tuple[str, int], int] = field(default_factory=dict)
    ancestors: list[int] = field(default_factory=list)
    instances: dict[int, list[_Instance]] = field(default_factory=lambda: defaultdict(list))
    issued: list[_Instance] = field(default_factory=list)
    found: list[str] = field(default_factory=list)

    def event(self, before: int) -> int:
        """A new event behind others (a set of bits); its bit, whose ancestors are all of these and it."""
        number = len(self.ancestors)
        self.ancestors.append(before | 1 << number)
        return number

    def pipe(self, name: str) -> _Pipe:
        if name not in self.pipes:
            self.pipes[name] = _Pipe()
            # What the issuing pipe has waited for holds for a pipe that is used for the first time, too.
            self.pipes[name].before = self.held
        return self.pipes[name]

    held: int = 0
    issuers: int = 0
    written: int = 0

    def run(self, nodes: Any, env: dict[str, int]) -> Iterator[str]:
        for node in nodes:
            kind = str(node["kind"])
            if kind == "loop":
                for k in range(int(node["extent"])):
                    yield from self.run(node["body"], {**env, str(node["var"]): k})
            elif kind == "group":
                yield from self.run(node["body"], env)
            elif kind == "instruction":
                yield from self.issue(self.instructions[int(node["index"])], int(node["index"]), env)
            elif int(node["number"]) != self.without:
                yield from getattr(self, kind)(node, env)

    def issue(self, op: Data, index: int, env: dict[str, int]) -> Iterator[str]:
        pipe = self.pipe(op["pipe"])
        start = self.event(pipe.before)
        done = self.event(self.ancestors[start])
        touches = [(r["memory"], _bytes(r, env), bool(r["write"])) for r in op["regions"]]
        one = _Instance(index, start, env, touches)
        known = self.ancestors[start]
        for other in self.issued:
            if not known >> other.start + 1 & 1 and _conflict(other, one):
                yield f"race: op {other.index} {other.env} and op {index} {env}"
                break
        self.instances[index].append(one)
        self.issued.append(one)
        pipe.before = self.ancestors[start] if op["pipe"] not in SERIAL else self.ancestors[done]
        pipe.done |= self.ancestors[done]
        if op["pipe"] == ISSUER:
            self.issuers |= 1 << start | 1 << done
            if not op["blocks"] and any(write for _, _, write in touches):
                self.written |= 1 << done
        if op["blocks"]:
            self.held |= self._told(done, self.held)
            for name, held in self.pipes.items():
                # the issuing pipe knows its own
                told = self.ancestors[done] if name == ISSUER else self._told(done, held.before)
                held.before |= self.held | told

    def _told(self, done: int, known: int) -> int:
        """What a pipe learns by being held: nothing of the issuer's own after a write it does not know of."""
        return self.ancestors[done] & ~(self.issuers if self.written & ~known else 0)

    def set(self, node: Data, env: dict[str, int]) -> Iterator[str]:
        flag = f"{node['from']}_{node['to']}", _value(node["id"], env)
        pipe = self.pipe(str(node["from"]))
        number = self.event(pipe.before | pipe.done)
        if not 0 <= flag[1] < IDS:
            yield f"no such id: {flag}"
        if self.up.get(flag) is not None:
            yield f"set twice: {flag}"
        elif flag in self.last_wait and not self.ancestors[number] >> self.last_wait[flag] & 1:
            yield f"set while it may be up: {flag} {env}"
        self.up[flag] = number
        # The pipe does not stop for it: what follows on the pipe is not behind it.

    def wait(self, node: Data, env: dict[str, int]) -> Iterator[str]:
        flag = f"{node['from']}_{node['to']}", _value(node["id"], env)
        pipe = self.pipe(str(node["to"]))
        up = self.up.get(flag)
        if up is None:
            yield f"deadlock: nothing sets {flag}"
            return
        number = self.event(pipe.before | self.ancestors[up])
        self.up[flag] = None
        self.last_wait[flag] = number
        pipe.before = self.ancestors[number]
        if node["to"] == ISSUER:
            # Others do not know that the issuing pipe's own instructions are done, only what it waits for.
            self.held |= self.ancestors[up] | 1 << number
            for other in self.pipes.values():
                other.before |= self.held

    def barrier(self, node: Data, env: dict[str, int]) -> Iterator[str]:
        yield from ()
        names = list(self.pipes) if not node["from"] else [str(node["from"])]
        behind = 0
        for name in names:
            behind |= self.pipe(name).before | self.pipe(name).done
        if node["from"] and node["to"]:
            self.pipe(str(node["to"])).before |= behind
            return
        self.held |= behind
        for other in self.pipes.values():
            other.before |= self.held
