# SPDX-License-Identifier: Apache-2.0
"""All-or-nothing primitives: a refused one leaves the schedule as it was."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from tvm.s_tir import Schedule
from tvm.s_tir.schedule import ScheduleError as TVMScheduleError

from ..errors import ScheduleError

F = TypeVar("F", bound=Callable[..., Any])

#: Whether a schedule of which a primitive is refused is given up, so that what becomes of it does not matter.
_GIVEN_UP: contextvars.ContextVar[bool] = contextvars.ContextVar("uir_given_up", default=False)


@contextlib.contextmanager
def given_up_when_refused() -> Iterator[None]:
    """Primitives inside need no rehearsal: who runs them drops a schedule of which one is refused."""
    token = _GIVEN_UP.set(True)
    try:
        yield
    finally:
        _GIVEN_UP.reset(token)


def _first_lines(error: Exception) -> str:
    """TVM's reason without its dump of the module."""
    text = str(error)
    for marker in ("Error message:", "Error:"):
        if marker in text:
            text = text.split(marker, 1)[1]
            break
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return " ".join(lines[:3])[:400]


def refused_by_tvm(error: Exception) -> bool:
    """Whether an instruction of TVM raised this: a refusal, or a check of its C++ that fails instead."""
    if isinstance(error, TVMScheduleError):
        return True
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and not frames[-1].filename.endswith(".py")


def primitive(remedy: str) -> Callable[[F], F]:
    """Make ``fn(sch, ...)`` a primitive: rehearse it on a copy, then run it on ``sch``.

    A stock instruction that TVM refuses becomes a `ScheduleError` with ``remedy``; in every case of
    refusal ``sch`` (module and trace) is untouched, because only the copy was worked on.  Recipes go
    without the copy (`given_up_when_refused`).
    """

    def wrap(fn: F) -> F:
        @functools.wraps(fn)
        def run(sch: Schedule, *args: Any, **kwargs: Any) -> Any:
            alone = _GIVEN_UP.get()
            try:
                made = fn(sch if alone else sch.copy(), *args, **kwargs)
            except Exception as error:
                if not refused_by_tvm(error):
                    raise
                raise ScheduleError(
                    f"{fn.__name__} does not apply here.", need=_first_lines(error), remedy=remedy
                ) from error
            return made if alone else fn(sch, *args, **kwargs)

        return run  # type: ignore[return-value]

    return wrap
