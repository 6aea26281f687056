# SPDX-License-Identifier: Apache-2.0
"""Random programs: whatever is merged, the results stay those of TVM's own lowering."""

from __future__ import annotations

import random
from math import prod
from typing import Any

import pytest
from tvm import relax
from uir_tvm.kernel_graph import build, fusion

from .programs import check, constant, module

op = relax.op

UNARY = (op.tanh, op.abs, op.negative, op.sigmoid, op.nn.relu)
BINARY = (op.add, op.multiply, op.maximum, op.subtract)


def shape_of(value: Any) -> tuple[int, ...]:
    return tuple(int(extent) for extent in value.ty.shape.values)


def view(emit: Any, rng: random.Random, x: Any) -> Any:
    """A random permutation, slice or reshape."""
    shape = shape_of(x)
    choice = rng.randrange(3)
    if choice == 0:
        return emit(op.permute_dims(x, rng.sample(range(len(shape)), len(shape))))
    if choice == 1:
        axis = rng.randrange(len(shape))
        begin = rng.randrange(shape[axis])
        return emit(op.strided_slice(x, [axis], [begin], [rng.randint(begin + 1, shape[axis])]))
    factor = rng.choice([f for f in (1, 2, 3, 4) if prod(shape) % f == 0])
    return emit(op.reshape(x, rng.choice([(prod(shape),), (factor, prod(shape) // factor)])))


def reduce(emit: Any, rng: random.Random, x: Any) -> Any:
    """A random reduction, normalisation or product."""
    shape = shape_of(x)
    choice = rng.randrange(4)
    axis = rng.randrange(len(shape))
    if choice == 0:
        keepdims = rng.random() < 0.7 or len(shape) == 1
        return emit(rng.choice([op.mean, op.max])(x, axis=[axis], keepdims=keepdims))
    if choice == 1:
        return emit(op.nn.softmax(x, axis=axis))
    if choice == 2:
        gamma, beta = constant(shape[-1], seed=1), constant(shape[-1], seed=2)
        return emit(op.nn.layer_norm(x, gamma, beta, axes=[-1], epsilon=0.1))
    if len(shape) == 1:
        return emit(op.tanh(x))
    return emit(op.matmul(x, constant(shape[-1], 4, seed=rng.randrange(5), low=-0.5, high=0.5)))


def program(seed: int, count: int = 12) -> Any:
    """A body for `programs.module` of a dozen operators on one input, with up to three outputs."""

    def body(emit: Any, x: Any) -> tuple[Any, ...]:
        rng = random.Random(seed)
        values = [x]
        for _ in range(count):
            x = rng.choice(values[-4:])
            kind = rng.randrange(6)
            if kind == 0:
                y = view(emit, rng, x)
            elif kind == 1:
                y = reduce(emit, rng, x)
            elif kind == 2:
                y = emit(rng.choice(UNARY)(x))
            elif kind == 3:
                shape = shape_of(x)
                y = emit(rng.choice(BINARY)(x, constant(*rng.choice([shape, shape[-1:], (1,)]), seed=3)))
            else:
                partners = [v for v in values if shape_of(v) == shape_of(x)]
                y = emit(rng.choice(BINARY)(x, rng.choice(partners)))
            values.append(y)
        return tuple(rng.sample(values[1:], 2)) + (values[-1],)

    return body


@pytest.mark.parametrize("seed", range(12))
def test_random_program(seed: int) -> None:
    """A dozen random operators, several outputs; the seed is the test's name."""
    check({"x": ((2, 6, 4), "float32")}, program(seed))


@pytest.mark.parametrize("seed", range(12, 24))
def test_candidates_that_are_trades_are_right_whatever_is_decided(seed: int) -> None:
    """The same results, whether all values with several readers are computed again and siblings joined."""
    check({"x": ((2, 6, 4), "float32")}, program(seed, 20), fusion="merged")


@pytest.mark.parametrize("seed", range(6))
def test_a_bounded_search_for_paths_merges_alike(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a search leaves out lies on no path: the kernels are those of a search through everything."""

    def names() -> list[str]:
        return [str(node) for node in build(module({"x": ((2, 6, 4), "float32")}, program(seed, 40))).nodes]

    bounded = names()
    monkeypatch.setattr(fusion.Fusion, "_bound", lambda self, start: -1)
    assert bounded == names()
