# SPDX-License-Identifier: Apache-2.0
"""from_torch: operators that TVM's importer gets wrong or refuses, the form of the result, the errors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import tvm
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention as attention
from tvm import relax
from uir_tvm.errors import DynamicShapeError, FrontendError, UnsupportedOperatorError
from uir_tvm.frontend import export_torch, from_torch

from tests.frontend.stock import assert_close, operators, run


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Tensor) -> object:
        return self.function(*args)


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Fixed normal numbers; the shape is the seed."""
    generator = torch.Generator().manual_seed(hash(shape) % 2**31)
    return torch.randn(*shape, generator=generator, dtype=dtype)


QUERY, KEY, VALUE = normal(2, 4, 6, 8), normal(2, 4, 5, 8), normal(2, 4, 5, 3)
# Row 1 of batch 1 sees no key at all.
MASK = torch.rand(2, 1, 6, 5, generator=torch.Generator().manual_seed(0)) > 0.4
MASK[1, 0, 1] = False
TINY = torch.tensor([-0.5, -1e-7, 0.0, 1e-7, 1e-3, 3.0, 80.0, torch.inf])

GAPS: dict[str, tuple[Callable[..., object], tuple[Tensor, ...]]] = {
    "cumsum of bool": (lambda x: (x > 0).cumsum(-1), (normal(3, 5),)),
    "cumsum of int32": (lambda x: x.cumsum(0), (torch.arange(6, dtype=torch.int32).reshape(2, 3),)),
    "matmul of float64": (
        torch.matmul,
        (normal(3, 4, dtype=torch.float64), normal(4, 2, dtype=torch.float64)),
    ),
    "matmul of vectors": (torch.matmul, (normal(4), normal(4))),
    "bmm": (torch.bmm, (normal(2, 3, 4), normal(2, 4, 5))),
    "addmm with factors": (
        lambda b, x, y: torch.addmm(b, x, y, beta=0.5, alpha=2),
        (normal(5), normal(3, 4), normal(4, 5)),
    ),
    "linear without bias": (nn.functional.linear, (normal(2, 3, 4), normal(5, 4))),
    "embedding of int32": (
        lambda w, i: nn.functional.embedding(i, w),
        (normal(7, 3), torch.tensor([[0, 6], [2, 2]], dtype=torch.int32)),
    ),
    "any over an axis": (lambda x: (x > 1).any(1), (normal(3, 5),)),
    "all over everything": (lambda x: (x > -9).all(), (normal(3, 5),)),
    "amax over axes": (lambda x: x.amax((0, 2), keepdim=True), (normal(2, 3, 4),)),
    "amin over one axis": (lambda x: x.amin(-1), (normal(2, 3),)),
    "expm1 near zero": (torch.expm1, (TINY,)),
    "log1p near zero": (torch.log1p, (TINY,)),
    "chunk": (lambda x: x.chunk(3, -1), (normal(2, 7),)),
    "unbind": (lambda x: x.unbind(1), (normal(2, 3, 4),)),
    "last columns": (lambda x: x[:, -2:], (normal(2, 5),)),
    "last element": (lambda x: x[:, -1], (normal(2, 3, 4),)),
    "rows by negative indices": (lambda x: x[torch.tensor([-1, 0])], (normal(4, 3),)),
    "columns by negative indices": (lambda x, i: x[:, i], (normal(4, 3), torch.tensor([-1, 0, -3]))),
    "elements by pairs of indices": (lambda x, i: x[i, i - 1], (normal(4, 4), torch.tensor([-1, 0]))),
    "attention": (lambda q, k, v: attention(q, k, v), (QUERY, KEY, VALUE)),
    "attention with scale": (lambda q, k, v: attention(q, k, v, scale=0.3), (QUERY, KEY, VALUE)),
    "causal attention": (lambda q, k, v: attention(q, k, v, is_causal=True), (QUERY, KEY, VALUE)),
    "attention with a closed row": (lambda q, k, v, m: attention(q, k, v, m), (QUERY, KEY, VALUE, MASK)),
    "attention with a float mask": (
        lambda q, k, v, m: attention(q, k, v, m),
        (QUERY, KEY, VALUE, normal(6, 5)),
    ),
    "grouped attention": (
        lambda q, k, v: attention(q, k, v, enable_gqa=True),
        (QUERY, KEY[:, :2], VALUE[:, :2]),
    ),
    "arange and where": (lambda x: torch.where(torch.arange(5) < 3, x, -torch.inf), (normal(3, 5),)),
    "sum with a factor": (lambda x, y: torch.add(x, y, alpha=3), (normal(3, 5), normal(5))),
    "difference with a factor": (lambda x, y: torch.sub(x, y, alpha=3), (normal(3, 5), normal(5))),
    "reversed difference with a factor": (lambda x: torch.rsub(x, 2, alpha=3), (normal(3, 5),)),
    "integer over integer": (torch.div, (torch.arange(6), torch.arange(1, 7, dtype=torch.int32))),
    "number of rank 0": (torch.add, (normal(3).half(), torch.tensor(0.3))),
    "selu": (nn.functional.selu, (normal(3, 5),)),
    "copysign": (torch.copysign, (normal(4), torch.tensor([0.0, -0.0, -torch.inf, 2.0]))),
    "sorted with NaN": (lambda x: x.sort(1), (torch.tensor([[1.0, torch.nan, -torch.inf, 3.0]]),)),
    "average over a divisor": (
        lambda x: nn.functional.avg_pool2d(x, 3, 2, 1, divisor_override=2),
        (normal(1, 2, 7, 8),),
    ),
    "pool with indices": (
        lambda x: nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True),
        (normal(1, 2, 7, 8),),
    ),
    "nearest neighbours": (lambda x: nn.functional.interpolate(x, (13, 17)), (normal(1, 2, 10, 12),)),
    "bilinear by a factor": (
        lambda x: nn.functional.interpolate(x, scale_factor=1.7, mode="bilinear"),
        (normal(1, 2, 10, 12),),
    ),
    "bilinear, smoothed": (
        lambda x: nn.functional.interpolate(x, (4, 5), mode="bilinear", antialias=True),
        (normal(1, 2, 10, 12),),
    ),
    "elements added up": (
        lambda x, i, y: x.scatter_add(1, i, y),
        (normal(2, 3), torch.tensor([[0, 0, 2, 0], [1, 1, 1, 1]]), normal(2, 4)),
    ),
    "rows added up": (
        lambda x, i, y: x.index_put((i,), y, accumulate=True),
        (normal(3, 2), torch.tensor([0, -1, 0]), normal(3, 2)),
    ),
    "indices around a slice": (
        lambda x, i: x[i, :, i],
        (normal(3, 2, 4), torch.tensor([0, 2, 2, 1])),
    ),
    "random but unused": (lambda x: torch.nn.functional.dropout(x, 0.5, training=False), (normal(3, 5),)),
}


