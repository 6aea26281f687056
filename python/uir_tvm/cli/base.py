# SPDX-License-Identifier: Apache-2.0
"""What every command of ``uir`` shares: errors as messages, the global options, JSON or text."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import click
from rich.console import Console
from rich.logging import RichHandler

from .. import _native
from ..errors import SizeError, UirError
from ..options import TOOLKITS
from ..sizes.symbolic_shapes import OpenSignature

if TYPE_CHECKING:
    import numpy as np

    from ..runtime import Executable

ERRORS = Console(stderr=True)
OUT = Console()
#: Columns of a wide table that goes to no terminal.
WIDTH = 140

#: Exit code of a fault that is ours or TVM's, not the user's (EX_SOFTWARE of sysexits.h).
INTERNAL = 70

#: Exit code after Ctrl-C, as shells count it: 128 and the signal's number.
INTERRUPTED = 130


def wide() -> Console:
    """Where a table goes that is wider than a file's usual 80 columns."""
    return OUT if OUT.is_terminal else Console(width=WIDTH)


#: Ends of names of files that are for torch to read.
TORCH_FILES = (".pt2",)


class Command(click.Command):
    """A command that loads TVM when it is about to run: help and wrong usage need none of it.

    TVM imports torch wherever torch is installed, for seconds, and only programs of torch need it.
    """

    def invoke(self, ctx: click.Context) -> Any:
        _native.load(torch=any(str(value).endswith(TORCH_FILES) for value in ctx.params.values()))
        return super().invoke(ctx)


class Commands(click.Group):
    """Errors end as a message and an exit code; only -vv shows tracebacks."""

    command_class = Command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            # by intent, so nothing is said; click would say "Aborted!" and exit with 1
            ctx.exit(INTERRUPTED)
        except UirError as error:
            _traceback()
            _fail(ctx, error.to_json(), str(error), error.exit_code)
        except click.ClickException as error:
            if not state_of(ctx)["json"]:
                raise
            data = {"error": type(error).__name__, "what": error.format_message()}
            _fail(ctx, data, error.format_message(), error.exit_code)
        except Exception as error:
            _traceback()
            what = next((line for line in str(error).splitlines() if line.strip()), "no message")
            text = (
                f"{what}\n  where:  inside uir_tvm or TVM; this is no fault of yours\n"
                "  remedy: report it with the traceback, which -vv shows"
            )
            _fail(ctx, {"error": type(error).__name__, "what": str(error)}, text, INTERNAL)


def _fail(ctx: click.Context, data: dict[str, Any], text: str, code: int) -> NoReturn:
    if state_of(ctx)["json"]:
        click.echo(json.dumps(data))
    else:
        ERRORS.print(f"[bold red]{data['error']}[/]", end=": ")
        ERRORS.print(text, markup=False, highlight=False, soft_wrap=True)
    ctx.exit(code)


def _traceback() -> None:
    if logging.getLogger().isEnabledFor(logging.DEBUG):
        ERRORS.print_exception()


def state_of(ctx: click.Context) -> dict[str, Any]:
    """What the global options say."""
    return ctx.find_root().ensure_object(dict)


