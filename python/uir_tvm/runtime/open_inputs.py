# SPDX-License-Identifier: Apache-2.0
"""Inputs of a call held to a signature that leaves sizes open: tensors, numbers, and tuples of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..sizes.symbolic_shapes import NUMBER, TENSOR, OpenInput, OpenSignature
from .tensors import TensorSpec, check_inputs

#: Shapes of all inputs of a call, in order; of a number the number.
Key = tuple[Any, ...]


def spec_of(each: OpenInput) -> TensorSpec:
    """How a description of the model says an input; open sizes are -1."""
    if each.kind == NUMBER:
        return TensorSpec(each.name, (), each.dtype)
    if each.kind != TENSOR:
        return TensorSpec(each.name, (len(each.sizes),), each.dtype)
    is_open = any(isinstance(size, str) for size in each.sizes)
    shape = tuple(size if isinstance(size, int) else -1 for size in each.sizes)
    return TensorSpec(each.name, shape, each.dtype, tuple(map(str, each.sizes)) if is_open else ())


def are_flat(inputs: Sequence[Any], signature: OpenSignature) -> bool:
    """Whether arguments, as many as there are inputs, are the inputs themselves, not containers of them."""
    return all(
        hasattr(value, "shape") if each.kind == TENSOR else isinstance(value, int | np.integer)
        for value, each in zip(inputs, signature.inputs, strict=True)
    )


def checked_shapes(inputs: Sequence[Any], signature: OpenSignature) -> dict[str, tuple[int, ...]]:
    """The shapes of inputs that fit the signature one by one; of a number the number as a tuple of one.

    Raises
    ------
    ShapeError
        A wrong number of inputs, or one of a wrong kind, rank, size or dtype.
    """
    specs = [spec_of(each) for each in signature.inputs]
    rows = list(zip(inputs, signature.inputs, specs, strict=False))
    tensors = [row for row in rows if row[1].kind == TENSOR]
    if len(inputs) != len(specs) or len(tensors) == len(rows):
        check_inputs(inputs, specs)
    check_inputs([value for value, _, _ in tensors], [spec for _, _, spec in tensors])
    for value, each, _ in rows:
        if each.kind != TENSOR and not _fits(value, each):
            raise ShapeError(
                f"Input {each.name} is a {type(value).__name__}.",
                need="a whole number" if each.kind == NUMBER else f"{len(each.sizes)} whole numbers",
                remedy="pass Python's own numbers",
            )
    return {each.name: _shape_of(value) for value, each, _ in rows}


def key_of_shapes(shapes: Mapping[str, tuple[int, ...]], signature: OpenSignature) -> Key:
    """The key of inputs of these shapes."""
    return tuple(
        shapes[each.name][0] if each.kind == NUMBER else shapes[each.name] for each in signature.inputs
    )


def key_of_inputs(inputs: Sequence[Any]) -> Key:
    """The same of inputs that nobody checked: that of a call that was checked, or of none."""
    try:
        return tuple([value.shape for value in inputs])
    except AttributeError:
        return tuple([value.shape if hasattr(value, "shape") else _plain(value) for value in inputs])


def _shape_of(value: Any) -> tuple[int, ...]:
    """The shape of a tensor; a number, or numbers, as a tuple."""
    shape = getattr(value, "shape", None)
    if shape is None:
        shape = value if isinstance(value, Sequence) else (value,)
    return tuple(map(int, shape))


def _fits(value: Any, each: OpenInput) -> bool:
    """Whether a value is the number, or numbers, that an input is."""
    if each.kind == NUMBER:
        return isinstance(value, int | np.integer) and not isinstance(value, bool)
    return isinstance(value, Sequence) and len(value) == len(each.sizes)


def _plain(value: Any) -> Any:
    """Numbers as they are found again: 2.0 is not 2, nor is True 1."""
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return value if type(value) is int else (type(value), value)
