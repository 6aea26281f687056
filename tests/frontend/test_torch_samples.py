# SPDX-License-Identifier: Apache-2.0
"""Programs of which each distinct call is decomposed once are those that PyTorch decomposes as a whole."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import InputKind
from uir_tvm.frontend import torch_samples
from uir_tvm.frontend.torch_decompositions import decomposed, decomposition_table
from uir_tvm.frontend.torch_symbols import OpenProgram


class Layer(nn.Module):
    """An attention and a residual network, as transformers repeat them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.norm = nn.Linear(16, 48), nn.Linear(16, 16), nn.LayerNorm(16)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """float32 (batch, length, 16) -> the same."""
        split = self.first(x).reshape(x.shape[0], x.shape[1], 3, 2, 8).permute(2, 0, 3, 1, 4)
        made = nn.functional.scaled_dot_product_attention(split[0], split[1], split[2], mask)
        whole = made.transpose(1, 2).reshape(x.shape[0], x.shape[1], 16)
        return self.norm(x + nn.functional.gelu(self.second(whole), approximate="tanh"))


class Layers(nn.Module):
    """Equal layers, one after the other."""

    def __init__(self, count: int = 3) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(count))

    def forward(self, x: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
        """float32 (batch, length, 16), bool (batch, length) -> the same, and its mean."""
        mask = keep[:, None, None, :].expand(-1, -1, x.shape[1], -1)
        for layer in self.layers:
            x = layer(x, mask)
        return x, x.mean(1)


class Writes(nn.Module):
    """Adds to a buffer again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        """float32 (4,) -> (4,)."""
        for _ in range(6):
            self.total.add_(x.exp())
        return self.total * x


def exported(module: nn.Module, is_open: bool) -> ExportedProgram:
    """A program of `Layers`."""
    batch, length = Dim("batch", max=8), Dim("length", max=64)
    axes = {0: batch, 1: length}
    inputs = torch.randn(3, 5, 16), torch.ones(3, 5, dtype=torch.bool)
    return torch.export.export(module.eval(), inputs, dynamic_shapes=(axes, axes) if is_open else None)


def text(program: ExportedProgram) -> list[str]:
    """Every node: operator, operands by their place, shape."""
    places: dict[fx.Node, str] = {}
    lines = []
    for node in program.graph.nodes:
        args = fx.map_arg((node.args, node.kwargs), lambda each: places[each])
        places[node] = f"%{len(places)}"
        value: Any = "" if node.op == "output" else node.meta.get("val")
        name = node.target if node.op == "placeholder" else ""
        lines.append(f"{node.op} {name} {node.target if node.op == 'call_function' else ''} {args} {value}")
    return lines


@pytest.mark.parametrize("is_open", [False, True], ids=["static", "open"])
def test_the_program_is_the_one_that_pytorch_makes_of_the_whole(is_open: bool) -> None:
    program = exported(Layers(), is_open)
    before = text(program)
    seen: list[int] = []

    def by_torch(given: ExportedProgram) -> ExportedProgram:
        seen.append(sum(node.op == "call_function" for node in given.graph.nodes))
        return given.run_decompositions(decomposition_table())

    made = torch_samples.decomposed_by_samples(program, by_torch)
    assert made is not None and len(seen) == 1
    assert seen[0] < sum(node.op == "call_function" for node in program.graph.nodes)
    whole = program.run_decompositions(decomposition_table())
    assert text(made) == text(whole)
    assert text(program) == before
    names = [spec.arg.name for spec in made.graph_signature.output_specs]
    assert names == [node.name for node in made.graph.output_node().args[0]]


def test_the_program_computes_what_the_module_does() -> None:
    torch.manual_seed(4)
    module = Layers()
    made = decomposed(exported(module, True), {})
    x, keep = torch.randn(2, 7, 16), torch.ones(2, 7, dtype=torch.bool)
    torch.testing.assert_close(made.module()(x, keep), module(x, keep))


def test_more_layers_are_no_more_to_decompose() -> None:
    """The sample of twelve layers is that of three."""
    sizes = []
    for count in (3, 12):
        program = exported(Layers(count), True)

        def by_torch(given: ExportedProgram) -> ExportedProgram:
            sizes.append(len(given.graph.nodes))
            return given.run_decompositions(decomposition_table())

        assert torch_samples.decomposed_by_samples(program, by_torch) is not None
    assert sizes[0] == sizes[1]


def test_what_pytorch_decides_by_sizes_is_found_as_of_the_whole() -> None:
    """Decompositions that ask about a size decide for the example's: each becomes a condition."""

    class Asks(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            for _ in range(4):
                x = torch.ops.aten._adaptive_avg_pool2d(x.relu(), [x.shape[2], x.shape[3]])
            return x

    height = Dim("height", min=4, max=64)
    program = torch.export.export(Asks(), (torch.randn(1, 2, 8, 8),), dynamic_shapes=({2: height},))
    opened = OpenProgram(program)
    with opened.decided() as whole:
        program.run_decompositions(decomposition_table())
    with opened.decided() as sampled:
        decomposed(program, {})
    assert set(map(str, sampled)) == set(map(str, whole))


def test_programs_that_write_are_decomposed_as_a_whole() -> None:
    program = torch.export.export(Writes(), (torch.randn(4),))
    assert torch_samples.decomposed_by_samples(program, lambda given: given) is None
    kinds = [spec.kind for spec in decomposed(program, {}).graph_signature.input_specs]
    assert InputKind.BUFFER in kinds


def test_what_fails_on_a_sample_is_left_to_the_whole() -> None:
    program = exported(Layers(), False)
    assert torch_samples.decomposed_by_samples(program, lambda given: given.nothing()) is None
