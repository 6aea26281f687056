# SPDX-License-Identifier: Apache-2.0
"""Contractions, their epilogues, and the views that they read and write."""

from __future__ import annotations

import numpy as np
import pytest
from tvm import relax
from uir_tvm.kernel_graph.build import build_with
from uir_tvm.kernel_graph.program import Program
from uir_tvm.kernel_graph.scales import scale_weights
from uir_tvm.library.library_tables import NONE
from uir_tvm.target.ascend.library import TABLE as ASCEND
from uir_tvm.target.cpu.library import TABLE as CPU
from uir_tvm.target.cuda.library import TABLE as CUDA

from .programs import arguments, assert_close, check, constant, kinds, module, only, run, run_graph

op = relax.op


def test_linear_folds_the_weight_s_transpose_and_takes_its_epilogue() -> None:
    """x @ w.T + b, GELU, + residual is one call; the weight is packed, the batch becomes rows."""

    def body(emit, x, r):
        y = emit(op.matmul(x, emit(op.permute_dims(constant(12, 8, seed=3)))))
        y = emit(op.nn.gelu(emit(op.add(y, constant(12)))))
        return emit(op.add(r, y))

    attrs = only(check({"x": ((2, 5, 8), "float32"), "r": ((2, 5, 12), "float32")}, body))
    assert (attrs.batch, attrs.m, attrs.n, attrs.k) == ((), 10, 12, 8)
    assert (attrs.bias, attrs.activation, attrs.residual, attrs.packed) == (
        True,
        "gelu_erf",
        "after_activation",
        True,
    )


@pytest.mark.parametrize(
    "name, library",
    [("relu", "relu"), ("gelu", "gelu_erf"), ("gelu_tanh", "gelu_tanh"), ("silu", "silu")],
)
def test_activations_of_the_table_are_absorbed(name: str, library: str) -> None:
    def body(emit, x):
        return emit(getattr(op.nn, name)(emit(op.matmul(x, constant(8, 16)))))

    assert only(check({"x": ((3, 8), "float32")}, body)).activation == library


def test_residual_before_the_activation() -> None:
    def body(emit, x, r):
        return emit(op.nn.relu(emit(op.add(emit(op.matmul(x, constant(8, 16))), r))))

    attrs = only(check({"x": ((3, 8), "float32"), "r": ((3, 16), "float32")}, body))
    assert (attrs.activation, attrs.residual) == ("relu", "before_activation")


def test_swiglu_reads_the_halves_of_one_product() -> None:
    def body(emit, x):
        gate, up = (emit(op.matmul(x, constant(8, 12, seed=i))) for i in range(2))
        gated = emit(op.multiply(emit(op.multiply(gate, emit(op.sigmoid(gate)))), up))
        return emit(op.matmul(gated, constant(12, 8)))

    graph = check({"x": ((1, 5, 8), "float32")}, body)
    assert kinds(graph) == ["matmul", "elementwise", "matmul"]
    assert graph.library_ops[0].attrs.n == 24
    assert graph.custom_ops[0].ops == ("nn.silu", "multiply")


def test_convolution_takes_bias_residual_and_relu_once() -> None:
    """Both branches of a residual block could take the sum: one does, the other is its residual."""

    def body(emit, x):
        def conv(source, kernel, seed, **window):
            y = emit(op.nn.conv2d(source, constant(6, 4, kernel, kernel, seed=seed), **window))
            return emit(op.add(y, constant(1, 6, 1, 1, seed=seed + 1)))

        a = conv(x, 3, 1, strides=2, padding=1)
        b = conv(x, 1, 3, strides=2)
        return emit(op.nn.relu(emit(op.add(a, b))))

    graph = check({"x": ((1, 4, 9, 9), "float32")}, body)
    assert kinds(graph) == ["conv2d", "conv2d"]
    assert sorted(node.attrs.residual for node in graph.library_ops) == ["before_activation", "none"]


