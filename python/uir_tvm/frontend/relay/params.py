# SPDX-License-Identifier: Apache-2.0
"""Parameters of a Relay model: bytes of `relay.save_param_dict`, an .npz, or a mapping."""

from __future__ import annotations

import os
import pathlib
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...errors import ModelFormatError
from .json_graph import read_params

#: What parameters may be given as.
Params = Mapping[str, Any] | bytes | str | os.PathLike[str]


def load_params(params: Params | None) -> dict[str, np.ndarray]:
    """Arrays by name.

    Raises
    ------
    ModelFormatError
        A file that is missing, truncated, or neither of the two kinds.
    """
    if params is None:
        return {}
    if isinstance(params, bytes | bytearray):
        return read_params(bytes(params), "the parameters")
    if isinstance(params, Mapping):
        return {str(name): _array(value) for name, value in params.items()}
    path = pathlib.Path(params)
    if not path.is_file():
        raise ModelFormatError(f"There is no file of parameters {path}.", remedy="check the path")
    if path.suffix != ".npz":
        return read_params(path.read_bytes(), str(path))
    try:
        with np.load(path) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ModelFormatError(
            f"{path} is no .npz file, or a truncated one.", where=str(error), remedy="save it again"
        ) from error


def params_beside(model: pathlib.Path) -> pathlib.Path | None:
    """The file of parameters that belongs to a model's file: the same name with .params or .npz."""
    stem = model.with_name(model.name.removesuffix(".json").removesuffix(".relay"))
    found = (stem.with_name(stem.name + end) for end in (".params", ".npz"))
    return next((path for path in found if path.is_file()), None)


def _array(value: Any) -> np.ndarray:
    """A NumPy array of one, of a tensor of TVM, or of numbers."""
    return value.numpy() if hasattr(value, "numpy") else np.asarray(value)