def _set_json(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    state = state_of(ctx)
    state["json"] = state.get("json", False) or value


def _set_verbose(ctx: click.Context, _: click.Parameter, value: int) -> None:
    state = state_of(ctx)
    state["verbose"] = max(state.get("verbose", 0), value)
    level = (logging.ERROR, logging.INFO, logging.DEBUG)[min(state["verbose"], 2)]
    handler = RichHandler(console=ERRORS, show_path=False)
    logging.basicConfig(level=level, format="%(message)s", handlers=[handler], force=True)


def global_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that may stand before the command and after it."""
    command = click.option(
        "-v",
        "--verbose",
        count=True,
        expose_value=False,
        callback=_set_verbose,
        help="Say what is done (-v); debugging output and tracebacks (-vv).",
    )(command)
    return click.option(
        "--json",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_set_json,
        help="Print JSON for machines, errors included.",
    )(command)


def toolkit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """An option for each toolkit by whose versions texts are spelled apart (`uir_tvm.toolkits`)."""
    for row in reversed(TOOLKITS):
        command = click.option(
            f"--{row.option}",
            type=click.Choice(row.versions),
            help=f"{row.help} Default: {row.variable}, else {row.default}.",
        )(command)
    return command


def emit(ctx: click.Context, data: Any, human: Callable[[], None]) -> None:
    """JSON for machines, else what ``human`` prints."""
    if state_of(ctx)["json"]:
        click.echo(json.dumps(data, indent=1, default=str))
    else:
        human()


#: Sizes that a model leaves open.
shape_option = click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME=1x128",
    help="Fix the shape of an input that leaves sizes open.",
)
#: Inputs that decide shapes or attributes.
value_option = click.option(
    "--value",
    "values",
    multiple=True,
    metavar="NAME=[0,1]",
    help="Make an input a constant (ONNX): a number, a list of them, or a .npy file. The compiled model does "
    "not take it.",
)


#: Of a dump of a Relax module.
entry_option = click.option(
    "--entry",
    default="main",
    show_default=True,
    metavar="NAME",
    help="The function of a Relax module that is compiled.",
)
#: The same by the names of sizes.
size_option = click.option(
    "--size",
    "sizes",
    multiple=True,
    metavar="NAME=37",
    help="Fix a size that the model leaves open, by its name (`uir check` lists them).",
)


#: What an ONNX or Relax model keeps from call to call.
state_option = click.option(
    "--state",
    "states",
    multiple=True,
    metavar="INPUT=RESULT",
    help="Keep an input (ONNX, Relax) as state: a result is its next value; `INPUT=`: kernels update it in "
    "place; `past`: the names of decoders, past_key_values.* and present.*.",
)


def pairs_of(texts: tuple[str, ...]) -> dict[str, str | None] | bool | None:
    """State by input, of options ``INPUT=RESULT``; True of ``past``, None where there are none."""
    if "past" in texts:
        return True
    for text in texts:
        if not text.partition("=")[0] or "=" not in text:
            raise click.BadParameter(f"{text!r} is not INPUT=RESULT", param_hint="'--state'")
    return {name: result or None for name, _, result in (text.partition("=") for text in texts)} or None


def sizes_of(pairs: tuple[str, ...], option: str = "--size") -> dict[str, int]:
    """Sizes by name, of options ``NAME=37``; several may stand in one, with commas.

    Raises
    ------
    SizeError
        One is given twice.
    """
    sizes: dict[str, int] = {}
    for pair in (part for text in pairs for part in text.split(",")):
        name, _, text = pair.strip().partition("=")
        if not name or not text.isdigit():
            raise click.BadParameter(f"{pair!r} is not NAME=37", param_hint=f"'{option}'")
        if name in sizes:
            raise SizeError(
                f"The size {name} is given twice.",
                need="one number for each size",
                limit=f"{name}={sizes[name]} and {pair.strip()}",
                remedy=f"say {option} {name}=... once",
            )
        sizes[name] = int(text)
    return sizes


def chosen(exe: Any, pairs: tuple[str, ...]) -> Executable:
    """The executable of these sizes; of a file with one, that one.

    Raises
    ------
    NotCompiledError
        The file has none, or several, for these sizes.
    """
    sizes = sizes_of(pairs)
    if hasattr(exe, "find"):
        return exe.find(sizes).executable
    OpenSignature(()).known(sizes)
    return exe


def shapes_of(pairs: tuple[str, ...]) -> dict[str, tuple[int, ...]] | None:
    """Shapes by input, of options ``NAME=1x128``; None where there are none."""
    shapes = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        parts = text.replace(",", "x").split("x")
        if not name or not all(part.isdigit() for part in parts):
            raise click.BadParameter(f"{pair!r} is not NAME=1x128", param_hint="'--shape'")
        shapes[name] = tuple(int(part) for part in parts)
    return shapes or None


def values_of(pairs: tuple[str, ...]) -> dict[str, np.ndarray] | None:
    """Constants by input, of options ``NAME=[0,1]``: int64, float32 or bool, or what a .npy file holds."""
    import numpy as np

    values = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        try:
            if text.endswith(".npy"):
                values[name] = np.load(text, allow_pickle=False)
                continue
            array = np.asarray(json.loads(text))
        except (OSError, ValueError) as error:
            raise click.BadParameter(f"{pair!r}: {error}", param_hint="'--value'") from error
        if not name or array.dtype.kind not in "iufb":
            raise click.BadParameter(f"{pair!r} is not NAME=[0,1]", param_hint="'--value'")
        values[name] = array.astype(DTYPES_OF_TEXT[array.dtype.kind])
    return values or None


#: What numbers in a text are, by NumPy's kind.
DTYPES_OF_TEXT = {"i": "int64", "u": "uint64", "f": "float32", "b": "bool"}