def test_what_the_library_does_not_take_stays_a_kernel() -> None:
    """Integers are no library's; the kernel is a contraction with its epilogue."""

    def body(emit, x, y):
        return emit(op.add(emit(op.matmul(x, y)), relax.const(3, "int32")))

    assert kinds(check({"x": ((3, 8), "int32"), "y": ((8, 5), "int32")}, body)) == ["contraction"]


def test_a_target_without_a_library() -> None:
    """Scales stay operators, and everything is a kernel of our own."""
    inputs = {"x": ((3, 8), "float32"), "y": ((8, 5), "float32")}
    mod = module(
        inputs, lambda emit, x, y: emit(op.multiply(emit(op.matmul(x, y)), relax.const(0.25, "float32")))
    )
    graph = build_with(mod, NONE)
    assert kinds(graph) == ["contraction"]
    args = arguments(inputs)
    assert_close(run_graph(graph, args), run(mod, args))


def test_vectors_and_broadcast_batches() -> None:
    for a, b in [((8,), (8, 5)), ((3, 8), (8,)), ((2, 1, 4, 8), (3, 8, 5)), ((4, 8), (2, 8, 5))]:
        graph = check({"a": (a, "float32"), "b": (b, "float32")}, lambda emit, a, b: emit(op.matmul(a, b)))
        assert kinds(graph) == ["matmul"], (a, b)


def test_combined_weights_keep_their_values() -> None:
    """A bias on one of two joined products only: the other gets zeros."""

    def body(emit, x):
        a = emit(op.add(emit(op.matmul(x, constant(8, 5, seed=1))), constant(5, seed=2)))
        b = emit(op.matmul(x, constant(8, 7, seed=3)))
        return emit(op.nn.softmax(a)), emit(op.nn.softmax(b))

    graph = check({"x": ((3, 8), "float32")}, body)
    assert kinds(graph) == ["matmul", "normalization", "normalization"]
    assert graph.library_ops[0].attrs.n == 12


def test_matrices_of_a_batch_are_not_combined() -> None:
    """A constant of two dimensions read as three matrices: every batch keeps its own."""

    def body(emit, x):
        def product(seed):
            return emit(op.matmul(x, emit(op.reshape(constant(12, 5, seed=seed), (3, 4, 5)))))

        return emit(op.nn.softmax(product(1))), emit(op.nn.softmax(product(2)))

    graph = check({"x": ((3, 2, 4), "float32")}, body)
    assert [node.attrs.n for node in graph.library_ops] == [5, 5]


def test_products_whose_results_were_reshaped_are_not_combined() -> None:
    """A bias that was added to (3, 2, 5) and not to the product's own (2, 3, 5): the rows are others."""

    def body(emit, x):
        def product(seed):
            y = emit(op.reshape(emit(op.matmul(x, constant(4, 5, seed=seed))), (3, 2, 5)))
            return emit(op.nn.softmax(emit(op.add(y, constant(5, seed=seed + 5)))))

        return product(1), product(2)

    check({"x": ((2, 3, 4), "float32")}, body)


@pytest.mark.parametrize(
    "other",
    [
        lambda emit, r: emit(op.permute_dims(r)),
        lambda emit, r: emit(op.strided_slice(r, [0], [0], [1])),
        lambda emit, r: emit(op.strided_slice(r, [1], [1], [2])),
        lambda emit, r: emit(op.squeeze(emit(op.strided_slice(r, [0], [2], [3])), axis=[0])),
    ],
)
def test_what_is_added_keeps_its_order(other) -> None:
    """What is transposed, one row, one column or a vector inside a tensor is not what a library adds."""

    def body(emit, x, r):
        return emit(op.add(emit(op.matmul(x, constant(8, 6))), other(emit, r)))

    check({"x": ((6, 8), "float32"), "r": ((6, 6), "float32")}, body)


