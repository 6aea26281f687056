# SPDX-License-Identifier: Apache-2.0
"""What a model loses in a narrower precision, measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from . import api
from .errors import ShapeError
from .options import DEFAULT_TARGET, PRECISIONS, CompileOptions
from .runtime import Executable
from .runtime.tensors import random_inputs


@attrs.frozen
class OutputError:
    """How an output of a narrower precision differs from that of float32.

    Attributes
    ----------
    output : str
        Its name.
    absolute : float
        The largest difference of an element.
    relative : float
        That over the largest magnitude of the output in float32; 0 where both are 0.
    """

    output: str
    absolute: float
    relative: float


def precision_error(
    model: Any,
    precision: str,
    inputs: Sequence[Any] | None = None,
    *,
    target: str = DEFAULT_TARGET,
    options: CompileOptions | None = None,
    **how: Any,
) -> list[OutputError]:
    """Compile a model in float32 and in a narrower precision, run both, and compare.

    Parameters
    ----------
    model
        As `uir_tvm.compile` takes it.
    precision : str
        ``float16`` or ``bfloat16``.
    inputs : sequence, optional
        As many arrays or tensors as the model takes, in its order. Default: random ones, which say little of
        a model whose inputs mean something.
    target : str
        Every target has the same rule of rounding; the CPU is the fastest to ask here.
    options : CompileOptions, optional
        Its precision is of no account.
    **how
        More arguments of `uir_tvm.compile` (``args``, ``sizes``, ...).

    Returns
    -------
    list of OutputError
        One for each output of floats, in the model's order.

    Raises
    ------
    ShapeError
        The model leaves sizes open and ``sizes`` does not say them, or the inputs do not fit.
    UirError
        No such precision, or what `uir_tvm.compile` raises.
    """
    options = options or CompileOptions()
    both = []
    for chosen in (PRECISIONS[0], precision):
        exe = api.compile(model, target, options=attrs.evolve(options, precision=chosen), **how)
        if not isinstance(exe, Executable):
            raise ShapeError(
                "The error of a precision is measured at some shape, and the model leaves sizes open.",
                need="numbers for its sizes",
                remedy="pass sizes={...} or shapes={...} (`uir check` names sizes)",
            )
        given = random_inputs(exe.info.inputs) if inputs is None else inputs
        both.append([np.asarray(each) for each in exe.flat(*given)])
    named = zip(exe.info.outputs, *both, strict=True)
    return [_difference(spec.name, a, b) for spec, a, b in named if a.dtype.kind == "f"]


def _difference(name: str, exact: np.ndarray, narrow: np.ndarray) -> OutputError:
    wide, found = exact.astype("float64"), narrow.astype("float64")
    with np.errstate(invalid="ignore"):
        difference = np.where(wide == found, 0.0, np.abs(wide - found))
    difference = np.where(np.isnan(wide) & np.isnan(found), 0.0, difference)
    largest = float(np.max(np.abs(wide), where=np.isfinite(wide), initial=0.0))
    absolute = float(np.max(difference, initial=0.0))
    if np.isnan(absolute):
        absolute = float("inf")
    return OutputError(
        name, absolute, absolute / largest if largest else (0.0 if absolute == 0 else float("inf"))
    )
