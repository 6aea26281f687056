# SPDX-License-Identifier: Apache-2.0
"""The command ``uir check``."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import click

from ..errors import UnsupportedOperatorError
from ..options import DEFAULT_TARGET
from .base import (
    ERRORS,
    OUT,
    Command,
    emit,
    entry_option,
    global_options,
    pairs_of,
    shape_option,
    shapes_of,
    size_option,
    sizes_of,
    state_option,
    value_option,
    values_of,
)
from .print import state_line, table_of


@click.command("check", cls=Command)
@click.argument("model", type=click.Path(path_type=pathlib.Path))
@click.option("--target", default=DEFAULT_TARGET, show_default=True, help="See `uir targets`.")
@shape_option
@size_option
@value_option
@entry_option
@state_option
@click.option(
    "--allow-torch", is_flag=True, help="Operators that PyTorch computes at run time are no failure."
)
@global_options
@click.pass_context
def check_command(
    ctx: click.Context,
    model: pathlib.Path,
    target: str,
    shapes: tuple[str, ...],
    sizes: tuple[str, ...],
    values: tuple[str, ...],
    entry: str,
    states: tuple[str, ...],
    allow_torch: bool,
) -> None:
    """Say where each part of MODEL would run, before anything is compiled.

    The places: igraph (a kernel of ours), library (the target's), tvm (TVM's own lowering, on the host),
    torch (PyTorch, at run time, for an operator without a converter), call (compiled at the call, for its
    sizes or values: a kernel of a model that serves all sizes, or a model of which a file needs --size,
    --shape or --value), and refused. MODEL is as of `uir compile`; the sizes that it leaves open are listed,
    with what `--size` calls them. The exit code is that of the error which `uir compile` would end with, 9
    for an operator without a converter (unless --allow-torch); 0 where the model compiles.

    \b
    uir check model.onnx
    uir check program.pt2 --target uir-ascend --json
    uir check model.onnx --size batch=8
    """
    from ..support import supports

    found = supports(
        model,
        target,
        shapes=shapes_of(shapes),
        sizes=sizes_of(sizes),
        values=values_of(values),
        entry=entry,
        state=pairs_of(states),
    )
    data = found.to_json()

    def human() -> None:
        rows: list[dict[str, Any]] = [
            {key: row[key] for key in ("operators", "place", "count", "name", "reason")}
            for row in data["rows"]
        ]
        OUT.print(table_of(rows))
        counts = ", ".join(f"{count} {place}" for place, count in data["counts"].items())
        OUT.print(f"{found.model} for {found.target}: {counts}", markup=False, highlight=False)
        for row in data["state"]:
            OUT.print(f"state {state_line(row)}", markup=False, highlight=False)
        if data["symbols"]:
            OUT.print("inputs: " + "; ".join(data["inputs"]), markup=False, highlight=False)
            said = ", ".join(f"{name} {what}" for name, what in data["symbols"].items())
            OUT.print(f"open sizes: {said}", markup=False, highlight=False)
        if data["conditions"]:
            said = " and ".join(data["conditions"])
            OUT.print(f"for all sizes with {said}", markup=False, highlight=False, soft_wrap=True)
        for row in data["rows"]:
            if row["place"] == "torch":
                text = f"{row['operators']}: {row['remedy']}"
                ERRORS.print(text, markup=False, highlight=False, soft_wrap=True)
        if found.error is not None:
            ERRORS.print(f"[bold red]{type(found.error).__name__}[/]", end=": ")
            ERRORS.print(str(found.error), markup=False, highlight=False, soft_wrap=True)

    emit(ctx, data, human)
    if found.error is not None:
        sys.exit(found.error.exit_code)
    if "torch" in found.counts and not allow_torch:
        sys.exit(UnsupportedOperatorError.exit_code)