def test_an_activation_of_a_part_of_a_product_is_a_kernel() -> None:
    """A second reader, a slice, a transposition, a cast: the activation does not read the product."""

    def shared(emit, x):
        y = emit(op.matmul(x, constant(8, 6)))
        return emit(op.nn.relu(y)), y

    def sliced(emit, x):
        return emit(op.nn.relu(emit(op.strided_slice(emit(op.matmul(x, constant(8, 6))), [1], [0], [3]))))

    def turned(emit, x):
        return emit(op.nn.gelu(emit(op.permute_dims(emit(op.matmul(x, constant(8, 6)))))))

    def cast(emit, x):
        return emit(op.nn.relu(emit(op.astype(emit(op.matmul(x, constant(8, 6))), "int32"))))

    for body in (shared, sliced, turned, cast):
        graph = check({"x": ((6, 8), "float32")}, body)
        (node,) = graph.library_ops
        assert node.attrs.activation == "none", body.__name__


@pytest.mark.parametrize("factor", [1e-40, 0.0, float("inf"), float("nan")])
def test_factors_that_a_library_cannot_hold_stay_operators(factor: float) -> None:
    """1 / 1e-40 is infinite in fp32; 0, infinity and NaN are no scale."""
    for name in ("multiply", "divide"):

        def body(emit, x, y, name=name):
            scaled = emit(getattr(op, name)(x, relax.const(factor, "float32")))
            return emit(op.matmul(scaled, y))

        graph = build_with(module({"x": ((3, 8), "float32"), "y": ((8, 5), "float32")}, body), CPU)
        (node,) = graph.library_ops
        assert node.attrs.alpha == 1.0
        assert [custom.ops for custom in graph.custom_ops] == [(name,)]


def test_factors_fold_until_their_product_leaves_the_range() -> None:
    """Two factors of 1e-30 are no factor of fp32 together: one stays."""

    def body(emit, x, y):
        small = relax.const(1e-30, "float32")
        return emit(op.matmul(emit(op.multiply(x, small)), emit(op.multiply(y, small))))

    graph = build_with(module({"x": ((3, 8), "float32"), "y": ((8, 5), "float32")}, body), CPU)
    (node,) = graph.library_ops
    assert node.attrs.alpha == pytest.approx(1e-30)
    assert [custom.ops for custom in graph.custom_ops] == [("multiply",)]


def test_a_factor_of_a_constant_is_in_the_constant() -> None:
    """Halving and 1 / 3 are of the weight when the model is compiled; the bias has no factor."""

    def body(emit, x):
        halved = emit(op.multiply(x, relax.const(0.5, "float32")))
        third = emit(op.divide(emit(op.matmul(halved, constant(8, 6))), relax.const(3.0, "float32")))
        return emit(op.add(third, constant(6, seed=1)))

    attrs = only(check({"x": ((3, 8), "float32")}, body))
    assert (attrs.alpha, attrs.bias) == (1.0, True)


@pytest.mark.parametrize(
    "alpha, dtype, readers", [(0.5, "float32", 2), (0.5, "float16", 1), (1e-8, "float32", 1)]
)
def test_a_factor_stays_beside_a_constant(alpha: float, dtype: str, readers: int) -> None:
    """One that is read elsewhere would be there twice; others could lose digits."""
    program = Program([], [], [], False, 0)
    x, w = program.fresh("x", (3, 4), dtype), program.constant(np.ones((4, 4), dtype))
    for _ in range(readers):
        attributes = {"alpha": alpha}
        program.ops.append(
            program.add_op("library.matmul", [x.view(), w.view()], (3, 4), dtype, attributes=attributes)
        )
    scale_weights(program)
    assert [op.attrs["alpha"] for op in program.ops] == [alpha] * readers
    assert all(op.operands[1].base is w for op in program.ops)


def cuda_graph_of(inputs, body):
    """The graph that CUDA's library gives; its operators are not run (they need a device)."""
    graph = build_with(module(inputs, body), CUDA)
    assert graph.fallbacks == ()
    return graph


