# SPDX-License-Identifier: Apache-2.0
"""What a recipe decides: numbers that are its own by default, and sampled where schedules are tuned.

A recipe asks for every number that another schedule might have otherwise::

    columns = decisions.choose(sch, "columns", (256, 512, 1024), default=512)

By default that is 512 and leaves nothing in the trace.  Where schedules are tuned it is sampled by
``sample_categorical``: a `Choice`, a number as any other, whose random variable the primitives put into their
instructions, so that the trace says what a change of the decision changes.  What is computed from a `Choice`
is a plain number and stays as it is when the decision changes.

What shapes the schedule itself (whether rows are shared, which of two forms a function gets) is no number of
an instruction: a recipe asks for it by `Decisions.fork`, and each answer is a design space of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import tirx
from tvm.s_tir import Schedule


class Choice(int):
    """A number that was sampled.

    Attributes
    ----------
    rv : ExprRV
        What stands for it in the trace.
    """

    rv: Any

    @classmethod
    def of(cls, value: int, rv: Any) -> Choice:
        """A number and its random variable."""
        made = cls(value)
        made.rv = rv
        return made


def rv_of(value: int | None) -> Any:
    """What an instruction takes for a number: its random variable where it was sampled."""
    return value.rv if isinstance(value, Choice) else value


class Decisions:
    """The recipes' own decisions: every default."""

    #: Whether numbers are sampled, so that a loop of one iteration may have more after another decision.
    sampled = False

    def choose(self, sch: Schedule, name: str, candidates: Sequence[int], default: int) -> int:
        """One of some numbers.

        Parameters
        ----------
        sch : Schedule
            Whose trace the sampling is in.
        name : str
            What is decided, for reports: tile_columns, stages.
        candidates : sequence of int
            Each one makes a schedule that is possible as far as the recipe knows; the default is added.
        default : int
            The recipe's own.
        """
        return default

    def tile(self, sch: Schedule, name: str, loop: Any, default: int, most: int) -> int:
        """The inner factor of a loop, at most ``most``; where tuned, one that divides a known length."""
        return default

    def fork(self, name: str, candidates: Sequence[int], default: int) -> int:
        """One of some forms of the schedule, as a plain number."""
        return default

    def restart(self, func: tirx.PrimFunc) -> Schedule:
        """The schedule of a function that the recipe has rewritten; its trace begins there."""
        return Schedule(func, debug_mask="none", error_render_level="fast")


#: Candidates for a size at most, and by which factor they differ at least: the first that leaves few enough.
MOST_SIZES, APART = 10, (1.4, 1.6, 2.0, 3.0, 4.0)

#: Powers of two below and above a tile's own size that are tried where the loop's length is open.
OPEN_STEPS = 3

#: What recipes take where nobody tunes.
OWN = Decisions()


class Answered(Decisions):
    """The recipes' own decisions, but for some forks.

    Parameters
    ----------
    answers : mapping of str to sequence of int
        By the fork's name: the first of these that is possible is the answer.
    """

    def __init__(self, answers: Mapping[str, Sequence[int]]) -> None:
        self.answers = answers

    def fork(self, name: str, candidates: Sequence[int], default: int) -> int:
        """See `Decisions.fork`."""
        return next((a for a in self.answers.get(name, ()) if a in candidates), default)


class Sampled(Decisions):
    """Decisions as instructions of the trace, for one combination of forks.

    Parameters
    ----------
    forks : mapping of str to int
        Answers; what is not in it gets the recipe's own.
    """

    sampled = True

    def __init__(self, forks: Mapping[str, int] | None = None) -> None:
        self.wanted = dict(forks or {})
        #: What was asked and answered, in order, and all answers that are possible.
        self.forks: dict[str, int] = {}
        self.answers: dict[str, tuple[int, ...]] = {}
        #: What the trace samples, in order; a perfect tile counts once.
        self.names: list[str] = []
        #: The function that the trace begins from; None: the one that the recipe was given.
        self.begun: tirx.PrimFunc | None = None

    def choose(self, sch: Schedule, name: str, candidates: Sequence[int], default: int) -> int:
        """See `Decisions.choose`."""
        numbers = sorted({int(c) for c in candidates} | {int(default)})
        if len(numbers) == 1:
            return default
        self.names.append(name)
        share = [1.0 / len(numbers)] * len(numbers)
        rv = sch.sample_categorical(numbers, share, decision=numbers.index(int(default)))
        return Choice.of(default, rv)

    def tile(self, sch: Schedule, name: str, loop: Any, default: int, most: int) -> int:
        """See `Decisions.tile`."""
        extent = sch.get(loop).extent
        if not isinstance(extent, int | tirx.IntImm):  # nothing divides it: its last tile is guarded
            return self.choose(sch, name, near(default, max(default, most), steps=OPEN_STEPS), default)
        extent = int(extent)
        inner = max(d for d in range(1, max(1, default) + 1) if extent % d == 0)
        if extent == 1 or most <= 1:
            return default
        self.names.append(name)
        factors = sch.sample_perfect_tile(loop, 2, max(most, inner), decision=[extent // inner, inner])
        return Choice.of(inner, factors[1])

    def fork(self, name: str, candidates: Sequence[int], default: int) -> int:
        """See `Decisions.fork`."""
        self.answers[name] = tuple(dict.fromkeys((default, *candidates)))
        answer = self.wanted.get(name, default)
        self.forks[name] = answer
        return answer

    def restart(self, func: tirx.PrimFunc) -> Schedule:
        """See `Decisions.restart`; what was sampled before is fixed from here on."""
        self.names.clear()
        self.begun = func
        return super().restart(func)


def near(own: int, most: int, least: int = 1, steps: int = 2) -> list[int]:
    """A number and the powers of two around it, so many on each side, the nearest first.

    Parameters
    ----------
    most, least : int
        Limits of the others; where the next power exceeds ``most`` that is one of them.
    """
    below, above = 1 << max(0, (own - 1).bit_length() - 1), 1 << own.bit_length()
    around = [own]
    for step in range(steps):
        around += [below >> step, min(most, above << step)]
    return [own, *dict.fromkeys(n for n in around if least <= n <= most and n != own)]


def tile_sizes(extent: int, default: int, most: int, least: int = 1) -> tuple[int, ...]:
    """Candidates for a tile of a loop: the default, all of the loop, what divides it, and powers of two.

    At most `MOST_SIZES`, each some way from the next one: what is nearly as large is nearly as fast.

    Parameters
    ----------
    extent : int
        Of the loop.
    most, least : int
        Limits of a tile.
    """
    most = min(most, extent)
    powers = [1 << p for p in range(most.bit_length())]
    whole = [extent // parts for parts in range(1, 33) if extent % parts == 0]
    wanted = [size for size in (*whole, *powers) if least <= size <= most]
    for apart in APART:
        found = [min(default, extent)]
        for size in wanted:
            if all(max(size, other) >= apart * min(size, other) for other in found):
                found.append(size)
        if len(found) <= MOST_SIZES:
            break
    return tuple(sorted(found[:MOST_SIZES]))
