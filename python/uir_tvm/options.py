# SPDX-License-Identifier: Apache-2.0
"""Options of a compilation, and the variables that users set (`environment` reads them)."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from . import environment
from .errors import UirError
from .target_facts import records
from .toolkits import Toolkit

#: The target of those who name none.
DEFAULT_TARGET = "uir-cpu"
#: Toolkits of vendors by whose versions texts are spelled apart.
TOOLKITS: tuple[Toolkit, ...] = tuple(
    record.toolkit for record in records().values() if record.toolkit is not None
)

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
    "UIR_DEVICE": "auto, model or a device (`uir targets`): where kernels of a device run (default: auto)",
    "UIR_NUM_THREADS": "worker threads on the CPU (default: the CPUs this process may use)",
    "UIR_CACHE_DIR": "compiled kernels, and what compilers made of emitted sources, are kept there (default: "
    "~/.cache/uir_tvm)",
    "UIR_KERNEL_CACHE": "disk, memory or off: where compiled kernels are found again (default: disk)",
    "UIR_VARIANTS": "faster, named or none: which variants kernels for all sizes have (default: faster)",
    "UIR_KERNEL_CACHE_MB": "how much kept kernels may take on disk; those used last stay (default: 512)",
    "UIR_PROGRAM_CACHE_MB": "how much memory weights of compiled programs that nobody holds may take, to be "
    "found again (default: 1024)",
    **{name: meaning for record in records().values() for name, meaning in record.variables.items()},
}


#: Where kernels may run: the places of all targets (`uir_tvm.target.place`), and the choice among them.
DEVICES = ("auto", *dict.fromkeys(name for row in records().values() for name in row.devices), "model")

#: Where kernels that were compiled before are found again.
KERNEL_CACHES = ("disk", "memory", "off")

#: Which variants for parts of their sizes kernels for all sizes have.
VARIANTS = ("faster", "named", "none")

#: How much of every iGraph is compared with what it stands for.
EQUIVALENCE = ("none", "sampled", "full")


#: What contractions of a model of float32 are computed in.
PRECISIONS = ("float32", "float16", "bfloat16")

#: What products with weights of few bits read of their other operand: all that counts in float32, or 8 bits a
#: value.
ACTIVATIONS = ("exact", "int8")

#: How convolutions are added up: as is fastest, or products of pixels and weights alone.
CONVOLUTIONS = ("fast", "direct")

#: Who decides whether neighbours are one kernel where one is a trade (`uir_tvm.kernel_graph.fusion_cost`):
#: the modelled time either way; or all such candidates are merged, or all stay apart.
FUSIONS = ("priced", "merged", "apart")

#: What computes an attention (`uir_tvm.kernel_graph.attention`): what takes less time by the model; one
#: kernel wherever the target has one for it; or the library's products around a softmax.
ATTENTIONS = ("auto", "kernel", "library")

#: What a fault of the compiler itself does: leave that kernel to TVM's own lowering, or end the compilation.
FAULTS = ("fall back", "raise")


def _chosen(variable: str, choices: tuple[str, ...], default: str, what: str, where: str, remedy: str) -> Any:
    """Default and validator of a field that is one of some words: by default what the environment says."""

    def known(_: Any, __: Any, chosen: str) -> None:
        if chosen not in choices:
            raise UirError(
                f"{chosen!r} is no {what}.",
                where=f"{where} or {variable}",
                need="one of " + ", ".join(choices),
                remedy=remedy,
            )

    return {
        "default": attrs.Factory(lambda: environment.text(variable, default)),
        "validator": known,
    }


def _choice(*of: Any) -> Any:
    """A field of `_chosen`."""
    return attrs.field(**_chosen(*of))


def _version(toolkit: Toolkit, like: Any) -> Any:
    """A field that is a version of a vendor's toolkit; ``like`` is any other field."""
    chosen = _chosen(
        toolkit.variable,
        toolkit.versions,
        toolkit.default,
        f"version of {toolkit.name} that {toolkit.language} is printed for",
        f"CompileOptions.{toolkit.option}, --{toolkit.option}",
        toolkit.remedy,
    )
    return like.evolve(name=toolkit.option, alias=toolkit.option, type=str, **chosen)


