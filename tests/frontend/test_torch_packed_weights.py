# SPDX-License-Identifier: Apache-2.0
"""Weights of few bits in programs of PyTorch become quantised tensors, and compute what PyTorch computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
import uir_tvm
from torch import Tensor
from tvm import relax
from uir_tvm.errors import QuantizationError
from uir_tvm.frontend import from_torch
from uir_tvm.frontend.torch_affine import DEQUANTIZE, read
from uir_tvm.frontend.torch_int4_layouts import codes_for_cpu, codes_of_tiles
from uir_tvm.quantized import Packing
from uir_tvm.quantized_calls import is_dequantize, packing_of

from tests.asked import asked

OPS = torch.ops.quantized_decomposed
ROWS, COLUMNS, GROUP = 32, 128, 32


class Product(torch.nn.Module):
    """A product with a weight that a function makes of buffers."""

    def __init__(self, weight: Callable[..., Tensor], *parts: Tensor | None) -> None:
        super().__init__()
        self.weight, self.names = weight, [f"part{at}" for at in range(len(parts))]
        for name, part in zip(self.names, parts, strict=True):
            self.register_buffer(name, part)

    def forward(self, x: Tensor) -> Tensor:
        return self.weight(x, *(getattr(self, name) for name in self.names))


def _linear(weight: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda x, *parts: torch.nn.functional.linear(x, weight(*parts))


def _codes(low: int, high: int, *shape: int) -> Tensor:
    return torch.randint(low, high + 1, shape, generator=torch.Generator().manual_seed(1), dtype=torch.int8)


def _scales(*shape: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(2)) * 0.05 + 0.01


def _int4(x: Tensor, packed: Tensor, sides: Tensor) -> Tensor:
    return torch.ops.aten._weight_int4pack_mm_for_cpu(x, packed, GROUP, sides)


def _cases() -> dict[str, tuple[Product, Packing]]:
    signed, wide = _codes(-8, 7, ROWS, COLUMNS), _codes(-128, 127, ROWS, COLUMNS)
    groups = _scales(ROWS, COLUMNS // GROUP)
    points = _codes(-3, 3, ROWS, COLUMNS // GROUP)
    codes = (signed.int() + 8).contiguous()
    packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 1)
    return {
        "per channel": (
            Product(
                _linear(lambda q, s: OPS.dequantize_per_channel(q, s, None, 0, -128, 127, torch.int8)),
                wide,
                _scales(ROWS),
            ),
            Packing(8, 128, 128),
        ),
        "per channel of a turned weight": (
            Product(
                lambda x, q, s, z: x @ OPS.dequantize_per_channel(q, s, z, 1, -128, 127, torch.int8),
                wide.T.contiguous(),
                _scales(ROWS),
                torch.zeros(ROWS, dtype=torch.int64),
            ),
            Packing(8, 128, 128),
        ),
        "per tensor": (
            Product(
                _linear(lambda q: OPS.dequantize_per_tensor(q, 0.02, 3, -128, 127, torch.int8)),
                wide,
            ),
            Packing(8, 128, 131),
        ),
        "per group of 4 bits": (
            Product(
                _linear(
                    lambda q, s: OPS.dequantize_per_channel_group(
                        q, s, None, -8, 7, torch.int8, GROUP, torch.float32
                    )
                ),
                signed,
                groups,
            ),
            Packing(4, GROUP, 8),
        ),
        "per group with zero points": (
            Product(
                _linear(
                    lambda q, s, z: OPS.dequantize_per_channel_group(
                        q, s, z, -8, 7, torch.int8, GROUP, torch.float32
                    )
                ),
                signed,
                groups,
                points,
            ),
            Packing(4, GROUP, 0, offsets=True),
        ),
        "int8pack": (
            Product(lambda x, q, s: torch.ops.aten._weight_int8pack_mm(x, q, s), wide, _scales(ROWS)),
            Packing(8, 128, 128),
        ),
        "int4pack": (
            Product(_int4, packed, torch.stack([groups.T, _scales(COLUMNS // GROUP, ROWS) - 0.03], 2)),
            Packing(4, GROUP, 8, offsets=True),
        ),
        "by hand": (
            Product(lambda x, q, s: torch.nn.functional.linear(x, q.to(x.dtype)) * s, wide, _scales(ROWS)),
            Packing(8, 128, 128),
        ),
    }


#: What `_cases` has.
CASES = (
    "per channel",
    "per channel of a turned weight",
    "per tensor",
    "per group of 4 bits",
    "int4pack",
    "int8pack",
    "per group with zero points",
    "by hand",
)


def _packings(program: Any) -> list[Packing]:
    found = []

    def visit(expr: relax.Expr) -> None:
        if is_dequantize(expr):
            found.append(packing_of(expr))

    relax.analysis.post_order_visit(from_torch(program)["main"], visit)
    return found


@pytest.mark.parametrize("case", asked(CASES[1::3], CASES))
def test_packed(case: str) -> None:
    """The weight is one quantised tensor, and the product is the library's of packed weights."""
    model, packing = _cases()[case]
    x = torch.randn(3, COLUMNS, generator=torch.Generator().manual_seed(3))
    program = torch.export.export(model.eval(), (x,))
    assert _packings(program) == [packing]
    exe = uir_tvm.compile(program, target="uir-cpu")
    assert (exe.report()["library"], exe.report()["kernels"]) == (1, 0)
    wanted = model(x).numpy()
    np.testing.assert_allclose(exe(x).numpy(), wanted, atol=1e-5 * np.abs(wanted).max())


