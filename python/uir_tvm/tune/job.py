# SPDX-License-Identifier: Apache-2.0
"""What is measured, and what came of it: plain data, which crosses processes and machines as JSON."""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import attrs
import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace

from ..errors import ScheduleRefusedError, first_line
from ..schedule.size_points import SizePoint
from ..target import registry

if TYPE_CHECKING:
    from .spaces import DesignSpace
    from .task import Task

#: Outcomes: measured and right; a stage refuses it, or the place does not take it; it computes something
#: else; its process ended; it took longer than `Settings.timeout_seconds`; nobody was left to measure it.
OK, REFUSED, WRONG, CRASHED, TIMEOUT, LOST = "ok", "refused", "wrong", "crashed", "timeout", "lost"
OUTCOMES = (OK, REFUSED, WRONG, CRASHED, TIMEOUT, LOST)
#: Characters of a job's digest.
DIGEST_LENGTH = 12


class Plain:
    """What crosses processes and machines as JSON: a class of attrs whose fields are plain data, or such."""

    __slots__ = ()

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return attrs.asdict(self)  # type: ignore[arg-type]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Of what `to_json` gave."""
        return cls(**data)


@attrs.frozen
class Settings(Plain):
    """How candidates are measured.

    Parameters
    ----------
    repeats : int
        Samples of a measured time; a modelled one is the same in every run.
    min_repeat_seconds : float
        A sample is of as many calls as take so long; on a CPU, where each has a cost of its own, of no more
        than ten.
    timeout_seconds : float
        For building, checking and timing a candidate; then its process is ended.
    tolerance : mapping of str to float
        Where the difference to the reference may be other than `uir_tvm.verify.agreement` says, by dtype
        (``float32``).
    """

    repeats: int = attrs.field(default=5, validator=attrs.validators.ge(1))
    min_repeat_seconds: float = attrs.field(default=0.02, validator=attrs.validators.ge(0))
    timeout_seconds: float = attrs.field(default=60.0, validator=attrs.validators.gt(0))
    tolerance: Mapping[str, float] = attrs.field(factory=dict)


DEFAULTS = Settings()


def settings_of(given: Settings | Mapping[str, Any]) -> Settings:
    """Settings, of what they are as plain data too."""
    return given if isinstance(given, Settings) else Settings.from_json(given)


def points_of(given: Sequence[SizePoint | Mapping[str, Any]]) -> tuple[SizePoint, ...]:
    """Representative sizes, of what they are as plain data too."""
    return tuple(one if isinstance(one, SizePoint) else SizePoint(**one) for one in given)


@attrs.frozen
class Job(Plain):
    """A schedule of a kernel, to be measured.

    Parameters
    ----------
    kernel : str
        Its name, for people.
    func : str
        The kernel as the compiler meets it, unscheduled (``tvm.ir.save_json``).
    target : str
        As users name it, with its hardware model: ``uir-ascend:910b2``.
    place : str
        Name of the place where it is to run (`uir_tvm.target.place`).
    begun : str or None
        The function that the trace begins from; None: `func`.
    trace : list or None
        `trace_json` of the schedule; None: the compiler's own schedule.
    seed : int
        Of the inputs.
    settings : Settings
    decisions : mapping of str to int
        What the trace decides, by name: for reports.
    origin, candidate : str, mapping or None
        In a batch: the task (`Task.origin`), and what it is of that (`DesignPoint.to_json`).
    points : tuple of SizePoint
        Of a kernel that leaves sizes open: where it is compared and timed.
    """

    kernel: str
    func: str = attrs.field(repr=False)
    target: str
    place: str
    begun: str | None = attrs.field(default=None, repr=False)
    trace: list[Any] | None = attrs.field(default=None, repr=False)
    seed: int = 0
    settings: Settings = attrs.field(default=DEFAULTS, converter=settings_of)
    decisions: Mapping[str, int] = attrs.field(factory=dict)
    origin: str = ""
    candidate: Mapping[str, Any] | None = attrs.field(default=None, repr=False)
    points: tuple[SizePoint, ...] = attrs.field(default=(), converter=points_of)

    @classmethod
    def of(
        cls,
        task: Task,
        space: DesignSpace | None = None,
        sch: Schedule | None = None,
        *,
        seed: int = 0,
        settings: Settings = DEFAULTS,
    ) -> Job:
        """A schedule of a task.

        Parameters
        ----------
        task : Task
            The kernel and its target.
        space : DesignSpace, optional
            The space that the schedule is of; without one, the compiler's own schedule is measured.
        sch : Schedule, optional
            Default: the space's own.
        """
        target = registry.resolve(task.target)
        place = registry.place_of(target.target).name
        whole = _with_model(target)
        func = str(tvm.ir.save_json(task.func))
        if space is None:
            return cls(task.name, func, whole, place, seed=seed, settings=settings, points=task.points)
        sch = space.schedule if sch is None else sch
        begun = str(tvm.ir.save_json(space.begun))
        decisions = {name: int(value) for name, value in space.decisions(sch).items()}
        trace = trace_json(sch.trace)
        return cls(task.name, func, whole, place, begun, trace, seed, settings, decisions, points=task.points)

    @property
    def digest(self) -> str:
        """By which a schedule on a target is told from others; seed, settings and names do not count."""
        text = json.dumps([self.func, self.target, self.place, self.begun, self.trace])
        return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]

    @property
    def is_default(self) -> bool:
        """Whether it is the compiler's own schedule."""
        return self.trace is None


