# SPDX-License-Identifier: Apache-2.0
"""Kernels that are compiled for the sizes of a call, by the names under which code asks for them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Protocol

import tvm_ffi

from ..errors import ArtifactError
from .kernel_errors import note


class BySizes(Protocol):
    """A kernel that is compiled for sizes when a call has them."""

    @property
    def name(self) -> str:
        """One in this process, and in whatever loads the model that it belongs to."""

    def make(self, sizes: tuple[int, ...]) -> Callable[..., None]:
        """The kernel for these sizes: a function of inputs and outputs."""


_KERNELS: weakref.WeakValueDictionary[str, BySizes] = weakref.WeakValueDictionary()


def enter(kernel: BySizes) -> None:
    """Let models ask for a kernel as long as somebody holds it."""
    _KERNELS[kernel.name] = kernel
    weakref.finalize(kernel, _forget, kernel.name)


def entered(name: str) -> BySizes | None:
    """The kernel of a name; None where there is none, or nobody holds it any more."""
    return _KERNELS.get(name)


def _forget(name: str) -> None:
    tvm_ffi.get_global_func("uir.runtime.specialized.forget")(name)


def _specialize(name: str, sizes: Any) -> Any:
    """The kernel of this name for these sizes; C++ asks once for each."""
    kernel = _KERNELS.get(str(name))
    if kernel is None:
        raise ArtifactError(
            f"The kernel {name} cannot be compiled for sizes {list(sizes)} here.",
            limit="the model that it belongs to is gone",
            remedy="save the model, and load it here",
        )
    try:
        return tvm_ffi.convert(kernel.make(tuple(int(size) for size in sizes)))
    except Exception as error:
        note(error)
        raise


tvm_ffi.register_global_func("uir.runtime.specialize", _specialize, override=True)
