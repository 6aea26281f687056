# SPDX-License-Identifier: Apache-2.0
"""Options of a compilation, and the only place that reads the environment."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterable
from typing import Any

import attrs

from .errors import UirError
from .toolkits import CANN, CNCC, TOOLKITS, Toolkit

#: Environment variable -> what it means (shown by ``uir doctor``).
VARIABLES = {
    "UIR_DUMP_DIR": "write what every stage made of every kernel into this folder",
    "UIR_OVERRIDE_DIR": "KERNEL.tir.json, .igraph or .opt.igraph in this folder replaces what the stage made",
    "UIR_DATABASE": "a folder of measured schedules, which kernels take in place of the default ones",
    "UIR_EQUIVALENCE": "none, sampled or full: compare what every iGraph computes (default: none)",
    "UIR_FAULTS": "fall back or raise: what a fault of the compiler itself does (default: fall back)",
    **{
        row.variable: f"{' or '.join(row.versions)}: for which version of {row.what} {row.target} prints "
        f"(default: {row.default})"
        for row in TOOLKITS
    },
    "UIR_DEVICE": "auto, gpu, npu, mlu or model: where kernels of a device run (default: auto)",
    "UIR_NUM_THREADS": "worker threads of uir-cpu (default: the CPUs this process may use)",
    "UIR_CACHE_DIR": "what compilers made of emitted sources is kept there (default: ~/.cache/uir_tvm)",
    "ASCEND_HOME_PATH": "the CANN toolkit to take bisheng from, before PATH (ASCEND_TOOLKIT_HOME likewise)",
    "CUDA_HOME": "a CUDA toolkit to take nvcc or NVRTC from, before PATH (CUDA_PATH likewise)",
    "NEUWARE_HOME": "the Cambricon toolkit to take cncc from, before PATH",
}


def _folder(variable: str) -> pathlib.Path | None:
    value = os.environ.get(variable, "")
    return pathlib.Path(value) if value else None


#: Where kernels may run: the places of all targets (`uir_tvm.target.place`), and the choice among them.
DEVICES = ("auto", "cpu", "gpu", "npu", "mlu", "model")

#: How much of every iGraph is compared with what it stands for.
EQUIVALENCE = ("none", "sampled", "full")


#: What a fault of the compiler itself does: leave that kernel to TVM's own lowering, or end the compilation.
FAULTS = ("fall back", "raise")


def _choice(variable: str, choices: tuple[str, ...], default: str, what: str, where: str, remedy: str) -> Any:
    """A field that is one of some words: by default what a variable of the environment says."""

    def known(_: Any, __: Any, chosen: str) -> None:
        if chosen not in choices:
            raise UirError(
                f"{chosen!r} is no {what}.",
                where=f"{where} or {variable}",
                need="one of " + ", ".join(choices),
                remedy=remedy,
            )

    return attrs.field(factory=lambda: os.environ.get(variable, "") or default, validator=known)


def _version(toolkit: Toolkit) -> Any:
    """A field that is a version of a vendor's toolkit."""
    return _choice(
        toolkit.variable,
        toolkit.versions,
        toolkit.default,
        f"version of {toolkit.name} that {toolkit.language} is printed for",
        f"CompileOptions.{toolkit.option}, --{toolkit.option}",
        toolkit.remedy,
    )


