# SPDX-License-Identifier: Apache-2.0
"""The library operators in NumPy and float64: what they mean."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import evolve

if TYPE_CHECKING:
    from .attrs import Conv2dAttrs, MatmulAttrs, OperandLayout

Array = np.ndarray[Any, Any]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: Array) -> Array:
    # exp of a negative number only: no overflow on either side.
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, e) / (1.0 + e)


#: Activation by name; gelu_erf and gelu_tanh are the exact and the approximate GELU of Hendrycks and Gimpel
#: (arXiv 1606.08415).
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0.0),
    "gelu_erf": lambda x: 0.5 * x * (1.0 + _erf(x / math.sqrt(2.0))),
    "gelu_tanh": lambda x: 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x * _sigmoid(x),
    "tanh": np.tanh,
    "sigmoid": _sigmoid,
}

#: Activations with parameters, which stand behind the name: ``clip(0,6)``.  Name -> how many, function.
PARAMETRIC: dict[str, tuple[int, Callable[..., Array]]] = {
    "leaky_relu": (1, lambda x, slope: np.where(x < 0, slope * x, x)),
    "clip": (2, np.clip),
    "hard_sigmoid": (2, lambda x, factor, term: np.clip(factor * x + term, 0.0, 1.0)),
    "hard_swish": (2, lambda x, factor, term: x * np.clip(factor * x + term, 0.0, 1.0)),
}


def activation_name(text: str) -> str:
    """The name of an activation without its parameters."""
    return text.partition("(")[0]


def activation(text: str) -> Callable[[Array], Array] | None:
    """The function that a text says: a name of `ACTIVATIONS`, or one of `PARAMETRIC` with its numbers.

    None where it says none.
    """
    name, opened, rest = text.partition("(")
    if name not in PARAMETRIC:
        return ACTIVATIONS.get(text)
    count, function = PARAMETRIC[name]
    try:
        numbers = [float(part) for part in rest.removesuffix(")").split(",")]
    except ValueError:
        return None
    if len(numbers) != count or not rest.endswith(")"):
        return None
    return lambda x: function(x, *numbers)


def _epilogue(
    attrs: MatmulAttrs | Conv2dAttrs, product: Array, bias: Array | None, residual: Array | None
) -> Array:
    value = attrs.alpha * product
    if bias is not None:
        value = value + bias
    if residual is not None and attrs.residual == "before_activation":
        value = value + residual
    function = activation(attrs.activation)
    assert function is not None, attrs
    value = function(value)
    if residual is not None and attrs.residual == "after_activation":
        value = value + residual
    return value


def _view(tensor: Array, view: OperandLayout, shape: tuple[int, ...]) -> Array:
    flat = np.ascontiguousarray(tensor).reshape(-1)[view.offset :]
    return np.lib.stride_tricks.as_strided(flat, shape, [s * flat.itemsize for s in view.strides])


def matmul(
    attrs: MatmulAttrs,
    a: Array,
    b: Array,
    bias: Array | None = None,
    residual: Array | None = None,
    *,
    out: Array,
) -> Array:
    """`uir.library.cpu.matmul` in float64, unpacked b.

    Parameters
    ----------
    a, b, bias, residual : numpy.ndarray
        Whole contiguous buffers, of any float type.
    out : numpy.ndarray
        The output buffer as it is before; elements outside of the view stay.

    Returns
    -------
    numpy.ndarray
        float64, of `out`'s shape.
    """
    m, n, k = attrs.m, attrs.n, attrs.k
    product = np.matmul(
        _view(a.astype(np.float64), attrs.a, (*attrs.batch, m, k)),
        _view(b.astype(np.float64), attrs.b, (*attrs.batch, k, n)),
    )
    result = out.astype(np.float64)
    added = None if residual is None else _view(residual.astype(np.float64), attrs.out, (*attrs.batch, m, n))
    value = _epilogue(attrs, product, None if bias is None else bias.astype(np.float64), added)
    _view(result, attrs.out, (*attrs.batch, m, n))[...] = value
    return result


def conv2d(
    attrs: Conv2dAttrs, x: Array, w: Array, bias: Array | None = None, residual: Array | None = None
) -> Array:
    """`uir.library.cpu.conv2d` in float64, unpacked w of shape (o, c / groups, kh, kw).

    Returns
    -------
    numpy.ndarray
        float64, of shape `attrs.output`, in the order of ``attrs.output_layout``, as x and the residual are
        in that of their layouts.
    """
    if attrs.input_layout == "NHWC":
        x = x.transpose(0, 3, 1, 2)
    if attrs.output_layout == "NHWC":
        lying = None if residual is None else residual.transpose(0, 3, 1, 2)
        return conv2d(evolve(attrs, output_layout="NCHW", input_layout="NCHW"), x, w, bias, lying).transpose(
            0, 2, 3, 1
        )
    n, o, oh, ow = attrs.output
    _, i, kh, kw = attrs.weight
    (sh, sw), (dh, dw), (top, left, bottom, right) = attrs.strides, attrs.dilation, attrs.padding
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    grouped = padded.reshape(n, attrs.groups, i, *padded.shape[2:])
    weights = w.astype(np.float64).reshape(attrs.groups, o // attrs.groups, i, kh, kw)
    sums = np.zeros((n, attrs.groups, o // attrs.groups, oh, ow))
    for y in range(kh):
        for z in range(kw):
            rows = slice(y * dh, y * dh + (oh - 1) * sh + 1, sh)
            columns = slice(z * dw, z * dw + (ow - 1) * sw + 1, sw)
            sums += np.einsum("ngihw,goi->ngohw", grouped[..., rows, columns], weights[..., y, z])
    offset = None if bias is None else bias.astype(np.float64).reshape(1, o, 1, 1)
    added = None if residual is None else residual.astype(np.float64)
    return _epilogue(attrs, sums.reshape(n, o, oh, ow), offset, added)
