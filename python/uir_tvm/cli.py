# SPDX-License-Identifier: Apache-2.0
"""The command ``uir``."""

from __future__ import annotations

import pathlib
import sys
import time
from typing import Any

import click

from .cli_base import OUT, Commands, emit, global_options, state_of
from .cli_export import export_command
from .cli_print import compile_progress, emit_explanation, print_report, table_of
from .cli_verify import verify_command
from .errors import CodegenError
from .options import EQUIVALENCE

__all__ = ["compile_progress", "main"]


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@global_options
@click.version_option(package_name="uir_tvm")
def main() -> None:
    """Unified IR: compile models into fused kernels.

    \b
    uir compile model.onnx -o model.uir               compile for this CPU
    uir run model.uir --input x.npy                   run it
    uir inspect model.uir                             what it consists of
    uir inspect model.uir --kernel NAME --stage igraph
    uir verify kernel.igraph                          whether an iGraph is right
    uir export model.uir --project DIR                sources for the vendor's toolkit
    uir targets; uir passes; uir doctor               what there is to compile for, and with

    \b
    Exit codes: 0 done; 1 doctor found something broken; 2 wrong usage; 3 wrong TVM; 4 unknown target;
    5 a bad iGraph; 9 the model cannot be imported; 10 a wrong shape or dtype; 11 a bad file; 13 no such pass;
    17 a model that is no project; 70 a fault of the compiler.
    """


