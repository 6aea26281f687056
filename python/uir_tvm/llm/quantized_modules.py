# SPDX-License-Identifier: Apache-2.0
"""Modules of PyTorch whose weight is a quantised tensor, and the packing of a float one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from ..errors import ModelFormatError
from ..frontend.torch_quantized import dequantize
from ..quantized import Packing, pack
from ..quantized_weight import QuantizedWeight

#: Values that share a scale, where a float weight is packed.
GROUP = 32


class _Quantized(torch.nn.Module):
    """The parts of a quantised weight as buffers."""

    packed: Tensor
    scales: Tensor
    offsets: Tensor | None

    def __init__(self, packing: Packing, parts: Mapping[str, Tensor | None]) -> None:
        super().__init__()
        self.packing = packing
        for name, part in parts.items():
            self.register_buffer(name, part)

    @classmethod
    def of(cls, weight: QuantizedWeight) -> Self:
        """A module with this weight."""
        arrays = {"packed": weight.packed, "scales": weight.scales, "offsets": weight.offsets}
        parts = {
            name: None if array is None else torch.from_numpy(np.ascontiguousarray(array))
            for name, array in arrays.items()
        }
        return cls(weight.packing, parts)

    @classmethod
    def sharing(cls, other: _Quantized) -> Self:
        """A module with the same tensors as another."""
        return cls(other.packing, {name: getattr(other, name) for name in ("packed", "scales", "offsets")})

    def weight(self) -> Tensor:
        """The values, as a call of the operator that the import recognises."""
        how = self.packing
        return dequantize(self.packed, self.scales, self.offsets, how.bits, how.group, how.zero)

    def extra_repr(self) -> str:
        rows, columns = self.packing.shape_of(tuple(self.packed.shape))
        return f"{rows}, {columns}, bits={self.packing.bits}, group={self.packing.group}"


class QuantizedLinear(_Quantized):
    """``x @ weight^T + bias``; where there is an order, of the columns of x in this order."""

    order: Tensor | None

    def __init__(
        self, packing: Packing, parts: Mapping[str, Tensor | None], bias: Tensor | None = None
    ) -> None:
        super().__init__(packing, parts)
        self.bias = None if bias is None else torch.nn.Parameter(bias, requires_grad=False)
        self.register_buffer("order", None)

    def forward(self, x: Tensor) -> Tensor:
        """
        Parameters
        ----------
        x : Tensor of float32, (..., columns)
        """
        x = x if self.order is None else x.index_select(-1, self.order)
        return torch.nn.functional.linear(x, self.weight(), self.bias)


class QuantizedEmbedding(_Quantized):
    """Rows of the weight."""

    def forward(self, indices: Tensor) -> Tensor:
        """
        Parameters
        ----------
        indices : Tensor of integers
        """
        return torch.nn.functional.embedding(indices, self.weight())


def is_packed(model: torch.nn.Module) -> bool:
    """Whether a model has weights of few bits."""
    return any(isinstance(module, _Quantized) for module in model.modules())


def packed_weight(values: np.ndarray, bits: int, group: int = GROUP) -> QuantizedWeight:
    """A float weight as a quantised one: 8 bits by each group's greatest magnitude, 4 by least and greatest.

    Parameters
    ----------
    values : numpy.ndarray of float32, (rows, columns)
    bits : int
    group : int
        Of the columns; it divides them.

    Raises
    ------
    ModelFormatError
        For values that are not finite, or whose scales fp16 has not.
    """
    rows, columns = values.shape
    groups = np.asarray(values, np.float32).reshape(rows, columns // group, group)
    most, least = groups.max(-1), groups.min(-1)
    if bits == 8:
        packing, offsets = Packing(8, group, 128, "float16"), None
        scales = (np.maximum(most, -least) / 127).astype(np.float16)
        begin, low, high, zero = np.float32(0), -127, 127, 128
    else:
        packing, offsets = Packing(4, group, 0, "float16", True), least.astype(np.float16)
        scales = ((most - offsets.astype(np.float32)) / 15).astype(np.float16)
        begin, low, high, zero = offsets.astype(np.float32)[..., None], 0, 15, 0
    if not (np.isfinite(scales).all() and (offsets is None or np.isfinite(offsets).all())):
        raise ModelFormatError(
            "A weight has values that cannot be packed.",
            need=f"finite values, of magnitude up to {np.finfo(np.float16).max:g}",
            limit=f"they lie between {least.min():g} and {most.max():g}",
            remedy='load it with weights="float32"',
        )
    wide = scales.astype(np.float32)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        codes = np.where(wide == 0, np.float32(0), np.rint((groups - begin) / wide)).clip(low, high) + zero
    packed = pack(codes.astype(np.int32).reshape(rows, columns), packing)
    return QuantizedWeight(packing, packed, scales, offsets)


def replace_module(model: Any, name: str, module: torch.nn.Module) -> None:
    """Let a module stand for that of a name."""
    owner, _, last = name.rpartition(".")
    setattr(model.get_submodule(owner), last, module)


def pack_modules(model: torch.nn.Module, bits: int) -> None:
    """Let Linear and Embedding modules have packed weights; tied ones are packed once.

    What has rows that are no whole number of groups, and modules of derived classes, stay.

    Raises
    ------
    ModelFormatError
        As of `packed_weight`.
    """
    made: dict[int, _Quantized] = {}
    for name, module in list(model.named_modules()):
        kind = KINDS.get(type(module))
        if kind is None or module.weight.shape[1] % GROUP:
            continue
        weight: Any = module.weight
        if id(weight) not in made:
            made[id(weight)] = kind.of(packed_weight(weight.detach().float().numpy(), bits))
        replacement = kind.sharing(made[id(weight)])
        if getattr(module, "bias", None) is not None:
            replacement.bias = module.bias
        replace_module(model, name, replacement)


#: What stands for a module whose weight is packed.
KINDS: dict[type, type[_Quantized]] = {
    torch.nn.Linear: QuantizedLinear,
    torch.nn.Embedding: QuantizedEmbedding,
}
