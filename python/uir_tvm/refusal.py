# SPDX-License-Identifier: Apache-2.0
"""What refused a kernel, and every try that was made of it: types and fields, not texts."""

from __future__ import annotations

from typing import Any

import attrs
import tvm
from tvm.s_tir.schedule import ScheduleError as TVMScheduleError

from .errors import CapacityError, UirError, first_line


@attrs.frozen
class Refusal:
    """Why a kernel left the stages.

    Parameters
    ----------
    stage : str
        Name of the stage (`uir_tvm.stages.STAGES`).
    error : Exception
        What was raised there.
    """

    stage: str
    error: Exception

    @property
    def is_fault(self) -> bool:
        """Whether it is no refusal but a fault of the compiler itself."""
        return not isinstance(self.error, (UirError, TVMScheduleError))

    @property
    def lacks_room(self) -> bool:
        """Whether smaller tiles need less of what there was too little of, perhaps for a pass's result."""
        return any(isinstance(each, CapacityError) for each in (self.error, self.error.__cause__))

    @property
    def reason(self) -> str:
        """Why, in one line."""
        said = self.error.what if isinstance(self.error, UirError) else first_line(self.error)
        if not self.is_fault:
            return said
        kind = "" if isinstance(self.error, tvm.error.InternalError) else f"{type(self.error).__name__}: "
        return f"a fault of the compiler: {kind}{said}".removesuffix(f": {type(self.error).__name__}")

    def __str__(self) -> str:
        """All of it: the stage, and what a user reads of the error."""
        return f"{self.stage}: {self.error if isinstance(self.error, UirError) else self.reason}"


@attrs.frozen
class Attempt:
    """One candidate of one recipe that was tried for a kernel.

    Attributes
    ----------
    recipe : str
        Its hero.
    form : str
        Which of its candidates, by the forks that are answered otherwise than it would; empty: its own.
    shrink : int
        By how much tiles were smaller than the hardware prefers.
    stage, refused, reason : str
        Where it ended, the class of the error, and why in one line.  Of a kernel that was made ``stage`` and
        ``refused`` are empty; its reason says what smaller tiles may do better, if anything.
    """

    recipe: str
    form: str
    shrink: int
    stage: str = ""
    refused: str = ""
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return attrs.asdict(self)
