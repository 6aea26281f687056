# SPDX-License-Identifier: Apache-2.0
"""Library operators on Cambricon MLUs: CNNL, and on the host model of one the CPU's library.

Registered functions, destination-passing, with the signatures of `uir_tvm.library.cpu`::

    uir.library.bang.matmul(a, b, attrs_json, out)
    uir.library.bang.conv2d(x, w, attrs_json, out)
    uir.library.bang.integer_matmul(a, b, attrs_json, out)

CNNL's numbers and structures are its headers' own: what calls it (`templates/project/cnnl_calls.cpp`) is
compiled against the toolkit's, once on a machine.  Exported projects have the same text.
"""

from __future__ import annotations

import importlib.resources
import pathlib
import subprocess

import tvm_ffi

from ... import environment
from ...cache import Cache, out_of_room, scratch
from ...device.text_model import compiler
from ...errors import ToolchainError
from ...hardware.library_costs import LibraryCost
from ...library.cpu import locate
from ...library.integer_matmul_attrs import IntegerMatmulLimits
from ...library.library_tables import AttentionLimits, LibraryTable
from . import costs

__all__ = [
    "CONV2D",
    "COST",
    "GLUE",
    "INTEGER_MATMUL",
    "MATMUL",
    "TABLE",
    "command",
    "glue",
    "locate",
    "register",
    "texts",
]

#: Names of the registered operators.
MATMUL, CONV2D = "uir.library.bang.matmul", "uir.library.bang.conv2d"
INTEGER_MATMUL = "uir.library.bang.integer_matmul"
#: CNNL. A product takes a factor, and strides of its operands, each with one of 1; terms to add and
#: activations are left to kernels that read the result: what CNNL takes of them is not in public documents.
#: The MLU370 has no bfloat16. Convolutions are transposed to NHWC and back by CNNL. The matrix unit takes
#: right operands by columns, which a kernel that finds them by rows turns tile by tile. Products of int8 are
#: cnnlBatchMatMulBCast with fixed-point operands at position 0, as Cambricon's own torch plugin calls it
#: (Cambricon/catch, bmm_internal.cpp), whose results are of float or half, never int32 (mm_internal.cpp). The
#: chapter on fixed-point numbers of CNNL's guide lists it for them, and says of convolutions that sums in
#: between are float where that is the compute type, and of the others that they are alike: whole numbers up
#: to 2^24 are exact in it.
TABLE = LibraryTable(
    functions={"matmul": MATMUL, "conv2d": CONV2D, "integer_matmul": INTEGER_MATMUL},
    dtypes=frozenset({"float32", "float16"}),
    activations={},
    attention=AttentionLimits(dtypes=frozenset({"float32", "float16", "bfloat16"}), max_head=256),
    epilogues=(),
    packs=False,
    unit_stride=True,
    symmetric_padding=True,
    contracted_innermost=True,
    integer_matmul=IntegerMatmulLimits(sums="float32"),
    rounds_not="its products with packed weights are kernels of ours, which unpack to float32",
    unpacks=frozenset({"float32", "float16"}),
    place_major=True,
)
COST = LibraryCost(
    cores="cores",
    operations={"float16": 3072, "float32": 768, "int8": 8192},
    start_cycles=costs.KERNEL_CYCLES + costs.PIPES["IO"].head,
    start_cycles_per_core=0.0,
    arithmetic_share=0.8,
    memory_share=1.0,
    source="operations of a core in a cycle: Cambricon's mlu-ops (executor.h of its tests, MLU370); "
    "start: what our kernels take before their first transfer (costs.py); shares: assumed, 0.8 of the "
    "rate and the whole bandwidth",
)
#: Name under which the native code finds `glue`.
GLUE = "uir.library.cnnl.glue"
#: Where the toolkit's installer puts it.
PLACES = ("/usr/local/neuware",)
#: Seconds that the compilation may take.
LIMIT = 600


def texts() -> dict[str, str]:
    """The files that are compiled, by name."""
    folder = importlib.resources.files(__package__) / "templates"
    files = (("project", "cnnl_calls.h"), ("project", "cnnl_calls.cpp"), ("glue", "glue.cpp"))
    return {name: (folder / where / name).read_text() for where, name in files}


def command(compiler: str, toolkit: pathlib.Path, folder: pathlib.Path, target: str) -> list[str]:
    """The command that compiles the files of a folder against a toolkit."""
    sources = [str(folder / name) for name in texts() if name.endswith(".cpp")]
    flags = ["-std=c++17", "-O2", "-shared", "-fPIC", f"-I{folder}", f"-I{toolkit / 'include'}"]
    libraries = [f"-L{toolkit / 'lib64'}", "-lcnnl", "-lcnrt", f"-Wl,-rpath,{toolkit / 'lib64'}"]
    return [compiler, *flags, "-o", target, *sources, *libraries]


def glue() -> str:
    """Path of the shared object that calls CNNL, compiled where it was not.

    Raises
    ------
    ToolchainError
        There is no toolkit with CNNL, no C++ compiler, or it refuses the files.
    """
    toolkit = _toolkit()
    tool = compiler()
    cache, key = Cache("cnnl"), "\0".join([tool, str(toolkit), *texts().values()]).encode()
    if (kept := cache.find(key, ".so")) is not None:
        return str(kept)
    with scratch("uir-cnnl-") as folder:
        for name, text in texts().items():
            (folder / name).write_text(text)
        line = command(tool, toolkit, folder, str(folder / "glue.so"))
        try:
            done = subprocess.run(line, capture_output=True, text=True, timeout=LIMIT, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            raise ToolchainError(f"{tool} does not run.", where=str(error), remedy="install g++") from error
        if done.returncode:
            raise out_of_room(done.stderr) or ToolchainError(
                "The calls of CNNL do not compile.",
                need="headers and library of CNNL 1.10 or later",
                remedy="install CNNL beside the toolkit, or compute products in kernels: libraries=()",
                log=done.stderr,
            )
        return str(cache.keep(key, (folder / "glue.so").read_bytes(), ".so"))


def _toolkit() -> pathlib.Path:
    """The first toolkit that has CNNL's header."""
    roots = (*environment.folders("NEUWARE_HOME"), *map(pathlib.Path, PLACES))
    for root in roots:
        if (root / "include" / "cnnl.h").is_file():
            return root
    raise ToolchainError(
        "There is no CNNL.",
        where=", ".join(f"{root}/include/cnnl.h" for root in roots),
        need="CNNL of the Neuware toolkit, where products run on an MLU",
        remedy='install it and set NEUWARE_HOME, or run on the host model: device="model"',
    )


def register() -> None:
    """Let the native code find `glue`."""
    tvm_ffi.register_global_func(GLUE, glue, override=True)
