# SPDX-License-Identifier: Apache-2.0
"""The functions whose axes are opened: the examples of all recipes, and operators that are cut otherwise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from tvm.relax import op
from uir_tvm.schedules import RECIPES
from uir_tvm.schedules.demo import Example, from_relax

from tests.corpus import recipes

Shape = tuple[int, ...]

#: Operators that move pieces, reduce over outer dimensions, or have dimensions that are no size's own:
#: (build, shapes of the inputs, reference).
FURTHER: Mapping[str, tuple[Callable[..., Any], list[Shape], Callable[..., Any]]] = {
    "concat of three": (
        lambda a, b, c: op.concat([a, b, c], axis=0),
        [(4, 40), (7, 40), (9, 40)],
        lambda a, b, c: np.concatenate([a, b, c]),
    ),
    "pad": (
        lambda x: op.nn.pad(x, [1, 2, 3, 0]),
        [(20, 45)],
        lambda x: np.pad(x, [(1, 2), (3, 0)]),
    ),
    "flip of rows": (lambda x: op.flip(x, 0), [(30, 40)], lambda x: x[::-1]),
    "flip of columns": (lambda x: op.flip(x, 1), [(30, 40)], lambda x: x[:, ::-1]),
    "sum over the outermost": (lambda x: op.sum(x, axis=0), [(60, 96)], lambda x: x.sum(0)),
    "sum of all": (op.sum, [(60, 96)], lambda x: x.sum()),
    "greatest of windows": (
        lambda x: op.nn.max_pool2d(x, (2, 2), (2, 2)),
        [(3, 4, 16, 16)],
        lambda x: _greatest_of_windows(x),
    ),
    "convolution": (
        lambda x, w: op.nn.conv2d(x, w, padding=1),
        [(2, 3, 9, 10), (4, 3, 3, 3)],
        lambda x, w: _convolution(x, w),
    ),
}


def _greatest_of_windows(x: Any) -> Any:
    h, v = x.shape[2] // 2, x.shape[3] // 2  # of odd sizes the last row or column is in none
    return x[:, :, : 2 * h, : 2 * v].reshape(*x.shape[:2], h, 2, v, 2).max((3, 5))


def _convolution(x: Any, w: Any) -> Any:
    wide = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    high, broad = w.shape[2:]
    h, v = (size + 1 - taken for size, taken in zip(wide.shape[2:], (high, broad), strict=True))
    if h < 0 or v < 0:
        raise ValueError("a window is larger than the image")
    found = np.zeros((x.shape[0], w.shape[0], h, v))
    for i in range(high):
        for j in range(broad):
            found += np.einsum("nchw,oc->nohw", wide[:, :, i : i + h, j : j + v], w[:, :, i, j])
    return found


def _of_corpus() -> dict[str, Callable[[], Example]]:
    """The first case of every operator of the corpus that is no recipe's example."""
    first = {name: case for case, (name, number) in recipes.CASES.items() if number == 0}
    return {
        name: partial(recipes.example, case)
        for name, case in first.items()
        if name not in ("softmax", "row sum", "transpose", "concat", "column mean", "mean of means")
    }


#: By name.
EXAMPLES: dict[str, Callable[[], Example]] = {
    **{recipe.hero: recipe.example for recipe in RECIPES},
    **_of_corpus(),
    **{
        name: partial(from_relax, build, shapes, reference)
        for name, (build, shapes, reference) in FURTHER.items()
    },
}
