# SPDX-License-Identifier: Apache-2.0
"""``uir export``: a compiled model as a project of a vendor's toolkit."""

from __future__ import annotations

import pathlib

import click

from .base import OUT, Command, chosen, emit, global_options, size_option


@click.command("export", cls=Command)
@click.argument("file", type=click.Path(path_type=pathlib.Path))
@click.option(
    "--project",
    "directory",
    required=True,
    type=click.Path(path_type=pathlib.Path),
    help="The folder to write; it must not exist, or be empty.",
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    type=click.Path(path_type=pathlib.Path),
    help="An .npy file for each input, in order, to check the project with. Default: random inputs.",
)
@click.option(
    "--check/--no-check",
    default=True,
    show_default=True,
    help="Run FILE here and store its outputs, for the project's --check. A host model takes its time.",
)
@size_option
@global_options
@click.pass_context
def export_command(
    ctx: click.Context,
    file: pathlib.Path,
    directory: pathlib.Path,
    inputs: tuple[pathlib.Path, ...],
    check: bool,
    sizes: tuple[str, ...],
) -> None:
    """Write FILE, a compiled model, as a project that the vendor's toolkit builds and runs.

    The project has the kernels' source, a host program with its memory plan, launches and library calls, the
    weights, and a README that says how to build it. No toolkit is needed to write it.

    \b
    uir compile model.onnx --target uir-ascend -o model.uir
    uir export model.uir --project model-910b

    The project of a file for all sizes takes them when it runs (build/model --size n=37 ...).
    """
    from ..export.write import write_project
    from ..runtime import load
    from .run_model import load_array

    if inputs and not check:
        raise click.UsageError("--input and --no-check exclude each other.")
    exe = load(file)
    if sizes or not getattr(exe, "wholes", ()):
        exe = chosen(exe, sizes)
    arrays = [load_array(path) for path in inputs] or None
    project = write_project(exe, directory, inputs=arrays, check=check)
    data = {
        "project": str(project.path),
        "files": dict(project.files),
        "bytes": sum(project.files.values()),
        "launches": project.launches,
        "library_calls": project.library_calls,
        "on_host": project.on_host,
        "sizes": list(project.sizes),
    }

    def human() -> None:
        OUT.print(
            f"{project.path}: {len(project.files)} files, {data['bytes']:,} bytes; a run has "
            f"{project.launches} launches and {project.library_calls} library calls"
            + (f", and {project.on_host} functions on the host" if project.on_host else "")
            + (f"; it takes {', '.join(project.sizes)} when it runs. " if project.sizes else ". ")
            + "README.md says how to build it."
        )

    emit(ctx, data, human)
