# SPDX-License-Identifier: Apache-2.0
"""Relay -> Relax: the text and the JSON of TVM's former IR, which TVM itself no longer reads."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping, Sequence

import tvm

from ...errors import ModelFormatError
from ...one_at_a_time import one_at_a_time
from .importer import import_program
from .json_program import parse_json
from .params import Params, load_params, params_beside
from .text_program import parse

__all__ = ["from_relay", "import_program", "load_params", "params_beside", "parse", "parse_json"]


@one_at_a_time
def from_relay(
    model: str | os.PathLike[str],
    params: Params | None = None,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    function: str = "main",
) -> tvm.IRModule:
    """Import a Relay module as a normalised Relax module.

    Parameters
    ----------
    model : str or path
        Text (`IRModule.astext`), JSON (`tvm.ir.save_json`), or the path of a file of either.
    params : mapping, bytes, str or path, optional
        Values of parameters by name, which become constants: arrays, bytes of `relay.save_param_dict`, or a
        file of them (.params, .npz). What the function has no parameter for is left out.
    shapes : mapping of str to sequence of int, optional
        Shapes of inputs with open sizes (``?``).
    function : str
        Which of the module's functions is the model; what it calls is inlined.

    Returns
    -------
    tvm.IRModule
        The form that `from_torch` returns: one Relax function ``main`` with the function's other parameters
        (the fields of a tuple each by itself), result a tensor or the tuple of all tensors of the result.

    Raises
    ------
    ModelFormatError
        What is read is no Relay, or truncated; the text's line, column and what was expected there.
    UnsupportedOperatorError
        An operator that has no converter, with its place.
    ShapeError
        An open size that ``shapes`` does not give.
    FrontendError
        Attributes, types or values of an operator that do not fit.
    """
    text, name = _read(model)
    program = parse_json(text, name) if text.lstrip().startswith("{") else parse(text, name)
    return import_program(program, load_params(params), shapes=shapes or {}, function=function)


def _read(model: str | os.PathLike[str]) -> tuple[str, str]:
    """The text of a model and what to call it."""
    if isinstance(model, str) and ("\n" in model or model.lstrip().startswith(("#[", "def ", "{"))):
        return model, "the text"
    path = pathlib.Path(model)
    if not path.is_file():
        raise ModelFormatError(f"There is no file {path}.", remedy="check the path, or pass the text itself")
    try:
        return path.read_text(), path.name
    except (OSError, UnicodeDecodeError) as error:
        raise ModelFormatError(
            f"{path} is no text.",
            where=str(error),
            need="the text or the JSON of a Relay module",
            remedy="save it with mod.astext() or tvm.ir.save_json(mod)",
        ) from error
