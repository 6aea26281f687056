# SPDX-License-Identifier: Apache-2.0
"""What launches on all host models share: requests, arguments, memory, findings."""

from __future__ import annotations

import ctypes
import functools
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from ..errors import DeviceModelError
from .text_model import library

__all__ = ["DeviceArray", "LaunchFunction", "Finding", "LaunchResult", "described", "native"]


_Field = tuple[str, Any]


class Arg(ctypes.Structure):
    """One kernel parameter, as the models' C interface takes it."""

    _fields_ = [("value", ctypes.c_void_p), ("bytes", ctypes.c_int64), ("name", ctypes.c_char_p)]


@functools.cache
def native() -> ctypes.CDLL:
    """The library of the models, loaded."""
    model = ctypes.CDLL(str(library()))
    model.uir_simt_free_text.argtypes = [ctypes.c_void_p]
    model.uir_simt_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_char_p]
    model.uir_simt_alloc.restype = ctypes.c_void_p
    model.uir_simt_release.argtypes = [ctypes.c_void_p]
    model.uir_simt_copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
    model.uir_simt_first_unwritten.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    model.uir_simt_first_unwritten.restype = ctypes.c_int64
    return model


@attrs.frozen
class Finding:
    """One fault that the model found; numbers are -1 where they do not apply.

    Attributes
    ----------
    kind : str
        Such as ``out-of-bounds``, ``race`` or ``divergent-barrier`` (``docs/targets`` lists them).
    what : str
        A sentence.
    kernel : str
        Its name.
    line, inner_line : int
        Lines of the text, from 1: in the kernel, and in the device function that it calls there.
    space : str
        The memory, such as ``global``, ``shared`` or ``UB``; or empty.
    block, thread : int
        Who did it first.
    core, pipe : str
        Of devices whose blocks have several cores, and cores several pipes.
    other_line, other_block, other_thread, other_core, other_pipe
        The other side of a race or of a barrier.
    count : int
        How often it was met at this place.
    """

    kind: str
    what: str
    kernel: str
    line: int
    space: str
    block: int
    other_line: int
    other_block: int
    count: int
    inner_line: int = -1
    thread: int = -1
    other_thread: int = -1
    core: str = ""
    pipe: str = ""
    other_core: str = ""
    other_pipe: str = ""

    @property
    def where(self) -> str:
        """Its place, for people."""
        who = f", thread {self.thread}" if self.thread >= 0 else f", {self.core}" if self.core else ""
        return f"{self.kernel}, line {self.line}, block {self.block}{who}"

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@attrs.frozen
class LaunchResult:
    """What one launch found and counted; it took ``seconds`` on this machine.

    ``modelled`` is the time on the device by the model's reckoning, where it counts one: ``seconds``,
    ``bound`` (the pipe that takes longest, or ``memory``), ``pipes``, and the ``timeline`` where it was asked
    for. ``computed`` says whether instructions took effect.
    """

    findings: tuple[Finding, ...]
    counters: Mapping[str, int]
    seconds: float
    modelled: Mapping[str, Any] = attrs.field(factory=dict)
    computed: bool = True

    def check(self) -> LaunchResult:
        """Raise `DeviceModelError` unless nothing was found."""
        if self.findings:
            first = self.findings[0]
            raise DeviceModelError(
                f"The host model found a fault ({first.kind}).",
                findings=[attrs.asdict(finding) for finding in self.findings],
                where=first.where,
                need=first.what,
            )
        return self


class DeviceArray:
    """Memory of the modelled device, as an array.

    Parameters
    ----------
    shape : int or sequence of int
    dtype : numpy dtype
    label : str
        What findings call it.
    """

    def __init__(self, shape: int | Sequence[int], dtype: np.dtype | type, label: str = "") -> None:
        dtype = np.dtype(dtype)
        self.bytes = int(np.prod(shape)) * dtype.itemsize
        self.address = native().uir_simt_alloc(max(self.bytes, 1), 256, label.encode())
        if not self.address:
            raise MemoryError(f"{self.bytes} bytes of the modelled device's memory")
        raw = memoryview((ctypes.c_uint8 * self.bytes).from_address(self.address))
        #: The memory itself; writing through it does not count as writing (see `fill`).
        self.array = np.frombuffer(raw, dtype=dtype).reshape(shape)

    def fill(self, values: np.ndarray) -> DeviceArray:
        """Copy values of the same shape and dtype from the host; they count as written."""
        values = np.ascontiguousarray(values, dtype=self.array.dtype).reshape(self.array.shape)
        native().uir_simt_copy(self.address, values.ctypes.data, self.bytes)
        return self

    @property
    def first_unwritten(self) -> int:
        """Offset of the first byte that nothing wrote, or -1."""
        return native().uir_simt_first_unwritten(self.address, self.bytes)

    def __del__(self) -> None:
        if getattr(self, "address", None):
            native().uir_simt_release(self.address)