@pytest.mark.parametrize("name", GAPS)
def test_operator(name: str) -> None:
    """fp32 sums of at most 8 terms: 1e-6 of the largest value; float64 alike, for one limit."""
    function, inputs = GAPS[name]
    expected = function(*inputs)
    expected = list(expected) if isinstance(expected, tuple) else [expected]
    assert_close(run(from_torch(Function(function), inputs), inputs), expected, 1e-6)


def test_inputs_are_named_and_nested_outputs_flattened() -> None:
    class Nested(nn.Module):
        def forward(self, left: Tensor, right: Tensor) -> dict[str, object]:
            return {"sum": left + right, "pair": (left, [right * 2])}

    inputs = (normal(2, 3), normal(3))
    mod = from_torch(Nested(), inputs)
    assert [param.name for param in mod["main"].params] == ["left", "right"]
    assert_close(run(mod, inputs), [inputs[0] + inputs[1], inputs[0], inputs[1] * 2], 1e-7)


def test_inputs_fixed_by_export_are_no_parameters() -> None:
    class Optional(nn.Module):
        def forward(self, x: Tensor, mask: Tensor | None, factor: int) -> Tensor:
            return x * factor if mask is None else x * mask

    program = export_torch(Optional(), (normal(2, 3), None, 3))
    mod = from_torch(program)
    assert [param.name for param in mod["main"].params] == ["x"]
    assert_close(run(mod, (normal(2, 3),)), [normal(2, 3) * 3], 1e-7)


def test_weights_are_copies() -> None:
    linear = nn.Linear(3, 2)
    x = normal(4, 3)
    mod = from_torch(linear, (x,))
    expected = linear(x).detach().clone()
    with torch.no_grad():
        linear.weight.zero_()
    assert_close(run(mod, (x,)), [expected], 1e-6)


def test_constant_expressions_are_constants() -> None:
    """Masks and positions that depend on shapes alone leave no operator behind."""

    def function(x: Tensor) -> Tensor:
        length = x.shape[-1]
        causal = torch.ones(length, length, dtype=torch.bool).tril()
        position = torch.arange(length).cumsum(0).float().sin()
        return x.unsqueeze(-1) * torch.where(causal, position, 0.0)

    counts = operators(from_torch(Function(function), (normal(2, 5),)))
    assert counts == {"reshape": 1, "multiply": 1}


def test_training_batch_norm_is_exported_in_eval_mode() -> None:
    module = nn.BatchNorm2d(3)
    module.running_mean.fill_(0.5)
    x = normal(2, 3, 4, 4)
    mod = from_torch(module, (x,))
    assert module.training
    assert_close(run(mod, (x,)), [module.eval()(x).detach()], 1e-6)