@main.command("compile")
@click.argument("model", type=click.Path(path_type=pathlib.Path))
@click.option("--target", default="uir-cpu", show_default=True, help="See `uir targets`.")
@click.option("-o", "--output", type=click.Path(path_type=pathlib.Path), help="Default: MODEL.uir.")
@click.option(
    "--shape", "shapes", multiple=True, metavar="NAME=1x128", help="Fix an input's dynamic shape (ONNX)."
)
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
@click.option(
    "--passes",
    metavar="NAME,...",
    help="Passes over the iGraph, in this order; `none` for none. Default: the target's (`uir passes`).",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "gpu", "model"]),
    help="Where kernels of a device run: on a GPU, or on its host model, which checks every access. Default: "
    "UIR_DEVICE, else auto: a GPU where there is one.",
)
@click.option("--fast-math", is_flag=True, help="Let passes change the rounding of floats.")
@global_options
@click.pass_context
def compile_command(
    ctx: click.Context,
    model: pathlib.Path,
    target: str,
    output: pathlib.Path | None,
    shapes: tuple[str, ...],
    dump: pathlib.Path | None,
    override: pathlib.Path | None,
    verify: bool,
    equivalence: str | None,
    passes: str | None,
    device: str | None,
    fast_math: bool,
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
    """
    from . import api
    from .options import CompileOptions
    from .runtime.artifact import check_destination

    destination = output or model.with_suffix(".uir")
    check_destination(destination)
    defaults = CompileOptions()
    options = CompileOptions(
        verify=verify,
        equivalence=equivalence or _level(ctx, defaults.equivalence),
        dump_dir=dump or defaults.dump_dir,
        override_dir=override or defaults.override_dir,
        passes=None if passes is None else _names(passes),
        fast_math=fast_math,
        device=device or defaults.device,
    )
    start = time.perf_counter()
    with compile_progress(quiet=state_of(ctx)["json"]) as notify:
        exe = api.compile(model, target, shapes=_shapes(shapes), options=options, progress=notify)
        notify("link", 0, 0, "")
        path = exe.save(destination)
    report = exe.report() | {"file": str(path), "total_seconds": round(time.perf_counter() - start, 2)}
    emit(ctx, report, lambda: print_report(report))


@main.command()
@click.argument("file", type=click.Path(path_type=pathlib.Path))
@click.option(
    "--input",
    "inputs",
    multiple=True,
    type=click.Path(path_type=pathlib.Path),
    help="An .npy file for each input, in order.",
)
@click.option("--random", "use_random", is_flag=True, help="Random inputs in place of files.")
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Run so often, after one run to warm up, and report the median time.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=pathlib.Path), help="Write the results to this .npz file."
)
@global_options
@click.pass_context
def run(
    ctx: click.Context,
    file: pathlib.Path,
    inputs: tuple[pathlib.Path, ...],
    use_random: bool,
    repeat: int,
    output: pathlib.Path | None,
) -> None:
    """Run FILE, a compiled model, and show the figures of its outputs.

    \b
    uir run model.uir --input ids.npy --input mask.npy -o results.npz
    uir run model.uir --random --repeat 20
    """
    import numpy as np

    from .runtime import load

    if inputs and use_random:
        raise click.UsageError("--input and --random exclude each other.")
    exe = load(file)
    arrays = _random_inputs(exe) if use_random else [_load_array(p) for p in inputs]
    result = exe(*arrays)
    results = result if isinstance(result, tuple) else (result,)
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        exe(*arrays)
        times.append(time.perf_counter() - start)
    if output is not None:
        output = _write_arrays(output, dict(zip([s.name for s in exe.info.outputs], results, strict=True)))
    rows = [
        {
            "output": spec.name,
            "shape": list(r.shape),
            "dtype": str(r.dtype),
            "mean": float(np.mean(r, dtype=np.float64)),
            "std": float(np.std(r.astype(np.float64))),
        }
        for spec, r in zip(exe.info.outputs, results, strict=True)
    ]
    median = float(np.median(times))
    data = {"outputs": rows, "median_seconds": median, "file": str(output) if output else None}

    def human() -> None:
        OUT.print(table_of(rows))
        OUT.print(f"median of {repeat}: {median * 1e3:.3f} ms")

    emit(ctx, data, human)


@main.command()
@click.argument("file", type=click.Path(path_type=pathlib.Path))
@click.option("--kernel", help="One kernel (a name from the list).")
@click.option(
    "--stage",
    type=click.Choice(["relax", "tir", "igraph", "optimize", "source"]),
    help="Print this stage's text: relax (the whole model), or of a kernel its scheduled TIR, "
    "its iGraph, that after the passes, or what the target made of it (uir-cpu: lowered TIR).",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Say what every kernel (or the one of --kernel) moves, computes and keeps on chip, its modelled "
    "time, its syncs, and why neighbours were not fused; FILE may also be a dumped .igraph.",
)
@global_options
@click.pass_context
def inspect(
    ctx: click.Context, file: pathlib.Path, kernel: str | None, stage: str | None, explain: bool
) -> None:
    """Show what FILE, a compiled model, consists of, or what a stage made of a kernel.

    \b
    uir inspect model.uir                                 counts, bytes, the list of kernels
    uir inspect model.uir --stage relax                   the calls of kernels and of the library
    uir inspect model.uir --kernel NAME --stage igraph    one kernel as an iGraph
    uir inspect model.uir --kernel NAME --stage optimize  the same after the passes, and what each changed
    uir inspect model.uir --explain [--kernel NAME]       bytes, operations, modelled time, reasons
    uir inspect KERNEL.igraph --explain                   the same of one dumped kernel
    """
    from .runtime import load

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
    exe = load(file)
    if explain:
        from .explain import explain as explained

        _check_kernel(exe, kernel)
        emit_explanation(ctx, explained(exe, kernel))
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
    chosen = {stage: texts[stage]} if stage else texts
    code = {"code": found[kernel].code} if found[kernel].code and not stage else {}
    emit(ctx, {"kernel": kernel, **chosen, **code}, lambda: click.echo("\n".join(chosen.values())))


@main.command()
@global_options
@click.pass_context
def targets(ctx: click.Context) -> None:
    """List the targets, their hardware models and whether they are usable here."""
    from .target import registry

    rows = registry.describe()
    emit(ctx, rows, lambda: OUT.print(table_of(rows)))


@main.command()
@global_options
@click.pass_context
def passes(ctx: click.Context) -> None:
    """List the passes over an iGraph in the order in which they run, and which target leaves one out."""
    from .target import registry

    rows = registry.describe_passes()
    emit(ctx, rows, lambda: OUT.print(table_of(rows)))


@main.command()
@global_options
@click.pass_context
def doctor(ctx: click.Context) -> None:
    """Check the installation: versions, toolchains, devices; exit code 1 when something is broken."""
    from .doctor import checkup

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
    from .errors import ArtifactError, UirError
    from .explain import explain_text

    try:
        return explain_text(file.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{file} cannot be read.", need=str(error), remedy="check the path") from error
    except UirError as error:
        error.where = f"{file}, {error.where}" if error.where else str(file)
        error.args = (error.render(),)
        raise


def _shapes(pairs: tuple[str, ...]) -> dict[str, tuple[int, ...]] | None:
    shapes = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        parts = text.replace(",", "x").split("x")
        if not name or not all(part.isdigit() for part in parts):
            raise click.BadParameter(f"{pair!r} is not NAME=1x128")
        shapes[name] = tuple(int(part) for part in parts)
    return shapes or None


def _level(ctx: click.Context, default: str) -> str:
    """How far to compare where --equivalence does not say it: --verify by name asks for a sample at least."""
    by_name = ctx.get_parameter_source("verify") is click.core.ParameterSource.COMMANDLINE
    return "sampled" if by_name and ctx.params["verify"] and default == "none" else default


def _names(text: str) -> tuple[str, ...]:
    """The names of a list with commas; `none` is the empty list."""
    return () if text == "none" else tuple(name.strip() for name in text.split(",") if name.strip())


def _load_array(path: pathlib.Path) -> Any:
    import numpy as np

    from .errors import ShapeError

    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ShapeError(
            f"{path} is no .npy file.", need=str(error), remedy="save the input with numpy.save"
        ) from error


def _write_arrays(path: pathlib.Path, arrays: dict[str, Any]) -> pathlib.Path:
    """Write an .npz file, whole or not at all; returns its path, which NumPy completes with the suffix."""
    import numpy as np

    from .errors import ArtifactError

    path = path if path.suffix == ".npz" else path.with_name(path.name + ".npz")
    partial = path.with_name(f".{path.name}")
    try:
        np.savez(partial, **arrays)
        partial.replace(path)
    except OSError as error:
        raise ArtifactError(
            f"{path} cannot be written.", need=str(error), remedy="name another file"
        ) from error
    finally:
        partial.unlink(missing_ok=True)
    return path


def _random_inputs(exe: Any) -> list[Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    return [
        rng.standard_normal(s.shape).astype(s.dtype)
        if "float" in s.dtype
        else rng.integers(0, 2, s.shape).astype(s.dtype)
        for s in exe.info.inputs
    ]


main.add_command(verify_command)
main.add_command(export_command)

if __name__ == "__main__":
    main()
