# SPDX-License-Identifier: Apache-2.0
"""The command ``uir run``."""

from __future__ import annotations

import math
import pathlib
import time
from typing import Any

import click

from .base import OUT, Command, chosen, emit, global_options, size_option
from .print import print_times, table_of


@click.command("run", cls=Command)
@click.argument("file", type=click.Path(path_type=pathlib.Path))
@click.option(
    "--timeline",
    type=click.Path(path_type=pathlib.Path),
    help="On a host model that counts time: write when every instruction would run, as a Chrome trace.",
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    type=click.Path(path_type=pathlib.Path),
    help="An .npy file for each input, in order.",
)
@click.option("--random", "use_random", is_flag=True, help="Random inputs in place of files.")
@size_option
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
def run_command(
    ctx: click.Context,
    file: pathlib.Path,
    inputs: tuple[pathlib.Path, ...],
    use_random: bool,
    sizes: tuple[str, ...],
    repeat: int,
    output: pathlib.Path | None,
    timeline: pathlib.Path | None,
) -> None:
    """Run FILE, a compiled model, and show the figures of its outputs.

    On a host model that counts time also what the kernels would take on the device (modelled, not measured).

    \b
    uir run model.uir --input ids.npy --input mask.npy -o results.npz
    uir run model.uir --random --repeat 20
    uir run model.uir --random --size batch=8     of a file with code for several sizes, or for all
    uir run model.uir --random --timeline trace.json
    """
    import numpy as np

    from ..hardware import assumed_figures
    from ..runtime import load
    from ..runtime.modelled import recording
    from ..runtime.tensors import random_inputs

    if inputs and use_random:
        raise click.UsageError("--input and --random exclude each other.")
    exe = load(file)
    if use_random or sizes:
        exe = chosen(exe, sizes)
    arrays = random_inputs(exe.info.inputs) if use_random else [load_array(p) for p in inputs]
    if hasattr(exe, "specialized"):
        exe = exe.specialized(*arrays)
    with recording(timeline is not None, exe.hardware) as found:
        results = exe.flat(*arrays)
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        exe.flat(*arrays)
        times.append(time.perf_counter() - start)
    if output is not None:
        output = _write_arrays(output, dict(zip([s.name for s in exe.info.outputs], results, strict=True)))
    rows = [
        {
            "output": spec.name,
            "shape": list(r.shape),
            "dtype": str(r.dtype),
            "mean": float(np.mean(r, dtype=np.float64)) if r.size else math.nan,
            "std": float(np.std(r.astype(np.float64))) if r.size else math.nan,
        }
        for spec, r in zip(exe.info.outputs, results, strict=True)
    ]
    median = float(np.median(times))
    data = {"outputs": rows, "median_seconds": median, "file": str(output) if output else None}
    if timeline is not None:
        found.times.write_trace(timeline)
    if found.times.launches:
        modelled = found.times.to_json() | {"assumed_figures": assumed_figures(exe.hardware)}
        data |= {"modelled": modelled, "timeline": str(timeline) if timeline else None}

    def human() -> None:
        OUT.print(table_of(rows))
        OUT.print(f"median of {repeat}: {median * 1e3:.3f} ms")
        if found.times.launches:
            print_times(found.times, exe.hardware, timeline)

    emit(ctx, data, human)


def load_array(path: pathlib.Path) -> Any:
    """The array of an .npy file."""
    import numpy as np

    from ..errors import ShapeError

    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ShapeError(
            f"{path} is no .npy file.", need=str(error), remedy="save the input with numpy.save"
        ) from error


def _write_arrays(path: pathlib.Path, arrays: dict[str, Any]) -> pathlib.Path:
    """Write an .npz file, whole or not at all; returns its path, which NumPy completes with the suffix."""
    import numpy as np

    from ..errors import ArtifactError
    from ..whole_files import replacing

    path = path if path.suffix == ".npz" else path.with_name(path.name + ".npz")
    with replacing(path, ArtifactError) as partial, partial.open("wb") as file:
        np.savez(file, **arrays)
    return path