def test_custom_converter_serves_an_unknown_operator() -> None:
    def exponential(node: torch.fx.Node, importer: object) -> relax.Var:
        return importer.block_builder.emit(relax.op.exp(importer.env[node.args[0]]))

    x = normal(3)
    with pytest.raises(UnsupportedOperatorError, match="digamma"):
        from_torch(Function(torch.digamma), (x,))
    mod = from_torch(Function(torch.digamma), (x,), custom_convert_map={"digamma.default": exponential})
    assert operators(mod) == {"exp": 1}


def test_unsupported_operator_names_operator_node_and_remedy() -> None:
    class Digamma(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.digamma(x) + 1

    with pytest.raises(UnsupportedOperatorError) as caught:
        from_torch(Digamma(), (normal(3),))
    assert "digamma.default" in caught.value.what
    assert "node digamma" in caught.value.where and "torch.digamma(x)" in caught.value.where
    assert "custom_convert_map" in caught.value.remedy


def test_mean_of_half_precision_is_rounded_once() -> None:
    """Of 2,000 numbers about 1, where each partial sum in float16 is rounded by up to 0.5."""
    x = 1 + normal(2000, dtype=torch.float32).half() / 8
    (found,) = run(from_torch(Function(torch.mean), (x,)), (x,))
    exact = float(x.double().mean())
    assert abs(float(found) - exact) <= 2**-11, (found, exact)


def test_empty_tensors_are_constants() -> None:
    """What is computed of no elements is known: nothing is left to compute."""

    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return x.exp(), x.sum(), x.mean(0), torch.cat((x, y))

    x, y = normal(0, 3), normal(2, 3)
    mod = from_torch(Function(function), (x, y))
    assert not operators(mod)


def test_random_operator_is_refused() -> None:
    class Noise(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.randn_like(x)

    with pytest.raises(UnsupportedOperatorError, match="random"):
        from_torch(Noise(), (normal(3),))


def test_dropout_in_training_is_refused() -> None:
    """An attention with dropout must not silently lose it."""
    with pytest.raises(UnsupportedOperatorError, match="dropout"):
        from_torch(Function(lambda q, k, v: attention(q, k, v, dropout_p=0.5)), (QUERY, KEY, VALUE))


def test_converter_of_the_wrong_shape_is_found() -> None:
    def wrong(node: torch.fx.Node, importer: object) -> relax.Var:
        return importer.block_builder.emit(relax.op.reshape(importer.env[node.args[0]], (6,)))

    with pytest.raises(FrontendError, match=r"makes .*6.* PyTorch makes .*2, 3"):
        from_torch(Function(torch.tanh), (normal(2, 3),), custom_convert_map={"tanh.default": wrong})


def test_failing_converter_is_named() -> None:
    def failing(node: torch.fx.Node, importer: object) -> relax.Var:
        raise KeyError("no such attribute")

    with pytest.raises(FrontendError, match="tanh.default.*no such attribute"):
        from_torch(Function(torch.tanh), (normal(2, 3),), custom_convert_map={"tanh.default": failing})


def test_symbols_are_handed_on_to_be_bound() -> None:
    batch = torch.export.Dim("batch", min=2, max=8)
    program = torch.export.export(Function(torch.tanh), (normal(4, 3),), dynamic_shapes=(({0: batch},),))
    with pytest.raises(DynamicShapeError, match="leaves batch open") as caught:
        from_torch(program)
    assert "--size batch=" in caught.value.remedy
    opened = caught.value.model.fixed({"batch": 5})
    main = opened.module(opened.signature.shapes({}))["main"]
    assert [int(size) for size in main.params[0].ty.shape] == [5, 3]


@pytest.mark.parametrize(
    ("argument", "inputs", "message"),
    [("model.pt", None, "not str"), (nn.Linear(3, 2), None, "without example inputs")],
)
def test_wrong_argument(argument: object, inputs: object, message: str) -> None:
    with pytest.raises(FrontendError, match=message):
        from_torch(argument, inputs)


def test_failing_export_is_typed() -> None:
    def branching(x: Tensor) -> Tensor:
        return x if x.sum() > 0 else -x

    with pytest.raises(FrontendError, match="torch.export cannot export"):
        from_torch(Function(branching), (normal(3),))


def test_a_result_without_tensors_is_refused() -> None:
    mod = from_torch(Function(lambda x: (x * 2, 7)), (normal(3),))
    assert operators(mod) == {"multiply": 1}
    with pytest.raises(FrontendError, match="no output of the model is a tensor"):
        from_torch(Function(lambda x: (None, 7)), (normal(3),))


def test_result_has_one_function_without_attributes() -> None:
    mod = from_torch(Function(torch.tanh), (normal(3),))
    assert [var.name_hint for var in mod.get_global_vars()] == ["main"]
    assert isinstance(mod, tvm.IRModule)
