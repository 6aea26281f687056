# SPDX-License-Identifier: Apache-2.0
"""Runs a planned kernel and says what is wrong with its syncs, by the happens-before graph of every single event.

It knows nothing of how the planner works: all iterations are run, bytes are bits of an integer, and what comes
before an event is the set of all its ancestors.

    start(i) -> done(i)                            an instruction takes time
    start(i) -> start of the pipe's next           a pipe starts what it got in order
    done(i) -> set                                 a flag goes up when all earlier instructions of its pipe are done
    set -> wait -> start of the pipe's next        and holds the waiting pipe; if that issues all others, these too
    done(i) -> barrier -> start of the pipe's next
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Data = dict[str, Any]

IDS = 6
SERIAL = ISSUER = "S"


def findings(body: list[Data], planned: Data, without: int | None = None, first: bool = False) -> list[str]:
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
    """
    machine = _Machine(list(_instructions(body)), without)
    for message in machine.run(planned["body"], {}):
        machine.found.append(message)
        if first or message.startswith("deadlock"):
            return machine.found
    machine.found += [f"left up: {pair} {number}" for (pair, number), up in machine.up.items() if up is not None]
    return machine.found


def _instructions(body: list[Data]) -> Iterator[Data]:
    for node in body:
        if node["kind"] == "instruction":
            yield node
        else:
            yield from _instructions(node["body"])


def _bits(region: Data, env: dict[str, int]) -> int:
    begin = _value(region["begin"], env)
    starts = [begin]
    for count, stride in region["dims"]:
        starts = [s + i * stride for s in starts for i in range(count)]
    run = (1 << region["bytes"]) - 1
    mask = 0
    for start in starts:
        assert start >= 0, "the simulator's memories begin at 0"
        mask |= run << start
    return mask


_compiled: dict[str, Any] = {}


def _value(expr: Any, env: dict[str, int]) -> int:
    text = str(expr)
    code = _compiled.get(text)
    if code is None:
        code = _compiled[text] = compile(text.replace("/", "//"), "address", "eval")
    return int(eval(code, {}, env))


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
    accesses: dict[str, list[tuple[int, int, int, str]]] = field(default_factory=dict)
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
        for region in op["regions"]:
            bits, write = _bits(region, env), int(region["write"])
            for other, wrote, number, what in self.accesses.get(region["memory"], []):
                if number != start and (write or wrote) and bits & other and not self.ancestors[start] >> number + 1 & 1:
                    yield f"race: {what} and op {index} {env} in {region['memory']}"
                    break
            self.accesses.setdefault(region["memory"], []).append((bits, write, start, f"op {index} {env}"))
        pipe.before = self.ancestors[start] if op["pipe"] != SERIAL else self.ancestors[done]
        pipe.done |= self.ancestors[done]
        if op["blocks"]:
            self.held |= self.ancestors[done]
            for other in self.pipes.values():
                other.before |= self.held

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
            # The issuing pipe's own instructions are not known to be done by others, but what it waits for is.
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
