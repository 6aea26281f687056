# SPDX-License-Identifier: Apache-2.0
"""Library operators on NVIDIA GPUs: cuBLASLt and cuDNN, loaded when first used.

Registered functions, destination-passing, with the signatures of `uir_tvm.library.cpu`::

    uir.library.cuda.matmul(a, b, [bias], [residual], attrs_json, out)
    uir.library.cuda.conv2d(x, w, [bias], [residual], attrs_json, out)
    uir.library.cuda.integer_matmul(a, b, attrs_json, out)

On tensors of a GPU the vendor's libraries compute, on TVM's current stream. On tensors of the host model
(device ``ext_dev``) the CPU's library does: what such an operator costs there says nothing of a GPU.
"""

from __future__ import annotations

import functools
import importlib.util
import pathlib
from typing import Any

import attrs
import tvm_ffi

from ...errors import LibraryError
from ...library import cpu
from ...library.integer_matmul_attrs import IntegerMatmulLimits
from ...library.library_tables import AttentionLimits, LibraryTable

__all__ = [
    "CONV2D",
    "INTEGER_MATMUL",
    "LIBRARIES",
    "MATMUL",
    "TABLE",
    "LoadedLibrary",
    "allow_tf32",
    "available",
    "locate",
    "require",
]

#: Names of the registered operators.
MATMUL, CONV2D = "uir.library.cuda.matmul", "uir.library.cuda.conv2d"
INTEGER_MATMUL = "uir.library.cuda.integer_matmul"
#: cuBLASLt and cuDNN. The former has GELU by tanh only, and adds a residual (its C) before the activation.
#: Attention is usually one kernel where tensor cores take its operands and a tile of theirs is full; of the
#: rest (fp32, whose products are ordinary multiplications, larger heads, few rows) prices decide. Products
#: of int8 take sizes of multiples of four (cublasLtMatmul's documentation, "IMMA kernels").
TABLE = LibraryTable(
    functions={"matmul": MATMUL, "conv2d": CONV2D, "integer_matmul": INTEGER_MATMUL},
    dtypes=frozenset({"float32", "float16", "bfloat16"}),
    activations={"nn.relu": "relu", "nn.gelu_tanh": "gelu_tanh"},
    epilogues=(("bias", "residual", "activation"),),
    attention=AttentionLimits(dtypes=frozenset({"float32", "float16", "bfloat16"}), max_head=256),
    usual_attention=AttentionLimits(dtypes=frozenset({"float16", "bfloat16"}), max_head=128, min_rows=16),
    only={"conv2d": frozenset({"relu"})},
    packs=False,
    unit_stride=True,
    symmetric_padding=True,
    integer_matmul=IntegerMatmulLimits(multiple=4),
    rounds_not="its products with packed weights are kernels of ours, which unpack to float32",
    unpacks=frozenset({"float32", "float16", "bfloat16"}),
)


@attrs.frozen
class _Vendor:
    """A library: files of newer releases first, the pip package, and its folder below ``nvidia``."""

    title: str
    files: tuple[str, ...]
    package: str
    folder: str


#: Name to the native code -> where the library may be.
LIBRARIES = {
    "cublasLt": _Vendor("cuBLASLt", ("libcublasLt.so.13", "libcublasLt.so.12"), "nvidia-cublas", "cublas"),
    "cudnn": _Vendor("cuDNN", ("libcudnn.so.9", "libcudnn.so.8"), "nvidia-cudnn-cu13", "cudnn"),
}


@attrs.frozen
class LoadedLibrary:
    """A vendor's library, or why there is none.

    Parameters
    ----------
    name : str
        ``cuBLASLt`` or ``cuDNN``.
    version : int
        As the library says it; 0 where there is none.
    path, error : str
        The file, or why it does not load.
    """

    name: str
    version: int
    path: str
    error: str

    def __bool__(self) -> bool:
        return bool(self.path)


def _function(name: str) -> Any:
    return tvm_ffi.get_global_func("uir.library.cuda." + name)


def _package_file(vendor: _Vendor) -> str:
    """Path of the library in its package: ``nvidia/cu13/lib`` or, of older releases, ``nvidia/cudnn/lib``."""
    spec = importlib.util.find_spec("nvidia")
    for place in spec.submodule_search_locations or () if spec else ():
        root = pathlib.Path(place)
        for folder in (*sorted(root.glob("cu[0-9]*"), reverse=True), root / vendor.folder):
            for file in vendor.files:
                if (folder / "lib" / file).is_file():
                    return str(folder / "lib" / file)
    return ""


@functools.cache
def locate() -> None:
    """Tell the native code where pip put the libraries; must come before the first operator runs on a GPU."""
    cpu.locate()
    for name, vendor in LIBRARIES.items():
        if path := _package_file(vendor):
            _function("set_path")(name, path)


def available(name: str = "cublasLt") -> LoadedLibrary:
    """The library that is used, or why there is none; never raises.

    Parameters
    ----------
    name : str
        A key of `LIBRARIES`.
    """
    locate()
    info = _function("info")(name)
    return LoadedLibrary(LIBRARIES[name].title, int(info["version"]), str(info["path"]), str(info["error"]))


def require(name: str = "cublasLt") -> LoadedLibrary:
    """`available()`, for callers that cannot do without.

    Raises
    ------
    LibraryError
        There is no library.
    """
    info = available(name)
    if not info:
        vendor = LIBRARIES[name]
        raise LibraryError(
            f"{vendor.title} is missing: a GPU's library operators need it.",
            need=" or ".join(vendor.files),
            limit=info.error,
            remedy=f"pip install {vendor.package}",
        )
    return info


def allow_tf32(allowed: bool) -> None:
    """Whether float32 products may round their operands to TF32 (10 bits of mantissa); not by default."""
    _function("set_tf32")(allowed)