def _passes(names: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _known_passes(_: Any, __: Any, names: tuple[str, ...] | None) -> None:
    if names is not None:
        from .optimize.passes import select

        select(names)


@attrs.frozen
class CompileOptions:
    """How to compile.

    Parameters
    ----------
    verify : bool
        Verify every iGraph (on by default; it costs milliseconds a kernel).
    dump_dir : Path, optional
        Where every stage is dumped; default: ``UIR_DUMP_DIR``.
    override_dir : Path, optional
        Dumps that replace what a stage makes; default: ``UIR_OVERRIDE_DIR``.
    passes : tuple of str, optional
        Passes over the iGraph (`uir_tvm.optimize.PASSES`) in the order in which they run; default: all that
        the target does not leave out.
    fast_math : bool
        Whether passes may change the rounding of floats, and take x * 0 for 0 and x + 0 for x where x may be
        NaN, infinite or -0.
    equivalence : str
        Whether every iGraph is compared with its function after extraction and after every pass
        (`uir_tvm.verify.equivalent`): ``none``, ``sampled`` (some tenths of a second a kernel) or ``full``
        (all units and iterations); default: ``UIR_EQUIVALENCE``, else none.
    database : Path, optional
        A folder of measured schedules (`uir_tvm.tune.ScheduleDatabase`): kernels that it knows take their
        fastest one, all others their recipe's; ``shipped``: the database that comes with the package;
        default: ``UIR_DATABASE``.
    faults : str
        What a fault of the compiler itself (any exception that is no `UirError`) does between a kernel's
        schedule and its source: ``fall back`` leaves that kernel to TVM's own lowering and says so in the
        report and the log, ``raise`` ends the compilation, as tests of the compiler want it; default:
        ``UIR_FAULTS``, else fall back.
    device : str
        Where the kernels of a device run: ``gpu``, ``npu`` or ``mlu``, or ``model`` (the device's host model,
        which checks every access and is slow), or ``auto``: the device where there is one; default:
        ``UIR_DEVICE``, else auto.  A machine without the device but with its toolkit compiles and
        saves a model for it.
    fuse : bool
        Whether operators share kernels (on by default).  Without, every operator of the model is a kernel of
        its own, to compare with (`uir_tvm.kernel_graph.build`).
    cncc : str
        For which major version of Cambricon's compiler uir-bang prints: ``4`` (CNToolkit 4.1 and later) or
        ``3``, whose names of some device functions are others and which has no matrix products; default:
        ``UIR_CNCC``, else 4.
    cann : str
        For which version of the CANN toolkit uir-ascend prints: ``8`` (names that all releases from 7.0 to
        9.1 declare, the newer ones as deprecated), ``9.0`` or ``9.1``, with the names that these have
        instead (`uir_tvm.toolkits`); default: ``UIR_CANN``, else 8.
    cuda_graph : bool
        On a GPU, capture the launches between a model's first and last kernel into a CUDA graph when it first
        runs, and replay that afterwards (`uir_tvm.kernel_graph.cuda_graph`).

    Raises
    ------
    uir_tvm.errors.PassError
        There is no pass of a name in ``passes``.
    uir_tvm.errors.UirError
        There is no such level of equivalence, way to treat faults, or version of cncc or CANN.
    """

    verify: bool = True
    dump_dir: pathlib.Path | None = attrs.field(factory=lambda: _folder("UIR_DUMP_DIR"))
    override_dir: pathlib.Path | None = attrs.field(factory=lambda: _folder("UIR_OVERRIDE_DIR"))
    database: pathlib.Path | None = attrs.field(
        factory=lambda: _folder("UIR_DATABASE"), converter=attrs.converters.optional(pathlib.Path)
    )
    passes: tuple[str, ...] | None = attrs.field(default=None, converter=_passes, validator=_known_passes)
    fast_math: bool = False
    equivalence: str = _choice(
        "UIR_EQUIVALENCE",
        EQUIVALENCE,
        "none",
        "level of equivalence",
        "CompileOptions.equivalence, --equivalence",
        "none compares nothing, sampled some units of every kernel, full all",
    )
    faults: str = _choice(
        "UIR_FAULTS",
        FAULTS,
        "fall back",
        "way to treat a fault of the compiler",
        "CompileOptions.faults",
        "raise is for tests of the compiler; everybody else's kernels fall back",
    )
    device: str = attrs.field(factory=lambda: device())
    cncc: str = _version(CNCC)
    cann: str = _version(CANN)
    cuda_graph: bool = False
    fuse: bool = True


def num_threads() -> int:
    """Worker threads of uir-cpu: ``UIR_NUM_THREADS``, else the CPUs that this process may use."""
    value = os.environ.get("UIR_NUM_THREADS", "")
    if value.isdigit() and int(value) > 0:
        return int(value)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cache_dir() -> pathlib.Path:
    """Where compiled sources are kept: ``UIR_CACHE_DIR``, else ``uir_tvm`` in the user's cache folder.

    Raises
    ------
    RuntimeError
        None is named, and the user has no home.
    """
    if (named := _folder("UIR_CACHE_DIR")) is not None:
        return named
    return (_folder("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "uir_tvm"


def device() -> str:
    """Where kernels of a device run by default: ``UIR_DEVICE``, else auto."""
    return os.environ.get("UIR_DEVICE", "") or "auto"


def ascend_homes() -> tuple[pathlib.Path, ...]:
    """CANN toolkits that the environment names, first choice first."""
    names = ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME")
    return tuple(folder for folder in map(_folder, names) if folder is not None)


def cuda_homes() -> tuple[pathlib.Path, ...]:
    """CUDA toolkits that the environment names, first choice first."""
    return tuple(folder for folder in map(_folder, ("CUDA_HOME", "CUDA_PATH")) if folder is not None)


def neuware_homes() -> tuple[pathlib.Path, ...]:
    """Cambricon toolkits that the environment names, first choice first."""
    return tuple(folder for folder in map(_folder, ("NEUWARE_HOME",)) if folder is not None)
