# SPDX-License-Identifier: Apache-2.0
"""Constant operands of products have the contracted side innermost, where a target asks for it."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from tvm import relax
from uir_tvm.kernel_graph import KernelGraph
from uir_tvm.kernel_graph.build import build_with
from uir_tvm.library.library_tables import LIBRARIES, NONE
from uir_tvm.target.bang.library import TABLE as BANG

from .programs import arguments, assert_close, constant, module, run, run_graph

op = relax.op
TURNING = attrs.evolve(NONE, contracted_innermost=True)
X = {"x": ((6, 16), "float32")}


def built(body: Any, inputs: Any = None) -> KernelGraph:
    """The graph of a target that asks for it, whose results are those of TVM's own lowering."""
    inputs = inputs or X
    mod = module(inputs, body)
    graph = build_with(mod, TURNING)
    args = arguments(inputs)
    assert_close(run_graph(graph, args), run(mod, args))
    return graph


def weights(graph: KernelGraph) -> list[np.ndarray]:
    """The constants that its kernels read."""
    return [t.constant.value.numpy() for node in graph.nodes for t in node.inputs if t.constant is not None]


def test_the_weight_of_a_product_is_turned() -> None:
    (found,) = weights(built(lambda emit, x: emit(op.matmul(x, constant(16, 24)))))
    np.testing.assert_array_equal(found, constant(16, 24).value.numpy().T)


def test_a_weight_that_lies_so_stays() -> None:
    """x @ w.T: the front end's fold turns it, and it is turned back."""
    (found,) = weights(built(lambda emit, x: emit(op.matmul(x, emit(op.permute_dims(constant(24, 16)))))))
    np.testing.assert_array_equal(found, constant(24, 16).value.numpy())


def test_a_constant_left_operand_and_batches() -> None:
    def body(emit, x):
        left = emit(op.matmul(emit(op.permute_dims(constant(16, 5, seed=1))), emit(op.permute_dims(x))))
        return left, emit(op.matmul(x, constant(3, 16, 8, seed=2)))

    shapes = [array.shape for array in weights(built(body))]
    assert shapes == [(5, 16), (3, 8, 16)]


def test_einsum_puts_the_summed_letters_last() -> None:
    def body(emit, x):
        return emit(op.einsum([x, constant(16, 4, 8)], "bk,khd->bhd"))

    (found,) = weights(built(body))
    np.testing.assert_array_equal(found, constant(16, 4, 8).value.numpy().transpose(1, 2, 0))


@pytest.mark.parametrize("layout", ["OIHW", "HWIO", "OHWI"])
def test_windows_of_a_convolution_have_the_input_s_channels_innermost(layout: str) -> None:
    sizes = {"O": 6, "I": 4, "H": 3, "W": 2}
    weight = constant(*(sizes[letter] for letter in layout))

    def body(emit, x):
        return emit(op.nn.conv2d(x, weight, padding=1, data_layout="NHWC", kernel_layout=layout))

    (found,) = weights(built(body, {"x": ((1, 7, 8, 4), "float32")}))
    order = "OHWI" if layout == "OHWI" else "HWOI"
    wanted = weight.value.numpy().transpose([layout.index(letter) for letter in order])
    np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)


def test_products_of_one_weight_share_it_and_other_readers_keep_theirs() -> None:
    weight = constant(16, 16)

    def taken(emit, x, index):
        y = emit(op.matmul(emit(op.matmul(x, weight)), weight))
        return emit(op.take(weight, index, axis=0)), y

    inputs = {**X, "index": ((2,), "int64")}
    graph = build_with(module(inputs, taken), TURNING)
    read = [t for node in graph.nodes for t in node.inputs if t.constant is not None]
    assert len(read) == 3 and len(set(read)) == 2
    args = arguments(inputs)
    assert_close(run_graph(graph, args), run(module(inputs, taken), args))


def test_numbers_that_are_no_weights_stay() -> None:
    """A vector, integers, and a weight that the model is given."""
    inputs = {**X, "i": ((6, 16), "int32"), "w": ((16, 24), "float32")}

    def body(emit, x, i, w):
        whole = relax.const(np.arange(16 * 24, dtype="int32").reshape(16, 24))
        return emit(op.matmul(x, constant(16))), emit(op.matmul(i, whole)), emit(op.matmul(x, w))

    found = weights(built(body, inputs))
    assert sorted(array.shape for array in found) == [(16,), (16, 24)]


def test_only_targets_that_ask_for_it() -> None:
    assert [key for key, table in LIBRARIES.items() if table.contracted_innermost] == ["bang"]
    assert BANG.contracted_innermost
    (found,) = weights(build_with(module(X, lambda emit, x: emit(op.matmul(x, constant(16, 24)))), NONE))
    assert found.shape == (16, 24)
