# SPDX-License-Identifier: Apache-2.0
"""Between the caller's tensors (NumPy, torch) and TVM's, without a copy where the memory allows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import tvm

from ..errors import ShapeError

#: Kernels use vector loads on parameters, so TVM asks for this alignment; other memory is copied.
ALIGNMENT = 64


@attrs.frozen
class TensorSpec:
    """Name, shape and dtype of an input or output."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


def is_torch(value: Any) -> bool:
    """Whether it is a torch tensor (torch itself is not imported for the question)."""
    return type(value).__module__.partition(".")[0] == "torch"


def check_inputs(values: Sequence[Any], specs: Sequence[TensorSpec]) -> None:
    """Refuse a wrong number of inputs, or one of a wrong shape or dtype.

    Raises
    ------
    ShapeError
        It names the input, what it is and what is expected.
    """
    if len(values) != len(specs):
        raise ShapeError(
            f"The executable takes {len(specs)} inputs, {len(values)} were given.",
            need="; ".join(map(str, specs)),
            remedy="pass one tensor for each input, in this order",
        )
    for position, (value, spec) in enumerate(zip(values, specs, strict=True)):
        shape = getattr(value, "shape", None)
        if shape is None:
            raise ShapeError(
                f"Input {position} ({spec.name}) is a {type(value).__name__}.",
                need=f"a tensor {spec}",
                remedy="pass a NumPy array, a torch tensor or a TVM tensor",
            )
        given = tuple(int(d) for d in shape)
        dtype = str(value.dtype).removeprefix("torch.")
        if given != spec.shape:
            raise ShapeError(
                f"Input {position} ({spec.name}) has the wrong shape.",
                need=f"{list(spec.shape)}",
                limit=f"given {list(given)}",
                remedy="reshape or pad it, or compile the model for this shape",
            )
        if dtype != spec.dtype:
            raise ShapeError(
                f"Input {position} ({spec.name}) has the wrong dtype.",
                need=spec.dtype,
                limit=f"given {dtype}",
                remedy=f"convert it to {spec.dtype}",
            )


def to_tvm(value: Any) -> tvm.runtime.Tensor:
    """A TVM tensor on the CPU of the same data; shares memory when aligned and contiguous."""
    if isinstance(value, tvm.runtime.Tensor):
        return value
    if is_torch(value):
        value = value.detach()
        if value.device.type != "cpu":
            value = value.cpu()
        value = value.contiguous()
        # TVM knows torch's bool only as a byte.
        if value.data_ptr() % ALIGNMENT == 0 and str(value.dtype) != "torch.bool":
            return tvm.runtime.from_dlpack(value)
        return tvm.runtime.tensor(_torch_to_numpy(value))
    array = np.ascontiguousarray(value)
    # DLPack carries NumPy's own numbers; bool and ml_dtypes' narrow floats are copied.
    if array.ctypes.data % ALIGNMENT == 0 and array.flags.writeable and array.dtype.kind in "iuf":
        return tvm.runtime.from_dlpack(array)
    return tvm.runtime.tensor(array)


def _torch_to_numpy(value: Any) -> np.ndarray:
    if str(value.dtype) == "torch.bfloat16":
        import ml_dtypes
        import torch

        return value.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return value.numpy()


def from_tvm(value: tvm.runtime.Tensor, like_torch: bool) -> Any:
    """A NumPy array or a torch tensor over the same memory."""
    if like_torch:
        import torch

        return torch.from_dlpack(value)
    return value.numpy()
