# SPDX-License-Identifier: Apache-2.0
"""What a compilation is given, as a digest of its contents: to find again what was compiled of the same."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from .content_digest import ContentDigest
from .import_model import Door, Shapes, Values
from .sizes.symbolic_shapes import Sizes


def digest_of(model: Any, shapes: Shapes, values: Values, door: Door, sizes: Sizes | None) -> bytes | None:
    """A digest of a model and of all that its import is told; its weights count by their contents.

    Parameters
    ----------
    model, shapes, values, sizes
        As of `uir_tvm.compile`; a module of PyTorch is exported already.
    door : Door
        What else it is told.

    Returns
    -------
    bytes or None
        None: there is no telling the contents of such a model, or of functions that convert its operators.
    """
    add = next((add for of, add in KINDS if of(model)), None)
    if add is None or door.converters:
        return None
    made = ContentDigest()
    told = {field.name: getattr(door, field.name) for field in attrs.fields(Door) if field.name in TOLD}
    made.text(f"{told} {sorted((shapes or {}).items())} {sorted((sizes or {}).items())}")
    for name, value in (values or {}).items():
        made.text(name)
        made.array(np.asarray(value))
    return made.digest() if add(model, made) else None


def _is_program(model: Any) -> bool:
    kind = type(model)
    return kind.__module__.partition(".")[0] == "torch" and kind.__name__ == "ExportedProgram"


def _is_onnx(model: Any) -> bool:
    if isinstance(model, str | pathlib.Path):
        return str(model).endswith(".onnx")
    return type(model).__module__.partition(".")[0] == "onnx"


def _program(model: Any, into: ContentDigest) -> bool:
    from .frontend.torch_digest import digest_program

    return digest_program(model, into)


def _onnx(model: Any, into: ContentDigest) -> bool:
    from .frontend.onnx.onnx_digest import digest_onnx

    return digest_onnx(model, into)


#: What `Door` says of a program or an ONNX model; the example arguments were for the export.
TOLD = frozenset({"strict", "entry", "state"})
#: Whether a model is of a kind, and what adds it to a digest.
KINDS: tuple[tuple[Callable[[Any], bool], Callable[[Any, ContentDigest], bool]], ...] = (
    (_is_program, _program),
    (_is_onnx, _onnx),
)
