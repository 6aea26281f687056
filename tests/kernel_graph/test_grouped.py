# SPDX-License-Identifier: Apache-2.0
"""Programs with open sizes, grouped once: in numbers they compute what TVM's own lowering computes."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax, tirx
from uir_tvm.errors import OpenSizeError
from uir_tvm.frontend.normalize import normalize, replace_main
from uir_tvm.kernel_graph import GroupedProgram, KernelGraph, assemble, build, group
from uir_tvm.sizes.open_symbols import LEAST, LEAST_OF_MANY, symbols_for
from uir_tvm.sizes.size_space import SizeSpace, reading_open_sizes

from .programs import arguments, assert_close, constant, module, run, run_graph

op = relax.op
TARGET = tvm.target.Target("llvm")
UNARY = (op.tanh, op.abs, op.negative, op.sigmoid, op.nn.relu)
BINARY = (op.add, op.multiply, op.maximum, op.subtract)


def symbols() -> tuple[Any, Any]:
    return tirx.Var("n", "int64"), tirx.Var("m", "int64")


def grouped(
    mod: tvm.IRModule, near: dict[str, int] | None = None, least: int = LEAST_OF_MANY
) -> tuple[SizeSpace, GroupedProgram]:
    space = SizeSpace(symbols_for({"n": (0, None), "m": (0, 64)}, {"n": "n", "m": "m"}, near, least=least))
    with reading_open_sizes(space):
        mod = normalize(mod)
    return space, group(mod, TARGET, space)


def bound(mod: tvm.IRModule, sizes: dict[str, int]) -> tvm.IRModule:
    """The module with numbers in the place of its symbols."""
    used = {str(variable.name) for variable in relax.analysis.defined_symbolic_vars(mod["main"])}
    numbers = {name: tirx.IntImm("int64", size) for name, size in sizes.items() if name in used}
    return replace_main(mod, mod["main"].bind_symbolic_vars(numbers))


def check(mod: tvm.IRModule, sizes: dict[str, int], near: dict[str, int] | None = None) -> KernelGraph | None:
    """Compare with TVM's own lowering at sizes; None where the conditions exclude them."""
    space, program = grouped(mod, near)
    if not space.admits()(**sizes):
        return None
    graph = assemble(program.at(space, sizes), TARGET)
    plain = bound(mod, sizes)
    specs = {p.name: (tuple(map(int, p.ty.shape.values)), str(p.ty.dtype)) for p in plain["main"].params}
    args = arguments(specs)
    assert_close(run_graph(graph, args), run(plain, args))
    return graph


@pytest.mark.parametrize("sizes", [{"n": 5, "m": 7}, {"n": 64, "m": 2}])
def test_what_readers_compute_again_is_right_for_all_sizes(sizes: dict[str, int]) -> None:
    """Two kernels compute a matrix of two vectors, one kernel the sums of siblings: priced at usual sizes."""
    n, m = symbols()

    def body(emit: Any, c: Any, r: Any) -> Any:
        value = emit(op.multiply(emit(op.exp(c)), r))
        both = emit(op.sum(value, axis=[1])), emit(op.sum(value, axis=[0]))
        return *both, emit(op.sum(r, axis=[1])), emit(op.sum(emit(op.multiply(r, r)), axis=[1]))

    mod = module({"c": ((n, 1), "float32"), "r": ((1, m), "float32")}, body)
    graph = check(mod, sizes)
    assert graph is not None
    assert {each.candidate for each in graph.fusion if each.merged} >= {"recomputed", "siblings"}


def test_readers_of_one_row_ask_nothing_of_the_number_of_rows() -> None:
    """Whether two kernels that read a row are siblings is not decided by what stands for the rows of one."""
    n, m = symbols()

    def body(emit: Any, x: Any, r: Any) -> Any:
        return emit(op.add(x, r)), emit(op.tanh(r))

    mod = module({"x": ((n, m), "float32"), "r": ((1, m), "float32")}, body)
    space, _ = grouped(mod, least=LEAST)
    assert all(space.admits()(n=rows, m=7) for rows in (1, 2, 64))


def test_an_attention_is_grouped_as_in_numbers() -> None:
    n, m = symbols()

    def body(emit: Any, x: Any) -> Any:
        y = emit(op.matmul(x, constant(16, 48, seed=1)))
        heads = emit(op.permute_dims(emit(op.reshape(y, (n, m, 3, 4, 4))), [2, 0, 3, 1, 4]))
        q, k, v = (
            emit(op.reshape(emit(op.strided_slice(heads, [0], [i], [i + 1])), (n, 4, m, 4))) for i in range(3)
        )
        scores = emit(op.nn.softmax(emit(op.matmul(q, emit(op.permute_dims(k, [0, 1, 3, 2]))))))
        joined = emit(op.permute_dims(emit(op.matmul(scores, v)), [0, 2, 1, 3]))
        z = emit(op.matmul(emit(op.reshape(joined, (n, m, 16))), constant(16, 16, seed=2)))
        return emit(op.nn.layer_norm(emit(op.add(x, z)), constant(16), constant(16, seed=3), axes=[-1]))

    mod = module({"x": ((n, m, 16), "float32")}, body)
    for sizes in ({"n": 2, "m": 3}, {"n": 5, "m": 7}):
        graph = check(mod, sizes)
        assert graph is not None
        plain = build(normalize(bound(mod, sizes)), TARGET)
        mine, theirs = graph.summary(), plain.summary()
        assert mine == theirs
    space, _ = grouped(mod)
    assert not [each for each in space.conditions if "mod" in str(each)]


