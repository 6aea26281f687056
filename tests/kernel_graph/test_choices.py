# SPDX-License-Identifier: Apache-2.0
"""Sites of a graph: each has a name, options that change the graph and nothing that it computes."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
import tvm
from tvm import relax
from uir_tvm import kernel_graph, threads
from uir_tvm.frontend import from_torch
from uir_tvm.kernel_graph import Choices, KernelGraph, choosing
from uir_tvm.target import registry


class Layer(torch.nn.Module):
    """Three products of one matrix, a residual, an activation, a normalisation."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.parts = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(3))
        self.up, self.norm = torch.nn.Linear(32, 64), torch.nn.LayerNorm(32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Rows of 32."""
        q, k, v = (part(x) for part in self.parts)
        x = self.norm(x + (q @ k.transpose(-1, -2)) @ v)
        return torch.nn.functional.gelu(self.up(x))


X = torch.randn(8, 32, generator=torch.Generator().manual_seed(2))


@functools.cache
def layer() -> tvm.IRModule:
    """The layer, read once."""
    return from_torch(torch.export.export(Layer().eval(), (X,)))


def graph(chosen: dict[str, str] | None = None) -> tuple[KernelGraph, Choices]:
    """The layer's graph for a CPU, and what was asked while it was built."""
    threads.before_compiling()
    with choosing(Choices(chosen)) as choices:
        return kernel_graph.build(layer(), registry.resolve("uir-cpu").target), choices


def computed(made: KernelGraph) -> np.ndarray:
    target = registry.resolve("uir-cpu").target
    lowered = kernel_graph.vm_passes(target)(kernel_graph.to_relax(made))
    machine = relax.VirtualMachine(relax.build(lowered, target, relax_pipeline=None), tvm.cpu())
    return np.array(machine["main"](tvm.runtime.tensor(X.numpy())).numpy())


def test_every_option_changes_the_graph_and_not_its_result() -> None:
    """Of every site; without choices the graph is as ever."""
    plain, asked = graph()
    wanted = Layer().eval()(X).detach().numpy()
    kinds = {option.rstrip("0123456789") for options in asked.sites.values() for option in options}
    assert {"unpacked", "own kernel", "plain", "apart"} <= kinds
    for site, options in asked.sites.items():
        for option in options:
            made, _ = graph({site: option})
            np.testing.assert_allclose(
                computed(made), wanted, rtol=2e-4, atol=2e-5, err_msg=f"{site}: {option}"
            )
            if "of one matrix" in site:
                assert len(made.library_ops) == len(plain.library_ops) + 2
    unknown, _ = graph({next(iter(asked.sites)): "of another version", "a site of another model": "apart"})
    assert unknown.to_json() == plain.to_json()


@pytest.mark.parametrize("option", ["unpacked", "own kernel", "plain"])
def test_how_a_product_runs(option: str) -> None:
    _, asked = graph()
    site = next(name for name in asked.sites if name.startswith("matmul 8x64 of 32"))
    made, _ = graph({site: option})
    found = [node for node in made.library_ops if node.attrs.n == 64]
    if option == "own kernel":
        assert not found and any("matmul" in node.ops for node in made.custom_ops)
    else:
        (node,) = found
        assert (node.attrs.packed, node.attrs.plan) == (
            option != "unpacked",
            "plain" if option == "plain" else "best",
        )
