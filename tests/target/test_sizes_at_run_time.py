# SPDX-License-Identifier: Apache-2.0
"""Sizes on their way to a kernel: the runtime module, and what TVM binds of tensors' shapes."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm.script import tirx as T
from uir_tvm import pipeline
from uir_tvm.errors import DeviceError, IGraphError, SizeError
from uir_tvm.stages import KernelRecord
from uir_tvm.target import registry
from uir_tvm.target.device_module import device_module

from tests.device_targets import DEVICE_TARGETS, DeviceTarget, name_of

from .sized_kernels import BY_NAME, CLOSE, printed


@pytest.fixture(params=DEVICE_TARGETS, ids=name_of)
def row(request: pytest.FixtureRequest) -> DeviceTarget:
    """Each target that has a device."""
    return request.param


def on_model(array: np.ndarray) -> tvm.runtime.Tensor:
    """A copy on the host model."""
    return tvm.runtime.tensor(array, tvm.ext_dev(0))


def module_of(row: DeviceTarget, name: str, **changed: str) -> tvm_ffi.Module:
    return device_module(
        {name: printed(row, BY_NAME[name], **changed)}, registry.get(row.name).place("model")
    )


def test_one_module_for_every_size(row: DeviceTarget) -> None:
    """Also after it was saved and read; at sizes of more groups than cores, fewer, and none."""
    made = module_of(row, "exp_of_rows")
    data = tvm_ffi.get_global_func("uir.runtime.device_module_bytes")(made)
    for module in (made, tvm_ffi.get_global_func("ffi.Module.load_from_bytes.uir_device")(data)):
        for n in (301, 5, 0, 97):
            x = np.linspace(-1, 1, 8 * n, dtype=np.float32).reshape(n, 8)
            y = on_model(np.zeros((n, 8), np.float32))
            module["exp_of_rows"](on_model(x), y, n)
            np.testing.assert_allclose(y.numpy(), np.exp(x), rtol=CLOSE)


def test_a_module_takes_workspaces_of_the_size(row: DeviceTarget) -> None:
    module = module_of(row, "turned_around")
    for n in (40, 300, 0, 4):
        x = np.random.default_rng(n).random((n, 8), "float32")
        y = on_model(np.zeros((n, 8), np.float32))
        module["turned_around"](on_model(x), y, n)
        np.testing.assert_array_equal(y.numpy(), x.reshape(-1, 4, 8)[::-1].reshape(n, 8))


@pytest.mark.parametrize(
    ("name", "n", "rows", "error", "words"),
    [
        ("exp_of_rows", 302, 302, SizeError, "n is 302"),
        ("exp_of_rows", -1, 1, SizeError, "n is -1"),
        ("twice_in_a_row", 12, 12, SizeError, "n is 12"),
        ("exp_of_rows", 5, 4, DeviceError, "does not fit"),
    ],
)
def test_what_a_module_refuses(name: str, n: int, rows: int, error: type[Exception], words: str) -> None:
    module = module_of(DEVICE_TARGETS[0], name)
    x = on_model(np.zeros((rows, 8), np.float32))
    with pytest.raises(error, match=words) as caught_error:
        module[name](x, x, n)
    assert caught_error.value.need  # type: ignore[attr-defined]


def test_a_module_says_what_it_takes() -> None:
    x = on_model(np.zeros((4, 8), np.float32))
    with pytest.raises(TypeError, match="takes 2 tensors and 1 sizes, 2 arguments were given"):
        module_of(DEVICE_TARGETS[0], "exp_of_rows")["exp_of_rows"](x, x)


def test_a_module_counts_groups_before_it_launches() -> None:
    """The tensors are never looked at: none is so large."""
    module = module_of(DEVICE_TARGETS[0], "counted", size="size n = [0, 20000000000]")
    stated = on_model(np.zeros((4, 8), np.int32))
    with pytest.raises(DeviceError, match="does not fit"):
        module["counted"](stated, 20000000000)


# -- stock TVM ------------------------------------------------------------------------------------
@T.prim_func(s_tir=True)
def open_rows(x_handle: T.handle, y_handle: T.handle) -> None:
    n = T.int64()
    x = T.match_buffer(x_handle, (n, 8), "float32")
    y = T.match_buffer(y_handle, (n, 8), "float32")
    for i, j in T.grid(n, 8):
        with T.sblock("exp"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.exp(x[vi, vj])


@T.prim_func(s_tir=True)
def told_rows(x_handle: T.handle, y_handle: T.handle, n: T.int32) -> None:
    x = T.match_buffer(x_handle, (n, 8), "float32")
    y = T.match_buffer(y_handle, (n, 8), "float32")
    for i, j in T.grid(n, 8):
        with T.sblock("exp"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = T.exp(x[vi, vj])


def built(func: object, row: DeviceTarget, monkeypatch: pytest.MonkeyPatch) -> tvm.runtime.Module:
    """What TVM builds of a function whose kernel is that of the graph."""
    made = KernelRecord("main", products={"prim_func": func, "source": printed(row, BY_NAME["exp_of_rows"])})
    monkeypatch.setattr(pipeline, "compile_kernel", lambda *_: made)
    monkeypatch.setattr("uir_tvm.integration.COMPILE_AHEAD", {})
    return tvm.compile(func, target=row.target())


@pytest.mark.parametrize("func", [open_rows, told_rows], ids=["of a shape", "a parameter"])
def test_sizes_of_shapes_reach_the_kernel(
    func: object, row: DeviceTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = built(func, row, monkeypatch)
    for n in (5, 301, 1, 0):
        x = np.linspace(-1, 1, 8 * n, dtype=np.float32).reshape(n, 8)
        y = on_model(np.zeros((n, 8), np.float32))
        module["main"](on_model(x), y, *([n] if func is told_rows else []))
        np.testing.assert_allclose(y.numpy(), np.exp(x), rtol=CLOSE)


def test_a_size_beyond_its_range_is_refused_at_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    module = built(open_rows, DEVICE_TARGETS[0], monkeypatch)
    x = on_model(np.zeros((302, 8), np.float32))
    with pytest.raises(SizeError, match="n is 302") as error:
        module["main"](x, x)
    assert error.value.need == "a value from 0 to 301"


def test_a_size_that_no_shape_says(monkeypatch: pytest.MonkeyPatch) -> None:
    @T.prim_func(s_tir=True)
    def other(x_handle: T.handle, y_handle: T.handle) -> None:
        m = T.int64()
        x = T.match_buffer(x_handle, (m, 8), "float32")
        y = T.match_buffer(y_handle, (m, 8), "float32")
        for i, j in T.grid(m, 8):
            with T.sblock("exp"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = T.exp(x[vi, vj])

    with pytest.raises(IGraphError, match="No parameter has the size n"):
        built(other, DEVICE_TARGETS[0], monkeypatch)