class LaunchFunction:
    """The function of a model's C interface that launches a kernel.

    Parameters
    ----------
    function : str
        Its name.
    shape : sequence of (str, ctypes type)
        What its request says of a launch beside code, kernel, arguments and limits.
    rest : sequence of (str, ctypes type)
        What follows the limits.
    """

    def __init__(self, function: str, shape: Sequence[_Field], rest: Sequence[_Field] = ()) -> None:
        self.function = function
        fields = [
            ("library", ctypes.c_char_p),
            ("kernel", ctypes.c_char_p),
            ("args", ctypes.POINTER(Arg)),
            ("num_args", ctypes.c_int32),
            *shape,
            ("max_findings", ctypes.c_int32),
            ("max_seconds", ctypes.c_double),
            *rest,
        ]
        self.request = type(function, (ctypes.Structure,), {"_fields_": fields})

    @functools.cached_property
    def _run(self) -> Any:
        run = getattr(native(), self.function)
        run.argtypes = [ctypes.POINTER(self.request), ctypes.POINTER(ctypes.c_void_p)]
        return run

    def launch(
        self,
        compiled: pathlib.Path,
        kernel: str,
        args: Sequence[np.ndarray | DeviceArray | int],
        shape: Sequence[Any],
        *,
        max_findings: int,
        max_seconds: float,
        names: Sequence[str],
        rest: Sequence[Any] = (),
    ) -> LaunchResult:
        """Run one kernel; ``shape`` and ``rest`` are the values of the fields of these names.

        Raises
        ------
        DeviceModelError
            The launch could not run.
        """
        request = self.request(
            str(compiled).encode(),
            kernel.encode(),
            _arguments(args, names),
            len(args),
            *shape,
            max_findings,
            max_seconds,
            *rest,
        )
        text = ctypes.c_void_p()
        self._run(ctypes.byref(request), ctypes.byref(text))
        return _answer_of(text, kernel, compiled)


def described(device: Mapping[str, Any] | None) -> bytes | None:
    """A device's sizes and costs as a field of a request."""
    return None if device is None else json.dumps(device).encode()


def _arguments(args: Sequence[np.ndarray | DeviceArray | int], names: Sequence[str] = ()) -> Any:
    """The arguments of a launch as the models' C interface takes them."""
    given = (Arg * max(len(args), 1))()
    for i, arg in enumerate(args):
        name = (names[i] if i < len(names) else f"parameter {i}").encode()
        if isinstance(arg, DeviceArray):
            # at an empty array there is nothing to access: its address is no more than a number
            given[i] = Arg(arg.address, arg.bytes or -1, name)
        elif isinstance(arg, np.ndarray):
            given[i] = Arg(arg.ctypes.data, arg.nbytes, name)
        else:
            given[i] = Arg(int(arg), -1, name)
    return given


def _answer_of(text: ctypes.c_void_p, kernel: str, compiled: pathlib.Path) -> LaunchResult:
    """The result that a model answered as JSON, whose memory is freed.

    Raises
    ------
    DeviceModelError
        The launch could not run.
    """
    answer = json.loads(ctypes.string_at(text))  # type: ignore[arg-type]
    native().uir_simt_free_text(text)
    if answer["error"]:
        raise DeviceModelError(
            f"The host model cannot run {kernel!r}.", where=str(compiled), need=answer["error"]
        )
    findings = tuple(Finding(**one) for one in answer["findings"])
    modelled = answer.get("modelled", {})
    return LaunchResult(findings, answer["counters"], answer["seconds"], modelled, answer["computed"])
