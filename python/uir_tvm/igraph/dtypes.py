# SPDX-License-Identifier: Apache-2.0
"""The element types of the iGraph, and their names in TVM and NumPy."""

from __future__ import annotations

from typing import Any

import attrs
import ml_dtypes
import numpy as np

from ..errors import IGraphError


@attrs.frozen
class DType:
    """One element type.

    Parameters
    ----------
    name : str
        Its name in an iGraph: ``fp32``.
    tvm : str
        Its name in TVM: ``float32``.
    numpy : numpy.dtype
        The NumPy type that stores it (of ``ml_dtypes`` where NumPy has none).
    bytes : int
        Size of one element; a bool takes one byte.
    kind : str
        ``float``, ``int``, ``uint`` or ``bool``.
    compute : numpy.dtype
        The type in which the reference computes: float32 for the narrow floats, else itself.
    """

    name: str
    tvm: str
    numpy: np.dtype
    bytes: int
    kind: str
    compute: np.dtype


def _row(name: str, tvm: str, numpy: Any, kind: str, compute: Any = None) -> DType:
    stored = np.dtype(numpy)
    return DType(name, tvm, stored, stored.itemsize, kind, np.dtype(compute or stored))


#: Every element type by its iGraph name.
DTYPES: dict[str, DType] = {
    row.name: row
    for row in (
        _row("fp64", "float64", np.float64, "float"),
        _row("fp32", "float32", np.float32, "float"),
        _row("fp16", "float16", np.float16, "float", np.float32),
        _row("bf16", "bfloat16", ml_dtypes.bfloat16, "float", np.float32),
        _row("fp8e4m3", "float8_e4m3fn", ml_dtypes.float8_e4m3fn, "float", np.float32),
        _row("fp8e5m2", "float8_e5m2", ml_dtypes.float8_e5m2, "float", np.float32),
        _row("int8", "int8", np.int8, "int"),
        _row("int16", "int16", np.int16, "int"),
        _row("int32", "int32", np.int32, "int"),
        _row("int64", "int64", np.int64, "int"),
        _row("uint8", "uint8", np.uint8, "uint"),
        _row("uint16", "uint16", np.uint16, "uint"),
        _row("uint32", "uint32", np.uint32, "uint"),
        _row("uint64", "uint64", np.uint64, "uint"),
        _row("bool", "bool", np.bool_, "bool"),
    )
}

_BY_TVM = {row.tvm: row for row in DTYPES.values()}


def dtype_of(name: str) -> DType:
    """The row of an iGraph dtype name.

    Raises
    ------
    uir_tvm.errors.IGraphError
        No such dtype.
    """
    if name not in DTYPES:
        raise IGraphError(f"{name!r} is no dtype of an iGraph.", need="one of " + ", ".join(DTYPES))
    return DTYPES[name]


def to_tvm(name: str) -> str:
    """``fp32`` -> ``float32``; IGraphError for an unknown name."""
    return dtype_of(name).tvm


def from_tvm(dtype: object) -> str:
    """``float32`` (or a TVM dtype object) -> ``fp32``.

    Raises
    ------
    uir_tvm.errors.IGraphError
        A dtype that no iGraph has (vectors, handles, int4, ...).
    """
    text = str(dtype)
    if text not in _BY_TVM:
        need = "one of " + ", ".join(_BY_TVM)
        raise IGraphError(f"The TVM dtype {text!r} has no iGraph counterpart.", need=need)
    return _BY_TVM[text].name


def numpy_of(name: str) -> np.dtype:
    """The NumPy dtype that stores ``name``; IGraphError for an unknown name."""
    return dtype_of(name).numpy


def bytes_of(name: str) -> int:
    """Bytes of one element; IGraphError for an unknown name."""
    return dtype_of(name).bytes