def test_codes_that_something_else_reads_stay_integers() -> None:
    """A cast that is no weight of a product is computed as it was."""

    def forward(x: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
        weight = codes.float()
        return x @ weight, weight.sum(0)

    model = Product(forward, _codes(-9, 9, COLUMNS, ROWS))  # type: ignore[arg-type]
    assert not _packings(torch.export.export(model.eval(), (torch.randn(2, COLUMNS),)))


def test_weights_as_inputs_are_computed() -> None:
    """What is no constant is dequantised by operators, a value for each block."""
    model, _ = _cases()["per group with zero points"]
    x = torch.randn(3, COLUMNS, generator=torch.Generator().manual_seed(3))

    class Given(torch.nn.Module):
        def forward(self, x: Tensor, codes: Tensor, scales: Tensor, points: Tensor) -> Tensor:
            return model.weight(x, codes, scales, points)

    given = (x, model.part0, model.part1, model.part2)
    exe = uir_tvm.compile(torch.export.export(Given(), given), target="uir-cpu")
    wanted = Given()(*given).numpy()
    np.testing.assert_allclose(exe(*given).numpy(), wanted, atol=1e-5 * np.abs(wanted).max())


def test_quantised_activations() -> None:
    """PT2E's form: activations are rounded, as PyTorch rounds them, and weights stay packed."""

    def forward(x: Tensor, codes: Tensor, scales: Tensor) -> Tensor:
        x = OPS.quantize_per_tensor(x, 0.03, 5, -128, 127, torch.int8)
        x = OPS.dequantize_per_tensor(x, 0.03, 5, -128, 127, torch.int8)
        weight = OPS.dequantize_per_channel(codes, scales, None, 0, -128, 127, torch.int8)
        y = torch.nn.functional.linear(x, weight)
        return OPS.quantize_per_tensor(y, 0.5, 0, -128, 127, torch.int8)

    model = Product(forward, _codes(-128, 127, ROWS, COLUMNS), _scales(ROWS))
    x = torch.randn(3, COLUMNS, generator=torch.Generator().manual_seed(3))
    program = torch.export.export(model.eval(), (x,))
    assert _packings(program) == [Packing(8, 128, 128)]
    found = uir_tvm.compile(program, target="uir-cpu")(x).numpy().astype(int)
    assert np.abs(found - model(x).numpy()).max() <= 1  # sums in another order, before they are rounded


def test_layout_for_gpus() -> None:
    """Each code is where the source of PyTorch's packing kernel says, lane by lane."""
    rows, columns, inner = 16, 128, 4
    codes = np.random.default_rng(4).integers(0, 16, (rows, columns))
    packed = np.zeros((rows // 8, columns // (inner * 16), 32, inner // 2), np.uint32)
    for tile, outer, lane, word in np.ndindex(packed.shape):
        base = (outer * inner + 2 * word) * 16 + lane % 4 * 2
        columns_of = [base, base + 1, base + 8, base + 9, base + 16, base + 17, base + 24, base + 25]
        values = [int(codes[tile * 8 + lane // 4, column]) for column in columns_of]
        for shift, value in zip((0, 4, 8, 12, 16, 20, 24, 28), (0, 2, 4, 6, 1, 3, 5, 7), strict=True):
            packed[tile, outer, lane, word] |= np.uint32(values[value] << shift)
    found = codes_of_tiles(torch.from_numpy(packed.view(np.int32)), rows)
    np.testing.assert_array_equal(found, codes)


def test_bad_weights() -> None:
    """Groups that do not divide, codes that are out of range, layouts that are none."""
    x = torch.randn(2, COLUMNS)
    model = Product(
        _linear(
            lambda q, s: OPS.dequantize_per_channel_group(q, s, None, -8, 7, torch.int8, GROUP, torch.float32)
        ),
        _codes(-9, 9, ROWS, COLUMNS),
        _scales(ROWS, COLUMNS // GROUP),
    )
    with pytest.raises(QuantizationError, match="do not fit into 4 bits"):
        from_torch(torch.export.export(model.eval(), (x,)))
    graph = torch.fx.Graph()
    codes, scales = (graph.placeholder(name) for name in ("codes", "scales"))
    codes.meta["val"] = torch.empty(ROWS, COLUMNS)
    told = (codes, scales, None, -8, 7, torch.int8, 48, torch.float32)
    node = graph.call_function(OPS.dequantize_per_channel_group.default, told)
    with pytest.raises(QuantizationError, match=r"blocks of \(1, 48\) of a tensor of \(32, 128\)"):
        read(DEQUANTIZE, str(node.target), node)
    for layout in (codes_of_tiles, codes_for_cpu):
        with pytest.raises(QuantizationError, match="lies as"):
            layout(torch.zeros(3, 5, dtype=torch.int32), ROWS)


@pytest.mark.parametrize("name", asked(("int4",), ("int8", "int4", "int3", "dynamic")))
def test_torchao(name: str) -> None:
    """Modules that torchao has quantised: weights packed, results torchao's."""
    pytest.importorskip("torchao")
    from torchao import quantization as ao
    from torchao.quantization.granularity import PerGroup

    configs = {
        "int8": ao.Int8WeightOnlyConfig,
        "int4": lambda: ao.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)),
        "int3": lambda: ao.IntxWeightOnlyConfig(weight_dtype=torch.int3, granularity=PerGroup(64)),
        "dynamic": lambda: ao.Int8DynamicActivationIntxWeightConfig(
            weight_dtype=torch.int4, weight_granularity=PerGroup(32)
        ),
    }
    torch.manual_seed(6)
    model = torch.nn.Sequential(torch.nn.Linear(128, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32)).eval()
    ao.quantize_(model, configs[name]())
    x = torch.randn(3, 128)
    program = torch.export.export(model, (x,))
    assert [packing.bits for packing in _packings(program)] == [8 if name == "int8" else 4] * 2
    exe = uir_tvm.compile(program, target="uir-cpu")
    assert exe.report()["library"] == 2
    wanted = model(x).detach().numpy()
    # a rounded activation may be the neighbour where the layer before it sums in another order
    limit = 1e-2 if name == "dynamic" else 1e-5
    np.testing.assert_allclose(exe(x).numpy(), wanted, atol=limit * np.abs(wanted).max())
