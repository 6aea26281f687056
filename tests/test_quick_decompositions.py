# SPDX-License-Identifier: Apache-2.0
"""Operators have the kernels that PyTorch would give them, and afterwards those that they had."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._C import DispatchKey
from uir_tvm.frontend.torch_decompositions import decomposition_table

from . import quick_decompositions
from .quick_decompositions import FUNCTION, MODULE, overriding


def _by_pytorch() -> Any:
    """PyTorch's own function, from a copy of its module."""
    spec = importlib.util.find_spec(MODULE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, FUNCTION)


def _what(kernel: Any) -> Any:
    """What a kernel does: its code, and of a partial its function's code and what that is given."""
    if hasattr(kernel, "func"):
        return kernel.func.__code__, {name: str(value) for name, value in kernel.keywords.items()}
    return getattr(kernel, "__code__", kernel)


def _given(override: Any, table: dict[Any, Callable[..., Any]]) -> dict[str, dict[DispatchKey, Any]]:
    with override(table):
        return {str(each): {key: _what(k) for key, k in each.py_kernels.items()} for each in table}


def test_kernels_are_those_of_pytorch() -> None:
    """Of every operator, key by key; one that has a kernel for a key keeps it."""
    module = importlib.import_module(MODULE)
    table, _ = module._split_decomp_table_to_cia_and_python_decomp(dict(decomposition_table().items()))
    assert len(table) > 100
    held = [dict(each.py_kernels) for each in table]
    assert any(held)
    assert _given(overriding, table) == _given(_by_pytorch(), table)
    assert [dict(each.py_kernels) for each in table] == held


def test_all_is_as_it_was_after_an_error() -> None:
    operator = torch.ops.aten.softmax.int
    rules = importlib.import_module("torch._subclasses.fake_impls").op_implementations_dict
    held, ruled = dict(operator.py_kernels), set(rules)
    with pytest.raises(KeyError), overriding({operator: abs}):
        assert operator.py_kernels[DispatchKey.CompositeImplicitAutograd] is abs
        assert operator in rules
        raise KeyError
    assert dict(operator.py_kernels) == held and set(rules) == ruled


def test_the_suite_decomposes_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same program, node by node."""
    module = importlib.import_module(MODULE)
    assert getattr(module, FUNCTION) is quick_decompositions.overriding

    def layer(x: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None])[0]
        return torch.softmax(torch.nn.functional.silu(y), -1).matmul(x.T).any(-1)

    class Layer(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return layer(x)

    program = torch.export.export(Layer(), (torch.randn(4, 8),))
    found = str(program.run_decompositions(decomposition_table()).graph)
    monkeypatch.setattr(module, FUNCTION, _by_pytorch())
    assert str(program.run_decompositions(decomposition_table()).graph) == found
    assert "softmax.int" not in found
