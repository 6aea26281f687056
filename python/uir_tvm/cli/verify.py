# SPDX-License-Identifier: Apache-2.0
"""The command ``uir verify``."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import click

from ..errors import ArtifactError, IGraphError, VerifyError
from .base import ERRORS, OUT, Command, emit, global_options


@click.command("verify", cls=Command)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=pathlib.Path))
@global_options
@click.pass_context
def verify_command(ctx: click.Context, files: tuple[pathlib.Path, ...]) -> None:
    """Verify iGraphs: FILES are texts of them, as `uir compile --dump` writes.

    Says of every file that it is right, or what its faults are, each with a witness and a remedy; the exit
    code is 5 when there is a fault.

    \b
    uir verify stages/softmax.igraph
    uir --json verify stages/*.igraph
    """
    rows = [_row(path, faults_of(path)) for path in files]

    def human() -> None:
        for row, path in zip(rows, files, strict=True):
            if row["ok"]:
                OUT.print(f"{path}: OK", markup=False, highlight=False, soft_wrap=True)
            for fault in row["faults"]:
                text = f"{path}: {fault['rule']}: {fault['text']}"
                ERRORS.print(text, markup=False, highlight=False, soft_wrap=True)

    emit(ctx, rows, human)
    if not all(row["ok"] for row in rows):
        sys.exit(VerifyError.exit_code)


def faults_of(path: pathlib.Path) -> list[VerifyError]:
    """All faults of the iGraph in a file.

    Raises
    ------
    ArtifactError
        The file cannot be read.
    ParseError
        It is no iGraph.
    """
    from ..igraph.parser import parse_igraph
    from ..verify import check

    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ArtifactError(
            f"{path} cannot be read.",
            need="a text of an iGraph, as `uir compile --dump` writes",
            limit=str(error),
            remedy="check the path",
        ) from error
    try:
        return check(parse_igraph(text))
    except IGraphError as error:
        error.where = f"{path}, {error.where}" if error.where else str(path)
        error.args = (error.render(),)
        raise


def _row(path: pathlib.Path, faults: list[VerifyError]) -> dict[str, Any]:
    return {
        "file": str(path),
        "ok": not faults,
        "faults": [f.to_json() | {"rule": f.rule, "witness": f.witness, "text": str(f)} for f in faults],
    }
