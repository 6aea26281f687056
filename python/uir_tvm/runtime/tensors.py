# SPDX-License-Identifier: Apache-2.0
"""Between the caller's tensors (NumPy, torch) and TVM's, without a copy where the memory allows it."""

from __future__ import annotations

import contextlib
import ctypes
import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
import tvm
import tvm_ffi

from ..errors import DeviceError, ShapeError, SizeError, first_line
from ..tensor_view import PLAIN

#: Kernels use vector loads on parameters, so TVM asks for this alignment; other memory is copied.
ALIGNMENT = 64
#: The devices, as torch and TVM call them, whose memory and streams both use.
SHARED = "cuda"
#: The devices of which src/runtime/queued_memory.h is the memory, or a host model.
QUEUED = "ext_dev"


@attrs.frozen
class TensorSpec:
    """Name, shape and dtype of an input or output; a size that may be any is -1."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    #: What open sizes are called, one text for each axis; empty where none is open.
    sizes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{self.shape_text}]"

    @property
    def shape_text(self) -> str:
        """The shape as a person reads it."""
        return ", ".join(self.sizes or ["?" if size < 0 else str(size) for size in self.shape])


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
        fault = tensor_fault(value, spec, f"Input {position} ({spec.name})")
        if fault is not None:
            raise fault


def _form(value: Any) -> str:
    """What a torch tensor is that has no memory of its elements one beside the other; empty for others."""
    if not is_torch(value) or not hasattr(value, "layout"):
        return ""
    if value.is_nested:
        return "nested"
    layout = str(value.layout).removeprefix("torch.")
    return "meta" if value.device.type == "meta" else "" if layout == "strided" else layout


def tensor_fault(value: Any, spec: TensorSpec, what: str) -> ShapeError | None:
    """Why a value is not a tensor of this shape and dtype; None where it is.

    Parameters
    ----------
    value : object
    spec : TensorSpec
    what : str
        The value's name, with which the error begins.
    """
    form = _form(value)
    if form:
        return ShapeError(
            f"{what} is a {form} tensor.",
            need=f"a dense tensor {spec} that has data",
            remedy="make one of it: to_dense(), to_padded_tensor(), or the values themselves",
        )
    shape = getattr(value, "shape", None)
    if shape is None:
        return ShapeError(
            f"{what} is a {type(value).__name__}.",
            need=f"a tensor {spec}",
            remedy="pass a NumPy array, a torch tensor or a TVM tensor",
        )
    given = tuple(int(d) for d in shape)
    dtype = str(value.dtype).removeprefix("torch.")
    if len(given) != len(spec.shape) or any(
        want not in (have, -1) for have, want in zip(given, spec.shape, strict=True)
    ):
        return ShapeError(
            f"{what} has the wrong shape.",
            need=f"[{spec.shape_text}]",
            limit=f"given {list(given)}",
            remedy="reshape or pad it, or compile the model for this shape",
        )
    if dtype != spec.dtype:
        return ShapeError(
            f"{what} has the wrong dtype.",
            need=spec.dtype,
            limit=f"given {dtype}",
            remedy=f"convert it to {spec.dtype}",
        )
    return None


def check_devices(values: Sequence[Any], specs: Sequence[TensorSpec], device: tvm.runtime.Device) -> None:
    """Refuse an input on another device of the kind that the model runs on.

    An input in the host's memory goes to the device, and one of another kind of device to the host, as the
    caller sees from where the model runs; but nobody expects that a GPU's neighbour is reached by the host.

    Raises
    ------
    DeviceError
        It names the input, where it lies and where the model runs.
    """
    if device.type == "cpu":
        return
    for position, (value, spec) in enumerate(zip(values, specs, strict=True)):
        lies = _lies_on(value)
        if lies is not None and lies[0] == device.type and lies[1] != device.index:
            raise DeviceError(
                f"Input {position} ({spec.name}) lies on another device than the model runs on.",
                need=f"{device.type}:{device.index}, or the host's memory",
                limit=f"given {lies[0]}:{lies[1]}",
                remedy="copy it there first, or let this process see that device alone "
                "(CUDA_VISIBLE_DEVICES, ASCEND_RT_VISIBLE_DEVICES, MLU_VISIBLE_DEVICES)",
            )


def _lies_on(value: Any) -> tuple[str, int] | None:
    """Kind and number of a tensor's device; None for NumPy arrays."""
    if isinstance(value, tvm.runtime.Tensor):
        return value.device.type, value.device.index
    if is_torch(value):
        return value.device.type, value.device.index or 0
    return None


def to_tvm(value: Any, device: tvm.runtime.Device | None = None) -> tvm.runtime.Tensor:
    """A TVM tensor of the same data on a device (default: the CPU).

    It shares the caller's memory where that lies there, is aligned and contiguous.
    """
    device = tvm.cpu() if device is None else device
    if isinstance(value, tvm.runtime.Tensor):
        return value if value.device == device else value.copyto(device)
    if is_torch(value):
        value = value.detach().contiguous()
        if _lies_on(value) != (device.type, device.index) and value.device.type != "cpu":
            value = value.cpu()
        if _lies_on(value) == (device.type, device.index) and _shared(value):
            return tvm.runtime.from_dlpack(value)
        return from_host(_torch_to_numpy(value.cpu()), device)
    # not ascontiguousarray, which makes rank 1 of rank 0
    array = np.asarray(value, order="C")
    # DLPack carries NumPy's own numbers; bool and ml_dtypes' narrow floats, some of kind "f", are copied. Of
    # an array without elements it says strides of 0, which kernels of any size do not take.
    aligned = array.ctypes.data % ALIGNMENT == 0
    plain = array.dtype.kind in "iuf" and array.dtype.isbuiltin == 1
    if device.type == "cpu" and aligned and array.size and array.flags.writeable and plain:
        return tvm.runtime.from_dlpack(array)
    return from_host(array, device)


