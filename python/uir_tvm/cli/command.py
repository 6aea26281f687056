# SPDX-License-Identifier: Apache-2.0
"""The command ``uir``."""

from __future__ import annotations

import pathlib
import sys
import time
from typing import Any

import click

from ..errors import CodegenError, ValueNeededError
from ..options import (
    ACTIVATIONS,
    CONVOLUTIONS,
    DEFAULT_TARGET,
    DEVICES,
    EQUIVALENCE,
    KERNEL_CACHES,
    PRECISIONS,
)
from .base import (
    OUT,
    Commands,
    chosen,
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
from .check import check_command
from .db import database_commands
from .export import export_command
from .llm import chat_command, generate_command
from .print import (
    compile_progress,
    emit_explanation,
    print_report,
    print_specialized,
    print_times,
    table_of,
)
from .run_model import run_command
from .serve import serve_command
from .tune import tune_command
from .tune_server import tune_server_command
from .verify import verify_command

__all__ = ["compile_progress", "main"]


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@global_options
@click.version_option(package_name="uir_tvm")
def main() -> None:
    """Unified IR: compile models into fused kernels.

    \b
    uir compile model.onnx -o model.uir               compile for this CPU
    uir check model.onnx                              where each of its operators would run
    uir run model.uir --input x.npy                   run it
    uir inspect model.uir                             what it consists of
    uir inspect model.uir --kernel NAME --stage igraph
    uir verify kernel.igraph                          whether an iGraph is right
    uir export model.uir --project DIR                sources for the vendor's toolkit
    uir tune model.onnx --database DIR                measure faster schedules for its kernels
    uir db list DIR                                   measured schedules
    uir generate model.gguf --prompt "Hello"          ask a language model; uir chat: talk with it
    uir tune-server --key KEY                         measure here for those who tune
    uir targets; uir passes; uir doctor               what there is to compile for, and with

    \b
    Exit codes: 0 done; 1 doctor found something broken; 2 wrong usage; 3 wrong TVM; 4 unknown target;
    5 a bad iGraph; 9 the model cannot be imported; 10 a wrong shape or dtype; 11 a bad file; 13 no such pass;
    17 a model that is no project; 18 a bad database; 19 nothing to tune; 21 a prompt that a language
    model cannot take; 70 a fault of the compiler; 130 ended by Ctrl-C.
    """


@main.command("compile")
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
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    default=PRECISIONS[0],
    show_default=True,
    help="What products and convolutions of float32 are computed in, with sums in float32. The "
    "report of a model without open sizes says the error, measured with random inputs on the CPU.",
)
@click.option(
    "--activation",
    type=click.Choice(ACTIVATIONS),
    default=ACTIVATIONS[0],
    show_default=True,
    help="What products with packed weights read of their other operand: int8 lets them round it to 8 bits a "
    "value, where the target does that.",
)
@click.option(
    "--convolution",
    type=click.Choice(CONVOLUTIONS),
    default=CONVOLUTIONS[0],
    show_default=True,
    help="How libraries of ours add up convolutions of 3x3 windows: fast lets them multiply sums of pixels "
    "(Winograd), direct adds up products of pixels alone.",
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


@main.command()
@click.argument("file", type=click.Path(path_type=pathlib.Path))
@click.option("--kernel", help="One kernel (a name from the list).")
@click.option(
    "--stage",
    type=click.Choice(["relax", "tir", "igraph", "optimize", "source"]),
    help="Print this stage's text: relax (the whole model), or of a kernel its scheduled TIR, "
    "its iGraph, that after the passes, or what the target made of it.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Say what every kernel (or the one of --kernel) moves, computes and keeps on chip, its modelled "
    "time, its syncs, and why neighbours were not fused; FILE may also be a dumped .igraph.",
)
@size_option
@click.option(
    "--modelled",
    is_flag=True,
    help="Run it once, on random inputs, on a host model that counts time, and say what each kernel would "
    "take on the device and which pipe binds it.",
)
@global_options
@click.pass_context
def inspect(
    ctx: click.Context,
    file: pathlib.Path,
    kernel: str | None,
    stage: str | None,
    explain: bool,
    sizes: tuple[str, ...],
    modelled: bool,
) -> None:
    """Show what FILE, a compiled model, consists of, or what a stage made of a kernel.

    \b
    uir inspect model.uir                                 counts, bytes, the list of kernels
    uir inspect model.uir --stage relax                   the calls of kernels and of the library
    uir inspect model.uir --kernel NAME --stage igraph    one kernel as an iGraph
    uir inspect model.uir --kernel NAME --stage optimize  the same after the passes, and what each changed
    uir inspect model.uir --explain [--kernel NAME]       bytes, operations, modelled time, reasons
    uir inspect KERNEL.igraph --explain                   the same of one dumped kernel
    uir inspect model.uir --modelled                      time on the device, as its host model counts it
    """
    from ..runtime import look_at

    if explain and stage is not None:
        raise click.UsageError("--explain and --stage exclude each other.")
    if file.name.endswith(".igraph"):
        if not explain or kernel is not None:
            raise click.UsageError(f"{file.name} is one iGraph: say --explain, without --kernel.")
        emit_explanation(ctx, _explain_igraph(file))
        return
    if stage not in (None, "relax") and kernel is None:
        raise click.UsageError(
            f"--stage {stage} needs --kernel NAME; `uir inspect {file}` lists the kernels."
        )
    # no code of a file that is only looked at is loaded; --modelled runs it
    looked_at: Any = look_at(file)
    if not (explain or modelled or stage or kernel or sizes) and hasattr(looked_at, "find"):
        whole = looked_at.report()
        del whole["specializations"]
        emit(ctx, whole, lambda: print_specialized(whole))
        return
    # of a file for all sizes its kernels are shown with their symbols, unless sizes are said
    wholes: tuple[Any, ...] = () if modelled else getattr(looked_at, "wholes", ())
    if explain and len(wholes) == 1 and not looked_at.specializations:
        from ..explain import explain as explained

        exe, numbers = looked_at.whole_at(sizes_of(sizes))
        _check_kernel(exe, kernel)
        emit_explanation(ctx, explained(exe, kernel, numbers))
        return
    exe = wholes[0].executable if len(wholes) == 1 and not sizes else chosen(looked_at, sizes)
    if explain:
        from ..explain import explain as explained

        exe = exe.standalone
        _check_kernel(exe, kernel)
        emit_explanation(ctx, explained(exe, kernel))
        return
    if modelled:
        from ..hardware import assumed_figures
        from ..runtime.tensors import random_inputs

        times = exe.modelled(*random_inputs(exe.info.inputs))
        data = times.to_json() | {"assumed_figures": assumed_figures(exe.hardware)}
        emit(ctx, data, lambda: print_times(times, exe.hardware))
        return
    if stage == "relax":
        emit(ctx, {"relax": exe.info.relax}, lambda: click.echo(exe.info.relax))
        return
    if kernel is None:
        report = exe.report()
        report["kernel_list"] = [
            {"kernel": k.name, "hero": k.hero, "recipe": k.recipe, "igraph": not k.fallback}
            for k in exe.info.kernels
        ]
        emit(ctx, report, lambda: print_report(report))
        return
    _check_kernel(exe, kernel)
    found = {k.name: k for k in exe.info.kernels}
    texts = dict(found[kernel].texts)
    if stage is not None and stage not in texts:
        raise CodegenError(
            f"Kernel {kernel!r} has no stage {stage!r}.",
            need="one of " + (", ".join(texts) or "no stage"),
            limit=found[kernel].fallback,
            remedy="it was left to TVM's own lowering; change the model or the schedule so that it is not",
        )
    shown = {stage: texts[stage]} if stage else texts
    code = {"code": found[kernel].code} if found[kernel].code and not stage else {}
    emit(ctx, {"kernel": kernel, **shown, **code}, lambda: click.echo("\n".join(shown.values())))


@main.command()
@global_options
@click.pass_context
def targets(ctx: click.Context) -> None:
    """List the targets, their hardware models and whether they are usable here."""
    from ..target import registry

    rows = registry.describe()
    emit(ctx, rows, lambda: OUT.print(table_of(rows)))


@main.command()
@global_options
@click.pass_context
def passes(ctx: click.Context) -> None:
    """List the passes over an iGraph in the order in which they run, and why one pays on which targets."""
    from ..target import registry

    rows = registry.describe_passes()
    emit(ctx, rows, lambda: OUT.print(table_of(rows)))


@main.command()
@global_options
@click.pass_context
def doctor(ctx: click.Context) -> None:
    """Check the installation: versions, toolchains, devices; exit code 1 when something is broken."""
    from ..doctor import checkup

    rows = checkup()
    emit(ctx, rows, lambda: OUT.print(table_of(rows)))
    if any(row["state"] == "broken" for row in rows):
        sys.exit(1)


def _check_kernel(exe: Any, kernel: str | None) -> None:
    names = [k.name for k in exe.info.kernels]
    if kernel is not None and kernel not in names:
        raise click.BadParameter(
            f"there is no kernel {kernel!r}; there are " + ", ".join(names), param_hint="--kernel"
        )


def _explain_igraph(file: pathlib.Path) -> Any:
    from ..errors import ArtifactError, UirError
    from ..explain import explain_text

    try:
        return explain_text(file.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{file} cannot be read.", need=str(error), remedy="check the path") from error
    except UirError as error:
        error.where = f"{file}, {error.where}" if error.where else str(file)
        error.args = (error.render(),)
        raise


def _level(ctx: click.Context, default: str) -> str:
    """How far to compare where --equivalence does not say it: --verify by name asks for a sample at least."""
    by_name = ctx.get_parameter_source("verify") is click.core.ParameterSource.COMMANDLINE
    return "sampled" if by_name and ctx.params["verify"] and default == "none" else default


def _names(text: str) -> tuple[str, ...]:
    """The names of a list with commas; `none` is the empty list."""
    return () if text == "none" else tuple(name.strip() for name in text.split(",") if name.strip())


main.add_command(check_command)
main.add_command(run_command)
main.add_command(verify_command)
main.add_command(generate_command)
main.add_command(chat_command)
main.add_command(serve_command)
main.add_command(database_commands)
main.add_command(export_command)
main.add_command(tune_server_command)
main.add_command(tune_command)

if __name__ == "__main__":
    main()