def _passes(names: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _every_size(given: Iterable[Mapping[str, int]]) -> tuple[Mapping[str, int], ...]:
    return tuple({str(name): int(size) for name, size in sizes.items()} for sizes in given)


def _known_passes(_: Any, __: Any, names: tuple[str, ...] | None) -> None:
    if names is not None:
        from .optimize.passes import select

        select(names)


def _among(known: Sequence[str], what: str, remedy: str) -> Callable[[Any, Any, str], None]:
    """A validator of a field that is one of some words."""

    def validate(_: Any, field: Any, chosen: str) -> None:
        if chosen not in known:
            raise UirError(
                f"{chosen!r} is no {what}.",
                where=f"CompileOptions.{field.name} or --{field.name}",
                need="one of " + ", ".join(known),
                remedy=remedy,
            )

    return validate


def _with_toolkits(_: type, fields: list[Any]) -> list[Any]:
    """The fields, and one for each toolkit."""
    return [*fields, *(_version(row, fields[-1]) for row in TOOLKITS)]


def _folder(variable: str) -> Any:
    """A field for a folder: given as a path or its text, else what the environment names."""
    return attrs.field(
        factory=lambda: environment.folder(variable), converter=attrs.converters.optional(pathlib.Path)
    )


@attrs.frozen(field_transformer=_with_toolkits)
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
        fastest one, all others their recipe's; kernels that leave sizes open take one that was measured for
        all of these; ``shipped``: the database that comes with the package;
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
    precision : str
        What matrix products and convolutions of float32 read and give: ``float32``, ``float16`` or
        ``bfloat16``, summed in float32 (`uir_tvm.kernel_graph.precision`). A model's inputs and outputs stay
        float32; `uir_tvm.precision_error` measures the difference.
    activation : str
        What products with packed weights (`uir_tvm.quantized`) read of their other operand: ``exact``, or
        ``int8``: 8 bits a value, a group of the weight sharing a scale, where the target's library has such
        products (`uir_tvm.library.library_tables`); other targets refuse it (`TargetError`).
    convolution : str
        How the target's library adds up convolutions of float32: ``fast``, or ``direct``: products of pixels
        and weights alone, never products of sums of them (Winograd's way, `docs/numerics.md`).  Vendors'
        libraries on devices choose by themselves.
    fuse : bool
        Whether operators share kernels (on by default).  Without, every operator of the model is a kernel of
        its own, to compare with (`uir_tvm.kernel_graph.build`).
    fusion : str
        Who decides where one kernel is a trade against two, a value computed again for one not stored
        (`uir_tvm.kernel_graph.fusion_cost`): ``priced``, the modelled time of both; ``merged`` and ``apart``
        take all such candidates and none, to compare with.
    attention : str
        What computes softmax(q k^T) v: ``auto``, one kernel or two products of the library around a softmax,
        whichever takes less time by the model (`uir_tvm.kernel_graph.attention_cost`; of open sizes what the
        target's table says); ``kernel``, one kernel of ours wherever the target has one for the form;
        ``library``, never one kernel.  `KernelGraph.attentions` says of each which it is, and why.
    cuda_graph : bool
        On a GPU, capture the launches between a model's first and last kernel into a CUDA graph when it first
        runs, and replay that afterwards (`uir_tvm.kernel_graph.cuda_graph`).
    specialize : sequence of mapping of str to int
        For a model that leaves sizes open: sizes of all its symbols, for each of which it is compiled at once
        (``[{"n": 1}, {"n": 128}]``). A `SpecializedExecutable` with these can be saved.
    variants : str
        Which variants for parts of their sizes kernels for all sizes have (`uir_tvm.variants`): those that
        are ``faster`` by the model and those that a recipe names, the latter alone (``named``), or ``none``;
        default: ``UIR_VARIANTS``, else faster.
    kernel_cache : str
        Where kernels that were compiled before are found again (`uir_tvm.kernel_cache`): on ``disk`` and in
        memory, in the ``memory`` of this process alone, or nowhere (``off``); default: ``UIR_KERNEL_CACHE``,
        else disk. Their folder is ``kernels`` in ``UIR_CACHE_DIR``, of at most ``UIR_KERNEL_CACHE_MB`` (512).
        In this process so are whole programs (`uir_tvm.program_cache`), but for ``off``.
    cann, cncc : str
        And so on, an option for each of `TOOLKITS`: for which version of the vendor's toolkit its target
        prints; default: its variable, ``UIR_CANN``, else the toolkit's default.

    Raises
    ------
    uir_tvm.errors.PassError
        There is no pass of a name in ``passes``.
    uir_tvm.errors.UirError
        There is no such level of equivalence, way to treat faults, or version of cncc or CANN.
    """

    verify: bool = True
    dump_dir: pathlib.Path | None = _folder("UIR_DUMP_DIR")
    override_dir: pathlib.Path | None = _folder("UIR_OVERRIDE_DIR")
    database: pathlib.Path | None = _folder("UIR_DATABASE")
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
    kernel_cache: str = _choice(
        "UIR_KERNEL_CACHE",
        KERNEL_CACHES,
        "disk",
        "place where kernels are kept",
        "CompileOptions.kernel_cache, --kernel-cache",
        "disk keeps them for later processes too, memory for this one, off compiles all anew",
    )
    variants: str = _choice(
        "UIR_VARIANTS",
        VARIANTS,
        "faster",
        "choice of variants",
        "CompileOptions.variants",
        "faster takes those that pay, named those of recipes alone, none one kernel for all sizes",
    )
    precision: str = attrs.field(
        default="float32",
        validator=_among(PRECISIONS, "precision", "float32 computes a model as it is written"),
    )
    activation: str = attrs.field(
        default="exact",
        validator=_among(
            ACTIVATIONS,
            "way to read activations",
            "exact reads them as they are, int8 lets products with packed weights round them",
        ),
    )
    convolution: str = attrs.field(
        default="fast",
        validator=_among(
            CONVOLUTIONS,
            "way to add up convolutions",
            "fast takes what was measured to be fastest, direct adds up products of pixels alone",
        ),
    )
    fusion: str = attrs.field(
        default=FUSIONS[0],
        validator=_among(FUSIONS, "way to decide fusion", "priced takes what is faster by the model"),
    )
    attention: str = attrs.field(
        default=ATTENTIONS[0],
        validator=_among(ATTENTIONS, "way to compute attention", "auto takes what is faster by the model"),
    )
    device: str = attrs.field(factory=environment.device)
    specialize: tuple[Mapping[str, int], ...] = attrs.field(default=(), converter=_every_size)
    cuda_graph: bool = False
    fuse: bool = True
