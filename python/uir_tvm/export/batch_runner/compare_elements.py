# SPDX-License-Identifier: Apache-2.0
"""Elements of tensors compared with what they should be, in plain Python.

The rule is that of ``uir_tvm.verify.agreement``: an error counts relative to the element's size, which is at
least a floor that was computed with the expected values; where several forms are expected, an element agrees
with either.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence

#: Elements that are decoded at a time.
CHUNK = 1 << 14
#: Differing elements that are shown.
SHOWN = 4


def _narrow(data: bytes) -> Sequence[float]:
    """bfloat16: the upper half of a float32."""
    half = struct.unpack(f"<{len(data) // 2}H", data)
    whole = struct.pack(f"<{len(half)}I", *(bits << 16 for bits in half))
    return struct.unpack(f"<{len(half)}f", whole)


def _e4m3(bits: int) -> float:
    """float8_e4m3fn: no infinity, one NaN of each sign."""
    sign = -1.0 if bits & 0x80 else 1.0
    exponent, mantissa = bits >> 3 & 15, bits & 7
    if exponent == 15 and mantissa == 7:
        return math.nan
    return sign * (math.ldexp(mantissa, -9) if exponent == 0 else math.ldexp(8 + mantissa, exponent - 10))


_E4M3 = tuple(_e4m3(bits) for bits in range(256))


def _e5m2(data: bytes) -> Sequence[float]:
    """float8_e5m2: the upper half of a float16."""
    return struct.unpack(f"<{len(data)}e", bytes(byte for low in data for byte in (0, low)))


def _packed(code: str, size: int) -> tuple[int, Callable[[bytes], Sequence[float]]]:
    return size, lambda data: struct.unpack(f"<{len(data) // size}{code}", data)


#: dtype -> bytes of an element, and what decodes some of them.
FLOATS = {
    "float64": _packed("d", 8),
    "float32": _packed("f", 4),
    "float16": _packed("e", 2),
    "bfloat16": (2, _narrow),
    "float8_e4m3fn": (1, lambda data: tuple(_E4M3[byte] for byte in data)),
    "float8_e5m2": (1, _e5m2),
}


def compare(name: str, dtype: str, got: bytes, forms: Sequence[tuple[bytes, float]], allowed: float) -> str:
    """What is wrong with a tensor, in a line; empty where nothing is.

    Parameters
    ----------
    name : str
        Of the tensor.
    dtype : str
        As TVM names it; what is no float must be equal.
    got : bytes
        Little-endian.
    forms : list of (bytes, float)
        What is expected, and the least size that an element counts.
    allowed : float
        The largest error.
    """
    if any(bytes(got) == wanted for wanted, _ in forms):
        return ""
    if dtype not in FLOATS or not allowed:
        return _unequal(name, got, forms[0][0])
    size, decode = FLOATS[dtype]
    count, largest = 0, 0.0
    shown: list[str] = []
    for start in range(0, len(got), CHUNK * size):
        end = start + CHUNK * size
        ours = got[start:end]
        if any(ours == wanted[start:end] for wanted, _ in forms):
            continue
        columns = [decode(wanted[start:end]) for wanted, _ in forms]
        floors = [floor for _, floor in forms]
        for at, value in enumerate(decode(ours)):
            error = min(_error(value, row[at], floor) for row, floor in zip(columns, floors))
            largest = max(largest, error)
            if error > allowed:
                count += 1
                if len(shown) < SHOWN:
                    where = start // size + at
                    shown.append(f"element {where} is {value:.9g}, not {columns[0][at]:.9g}")
    if not count:
        return ""
    total = len(got) // size
    examples = "; ".join(shown)
    return f"{count} of {total} elements of {name} differ, by up to {largest:.3g} of their size: {examples}"


def _error(value: float, wanted: float, floor: float) -> float:
    if value == wanted or (value != value and wanted != wanted):
        return 0.0
    size = max(abs(wanted) if math.isfinite(wanted) else 1.0, floor)
    error = abs(value - wanted) / size
    return error if math.isfinite(error) else math.inf


def _unequal(name: str, got: bytes, wanted: bytes) -> str:
    count = sum(a != b for a, b in zip(got, wanted))
    first = next(at for at, (a, b) in enumerate(zip(got, wanted)) if a != b)
    return f"{count} of {len(got)} bytes of {name} differ, first byte {first}"
