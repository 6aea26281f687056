# SPDX-License-Identifier: Apache-2.0
"""The command ``uir``."""

from __future__ import annotations

import sys

import click

from .base import OUT, Commands, emit, global_options
from .check import check_command
from .compile_model import compile_command
from .db import database_commands
from .export import export_command
from .inspect_model import inspect_command
from .llm import chat_command, generate_command
from .print import compile_progress, table_of
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


main.add_command(check_command)
main.add_command(run_command)
main.add_command(verify_command)
main.add_command(generate_command)
main.add_command(chat_command)
main.add_command(serve_command)
main.add_command(database_commands)
main.add_command(compile_command)
main.add_command(inspect_command)
main.add_command(export_command)
main.add_command(tune_server_command)
main.add_command(tune_command)
