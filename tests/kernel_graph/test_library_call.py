# SPDX-License-Identifier: Apache-2.0
"""Library operators with open sizes: the calls of the same program in numbers, and one weight for all."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax, tirx
from uir_tvm.frontend.normalize import normalize
from uir_tvm.frontend.recurrence import FUNCTION as RECURRENT
from uir_tvm.frontend.recurrence import Recurrence
from uir_tvm.kernel_graph import GroupedProgram, assemble, build, group
from uir_tvm.kernel_graph.library_call import library_call
from uir_tvm.kernel_graph.op_kinds import RECURRENCE
from uir_tvm.kernel_graph.program import Value
from uir_tvm.kernel_graph.recurrence import recurrence_call
from uir_tvm.library.attrs import MatmulAttrs
from uir_tvm.library.open_attrs import OpenAttrs
from uir_tvm.library.sized import FUNCTION, sized_texts
from uir_tvm.sizes.open_size import at
from uir_tvm.sizes.open_symbols import symbols_for
from uir_tvm.sizes.size_space import SizeSpace, reading_open_sizes

from .programs import constant, module

op = relax.op
TARGET = tvm.target.Target("llvm")
SIZES = ({"n": 2, "m": 3}, {"n": 5, "m": 40}, {"n": 3, "m": 17})


def dense(emit: Any, x: Any, n: Any, m: Any) -> Any:
    """A weight whose transpose is a constant, a bias, an activation, a residual."""
    weight = emit(op.permute_dims(constant(16, 16, seed=1)))
    y = emit(op.nn.relu(emit(op.add(emit(op.matmul(x, weight)), constant(16, seed=2)))))
    return emit(op.add(y, x))


def attention(emit: Any, x: Any, n: Any, m: Any) -> Any:
    """Products of one matrix become one; heads are read where they lie."""
    q, k, v = (
        emit(
            op.permute_dims(
                emit(op.reshape(emit(op.matmul(x, constant(16, 16, seed=i))), (n, m, 4, 4))), [0, 2, 1, 3]
            )
        )
        for i in range(3)
    )
    scores = emit(op.nn.softmax(emit(op.matmul(q, emit(op.permute_dims(k, [0, 1, 3, 2]))))))
    return emit(op.reshape(emit(op.permute_dims(emit(op.matmul(scores, v)), [0, 2, 1, 3])), (n, m, 16)))


def convolution(emit: Any, x: Any, n: Any, m: Any) -> Any:
    """Open batch and columns, and a bias for each channel."""
    image = emit(op.reshape(x, (n, 4, 4, m)))
    y = emit(op.nn.conv2d(image, constant(8, 4, 3, 3, seed=3), padding=(1, 1, 1, 1)))
    return emit(op.add(y, constant(1, 8, 1, 1, seed=4)))


def recurrence(emit: Any, x: Any, n: Any, m: Any) -> Any:
    """An LSTM of m steps and batch n, from a state of ones."""
    state = emit(op.ones((n, 4), "float32"))
    found = relax.op.call_pure_packed(
        RECURRENT,
        emit(op.permute_dims(x, [1, 0, 2])),
        emit(op.permute_dims(constant(16, 4, seed=5))),
        state,
        state,
        tvm.ir.StringImm(Recurrence("lstm").to_json()),
        ty_args=relax.TupleType(
            [relax.TensorType((m, n, 4), "float32"), relax.TensorType((n, 4), "float32")]
        ),
    )
    both = emit(found)
    return emit(relax.TupleGetItem(both, 0)), emit(relax.TupleGetItem(both, 1))


def grouped(body: Any) -> tuple[SizeSpace, GroupedProgram]:
    n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")
    mod = module({"x": ((n, m, 16), "float32")}, lambda emit, x: body(emit, x, n, m))
    space = SizeSpace(symbols_for({"n": (0, None), "m": (0, 64)}, {"n": "n", "m": "m"}))
    with reading_open_sizes(space):
        mod = normalize(mod)
    return space, group(mod, TARGET, space)


def operand(value: Value, sizes: dict[str, int], seed: int) -> Any:
    """A constant, or random elements in its shape."""
    if value.constant is not None:
        return value.constant.value
    shape = [at(size, sizes) for size in value.shape]
    return tvm.runtime.tensor(np.random.default_rng(seed).standard_normal(shape).astype(value.dtype))


def run(function: str, attributes: OpenAttrs, sizes: dict[str, int] | None, tensors: Any, outs: Any) -> Any:
    """The results of a call, with sizes through the sized one."""
    results = [tvm.runtime.tensor(np.zeros(shape, "float32")) for shape in outs]
    if sizes is None:
        tvm_ffi.get_global_func(function)(*tensors, attributes.to_json(), *results)
    else:
        numbers = tvm_ffi.Shape([sizes[name] for name in attributes.symbols])
        tvm_ffi.get_global_func(FUNCTION)(*tensors, *sized_texts(function, attributes), numbers, *results)
    return [result.numpy() for result in results]


@pytest.mark.parametrize("body", [dense, attention, convolution, recurrence])
def test_calls_with_open_sizes_are_those_in_numbers(body: Any) -> None:
    """The same attributes and results; the layout of a packed weight may be another."""
    space, program = grouped(body)
    ops = [each.ops[0] for each in program.groups if each.hero == "library"]
    with reading_open_sizes(space):
        calls = [
            (recurrence_call if each.name == RECURRENCE else library_call)(
                program.program, each, program.table
            )
            for each in ops
        ]
    for sizes in SIZES:
        graph = assemble(program.at(space, sizes), TARGET)
        assert len(calls) == len(graph.library_ops) > 0
        for each, (function, attributes, operands), node in zip(ops, calls, graph.library_ops, strict=True):
            assert attributes.is_open and set(attributes.symbols) <= {"n", "m"}
            numbers = attributes.at(sizes)
            if isinstance(numbers, MatmulAttrs):
                numbers = attrs.evolve(numbers, packed_for=0)
            assert numbers == node.attrs
            tensors = [operand(value, sizes, seed) for seed, value in enumerate(operands)]
            outs = [[at(size, sizes) for size in result.shape] for result in each.results]
            fixed = [
                tensor.constant.value if tensor.constant is not None else given
                for tensor, given in zip(node.inputs, tensors, strict=True)
            ]
            got = run(function, attributes, sizes, tensors, outs)
            for one, other in zip(got, run(function, node.attrs, None, fixed, outs), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_a_weight_is_packed_once_for_all_sizes() -> None:
    space, program = grouped(dense)
    (each,) = [found.ops[0] for found in program.groups if found.hero == "library"]
    with reading_open_sizes(space):
        _, attributes, operands = library_call(program.program, each, program.table)
    assert attributes.packed and attributes.packed_for > 0
    assert operands[1].dtype == "uint8" and operands[1].constant is not None
    assert not any(str(condition).startswith(("n ==", "m ==")) for condition in space.conditions)


@pytest.mark.parametrize(("asked", "plan"), [("fast", "best"), ("direct", "direct")])
def test_convolutions_are_added_up_as_asked(asked: str, plan: str) -> None:
    """The call says so, in numbers and with open sizes; a library that chooses by itself is told nothing."""
    mod = module({"x": ((2, 5, 16), "float32")}, lambda emit, x: convolution(emit, x, 2, 5))
    (node,) = build(mod, TARGET, convolution=asked).library_ops
    assert node.attrs.plan == plan
    (node,) = build(mod, tvm.target.Target("cuda"), convolution=asked).library_ops
    assert node.attrs.plan == "best"
    _, program = grouped(convolution)
    program = attrs.evolve(program, table=program.table.adding(asked))
    (each,) = [found.ops[0] for found in program.groups if found.hero == "library"]
    assert library_call(program.program, each, program.table)[1].plan == plan
