# SPDX-License-Identifier: Apache-2.0
"""What a GGUF file has: its settings, and where its tensors lie; numbers are checked against its size.

Source: the specification of GGUF, versions 2 and 3 (``docs/gguf.md`` of ggml).
"""

from __future__ import annotations

import itertools
import math
import pathlib
import struct
from collections.abc import Iterable
from typing import Any

import attrs
import numpy as np

from ..errors import MissingPackageError, ModelFormatError
from ..quantized_weight import QuantizedWeight
from .gguf_blocks import KINDS, BlockKind, quantised

#: The first bytes of a file.
MAGIC = b"GGUF"
#: Versions of the format; the first counted in 32 bits.
VERSIONS = (2, 3)
#: Where tensors begin is a multiple of this, unless the file says another.
ALIGNMENT = 32
#: Settings by the number of their type, as `struct` has them.
_NUMBERS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
_TEXT, _ARRAY = 8, 9
#: Arrays in each other, at most: known settings are arrays of numbers or of texts.
_DEPTH = 4
_AGAIN = "download the model again, or convert it again"


def damaged(path: pathlib.Path, what: str, need: str, limit: str) -> ModelFormatError:
    """The error of a file that is cut off, or whose numbers do not fit each other."""
    return ModelFormatError(f"{path} is damaged: {what}.", need=need, limit=limit, remedy=_AGAIN)


