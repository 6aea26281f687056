# SPDX-License-Identifier: Apache-2.0
"""The command ``uir inspect``."""

from __future__ import annotations

import pathlib
from typing import Any

import click

from ..errors import CodegenError
from .base import (
    Command,
    chosen,
    emit,
    global_options,
    size_option,
    sizes_of,
)
from .print import (
    emit_explanation,
    print_report,
    print_specialized,
    print_times,
)


@click.command("inspect", cls=Command)
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
def inspect_command(
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