def from_host(array: np.ndarray, device: tvm.runtime.Device) -> tvm.runtime.Tensor:
    """A tensor of its own of an array's numbers.

    On a device that launches by queues (``ext_dev``) it is written in the order of the current one, so that
    nobody waits (src/runtime/queued_memory.h); TVM waits behind every copy.
    """
    if device.type != QUEUED or not array.size:
        return tvm.runtime.tensor(array, device)
    array = np.asarray(array, order="C")
    made = tvm.runtime.empty(array.shape, str(array.dtype), device)
    write = tvm_ffi.get_global_func("uir.runtime.write_tensor")
    write(made, ctypes.c_void_p(array.ctypes.data), array.nbytes)
    return made


def on_host(value: tvm.runtime.Tensor) -> tvm.runtime.Tensor:
    """The tensor in the host's memory: itself where it lies there, else once it is computed."""
    if value.device.type == "cpu":
        return value
    if value.device.type != QUEUED or 0 in value.shape:
        return value.copyto(tvm.cpu())
    made = tvm.runtime.empty(value.shape, value.dtype)
    read = tvm_ffi.get_global_func("uir.runtime.read_tensor")
    bits = math.prod(made.shape) * tvm_ffi.dtype(made.dtype).bits
    read(value, ctypes.c_void_p(made.data_ptr()), math.ceil(bits / 8))
    return made


def array_of(value: tvm.runtime.Tensor) -> np.ndarray:
    """The tensor's numbers in the host's memory."""
    host = on_host(value)
    # tensors that others see too are copied
    own = host is not value and host.dtype in PLAIN and 0 not in host.shape
    return np.from_dlpack(host) if own else host.numpy()


def _shared(value: Any) -> bool:
    """Whether TVM can use a torch tensor's memory: it knows torch's bool only as a byte."""
    return value.data_ptr() % ALIGNMENT == 0 and str(value.dtype) != "torch.bool"


def _torch_to_numpy(value: Any) -> np.ndarray:
    import ml_dtypes
    import torch

    narrow = getattr(ml_dtypes, str(value.dtype).removeprefix("torch."), None)
    if narrow is None:
        return value.numpy()
    bits = torch.int16 if value.element_size() == 2 else torch.uint8
    return value.view(bits).numpy().view(narrow)


@attrs.frozen
class Likeness:
    """What results are made like: the caller's inputs.

    Parameters
    ----------
    torch, gpu : bool
        Whether any input is a torch tensor, and whether any of these lies on a GPU.
    """

    torch: bool
    gpu: bool

    @staticmethod
    def of(inputs: Sequence[Any]) -> Likeness:
        """The likeness of these inputs."""
        tensors = [value for value in inputs if is_torch(value)]
        return Likeness(bool(tensors), any(value.device.type == SHARED for value in tensors))

    def stream(self) -> contextlib.AbstractContextManager[Any]:
        """Run on torch's stream of the GPU, so that what torch does before and after is in order."""
        return tvm_ffi.use_torch_stream() if self.gpu else contextlib.nullcontext()


def from_tvm(value: tvm.runtime.Tensor, like: Likeness) -> Any:
    """A NumPy array or a torch tensor; over the same memory where that is the CPU's, or torch's own GPU's."""
    if not like.torch:
        return array_of(value)
    import torch

    stays = value.device.type == SHARED and like.gpu
    return torch.from_dlpack(value if stays else on_host(value))


def random_inputs(specs: Sequence[TensorSpec], seed: int = 0) -> list[np.ndarray]:
    """Inputs that are the same every time: floats of a normal distribution, integers and bools of 0 and 1.

    Raises
    ------
    SizeError
        One of them is larger than the memory that there is.
    """
    import ml_dtypes  # noqa: F401  (NumPy then knows bfloat16 by its name)

    rng = np.random.default_rng(seed)
    return [_random(spec, rng) for spec in specs]


def _random(spec: TensorSpec, rng: np.random.Generator) -> np.ndarray:
    try:
        numbers = rng.standard_normal(spec.shape) if "float" in spec.dtype else rng.integers(0, 2, spec.shape)
        # of rank 0 the generator gives Python's own numbers
        return np.asarray(numbers).astype(np.dtype(spec.dtype))
    except (MemoryError, ValueError) as error:  # the latter where bytes leave 63 bits
        count = math.prod(spec.shape)
        raise SizeError(
            f"Input {spec.name} is too large: {' * '.join(map(str, spec.shape))} = {count} elements.",
            where=str(spec),
            need=f"{8 * count} bytes for random numbers of 8 bytes each",
            limit=first_line(error),
            remedy="pass smaller sizes",
        ) from error
