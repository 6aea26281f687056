# SPDX-License-Identifier: Apache-2.0
"""Library operators on the CPU: oneDNN where it is installed, plain C++ where it is not.

Registered functions, destination-passing (`docs/library-operators.md` has the signatures)::

    uir.library.cpu.matmul(a, b, [bias], [residual], attrs_json, out)
    uir.library.cpu.conv2d(x, w, [bias], [residual], attrs_json, out)
    uir.library.cpu.recurrence(inputs, weight, state, [cell or bias], attrs_json, rows, [cell])
    uir.library.cpu.sort(x, attrs_json, [values], [indices])
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
from typing import Any

import attrs
import numpy as np
import tvm_ffi

from ..errors import LibraryError, ShapeError
from ..tensor_view import lent
from .attrs import EPILOGUES, RESIDUALS, Conv2dAttrs, MatmulAttrs, OperandLayout, contiguous_strides
from .recurrence import RecurrenceAttrs

__all__ = [
    "EPILOGUES",
    "RESIDUALS",
    "Conv2dAttrs",
    "LibraryInfo",
    "MatmulAttrs",
    "OperandLayout",
    "available",
    "contiguous_strides",
    "describe",
    "describe_weight",
    "locate",
    "pack_recurrence",
    "pack_weight",
    "require",
    "unpack_weight",
]

#: Names of the registered operators.
MATMUL, CONV2D = "uir.library.cpu.matmul", "uir.library.cpu.conv2d"
#: The package that carries the library, and the file in it.
PACKAGE, FILE = "onednn-cpu-gomp", "libdnnl.so.3"


@attrs.frozen
class LibraryInfo:
    """What computes the library operators.

    Parameters
    ----------
    name : str
        "oneDNN", or "none" where plain C++ does.
    version, path, isa : str
        Of the library; the instruction set that it uses on this CPU.
    threads : int
        Of TVM's pool, which library and kernels share.
    converted_bytes : int
        Of weights that this process keeps in another layout than they were packed in, or transformed.
    error : str
        Why there is no library; empty where there is one.
    """

    name: str
    version: str
    path: str
    isa: str
    threads: int
    converted_bytes: int
    error: str

    def __bool__(self) -> bool:
        return self.name != "none"


def _function(name: str) -> Any:
    return tvm_ffi.get_global_func("uir.library.cpu." + name)


def _package_file() -> str:
    """Path of the library inside its pip package; empty where that is not installed."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    paths = [os.path.realpath(str(f.locate())) for f in files if f.name == FILE]
    return next((p for p in paths if os.path.isfile(p)), "")


@functools.cache
def locate() -> None:
    """Tell the native code where pip put the library; must come before the first operator runs."""
    path = _package_file()
    if path:
        _function("set_path")(path)


def available() -> LibraryInfo:
    """The library that is used, or why there is none; never raises."""
    locate()
    info = _function("info")()
    text = {name: str(info[name]) for name in ("name", "version", "path", "isa", "error")}
    threads, converted = int(info["threads"]), int(info["converted_bytes"])
    return LibraryInfo(**text, threads=threads, converted_bytes=converted)


def require() -> LibraryInfo:
    """`available()`, for callers that need the speed.

    Raises
    ------
    LibraryError
        There is no library; results would be right but slow.
    """
    info = available()
    if not info:
        raise LibraryError(
            "The library for matrix products and convolutions on the CPU is missing.",
            need=f"{FILE} of oneDNN 3",
            limit=info.error,
            remedy=f"pip install {PACKAGE}",
        )
    return info


def pack_weight(weight: Any, attrs: MatmulAttrs | Conv2dAttrs) -> tvm_ffi.Tensor:
    """Bring a constant weight into the layout that the operator of `attrs` reads fastest.

    The result is a vector of bytes that describes itself: it may be stored as a constant of a module. Where
    another CPU or version of the library wants another layout, or there is no library, it is converted when
    first used. A convolution that Winograd's way computes stores it as it is, and transforms it then.

    Parameters
    ----------
    weight : tensor or numpy.ndarray
        matmul: the tensor that `attrs.b` is a view of; conv2d: of shape `attrs.weight`. Contiguous; float16,
        bfloat16, float32 or float64, as the activations are.
    attrs : MatmulAttrs or Conv2dAttrs
        `packed` is taken as true. Of open sizes the representatives count; ``packed_for`` makes the layout
        of a product's weight that of all m.

    Returns
    -------
    tvm_ffi.Tensor
        uint8, one dimension.

    Raises
    ------
    ShapeError
        The weight does not fit, or has a batch dimension.
    """
    locate()
    if isinstance(attrs, MatmulAttrs) and not attrs.packable:
        raise ShapeError(
            f"A weight with batch dimensions {attrs.batch} and strides {attrs.b.strides} cannot be packed.",
            limit="one matrix for the whole batch",
            remedy="pass it unpacked",
        )
    given = lent(weight) if isinstance(weight, np.ndarray) else weight
    try:
        return _function("pack_weight")(given, _packed(attrs).representative().to_json())
    except ValueError as error:
        raise ShapeError(f"The weight cannot be packed: {error}") from error


def pack_recurrence(weight: np.ndarray, attributes: RecurrenceAttrs) -> np.ndarray:
    """A weight as the library reads it: panels of some columns of every gate, on every CPU the same.

    Parameters
    ----------
    weight : numpy.ndarray
        float32, contiguous: what ``attributes.weight`` is a view of.
    attributes : RecurrenceAttrs

    Returns
    -------
    numpy.ndarray
        float32, one dimension.
    """
    text = attributes.representative().to_json()
    packed = np.empty(_function("recurrence_elements")(text), np.float32)
    given, made = (tvm_ffi.from_dlpack(array) for array in (np.ascontiguousarray(weight), packed))
    _function("pack_recurrence")(given, text, made)
    return packed


def _packed(value: MatmulAttrs | Conv2dAttrs) -> MatmulAttrs | Conv2dAttrs:
    return attrs.evolve(value, packed=True)


def unpack_weight(blob: Any) -> np.ndarray:
    """The bytes of the weight that was packed: [k, n] of a matmul, OIHW of a conv2d, contiguous (uint8)."""
    return np.from_dlpack(_function("unpack_weight")(blob))


def describe_weight(blob: Any) -> dict[str, Any]:
    """Format version, library, instruction set, panels, blocks and bytes of a packed weight."""
    return json.loads(str(_function("describe_weight")(blob)))


def describe(attrs: MatmulAttrs | Conv2dAttrs, dtype: str = "float32") -> dict[str, Any]:
    """How an operator runs here: plan, implementation, split over the threads.

    The plan is "direct" (matmul in place), "blocked" (conv2d), "channels last" (conv2d), "tiles" (of ours),
    "winograd" (conv2d of 3x3), "staged" (operands gathered for the library) or "plain" (C++).
    """
    locate()
    return json.loads(str(_function("describe")(attrs.to_json(), dtype)))