def trace_json(trace: Trace) -> list[Any]:
    """A trace as plain data, for `replayed`."""
    return _plain(trace.as_json())


def replayed(
    begun: tirx.PrimFunc | tvm.IRModule, trace: Trace | list[Any], remove_postproc: bool = False
) -> Schedule:
    """A trace applied to the function that it begins from.

    Raises
    ------
    ScheduleRefusedError
        It does not apply; the limit is what TVM says.
    """
    mod = begun if isinstance(begun, tvm.IRModule) else tvm.IRModule({"main": begun})
    sch = Schedule(mod, debug_mask="none", error_render_level="fast")
    try:
        if isinstance(trace, Trace):
            trace.apply_to_schedule(sch, remove_postproc=remove_postproc)
        else:
            Trace.apply_json_to_schedule(trace, sch)
    except Exception as error:  # an instruction raises whatever TVM's C++ or a primitive of ours throws
        raise ScheduleRefusedError(
            "The trace does not apply.",
            need="a trace of this function, by these versions of TVM and uir_tvm",
            limit=first_line(error),
            remedy="tune the kernel again",
        ) from error
    return sch


def _plain(value: Any) -> Any:
    """Without TVM's own lists and constants."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | tirx.IntImm):
        return int(value)
    if isinstance(value, float | tirx.FloatImm):
        return float(getattr(value, "value", value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value]


def _with_model(target: registry.Resolved) -> str:
    """A target's name with its hardware model, so that another machine takes the same one."""
    model = str(target.target.attrs.get("model", ""))
    # a CPU's model is what the machine that runs it finds: another one's instructions would not run
    here = registry.place_of(target.target).device == "cpu"
    return f"{target.spec.name}:{model}" if model and not here else target.name


def seconds_of(values: Sequence[float]) -> tuple[float, ...]:
    """Samples, as whoever took them or read them has them."""
    return tuple(float(value) for value in values)


def samples_of(rows: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    """Samples at each of some sizes."""
    return tuple(map(seconds_of, rows))


@attrs.frozen
class Result(Plain):
    """What came of a job.

    Parameters
    ----------
    seconds : tuple of float
        Every sample, in order; none unless the outcome is ``ok``.
    outcome : str
        One of `OUTCOMES`.
    said : str
        Why it was not measured, in a line or a few.
    report : str
        The whole story of a wrong candidate, as `wrong.py` writes it.
    modelled : bool
        Whether the seconds are a host model's.
    bound : str
        What binds a modelled time: a pipe, or the memory.
    by_size : tuple of tuple of float
        Of a job with representative sizes: the samples at each. ``seconds`` are their weighted sums.
    """

    seconds: tuple[float, ...] = attrs.field(default=(), converter=seconds_of)
    outcome: str = attrs.field(default=OK, validator=attrs.validators.in_(OUTCOMES))
    said: str = ""
    report: str = attrs.field(default="", repr=False)
    modelled: bool = False
    bound: str = ""
    by_size: tuple[tuple[float, ...], ...] = attrs.field(default=(), converter=samples_of)

    def __attrs_post_init__(self) -> None:
        if (self.outcome == OK) != bool(self.seconds):
            raise ValueError(f"a result that is {self.outcome!r} with {len(self.seconds)} samples")

    @property
    def ok(self) -> bool:
        """Whether it was measured and is right."""
        return self.outcome == OK

    @property
    def median(self) -> float:
        """Median seconds; infinite where there are none."""
        return statistics.median(self.seconds) if self.seconds else float("inf")

    @property
    def medians(self) -> list[float]:
        """Median seconds at each representative size."""
        return [statistics.median(samples) for samples in self.by_size]