@attrs.frozen(eq=False)
class GgufTensor:
    """A tensor of a file.

    Attributes
    ----------
    name : str
    shape : tuple of int
        Of its values, rows first (the file has it the other way round).
    kind : BlockKind
    rows : numpy.ndarray of uint8, (rows, bytes of a row)
        As they lie in the file, which stays mapped.
    """

    name: str
    shape: tuple[int, ...]
    kind: BlockKind
    rows: np.ndarray

    def quantised(self, order: np.ndarray | None = None) -> QuantizedWeight:
        """As a quantised tensor, perhaps with rows in another order."""
        return quantised(self.kind, self.rows if order is None else self.rows[order])

    def values(self) -> np.ndarray:
        """As float32.

        Raises
        ------
        MissingPackageError
            Of a type that only the package ``gguf`` unpacks, which is not installed.
        """
        if self.kind.packing is not None:
            return self.quantised().values().reshape(self.shape)
        raw = np.ascontiguousarray(self.rows)
        if self.kind.name == "BF16":
            found = (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        elif self.kind.values == 1:
            found = raw.view({"F32": np.float32, "F16": np.float16}[self.kind.name]).astype(np.float32)
        else:
            found = _by_package(self)
        return found.reshape(self.shape)


def _by_package(tensor: GgufTensor) -> np.ndarray:
    try:
        import gguf
    except ImportError as error:
        raise MissingPackageError(
            f"{tensor.kind.name} is unpacked by gguf, which is not installed.",
            limit=str(error),
            remedy="pip install 'uir_tvm[llm]'",
        ) from error
    found: np.ndarray = gguf.dequantize(
        np.ascontiguousarray(tensor.rows), gguf.GGMLQuantizationType[tensor.kind.name]
    )
    return found


class GgufFile:
    """A file that is read as far as its table of tensors.

    Parameters
    ----------
    path : pathlib.Path

    Attributes
    ----------
    settings : dict of str to value
    tensors : dict of str to GgufTensor

    Raises
    ------
    ModelFormatError
        No GGUF file, one of another version, cut off, with types that are not known, sizes that do not fit.
    """

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        check_magic(path)
        self._bytes = np.memmap(path, np.uint8, "r")
        self._place = len(MAGIC)
        version = self._number("I")
        if version not in VERSIONS:
            raise ModelFormatError(
                f"{path} is GGUF of version {version}.",
                need=f"version {' or '.join(map(str, VERSIONS))}, in the byte order of this machine",
                remedy="convert the model with a current llama.cpp",
            )
        count, settings = self._number("Q"), self._number("Q")
        self._check_count(count, 24, "tensors")
        self._check_count(settings, 12, "settings")
        self.settings: dict[str, Any] = {}
        for _ in range(settings):
            name = self._text()
            self._check_once(name, self.settings, "setting")
            self.settings[name] = self._value(self._number("I"))
        table = [self._row() for _ in range(count)]
        alignment = self.settings.get("general.alignment", ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise damaged(path, "tensors have no alignment", "a power of two", repr(alignment))
        begin = -(-self._place // alignment) * alignment
        self.tensors: dict[str, GgufTensor] = {}
        for name, shape, kind, offset in table:
            self._check_once(name, self.tensors, "tensor")
            if offset % alignment:
                raise damaged(
                    path,
                    f"tensor {name!r} begins at {offset}",
                    f"a multiple of {alignment}, the alignment",
                    f"{offset % alignment} are left",
                )
            self.tensors[name] = self._tensor(name, shape, kind, begin + offset)
        self._check_apart((begin + offset, name) for name, _, _, offset in table)

    @property
    def architecture(self) -> str:
        """The name of the model's architecture; empty where the file has none."""
        return str(self.settings.get("general.architecture", ""))

    def _take(self, size: int) -> memoryview:
        """The next bytes."""
        end = self._place + size
        if end > len(self._bytes):
            raise damaged(
                self.path,
                "it ends before its table of tensors does",
                f"{end} bytes",
                f"the file has {len(self._bytes)}",
            )
        self._place = end
        return self._bytes.data[end - size : end]

    def _number(self, letter: str) -> Any:
        return struct.unpack("<" + letter, self._take(struct.calcsize("<" + letter)))[0]

    def _text(self) -> str:
        data = bytes(self._take(self._number("Q")))
        return data.decode(errors="replace")

    def _value(self, kind: int, depth: int = 0) -> Any:
        if kind in _NUMBERS:
            return self._number(_NUMBERS[kind])
        if kind == _TEXT:
            return self._text()
        if kind != _ARRAY:
            raise damaged(
                self.path, f"a setting has type {kind}", f"0 to {max(_NUMBERS)}", "another is not known"
            )
        if depth == _DEPTH:
            raise damaged(
                self.path, "a setting is arrays in each other", f"at most {_DEPTH}", "there are more"
            )
        inner, count = self._number("I"), self._number("Q")
        self._check_count(count, 1, "items of a setting")
        if inner in _NUMBERS:
            size = struct.calcsize("<" + _NUMBERS[inner])
            return np.frombuffer(self._take(count * size), f"<{_NUMBERS[inner]}").tolist()
        return [self._value(inner, depth + 1) for _ in range(count)]

    def _check_once(self, name: str, found: Iterable[str], what: str) -> None:
        if name in found:
            raise damaged(self.path, f"{what} {name!r} is there twice", "one of each name", "two")

    def _check_apart(self, begins: Iterable[tuple[int, str]]) -> None:
        """Refuse tensors that share bytes."""
        for (begin, name), (following, other) in itertools.pairwise(sorted(begins)):
            end = begin + self.tensors[name].rows.nbytes
            if following < end:
                raise damaged(
                    self.path,
                    f"tensors {name!r} and {other!r} share bytes",
                    f"byte {end} or behind for {other!r}",
                    f"it begins at byte {following}",
                )

    def _check_count(self, count: int, least: int, what: str) -> None:
        """Refuse a number of things that the file has no room for."""
        if count * least > len(self._bytes):
            raise damaged(
                self.path,
                f"it says that it has {count} {what}",
                f"{count * least} bytes",
                f"the file has {len(self._bytes)}",
            )

    def _row(self) -> tuple[str, tuple[int, ...], BlockKind, int]:
        """A row of the table of tensors."""
        name, rank = self._text(), self._number("I")
        if rank > 4:
            raise damaged(self.path, f"tensor {name!r} has {rank} axes", "at most 4", "more are not known")
        shape = tuple(self._number("Q") for _ in range(rank))[::-1]
        number, offset = self._number("I"), self._number("Q")
        if number not in KINDS:
            raise ModelFormatError(
                f"{self.path} has a quantization that is not known: tensor {name!r} is of type {number}.",
                need=", ".join(kind.name for kind in KINDS.values()),
                remedy="quantize the model to one of these (llama-quantize of llama.cpp)",
            )
        return name, shape, KINDS[number], offset

    def _tensor(self, name: str, shape: tuple[int, ...], kind: BlockKind, begin: int) -> GgufTensor:
        if not all(shape):
            raise damaged(
                self.path, f"tensor {name!r} is of shape {shape}", "sizes of at least 1", "one is 0"
            )
        columns = shape[-1] if shape else 1
        if columns % kind.values:
            raise damaged(
                self.path,
                f"tensor {name!r} of {kind.name} has rows of {columns} values",
                f"a multiple of {kind.values}",
                f"{columns % kind.values} are left",
            )
        rows, width = math.prod(shape[:-1]), columns // kind.values * kind.nbytes
        end = begin + rows * width
        if end > len(self._bytes):
            raise damaged(
                self.path, f"tensor {name!r} is cut off", f"{end} bytes", f"the file has {len(self._bytes)}"
            )
        return GgufTensor(name, shape, kind, self._bytes[begin:end].reshape(rows, width))


def check_magic(path: pathlib.Path) -> None:
    """Refuse what is no GGUF file.

    Raises
    ------
    ModelFormatError
    """
    with path.open("rb") as file:
        begin = file.read(len(MAGIC))
    if begin != MAGIC:
        raise ModelFormatError(
            f"{path} is no GGUF file.",
            need=f"a file that begins with {MAGIC.decode()}",
            limit=f"it begins with {begin!r}",
            remedy="check the path, or download the model again",
        )
