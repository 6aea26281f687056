# SPDX-License-Identifier: Apache-2.0
"""The runtime module of device kernels: calls, refusals, what is saved of it, what the host model finds."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
import tvm
import tvm_ffi
from uir_tvm.device.device_kernel import Launch
from uir_tvm.errors import DeviceError, DeviceModelError, ToolchainError

from .hand_written import LAUNCHES, SIZE, SOURCE, expected, kernel, module, tensors


def loaded(built: tvm_ffi.Module) -> tvm_ffi.Module:
    """The module after it was written to bytes and read again."""
    return tvm_ffi.get_global_func("ffi.Module.load_from_bytes.uir_device")(saved(built))


def saved(built: tvm_ffi.Module) -> bytes:
    """The bytes that an exported library would hold of it."""
    return bytes(tvm_ffi.get_global_func("uir.runtime.device_module_bytes")(built))


def test_launches_run_in_order_through_the_workspace() -> None:
    built = module()
    for _ in range(2):  # the second call finds what the first compiled and loaded
        x, y = tensors()
        built["affine"](x, y)
        np.testing.assert_array_equal(y.numpy(), expected())


def test_it_shows_its_source_and_its_metadata() -> None:
    built = module()
    assert built.inspect_source() == SOURCE
    (row,) = json.loads(built.inspect_source("json"))["kernels"]
    assert row["entry"] == "affine" and row["saved"] == ["simt"] and len(row["launches"]) == 2
    assert built.implements_function("affine") and not built.implements_function("twice")


def test_saved_bytes_hold_the_code() -> None:
    """What is read back runs where nothing can compile."""
    built = loaded(module())

    def refuse(source: str, arch: str) -> bytes:
        raise AssertionError(f"asked to compile for {arch}")

    with compiler(refuse):
        x, y = tensors()
        built["affine"](x, y)
    np.testing.assert_array_equal(y.numpy(), expected())
    assert built.inspect_source() == SOURCE


@pytest.mark.parametrize("cut", [1, 100, 3000])
def test_truncated_bytes_are_refused(cut: int) -> None:
    with pytest.raises(ValueError, match="truncated"):
        tvm_ffi.get_global_func("ffi.Module.load_from_bytes.uir_device")(saved(module())[:-cut])


def test_what_the_compiler_refuses_is_said() -> None:
    wrong = kernel(SOURCE.replace("half[i] + 1.0f", "half[i] +"))
    with pytest.raises(ToolchainError, match="error"):
        module(wrong)["affine"](*tensors())


REFUSED: dict[str, tuple[Callable[[], tuple[tvm.runtime.Tensor, ...]], str]] = {
    "on the host": (lambda: tensors(tvm.cpu()), "of another device"),
    "on two devices": (lambda: (tensors()[0], tensors(tvm.cpu())[1]), "several devices"),
    "too small": (
        lambda: (tensors()[0], tvm.runtime.tensor(np.zeros(SIZE // 2, "float32"), tvm.ext_dev(0))),
        "does not fit",
    ),
    "of a wider dtype": (
        lambda: (tensors()[0], tvm.runtime.tensor(np.zeros(SIZE, "float64"), tvm.ext_dev(0))),
        "does not fit",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_tensors_that_do_not_fit(case: str) -> None:
    make, words = REFUSED[case]
    with pytest.raises(DeviceError, match=words) as caught:
        module()["affine"](*make())
    assert "affine" in caught.value.where


def test_a_wrong_number_of_tensors() -> None:
    with pytest.raises(TypeError, match="takes 2 tensors, 1 were given"):
        module()["affine"](tensors()[0])


#: A change to the text -> the kind of finding, and a word of the line that it names.
FAULTS = {
    ("y[i] =", "y[i + 1] ="): ("out-of-bounds", "y[i + 1]"),
    ("half[i] + 1.0f", "half[i + 1] + 1.0f"): ("out-of-bounds", "half[i + 1]"),
    ("half[i] = 2.0f * x[i]", "if (i != 7) half[i] = 2.0f * x[i]"): ("unwritten", "half[i] + 1.0f"),
}


@pytest.mark.parametrize("change", FAULTS, ids=lambda change: change[1])
def test_faults_of_the_text_are_found_with_their_place(change: tuple[str, str]) -> None:
    kind, words = FAULTS[change]
    with pytest.raises(DeviceModelError) as caught:
        module(kernel(SOURCE.replace(*change)))["affine"](*tensors())
    error = caught.value
    assert kind in error.findings[0]["kind"] and words in error.where
    line = SOURCE.replace(*change).splitlines()[error.findings[0]["line"] - 1]
    assert words in line, "the line is one of the text as it was given"


def test_metadata_that_do_not_hold_together() -> None:
    wrong = Launch("plus_one", 2, 64, 0, False, ("third", "y"))
    broken = kernel(launches=[LAUNCHES[0], wrong])
    with pytest.raises(ValueError, match="takes third, which is neither"):
        module(broken)


def test_a_place_without_a_device_says_so() -> None:
    """Code for a GPU of another kind, or none at all: a typed error, not a crash."""
    from uir_tvm.target.cuda.places import absent

    if not absent():
        pytest.skip("there is a GPU")
    with pytest.raises(RuntimeError):
        tvm.runtime.tensor(np.zeros(4, "float32"), tvm.cuda(0))


class compiler:
    """Another function in the place of the one that compiles sources."""

    def __init__(self, function: Callable[[str, str], bytes]) -> None:
        self.function = function

    def __enter__(self) -> None:
        from uir_tvm.device import compilers

        tvm_ffi.register_global_func(compilers.FUNCTION, self.function, override=True)

    def __exit__(self, *_: object) -> None:
        from uir_tvm.device import compilers

        compilers.register()


def test_a_tensor_that_starts_between_wide_accesses() -> None:
    """A view 4 bytes into its memory: 16-byte accesses of the kernel would fault."""
    _, y = tensors()
    longer = tvm.runtime.tensor(np.zeros(SIZE + 4, "float32"), tvm.ext_dev(0))
    shifted = longer._create_view((SIZE,), "float32", relative_byte_offset=4)
    with pytest.raises(DeviceError, match="widest accesses") as caught:
        module()["affine"](shifted, y)
    assert "x" in caught.value.where and "16 bytes" in caught.value.need
    aligned = longer._create_view((SIZE,), "float32", relative_byte_offset=16)
    module()["affine"](aligned, y)
    np.testing.assert_array_equal(y.numpy(), np.ones(SIZE))