def test_positions_are_a_slice_of_their_table() -> None:
    _, m = symbols()

    def body(emit: Any, x: Any) -> Any:
        places = emit(op.arange(0, m, 1, "int64"))
        table = emit(op.take(constant(64, 8), places, axis=0, mode="fast"))
        return emit(op.add(x, table))

    mod = module({"x": ((m, 8), "float32")}, body)
    graph = check(mod, {"n": 2, "m": 9})
    assert graph is not None and len(graph.nodes) == 1


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float16"])
def test_counting_up_to_an_open_size(dtype: str) -> None:
    n, _ = symbols()

    def body(emit: Any, x: Any) -> Any:
        return emit(op.arange(1, n + 1, 3, dtype)), emit(
            op.add(x, op.full((n,), relax.const(2.0), "float32"))
        )

    assert check(module({"x": ((n,), "float32")}, body), {"n": 10, "m": 2}) is not None


def test_what_is_decided_by_sizes_is_a_condition() -> None:
    n, m = symbols()

    def body(emit: Any, x: Any, y: Any) -> Any:
        return emit(op.add(x, emit(op.mean(y, axis=[0])))), emit(op.concat([x, y], axis=0))

    mod = module({"x": ((n, 4), "float32"), "y": ((m, 4), "float32")}, body)
    for sizes in ({"n": 2, "m": 2}, {"n": 3, "m": 11}):
        # where a representative's answer is another, a program for these sizes holds
        assert check(mod, sizes) is not None or check(mod, sizes, near=sizes) is not None


def test_an_operator_described_by_numbers_is_refused() -> None:
    n, _ = symbols()

    def body(emit: Any, x: Any) -> Any:
        return emit(op.call_pure_packed("uir.somewhere", x, ty_args=relax.TensorType((n,), "float32")))

    with pytest.raises(Exception, match="which is no Relax operator"):
        grouped(module({"x": ((n,), "float32")}, body))
    assert issubclass(OpenSizeError, ValueError)


def program(seed: int, n: Any, m: Any) -> Any:
    """A body of a dozen operators on two inputs (n, m, 8) and (n, m, 8)."""

    def rank(x: Any) -> int:
        return int(x.ty.ndim)

    def extents(x: Any) -> list[Any]:
        return list(x.ty.shape.values)

    def moved(emit: Any, rng: random.Random, x: Any) -> Any:
        shape = extents(x)
        choice = rng.randrange(4)
        if choice == 0:
            return emit(op.permute_dims(x, rng.sample(range(rank(x)), rank(x))))
        if choice == 1 and rank(x) > 1:
            axis = rng.randrange(rank(x) - 1)
            return emit(op.reshape(x, [*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]]))
        if choice == 2:
            numbers = [
                a for a, extent in enumerate(shape) if isinstance(extent, tirx.IntImm) and int(extent) > 2
            ]
            return emit(op.strided_slice(x, [numbers[0]], [1], [int(shape[numbers[0]])])) if numbers else x
        return emit(op.concat([x, x], axis=rng.randrange(rank(x))))

    def reduced(emit: Any, rng: random.Random, x: Any) -> Any:
        axis = rng.randrange(rank(x))
        last = extents(x)[-1]
        choice = rng.randrange(4)
        if choice == 0:
            return emit(rng.choice([op.mean, op.max])(x, axis=[axis], keepdims=True))
        if choice == 1 or not isinstance(last, tirx.IntImm):
            return emit(op.nn.softmax(x, axis=axis))
        gamma, beta = constant(int(last), seed=1), constant(int(last), seed=2)
        if choice == 2:
            return emit(op.nn.layer_norm(x, gamma, beta, axes=[-1], epsilon=0.1))
        weight = constant(int(last), 4, seed=rng.randrange(5), low=-0.5, high=0.5)
        return emit(op.matmul(x, weight))

    def body(emit: Any, x: Any, y: Any) -> Any:
        rng = random.Random(seed)
        values = [x, y]
        for _ in range(12):
            value = rng.choice(values)
            kind = rng.randrange(4)
            if kind == 0:
                values.append(moved(emit, rng, value))
            elif kind == 1:
                values.append(reduced(emit, rng, value))
            elif kind == 2:
                values.append(emit(rng.choice(UNARY)(value)))
            else:
                alike = [v for v in values if tvm_ffi.structural_equal(v.ty.shape, value.ty.shape)]
                values.append(emit(rng.choice(BINARY)(value, rng.choice(alike))))
        return tuple(values[-3:])

    return body


@pytest.mark.parametrize("seed", range(16))
def test_random_programs(seed: int) -> None:
    n, m = symbols()
    shape = (n, m, 8)
    mod = module({"x": (shape, "float32"), "y": (shape, "float32")}, program(seed, n, m))
    rng = np.random.default_rng(seed)
    sizes = {"n": int(rng.integers(2, 12)), "m": int(rng.integers(2, 12))}
    print("sizes", sizes)
    assert check(mod, sizes) is not None or check(mod, sizes, near=sizes) is not None
