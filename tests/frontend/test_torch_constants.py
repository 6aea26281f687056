# SPDX-License-Identifier: Apache-2.0
"""Weights of an imported program: one copy each, which later changes of the model do not reach."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import tvm
import tvm_ffi
from uir_tvm.frontend import from_torch, torch_constants
from uir_tvm.tensor_view import view_of


class Weights(torch.nn.Module):
    """Weights as they are, turned, twice, of other dtypes, and in memory at odd places."""

    def __init__(self) -> None:
        super().__init__()
        whole = torch.randn(2, 257 * 8 + 1)
        self.whole = torch.nn.Parameter(whole[:, 1:].contiguous())
        self.odd = torch.nn.Parameter(torch.randn(2 * 257 * 8 + 1)[1:].reshape(8, 514))
        self.register_buffer("flags", torch.arange(514) % 3 == 0)
        self.narrow = torch.nn.Parameter(torch.randn(514, dtype=torch.float16))
        self.wide = torch.nn.Parameter(torch.randn(514, dtype=torch.bfloat16))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """float32 (8,) -> three tensors."""
        y = torch.where(self.flags, x @ self.odd, 0.0) + self.narrow
        return y, self.odd.t() @ x, self.wide + y, self.odd, self.whole


def addresses(mod: tvm.IRModule) -> list[tuple[int, int]]:
    """Where the constants of a module lie, and how long they are."""
    found: list[tuple[int, int]] = []

    def visit(constant: tvm.ir.GenericConst) -> None:
        if hasattr(constant.value, "device"):
            array = np.from_dlpack(constant.value) if str(constant.value.dtype) != "bfloat16" else None
            found.append((array.ctypes.data, array.nbytes) if array is not None else (0, 0))

    tvm_ffi.structural_walk(mod["main"], (tvm.ir.GenericConst, visit))
    return found


def values(mod: tvm.IRModule) -> list[np.ndarray]:
    """Copies of the constants."""
    found: list[np.ndarray] = []
    visit = lambda one: found.append(np.array(view_of(one.value)))  # noqa: E731
    tvm_ffi.structural_walk(mod["main"], (tvm.ir.GenericConst, visit))
    return found


def test_constants_are_copies() -> None:
    torch.manual_seed(1)
    module = Weights().eval()
    mod = from_torch(torch.export.export(module, (torch.randn(8),)))
    before = values(mod)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(7.0)
    module.flags.fill_(True)
    for one, other in zip(before, values(mod), strict=True):
        np.testing.assert_array_equal(one, other)
    theirs = [(t.data_ptr(), t.nbytes) for t in (*module.parameters(), *module.buffers())]
    for at, size in addresses(mod):
        assert not any(at < start + length and start < at + size for start, length in theirs)


def test_what_was_folded_is_not_copied_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The turned weight is made once; only what is PyTorch's memory is copied at the end."""
    copied: list[tuple[int, ...]] = []
    tensor_of = torch_constants.tensor_of

    def watched(array: np.ndarray) -> tvm.runtime.Tensor:
        copied.append(array.shape)
        return tensor_of(array)

    monkeypatch.setattr(torch_constants, "tensor_of", watched)
    linear = torch.nn.Linear(96, 64, bias=False).eval()
    from_torch(torch.export.export(linear, (torch.randn(3, 96),)))
    assert not copied
    from_torch(torch.export.export(Weights().eval(), (torch.randn(8),)))
    assert (8, 514) in copied


def test_weights_at_odd_places_are_lent_while_they_are_imported() -> None:
    """TVM's importer would copy them, as files of weights have most at no multiple of 64 bytes."""
    value = torch.randn(33)[1:]
    assert value.data_ptr() % 64
    made = torch_constants._Importer._convert_pytorch_tensor_to_tvm(value)
    assert np.from_dlpack(made).ctypes.data == value.data_ptr()
    for other in (torch.randn(4, 6).t(), torch.ones(3, dtype=torch.bool), torch.eye(4).to_sparse()):
        made = torch_constants._Importer._convert_pytorch_tensor_to_tvm(other)
        dense = other.to_dense() if other.layout != torch.strided else other
        np.testing.assert_array_equal(made.numpy(), dense.numpy())
