# SPDX-License-Identifier: Apache-2.0
"""``uir tune``: search for faster schedules of a model's kernels, within the time that is given."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from ..network_address import Address
from ..options import DEFAULT_TARGET, DEVICES
from .base import (
    ERRORS,
    OUT,
    Command,
    emit,
    global_options,
    shape_option,
    shapes_of,
    state_of,
    wide,
)
from .print import table_of
from .tune_server import ServerAddress

if TYPE_CHECKING:
    from ..tune.batch import Batch


#: Where proc(5) has the time of a process's start, behind its name in parentheses.
STARTTIME = 19


@click.command("tune", cls=Command)
@click.argument("model", type=click.Path(path_type=pathlib.Path))
@click.option("--target", default=DEFAULT_TARGET, show_default=True, help="See `uir targets`.")
@click.option(
    "--database",
    type=click.Path(path_type=pathlib.Path),
    help="The folder that keeps what is found, and how far the search is; made if need be. "
    "Default: UIR_DATABASE.",
)
@click.option(
    "--time-budget",
    metavar="TIME",
    help="90s, 10m, 1h30m: the command ends within it.  Default: 10m where --trials is not given.",
)
@click.option("--trials", type=int, metavar="N", help="Candidates to measure, earlier runs' included.")
@click.option(
    "--kernels", metavar="PATTERN", help="Only kernels of such names: 'softmax*' (`uir inspect` lists them)."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the search and of the inputs.")
@click.option(
    "--rpc",
    type=ServerAddress(),
    multiple=True,
    metavar="HOST:PORT",
    help="Measure on this server (`uir tune-server`); once for each.",
)
@click.option("--key", metavar="KEY", help="The servers' key (`uir tune-server --key`); needs --rpc.")
@click.option(
    "--cost-model",
    type=click.Path(path_type=pathlib.Path),
    help="A file in which what is learned of schedules' times is kept from one model to the next.",
)
@click.option(
    "--export-batch",
    type=click.Path(path_type=pathlib.Path),
    metavar="DIR",
    help="Measure nothing: write the candidates that come next (--trials of them, else 64), built, with a "
    "program that measures them on another machine.",
)
@click.option(
    "--import-results",
    type=click.Path(path_type=pathlib.Path),
    metavar="DIR",
    help="Take up what the runner of an exported batch measured.",
)
@click.option(
    "--sizes",
    multiple=True,
    metavar="NAME=N,...[:WEIGHT]",
    help="Of a model that leaves sizes open: at which sizes schedules are timed, a number for each symbol, "
    "and how much they count (default: 1); once for each list.  Default: small and large ones by ranges.",
)
@shape_option
@click.option("--device", type=click.Choice(DEVICES), help="Where kernels run; as for `uir compile`.")
@click.option("--fuse/--no-fuse", default=True, show_default=True, help="As for `uir compile`.")
@global_options
@click.pass_context
def tune_command(
    ctx: click.Context,
    model: pathlib.Path,
    target: str,
    database: pathlib.Path | None,
    time_budget: str | None,
    trials: int | None,
    kernels: str | None,
    seed: int,
    rpc: tuple[Address, ...],
    key: str | None,
    cost_model: pathlib.Path | None,
    export_batch: pathlib.Path | None,
    import_results: pathlib.Path | None,
    sizes: tuple[str, ...],
    shapes: tuple[str, ...],
    device: str | None,
    fuse: bool,
) -> None:
    """Search for faster schedules of MODEL's kernels; MODEL is what `uir compile` takes.

    \b
    uir tune model.onnx --database tuned                       ten minutes on this CPU
    uir compile model.onnx --database tuned                    use what was found
    uir tune model.onnx --database tuned --time-budget 1h      go on; nothing is measured twice
    uir tune model.onnx --database tuned --trials 500          or until 500 candidates were measured
    uir tune model.onnx --database tuned --kernels 'softmax*'  some kernels alone

    \b
    Devices:
      uir tune model.onnx --target uir-ascend --database tuned             on the host model: modelled times
      uir tune model.onnx --target uir-cuda --database tuned --rpc HOST:9090 --key SECRET
      uir tune model.onnx --target uir-cuda --database tuned --export-batch out      no network: carry it
      uir tune model.onnx --target uir-cuda --database tuned --import-results out    over, and back

    \b
    Sizes that the model leaves open (a schedule serves all of them; `uir check MODEL` names them):
      uir tune model.onnx --database tuned --sizes n=1,s=128:0.7 --sizes n=8,s=512:0.3

    Kernels get trials where the model's time falls most.  A candidate that computes something else is never
    kept, and a report of it is in DATABASE/rejected.  A schedule enters the database when a second
    measurement, in turns with the compiler's own schedule, shows it faster too; else that one stays.

    Ctrl-C ends with a summary (exit code 130), a second one at once; whatever ends it, even a power failure,
    costs only what was being measured, and the same command goes on.
    """
    from ..tune import offline, tune_model
    from .tune_progress import Progress

    folder = _database(database)
    _check(rpc, key, export_batch, import_results)
    with _measurer(rpc, key) as measurer, Progress(ERRORS, quiet=state_of(ctx)["json"]) as watcher:
        common: dict[str, Any] = {
            "database": folder,
            "kernels": kernels,
            "cost_model": cost_model,
            "seed": seed,
            "shapes": shapes_of(shapes),
            "fuse": fuse,
            "sizes": sizes or None,
            "watcher": watcher,
        }
        if rpc or export_batch is not None or import_results is not None:
            device = device or tune_model.away(target)
        if export_batch is not None:
            subject = tune_model.Subject(model, tune_model.resolved(target, device), **common)
            _export(ctx, offline.export_candidates(subject, export_batch, trials))
            return
        if import_results is not None:
            subject = tune_model.Subject(model, tune_model.resolved(target, device), **common)
            summary = offline.import_measured(subject, import_results)
        else:
            summary = tune_model.tune(
                model,
                target,
                time_budget=time_budget,
                trials=trials,
                measurer=measurer,
                device=device,
                started=_born(),
                **common,
            )

    def human() -> None:
        wide().print(table_of([row.shown() for row in summary.rows]))
        for line in summary.lines():
            OUT.print(line, markup=False, highlight=False, soft_wrap=True)

    emit(ctx, summary.to_json(), human)
    if summary.signal:
        sys.exit(128 + summary.signal)


def _born() -> float:
    """When this process began, by `time.monotonic`: reading the libraries takes seconds of the budget too."""
    try:
        fields = pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[STARTTIME]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        age = 0.0
    return time.monotonic() - max(0.0, age)


def _database(given: pathlib.Path | None) -> pathlib.Path:
    from ..options import CompileOptions

    folder = given or CompileOptions().database
    if folder is None:
        raise click.UsageError("Name a folder for what is found: --database DIR (or UIR_DATABASE).")
    return folder


def _check(
    rpc: tuple[Address, ...], key: str | None, export: pathlib.Path | None, results: pathlib.Path | None
) -> None:
    """Options that do not go together."""
    if bool(rpc) != (key is not None):
        raise click.UsageError("--rpc HOST:PORT and --key KEY go together.")
    if sum(option is not None for option in (rpc or None, export, results)) > 1:
        raise click.UsageError("--rpc, --export-batch and --import-results exclude each other.")


@contextlib.contextmanager
def _measurer(rpc: tuple[Address, ...], key: str | None) -> Iterator[Any]:
    """Servers; None: this machine."""
    if key is None:
        yield None
        return
    from ..tune.rpc import RpcMeasurer

    measurer = RpcMeasurer(rpc, key)
    try:
        yield measurer
    finally:
        measurer.close()


def _export(ctx: click.Context, batch: Batch) -> None:
    """Say what was written, and what to do with it."""
    ready = sum(result.outcome == "lost" for result in batch.results)
    data = {"folder": str(batch.folder), "candidates": len(batch.jobs), "to_measure": ready}

    def human() -> None:
        refused = len(batch.jobs) - ready
        more = f"; the compiler refuses {refused} more" if refused else ""
        OUT.print(f"{ready} schedules are in {batch.folder}{more}")
        OUT.print(f"carry the folder to the device, and there: cd {batch.folder.name} && python3 run.py")
        OUT.print("bring its results.jsonl back into the folder, then: uir tune ... --import-results DIR")

    emit(ctx, data, human)
