# SPDX-License-Identifier: Apache-2.0
"""Tensors of callers: dtypes, layouts, alignment, sharing of memory."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
import tvm
import uir_tvm
from tvm import relax
from uir_tvm.errors import DeviceError, SizeError
from uir_tvm.runtime.tensors import (
    ALIGNMENT,
    Likeness,
    TensorSpec,
    check_devices,
    from_tvm,
    is_torch,
    random_inputs,
    to_tvm,
)

from tests import tiny

DTYPES = ["float32", "float64", "float16", "int8", "uint8", "int32", "int64", "bool"]


def aligned(count: int, offset: int) -> np.ndarray:
    """fp32 zeros that start `offset` bytes past a multiple of `ALIGNMENT`."""
    raw = np.zeros(count * 4 + 2 * ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT + offset
    return raw[start : start + count * 4].view("float32")


#: The host, and what launches by queues: here the host model.
PLACES = {"cpu": tvm.cpu(), "ext_dev": tvm.ext_dev(0)}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_round_trip(dtype: str, kind: str, place: str) -> None:
    array = np.arange(24).reshape(4, 6).astype(dtype)
    value = array if kind == "numpy" else torch.from_numpy(array)
    there = to_tvm(value, PLACES[place])
    assert there.device == PLACES[place]
    back = from_tvm(there, Likeness.of([value]))
    assert is_torch(back) == (kind == "torch") and back.dtype == value.dtype
    np.testing.assert_array_equal(np.asarray(back), array)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("offset", [0, 4])
@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_round_trip_of_narrow_floats(dtype: str, offset: int, kind: str, place: str) -> None:
    """Of NumPy's own kind or not, aligned or not: DLPack takes none of them from NumPy."""
    array = aligned(6, offset).view(getattr(ml_dtypes, dtype))
    array[:] = np.arange(array.size) % 8
    value = array
    if kind == "torch":
        bits = torch.from_numpy(array.view(f"int{8 * array.itemsize}"))
        value = bits.view(getattr(torch, dtype))
    back = from_tvm(to_tvm(value, PLACES[place]), Likeness.of([value]))
    assert is_torch(back) == (kind == "torch") and back.dtype == value.dtype
    numbers = back.float().numpy() if kind == "torch" else back.astype("float32")
    np.testing.assert_array_equal(numbers, array.astype("float32"))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rank_zero_stays_rank_zero(dtype: str) -> None:
    """NumPy's scalars and arrays of rank 0, as torch's tensors of rank 0."""
    for value in (np.dtype(dtype).type(1), np.ones((), dtype), torch.from_numpy(np.ones((), dtype))):
        tensor = to_tvm(value)
        assert tuple(tensor.shape) == () and tensor.dtype == dtype and tensor.numpy() == 1


def test_a_model_of_scalars() -> None:
    exe = uir_tvm.compile(tiny.elementwise(lambda a, b: relax.op.add(a, b), *[((), "float32")] * 2))
    for given in (random_inputs(exe.info.inputs), [np.float32(1.5), np.array(2.25, "float32")]):
        result = exe(*given)
        assert result.shape == () and result == given[0] + given[1]


class _OnDevice:
    """What a torch tensor on a GPU says of itself."""

    __module__ = "torch"

    def __init__(self, ordinal: int) -> None:
        self.device = torch.device("cuda", ordinal)


def test_a_neighbour_of_the_device_is_refused() -> None:
    """Silently it would go by the host's memory to the device that the model runs on."""
    specs = [TensorSpec("a", (2,), "float32"), TensorSpec("b", (2,), "float32")]
    host = np.zeros(2, "float32")
    with pytest.raises(DeviceError) as caught:
        check_devices([host, _OnDevice(1)], specs, tvm.cuda(0))
    error = caught.value
    assert "Input 1 (b)" in error.what and "cuda:0" in error.need and error.limit == "given cuda:1"
    check_devices([host, _OnDevice(0)], specs, tvm.cuda(0))
    check_devices([torch.zeros(2), tvm.runtime.tensor(host)], specs, tvm.cuda(1))
    check_devices([host, _OnDevice(1)], specs, tvm.cpu())


def test_bfloat16_of_both() -> None:
    values = torch.arange(8, dtype=torch.bfloat16) / 3
    assert torch.equal(from_tvm(to_tvm(values), Likeness.of([values])), values)
    array = aligned(8, 0).view(ml_dtypes.bfloat16)[:8]
    array[:] = (np.arange(8) / 3).astype(ml_dtypes.bfloat16)
    for placed in (array, array[1:]):  # aligned memory, which would be shared, and memory that is not
        np.testing.assert_array_equal(np.asarray(from_tvm(to_tvm(placed), Likeness.of([placed]))), placed)


@pytest.mark.parametrize("offset", [0, 4, 32])
def test_any_alignment(offset: int) -> None:
    array = aligned(12, offset)
    array[:] = np.arange(12)
    tensor = to_tvm(array)
    np.testing.assert_array_equal(tensor.numpy(), array)
    array[0] = 99
    assert (tensor.numpy()[0] == 99) == (offset == 0), "aligned memory is shared, other memory copied"


def test_layouts_that_are_not_contiguous() -> None:
    array = np.arange(24, dtype="float32").reshape(4, 6)
    for view in (array.T, array[:, ::2], array[::-1], np.broadcast_to(array[0], (3, 6))):
        np.testing.assert_array_equal(to_tvm(view).numpy(), view)
    np.testing.assert_array_equal(to_tvm(torch.from_numpy(array).t()).numpy(), array.T)


def test_read_only_input() -> None:
    array = np.arange(4, dtype="float32")
    array.flags.writeable = False
    np.testing.assert_array_equal(to_tvm(array).numpy(), array)


def test_tvm_tensor_passes() -> None:
    tensor = tvm.runtime.tensor(np.ones(3, "float32"))
    assert to_tvm(tensor) is tensor


@pytest.mark.parametrize("like", ["numpy", "torch"])
def test_bool_results(like: str) -> None:
    exe = uir_tvm.compile(tiny.elementwise(lambda a, b: relax.op.less(a, b), *[((5,), "float32")] * 2))
    a, b = np.arange(5, dtype="float32"), np.full(5, 2, "float32")
    got = exe(a, b) if like == "numpy" else exe(torch.from_numpy(a), torch.from_numpy(b))
    assert is_torch(got) == (like == "torch")
    assert np.asarray(got).dtype == np.bool_
    np.testing.assert_array_equal(np.asarray(got), a < b)


def test_random_inputs_are_the_same_every_time() -> None:
    specs = [TensorSpec("a", (3,), "float16"), TensorSpec("b", (4,), "int64"), TensorSpec("c", (2,), "bool")]
    first, second = random_inputs(specs), random_inputs(specs)
    for one, other, spec in zip(first, second, specs, strict=True):
        assert one.dtype == spec.dtype and one.shape == spec.shape
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("size", "count"), [(2**32, 2**64), (2**31 - 1, (2**31 - 1) ** 2), (2**63, 2**126)])
def test_random_inputs_that_no_memory_holds_are_refused(size: int, count: int) -> None:
    """By the input's name, its sizes and the bytes that it takes."""
    with pytest.raises(SizeError, match=f"Input x is too large: .* = {count} elements") as caught:
        random_inputs([TensorSpec("x", (size, size), "float32")])
    assert str(8 * count) in caught.value.need and caught.value.limit
