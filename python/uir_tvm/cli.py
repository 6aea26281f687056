# SPDX-License-Identifier: Apache-2.0
"""The command ``uir``."""

from __future__ import annotations

import json
import logging
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any

import click
from rich.console import Console
from rich.logging import RichHandler
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from .errors import UirError

ERRORS = Console(stderr=True)
OUT = Console()


class Commands(click.Group):
    """Users' errors end as a message and an exit code, not as a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except UirError as error:
            if ctx.params.get("as_json"):
                click.echo(json.dumps(error.to_json()))
            else:
                ERRORS.print(f"[bold red]{type(error).__name__}[/]", end=": ")
                ERRORS.print(str(error), markup=False, highlight=False)
            sys.exit(error.exit_code)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
@click.option("-v", "--verbose", count=True, help="Show warnings' details (-v) and debugging output (-vv).")
@click.version_option(package_name="uir_tvm")
@click.pass_context
def main(ctx: click.Context, as_json: bool, verbose: int) -> None:
    """Unified IR: compile models into fused kernels.

    \b
    uir compile model.onnx -o model.uir          compile for this CPU
    uir run model.uir --input x.npy              run it
    uir inspect model.uir                        what it consists of
    uir inspect model.uir --kernel NAME --stage igraph
    uir targets; uir doctor                      what is there to compile for
    """
    ctx.obj = {"json": as_json}
    level = (logging.ERROR, logging.INFO, logging.DEBUG)[min(verbose, 2)]
    logging.basicConfig(
        level=level, format="%(message)s", handlers=[RichHandler(console=ERRORS, show_path=False)]
    )


def emit(ctx: click.Context, data: Any, human: Callable[[], None]) -> None:
    """JSON for machines, else what ``human`` prints."""
    if ctx.obj["json"]:
        click.echo(json.dumps(data, indent=1, default=str))
    else:
        human()


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
    help="Take KERNEL.tir.json or KERNEL.igraph from here in place of what the stage made.",
)
@click.option("--verify/--no-verify", default=True, show_default=True, help="Verify every iGraph.")
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
) -> None:
    """Compile MODEL (.onnx, .pt2 of torch.export, or a .relax.json dump)."""
    from . import api
    from .options import CompileOptions

    defaults = CompileOptions()
    options = CompileOptions(
        verify=verify, dump_dir=dump or defaults.dump_dir, override_dir=override or defaults.override_dir
    )
    start = time.perf_counter()
    with compile_progress(quiet=ctx.obj["json"]) as notify:
        exe = api.compile(model, target, shapes=_shapes(shapes), options=options, progress=notify)
        notify("link", 0, 0, "")
        path = exe.save(output or model.with_suffix(".uir"))
    report = exe.report() | {"file": str(path), "total_seconds": round(time.perf_counter() - start, 2)}
    emit(ctx, report, lambda: _print_report(report))


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
@click.option("--repeat", default=1, show_default=True, help="Run so often and report the median time.")
@click.option(
    "-o", "--output", type=click.Path(path_type=pathlib.Path), help="Write the results to this .npz file."
)
@click.pass_context
def run(
    ctx: click.Context,
    file: pathlib.Path,
    inputs: tuple[pathlib.Path, ...],
    use_random: bool,
    repeat: int,
    output: pathlib.Path | None,
) -> None:
    """Run a compiled model."""
    import numpy as np

    from .runtime import load

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
        np.savez(output, **{s.name: r for s, r in zip(exe.info.outputs, results, strict=True)})
    rows = [
        {
            "output": spec.name,
            "shape": list(r.shape),
            "dtype": str(r.dtype),
            "mean": float(np.mean(r)),
            "std": float(np.std(r)),
        }
        for spec, r in zip(exe.info.outputs, results, strict=True)
    ]
    median = float(np.median(times))
    data = {"outputs": rows, "median_seconds": median, "file": str(output) if output else None}

    def human() -> None:
        OUT.print(_table(rows))
        OUT.print(f"median of {repeat}: {median * 1e3:.3f} ms")

    emit(ctx, data, human)


@main.command()
@click.argument("file", type=click.Path(path_type=pathlib.Path))
@click.option("--kernel", help="One kernel (a name from the list).")
@click.option(
    "--stage", type=click.Choice(["relax", "tir", "igraph", "source"]), help="Print this stage's text."
)
@click.pass_context
def inspect(ctx: click.Context, file: pathlib.Path, kernel: str | None, stage: str | None) -> None:
    """Show what a compiled model consists of, or what a stage made of a kernel."""
    from .runtime import load

    exe = load(file)
    if stage == "relax":
        emit(
            ctx,
            {"relax": exe.library.as_text() if hasattr(exe.library, "as_text") else ""},
            lambda: click.echo(exe.library.as_text()),
        )
        return
    if stage is not None and kernel is None:
        raise UirError(
            "Which kernel?", need="--kernel NAME with --stage", remedy="list them: uir inspect FILE"
        )
    if kernel is None:
        report = exe.report()
        report["kernel_list"] = [
            {"kernel": k.name, "hero": k.hero, "recipe": k.recipe, "igraph": not k.fallback}
            for k in exe.info.kernels
        ]
        emit(ctx, report, lambda: _print_report(report))
        return
    found = {k.name: k for k in exe.info.kernels}
    if kernel not in found:
        raise UirError(
            f"There is no kernel {kernel!r}.",
            need="one of " + ", ".join(found),
            remedy="uir inspect FILE lists them",
        )
    texts = dict(found[kernel].texts)
    if stage is not None and stage not in texts:
        raise UirError(
            f"Kernel {kernel!r} has no stage {stage!r}.",
            need="one of " + ", ".join(texts),
            limit=found[kernel].fallback,
            remedy="it was left to TVM's own lowering",
        )
    chosen = {stage: texts[stage]} if stage else texts
    emit(ctx, {"kernel": kernel, **chosen}, lambda: click.echo("\n".join(chosen.values())))


@main.command()
@click.pass_context
def targets(ctx: click.Context) -> None:
    """List the targets, their hardware models and whether they are usable here."""
    from .target import registry

    rows = registry.describe()
    emit(ctx, rows, lambda: OUT.print(_table(rows)))


@main.command()
@click.pass_context
def doctor(ctx: click.Context) -> None:
    """Check the installation: versions, toolchains, devices."""
    from .doctor import checkup

    rows = checkup()
    emit(ctx, rows, lambda: OUT.print(_table(rows)))
    if any(row["state"] == "broken" for row in rows):
        sys.exit(1)


def _shapes(pairs: tuple[str, ...]) -> dict[str, tuple[int, ...]] | None:
    shapes = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        parts = text.replace(",", "x").split("x")
        if not name or not all(part.isdigit() for part in parts):
            raise click.BadParameter(f"{pair!r} is not NAME=1x128")
        shapes[name] = tuple(int(part) for part in parts)
    return shapes or None


def _load_array(path: pathlib.Path) -> Any:
    import numpy as np

    from .errors import ShapeError

    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ShapeError(
            f"{path} is no .npy file.", need=str(error), remedy="save the input with numpy.save"
        ) from error


def _random_inputs(exe: Any) -> list[Any]:
    import numpy as np

    rng = np.random.default_rng(0)
    return [
        rng.standard_normal(s.shape).astype(s.dtype)
        if "float" in s.dtype
        else rng.integers(0, 2, s.shape).astype(s.dtype)
        for s in exe.info.inputs
    ]


class compile_progress:
    """A progress bar for compilation, on standard error."""

    def __init__(self, quiet: bool = False) -> None:
        self.bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description:<14}"),
            BarColumn(),
            TextColumn("{task.fields[detail]}"),
            TimeElapsedColumn(),
            console=ERRORS,
            disable=quiet,
            transient=True,
        )

    def __enter__(self) -> Callable[[str, int, int, str], None]:
        self.bar.start()
        task = self.bar.add_task("start", total=None, detail="")

        def notify(stage: str, done: int, total: int, detail: str) -> None:
            self.bar.update(task, description=stage, completed=done, total=total or None, detail=detail)

        return notify

    def __exit__(self, *_: object) -> None:
        self.bar.stop()


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(*(rows[0] if rows else ["nothing"]), header_style="bold")
    for row in rows:
        table.add_row(*[str(value) for value in row.values()])
    return table


def _print_report(report: dict[str, Any]) -> None:
    table = Table(show_header=False, box=None, pad_edge=False)
    for key, value in report.items():
        if key in ("kernel_list", "kernels_without_igraph", "fallbacks"):
            continue
        shown = ", ".join(f"{k} {v:.2f} s" for k, v in value.items()) if key == "seconds" else value
        table.add_row(key.replace("_", " "), f"{shown:,}" if isinstance(shown, int) else str(shown))
    OUT.print(table)
    left = report.get("kernels_without_igraph", [])
    if left:
        OUT.print(f"[yellow]{len(left)} kernels did not go through an iGraph:[/]")
        for row in left:
            OUT.print(f"  {row['kernel']}: {row['reason'].splitlines()[0]}", markup=False)
    else:
        OUT.print("every custom kernel went through an iGraph")
    if "kernel_list" in report:
        OUT.print(_table(report["kernel_list"]))


if __name__ == "__main__":
    main()