def test_cuda_takes_what_cublaslt_fuses() -> None:
    """Residual before GELU by tanh is one product; GELU by erf and a later residual are kernels after it."""

    def fused(emit, x, r):
        y = emit(op.add(emit(op.matmul(x, constant(8, 16))), r))
        return emit(op.nn.gelu_tanh(y))

    shapes = {"x": ((3, 8), "float32"), "r": ((3, 16), "float32")}
    (node,) = cuda_graph_of(shapes, fused).library_ops
    assert (node.attrs.activation, node.attrs.residual) == ("gelu_tanh", "before_activation")
    # Weights stay as they are: nothing is packed for a GPU.
    assert not node.attrs.packed

    def split(emit, x, r):
        y = emit(op.nn.gelu(emit(op.matmul(x, constant(8, 16)))))
        return emit(op.add(y, r))

    graph = cuda_graph_of(shapes, split)
    assert kinds(graph) == ["matmul", "elementwise"]
    assert graph.library_ops[0].attrs.activation == "none"


def test_cuda_copies_a_matrix_without_a_unit_stride() -> None:
    """Every second column of x has strides (16, 2): cuBLASLt has no form for that, oneDNN has."""

    def body(emit, x):
        columns = emit(op.squeeze(emit(op.split(emit(op.reshape(x, (4, 8, 2))), 2, axis=2))[0], axis=[2]))
        return emit(op.matmul(columns, constant(8, 6)))

    inputs = {"x": ((4, 16), "float32")}
    assert kinds(check(inputs, body)) == ["matmul"]
    graph = cuda_graph_of(inputs, body)
    assert [node.kind for node in graph.library_ops] == ["matmul"] and len(graph.nodes) == 2
    assert graph.library_ops[0].attrs.a.strides == (8, 1)


def test_cuda_convolutions() -> None:
    """cuDNN's epilogue has ReLU only, and it pads opposite sides alike: other padding is a kernel's."""

    def conv(activation, padding):
        def body(emit, x):
            y = emit(op.nn.conv2d(x, constant(6, 4, 3, 3), padding=padding))
            return emit(activation(emit(op.add(y, constant(1, 6, 1, 1)))))

        return cuda_graph_of({"x": ((1, 4, 9, 9), "float32")}, body)

    relu = conv(op.nn.relu, (1, 1))
    assert kinds(relu) == ["conv2d"]
    attrs = relu.library_ops[0].attrs
    assert (attrs.bias, attrs.activation, attrs.packed) == (True, "relu", False)
    gelu = conv(op.nn.gelu_tanh, (1, 1))
    assert len(gelu.nodes) == 2 and gelu.library_ops[0].attrs.activation == "none"
    assert conv(op.nn.relu, (1, 1, 0, 0)).library_ops == ()


def test_ascend_takes_one_tensor_to_add_and_no_factor() -> None:
    """aclnnAddmm adds a bias or a residual, not both; factors and activations go to a kernel."""

    def body(emit, x, r):
        y = emit(op.add(emit(op.matmul(x, constant(8, 16))), constant(16, seed=1)))
        y = emit(op.nn.relu(y))
        scores = emit(op.multiply(emit(op.matmul(y, r)), relax.const(0.5, "float32")))
        return emit(op.add(emit(op.matmul(scores, constant(16, 16, seed=3))), r))

    graph = build_with(module({"x": ((16, 8), "float32"), "r": ((16, 16), "float32")}, body), ASCEND)
    first, second, third = (node.attrs for node in graph.library_ops)
    assert (first.bias, first.residual, first.activation) == (True, "none", "none")
    assert (second.bias, second.alpha) == (False, 1.0)
    assert (third.bias, third.residual) == (False, "before_activation")
    assert kinds(graph) == ["matmul", "elementwise", "matmul", "elementwise", "matmul"]


def test_ascend_convolutions_take_a_bias_alone() -> None:
    def body(emit, x, r):
        y = emit(op.nn.conv2d(x, constant(4, 3, 3, 3), padding=1))
        return emit(op.add(emit(op.add(y, constant(1, 4, 1, 1, seed=1))), r))

    graph = build_with(module({"x": ((1, 3, 8, 8), "float32"), "r": ((1, 4, 8, 8), "float32")}, body), ASCEND)
    (conv,) = (node.attrs for node in graph.library_ops)
    assert (conv.bias, conv.residual) == (True, "none")
    assert kinds(graph) == ["conv2d", "elementwise"]
