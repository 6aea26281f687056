# SPDX-License-Identifier: Apache-2.0
"""The command ``uir compile``."""

from __future__ import annotations

import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from ..errors import ValueNeededError
from ..options import (
    ACTIVATIONS,
    ATTENTIONS,
    CONVOLUTIONS,
    DEFAULT_TARGET,
    DEVICES,
    EQUIVALENCE,
    FUSIONS,
    KERNEL_CACHES,
    PRECISIONS,
)
from .base import (
    Command,
    emit,
    entry_option,
    global_options,
    pairs_of,
    shape_option,
    shapes_of,
    size_option,
    sizes_of,
    state_of,
    state_option,
    toolkit_options,
    value_option,
    values_of,
)
from .print import compile_progress, print_report, print_specialized


def _choice(name: str, choices: Sequence[str], text: str) -> Callable[[Any], Any]:
    """An option that is one of some words, the first where it is not given."""
    return click.option(name, type=click.Choice(choices), default=choices[0], show_default=True, help=text)


@click.command("compile", cls=Command)
@click.argument("model", type=click.Path(path_type=pathlib.Path))
@click.option("--target", default=DEFAULT_TARGET, show_default=True, help="See `uir targets`.")
@click.option("-o", "--output", type=click.Path(path_type=pathlib.Path), help="Default: MODEL.uir.")
@shape_option
@size_option
@click.option(
    "--specialize",
    "specialized",
    multiple=True,
    metavar="NAME=1,...",
    help="Of a model that leaves sizes open: make code for these alone, in place of all. May be said several "
    "times: the file then has code for each, and picks by the shapes of its inputs.",
)
@value_option
@entry_option
@state_option
@click.option(
    "--dump", type=click.Path(path_type=pathlib.Path), help="Write every stage of every kernel here."
)
@click.option(
    "--override",
    type=click.Path(path_type=pathlib.Path, exists=True),
    help="Take KERNEL.tir.json, KERNEL.igraph or KERNEL.opt.igraph from here in place of what the stage "
    "made; a file that is refused ends the compilation.",
)
@click.option(
    "--verify/--no-verify",
    default=True,
    show_default=True,
    help="Verify every iGraph; --verify asked for by name also means --equivalence sampled.",
)
@click.option(
    "--equivalence",
    type=click.Choice(EQUIVALENCE),
    help="Compare what every iGraph computes with its function, on residues and on special values, after "
    "extraction and after every pass: sampled takes some tenths of a second a kernel, full what it takes. "
    "Default: UIR_EQUIVALENCE, else none.",
)
@toolkit_options
@click.option(
    "--passes",
    metavar="NAME,...",
    help="Passes over the iGraph, in this order; `none` for none. Default: the target's (`uir passes`).",
)
@click.option(
    "--device",
    type=click.Choice(DEVICES),
    help="Where kernels of a device run: on a GPU, NPU or MLU, or on its host model, which checks every "
    "access. "
    "Default: UIR_DEVICE, else auto: the device where there is one.",
)
@click.option(
    "--database",
    type=click.Path(path_type=pathlib.Path),
    help="A folder of measured schedules (`uir db`): kernels that it knows take their fastest one; "
    "`shipped`: that of the package. Default: UIR_DATABASE, else none.",
)
@click.option(
    "--kernel-cache",
    type=click.Choice(KERNEL_CACHES),
    help="Where kernels that were compiled before are found again: on disk, in the folder `kernels` of "
    "UIR_CACHE_DIR (default ~/.cache/uir_tvm), of at most UIR_KERNEL_CACHE_MB; in this process' memory; or "
    "nowhere. Default: UIR_KERNEL_CACHE, else disk.",
)
@click.option("--fast-math", is_flag=True, help="Let passes change the rounding of floats.")
@_choice(
    "--precision",
    PRECISIONS,
    "What products and convolutions of float32 are computed in, with sums in float32. The "
    "report of a model without open sizes says the error, measured with random inputs on the CPU.",
)
@_choice(
    "--activation",
    ACTIVATIONS,
    "What products with packed weights read of their other operand: int8 lets them round it to 8 bits a "
    "value, where the target does that.",
)
@_choice(
    "--convolution",
    CONVOLUTIONS,
    "How libraries of ours add up convolutions of 3x3 windows: fast lets them multiply sums of pixels "
    "(Winograd), direct adds up products of pixels alone.",
)
@_choice(
    "--fusion",
    FUSIONS,
    "Who decides where one kernel is a trade against two: the modelled time of both ways; or all "
    "are merged, or stay apart. `uir inspect --explain` shows both prices.",
)
@_choice(
    "--attention",
    ATTENTIONS,
    "What computes attention: what is faster by the model, one kernel of ours (scores stay on chip) or the "
    "library's products around a softmax; kernel and library take one way wherever there is it.",
)
@click.option(
    "--strict", is_flag=True, help="Refuse operators that PyTorch would compute at run time, by name."
)
@click.option(
    "--fuse/--no-fuse",
    default=True,
    show_default=True,
    help="Let operators share kernels; without, each is a kernel of its own, to compare with.",
)
@global_options
@click.pass_context
def compile_command(
    ctx: click.Context,
    model: pathlib.Path,
    target: str,
    output: pathlib.Path | None,
    shapes: tuple[str, ...],
    sizes: tuple[str, ...],
    specialized: tuple[str, ...],
    values: tuple[str, ...],
    entry: str,
    states: tuple[str, ...],
    dump: pathlib.Path | None,
    override: pathlib.Path | None,
    verify: bool,
    equivalence: str | None,
    passes: str | None,
    device: str | None,
    database: pathlib.Path | None,
    fast_math: bool,
    precision: str,
    activation: str,
    convolution: str,
    fusion: str,
    attention: str,
    strict: bool,
    fuse: bool,
    **versions: str | None,
) -> None:
    """Compile MODEL into one file that `uir run` and uir_tvm.load take.

    \b
    MODEL is one of
      model.onnx            an ONNX model
      program.pt2           torch.export.save(torch.export.export(module, args), "program.pt2")
      MODEL.relax.json      a dump of the whole model
      KERNEL.tir.json       a dump of one kernel, scheduled
      KERNEL.igraph         a dump of one kernel; runs on flat tensors
      KERNEL.opt.igraph     the same after the passes

    \b
    Change a kernel by hand:
      uir compile model.onnx --dump stages          writes stages/KERNEL.opt.igraph and others
      (edit stages/KERNEL.opt.igraph; or KERNEL.igraph, and delete what comes after it)
      uir compile model.onnx --override stages      takes every file there in place of its own

    \b
    A model that leaves sizes open; `uir check` names them (a .pt2 file calls them by input and axis: x_0):
      uir compile model.onnx                        for all sizes; what has no kernel for all is
                                                    compiled for the sizes of a call
      uir compile model.onnx --size batch=8         for this size alone
      uir compile model.onnx --specialize batch=1 --specialize batch=128
                                                    for both; `uir run` picks by its inputs
    """
    from .. import api
    from ..options import CompileOptions
    from ..runtime import SpecializedExecutable
    from ..runtime.artifact import check_destination

    destination = output or model.with_suffix(".uir")
    check_destination(destination)
    defaults = CompileOptions()
    others: dict[str, Any] = {name: version or getattr(defaults, name) for name, version in versions.items()}
    options = CompileOptions(
        verify=verify,
        equivalence=equivalence or _level(ctx, defaults.equivalence),
        dump_dir=dump or defaults.dump_dir,
        override_dir=override or defaults.override_dir,
        passes=None if passes is None else _names(passes),
        fast_math=fast_math,
        precision=precision,
        activation=activation,
        convolution=convolution,
        fusion=fusion,
        attention=attention,
        fuse=fuse,
        device=device or defaults.device,
        database=database or defaults.database,
        specialize=[sizes_of((text,), "--specialize") for text in specialized],
        **others,
    )
    start = time.perf_counter()
    how: dict[str, Any] = {
        "shapes": shapes_of(shapes),
        "sizes": sizes_of(sizes),
        "values": values_of(values),
        "entry": entry,
        "state": pairs_of(states),
        "strict": strict,
    }
    with compile_progress(quiet=state_of(ctx)["json"]) as notify:
        exe = api.compile(model, target, options=options, progress=notify, **how)
        if isinstance(exe, SpecializedExecutable) and not specialized:
            if isinstance(exe.needed, ValueNeededError):
                raise exe.needed
            exe.make_whole()
        notify("link", 0, 0, "")
        path = exe.save(destination)
    is_open = isinstance(exe, SpecializedExecutable)
    report = exe.report() | {"file": str(path), "total_seconds": round(time.perf_counter() - start, 2)}
    if precision != PRECISIONS[0] and not is_open:
        from ..narrow_error import precision_error

        found = precision_error(model, precision, **how)
        report["precision_error"] = {each.output: f"{each.relative:.1e} of the largest" for each in found}
    emit(ctx, report, lambda: print_specialized(report) if is_open else print_report(report))


def _level(ctx: click.Context, default: str) -> str:
    """How far to compare where --equivalence does not say it: --verify by name asks for a sample at least."""
    by_name = ctx.get_parameter_source("verify") is click.core.ParameterSource.COMMANDLINE
    return "sampled" if by_name and ctx.params["verify"] and default == "none" else default


def _names(text: str) -> tuple[str, ...]:
    """The names of a list with commas; `none` is the empty list."""
    return () if text == "none" else tuple(name.strip() for name in text.split(",") if name.strip())
