# SPDX-License-Identifier: Apache-2.0
"""The errors that a user of uir_tvm can meet.

Every message says what went wrong and where, then what was needed, which limit it met and what to
do about it, in that order and each on its own line.  The command line prints the message without a
Python traceback and ends with the class's ``exit_code``.
"""

from __future__ import annotations

import json
import os
import re
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

#: How the native code joins the fields of an error's message: what, where, need, limit, remedy.
SEPARATOR = "\x1f"
#: In a line of a compiler's or a linker's log.
_SPEAKS_OF_AN_ERROR = re.compile(r"\berror\b|\bfatal\b|cannot find|undefined reference")


class UirError(Exception):
    """Base of all errors that are the user's to solve.

    Parameters
    ----------
    what : str
        One sentence that names the thing that is wrong.
    where : str
        The block, iOp, node, file or argument at fault.
    need, limit, remedy : str
        What was needed, what the limit is, what to do.
    """

    exit_code: ClassVar[int] = 1

    def __init__(
        self, what: str, *, where: str = "", need: str = "", limit: str = "", remedy: str = ""
    ) -> None:
        if SEPARATOR in what:
            what, where, need, limit, remedy = (what.split(SEPARATOR) + [""] * 4)[:5]
        self.what, self.where, self.need, self.limit, self.remedy = what, where, need, limit, remedy
        super().__init__(self.render())

    def render(self) -> str:
        """The message as a user reads it."""
        lines = [self.what]
        for label, text in (
            ("where", self.where),
            ("need", self.need),
            ("limit", self.limit),
            ("remedy", self.remedy),
        ):
            if text:
                lines.append(f"  {label + ':':<8}{text}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The same as a mapping, for ``--json`` output."""
        return {
            "error": type(self).__name__,
            "what": self.what,
            "where": self.where,
            "need": self.need,
            "limit": self.limit,
            "remedy": self.remedy,
        }


class EnvironmentMismatchError(UirError, ImportError):
    """The installed TVM, tvm-ffi or native library do not fit together."""

    exit_code = 3


class TargetError(UirError, ValueError):
    """An unknown target or hardware model."""

    exit_code = 4


class CapacityError(UirError):
    """More of a memory on chip than there is: the same kernel with smaller tiles needs less.

    Whoever compiles a kernel tries smaller tiles when it meets this class, whatever the message says.

    Parameters
    ----------
    memory : str
        What lacks room: a level of the hardware model (``reg``, ``sram``) or a memory as the vendor names it.
    needed, available : int
        Bytes that the kernel takes there, and bytes that there are; 0 where that is not known.
    """

    def __init__(
        self, what: str, *, memory: str = "", needed: int = 0, available: int = 0, **fields: Any
    ) -> None:
        # the native code appends these to the fields of the message
        joined = what.split(SEPARATOR)
        if len(joined) > 5:
            memory, needed, available = joined[5], int(joined[6]), int(joined[7])
        self.memory, self.needed, self.available = memory, needed, available
        super().__init__(what, **fields)

    def to_json(self) -> dict[str, Any]:
        """The same as a mapping, for ``--json`` output."""
        return super().to_json() | {
            "memory": self.memory,
            "needed": self.needed,
            "available": self.available,
        }


class IGraphError(UirError):
    """An iGraph that is not well formed."""

    exit_code = 5


class ParseError(IGraphError):
    """Text that is not an iGraph; carries the source position.

    Parameters
    ----------
    line, column : int
        1-based position of the fault.
    """

    def __init__(self, what: str, *, line: int, column: int, source: str = "", remedy: str = "") -> None:
        self.line, self.column = line, column
        where = f"line {line}, column {column}"
        if source:
            where += f"\n    {source}\n    {' ' * (column - 1)}^"
        super().__init__(what, where=where, remedy=remedy)


class WitnessError(IGraphError):
    """An iGraph with a fault that shows at certain values of its variables.

    Parameters
    ----------
    witness : dict[str, int]
        Values of pid, loop variables and element coordinates that show the fault.
    """

    def __init__(
        self,
        what: str,
        *,
        witness: dict[str, int] | None = None,
        where: str = "",
        need: str = "",
        limit: str = "",
        remedy: str = "",
    ) -> None:
        self.witness = dict(witness or {})
        if self.witness:
            shown = ", ".join(f"{k}={v}" for k, v in self.witness.items())
            where = f"{where}  (witness: {shown})" if where else f"witness: {shown}"
        super().__init__(what, where=where, need=need, limit=limit, remedy=remedy)


class VerifyError(WitnessError):
    """An iGraph that breaks a rule of the verifier; ``rule`` names it, ``witness`` shows it.

    Parameters
    ----------
    rule : str
        One of `uir_tvm.verify.ALL`: ``form``, ``shape``, ``dtype``, ``bounds``, ``identity``,
        ``coverage``, ``uninitialised``, ``capacity``, ``addresses`` or ``race``; or ``equivalence``.
    pointer : str
        Name of the pointer that it is about; empty where it is about none, or about several.
    """

    def __init__(
        self,
        what: str,
        *,
        rule: str,
        pointer: str = "",
        witness: dict[str, int] | None = None,
        **fields: str,
    ) -> None:
        self.rule, self.pointer = rule, pointer
        super().__init__(what, witness=witness, **fields)


class VerifyCapacityError(CapacityError, VerifyError):
    """An iGraph of which more is alive at once than a memory holds (rule ``capacity``)."""

    def __init__(self, what: str, **fields: Any) -> None:
        super().__init__(what, rule="capacity", **fields)


class EquivalenceError(VerifyError):
    """An iGraph that does not compute what it stands for (rule ``equivalence``).

    Parameters
    ----------
    method : str
        How it was found: ``field`` or ``values``; empty where the parameters differ already.
    seed : int
        Of the inputs.
    sizes : mapping of str to int, optional
        Those at which a graph with sizes ran.
    output : str
        The output that differs, and ``element`` its first element that does (-1: the graph does not run).
    """

    def __init__(
        self,
        what: str,
        *,
        method: str = "",
        seed: int = 0,
        output: str = "",
        element: int = -1,
        sizes: Mapping[str, int] | None = None,
        where: str = "",
        **fields: str,
    ) -> None:
        self.method, self.seed, self.output, self.element = method, seed, output, element
        place = ", ".join(part for part in (where, f"method {method}, seed {seed}" if method else "") if part)
        witness = {**(sizes or {}), **({"element": element} if element >= 0 else {})}
        super().__init__(what, rule="equivalence", witness=witness, where=place, **fields)


class InterpreterError(WitnessError):
    """A run of the interpreter that read memory nothing wrote, or left a buffer."""


class ScheduleError(UirError):
    """A schedule primitive that refuses; the schedule is as it was."""

    exit_code = 6


class ScheduleCapacityError(CapacityError, ScheduleError):
    """A tile that does not fit a unit's memory even once."""


class OpaqueFunctionError(ScheduleError):
    """A function without blocks that can be scheduled, at whatever shapes: TVM's own lowering takes it."""


class RecipeError(ScheduleError):
    """A recipe that does not fit a function: the driver asks the next one."""

    def __init__(
        self, what: str, *, remedy: str = "another recipe fits this function", **fields: str
    ) -> None:
        super().__init__(what, remedy=remedy, **fields)


class NoRecipeError(ScheduleError):
    """A function that no recipe schedules."""


class ExtractionError(UirError):
    """A scheduled PrimFunc that no iGraph expresses."""

    exit_code = 7


class PassError(UirError):
    """A pass that does not exist, that failed, or whose graph was refused; ``name`` is the pass.

    ``__cause__`` is what was said of the graph.
    """

    exit_code = 13

    def __init__(
        self, what: str, *, name: str, where: str = "", need: str = "", limit: str = "", remedy: str = ""
    ) -> None:
        self.name = name
        super().__init__(what, where=where, need=need, limit=limit, remedy=remedy)


class CodegenError(UirError):
    """An iGraph that a target cannot emit."""

    exit_code = 8


class CodegenCapacityError(CapacityError, CodegenError):
    """An iGraph for whose temporaries and work buffers a target has no room on chip."""


class FrontendError(UirError):
    """A model that cannot be imported."""

    exit_code = 9


class TorchExportError(FrontendError):
    """A module of PyTorch that ``torch.export`` does not take."""


class UnsupportedOperatorError(FrontendError):
    """A model that uses an operator which no importer knows.

    Parameters
    ----------
    operators : mapping of str to (str, str)
        Why each is not known, and a remedy, where there may be several.
    """

    def __init__(
        self, what: str, *, operators: Mapping[str, tuple[str, str]] | None = None, **fields: str
    ) -> None:
        self.operators = dict(operators or {})
        super().__init__(what, **fields)


class ValueNeededError(FrontendError):
    """A model with inputs whose values decide shapes or attributes, and are not known yet.

    Parameters
    ----------
    inputs : sequence of str
        Their names.
    model : OpenModel
        As of `DynamicShapeError`.
    """

    def __init__(self, what: str, *, inputs: Sequence[str], model: Any = None, **fields: str) -> None:
        self.inputs, self.model = tuple(inputs), model
        super().__init__(what, **fields)


class MissingPackageError(FrontendError, ImportError):
    """A model whose framework is not installed, or not as the importer needs it."""


class ModelFormatError(FrontendError):
    """A model file that is missing, truncated or of another format."""


class ShapeError(UirError, ValueError):
    """A shape, dtype or number of inputs that does not fit."""

    exit_code = 10


class DynamicShapeError(ShapeError):
    """A model with inputs whose sizes are not known yet.

    Parameters
    ----------
    model : OpenModel
        What the front end has read so far (`uir_tvm.frontend.open_model`): it can be bound to sizes.
    """

    def __init__(self, what: str, *, model: Any = None, **fields: str) -> None:
        self.model = model
        super().__init__(what, **fields)


class SizeError(ShapeError):
    """Sizes that a model does not take: outside of a range, or inputs that disagree on a symbol."""


class OpenSizeError(ShapeError):
    """A size that is open where a number is needed: the model is compiled for each shape by itself."""


class NotCompiledError(ShapeError):
    """Inputs of shapes for which a saved model holds no code."""


class StateError(UirError, RuntimeError):
    """State that cannot be used, set or shared: a call failed while it wrote it, or it is of another kind."""

    exit_code = 20


class PositionError(StateError, IndexError):
    """A position beyond the state that it names rows of; nothing was written."""


class ArtifactError(UirError):
    """A saved executable that is missing, damaged, of another version or machine, or cannot be loaded."""

    exit_code = 11


class DatabaseError(UirError):
    """A database of schedules that cannot be read, written or extended."""

    exit_code = 18


class ScheduleRefusedError(DatabaseError):
    """A schedule that a database does not take: its trace does not make it again."""


class CostModelError(DatabaseError):
    """A file of a cost model that is missing, damaged or of another version, or cannot be written."""


class TuneError(UirError, ValueError):
    """Nothing to tune, or a budget, option or file of results that tuning cannot take."""

    exit_code = 19


class GenerationError(UirError, ValueError):
    """A prompt, a length or a parameter of sampling that a language model cannot take."""

    exit_code = 21


class QuantizationError(UirError, ValueError):
    """A packing of integers that there is none of, or tensors that do not fit it."""

    exit_code = 22


class ExportError(UirError, ValueError):
    """A model that is no project of the vendor's toolkit, or a folder that cannot hold one."""

    exit_code = 17


class LibraryError(UirError):
    """A vendor or BLAS library that is missing or refuses an operator."""

    exit_code = 12


class ToolchainError(UirError):
    """A vendor's compiler that is missing or refuses a source.

    Parameters
    ----------
    log : str
        All that the compiler wrote; its first line that speaks of an error is `where`, if none is given.
    """

    exit_code = 14

    def __init__(self, what: str, *, log: str = "", where: str = "", **fields: str) -> None:
        self.log = log
        lines = [line.strip() for line in log.splitlines() if line.strip()]
        telling = [line for line in lines if _SPEAKS_OF_AN_ERROR.search(line)]
        super().__init__(what, where=where or "".join((telling or lines)[:1])[:500], **fields)


class DeviceError(UirError, RuntimeError):
    """A device that is missing, of another kind than the code is for, or that fails."""

    exit_code = 15


class DeviceModelError(UirError, RuntimeError):
    """A kernel that the host model of a device found at fault: hardware would have computed wrong or stopped.

    Parameters
    ----------
    findings : sequence of mapping
        All that was found, the first being what the message says: ``kind``, ``kernel``, ``line`` (of the
        emitted text), ``block``, ``thread``, ``message``.
    """

    exit_code = 16

    def __init__(self, what: str, *, findings: Sequence[Mapping[str, Any]] = (), **fields: str) -> None:
        # the native code appends the findings to the fields of the message
        joined = what.split(SEPARATOR)
        if len(joined) > 5:
            findings = json.loads(joined[5])
        self.findings = tuple(findings)
        super().__init__(what, **fields)


def first_line(error: BaseException) -> str:
    """The first line of what an error says, or its class; one that announces the next has that one too."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]


def last_line(error: BaseException) -> str:
    """The last one: there TVM and Python say what matters."""
    return (str(error).strip() or type(error).__name__).splitlines()[-1].strip()


def is_own_fault(error: BaseException) -> bool:
    """Whether this package itself failed: no refusal, and raised by its own code, not by TVM's."""
    frames = traceback.extract_tb(error.__traceback__)
    package = os.path.dirname(os.path.realpath(__file__))
    ours = bool(frames) and os.path.realpath(frames[-1].filename).startswith(package + os.sep)
    return ours and not isinstance(error, UirError)


#: Errors that the native code raises, or hands on from Python to Python, by the name of their class.
NATIVE = (
    CodegenError,
    CodegenCapacityError,
    DeviceError,
    DeviceModelError,
    IGraphError,
    SizeError,
    ToolchainError,
)
