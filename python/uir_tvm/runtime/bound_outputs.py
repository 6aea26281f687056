# SPDX-License-Identifier: Apache-2.0
"""Calls whose results go to tensors that the caller has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tvm

from ..errors import ShapeError
from .tensors import TensorSpec, is_torch, tensor_fault, to_tvm

if TYPE_CHECKING:
    from .executable import Executable


class BoundOutputs:
    """An executable that writes its results into these tensors.

    Parameters
    ----------
    executable : Executable
    outputs : tensor or sequence of tensors
        As of `Executable.bind`.

    Raises
    ------
    ShapeError
        They do not fit the executable's results.
    """

    def __init__(self, executable: Executable, outputs: Any) -> None:
        self.executable, self.outputs = executable, _several(outputs)
        check_outputs(self.outputs, executable.info.outputs)
        self._result = _result(executable, outputs)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Run the model; the result is nested as that of the executable, and made of these tensors.

        Raises
        ------
        ShapeError, DeviceError
            As of a call of the executable.
        """
        if not named:
            direct = self.executable.direct
            if direct is not None and direct(inputs, self.outputs):
                return self._result
        _copy_results(self.executable, self.outputs, inputs, named)
        return self._result


def result_of(executable: Executable, outputs: Any, inputs: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """One call with outputs that nobody looked at yet."""
    tensors = _several(outputs)
    direct = executable.direct
    if named or len(tensors) != len(executable.info.outputs) or direct is None or not direct(inputs, tensors):
        check_outputs(tensors, executable.info.outputs)
        _copy_results(executable, tensors, inputs, named)
    return _result(executable, outputs)


def check_outputs(outputs: Sequence[Any], specs: Sequence[TensorSpec]) -> None:
    """Refuse tensors that results cannot be written to.

    Raises
    ------
    ShapeError
        It names the result, what it is and what is given.
    """
    if len(outputs) != len(specs):
        raise ShapeError(
            f"The executable has {len(specs)} results, {len(outputs)} tensors were given for them.",
            need="; ".join(map(str, specs)),
            remedy="pass one tensor for each result, in this order",
        )
    for position, (value, spec) in enumerate(zip(outputs, specs, strict=True)):
        fault = tensor_fault(value, spec, f"The tensor for result {position} ({spec.name})")
        if fault is not None:
            raise fault
        if _on_host(value) and not (isinstance(value, np.ndarray) and not value.flags.writeable):
            continue
        raise ShapeError(
            f"The tensor for result {position} ({spec.name}) cannot be written.",
            need="memory of the host that is not read-only",
            remedy="pass another tensor, or call the executable without",
        )


def _copy_results(
    executable: Executable, outputs: Sequence[Any], inputs: Sequence[Any], named: Mapping[str, Any]
) -> None:
    """The call by the virtual machine, and copies of what it made."""
    made = executable.flattened(inputs, named)
    for target, value in zip(outputs, made if isinstance(made, tuple) else (made,), strict=True):
        _copy(value, target)


def _copy(value: Any, target: Any) -> None:
    if is_torch(target):
        import torch

        with torch.no_grad():
            target.copy_(value if is_torch(value) else torch.from_dlpack(to_tvm(value)))
    elif isinstance(target, tvm.runtime.Tensor):
        target.copyfrom(to_tvm(value, tvm.cpu()))
    else:
        target[...] = value.detach().cpu().numpy() if is_torch(value) else value


def _result(executable: Executable, outputs: Any) -> Any:
    """What the model returns, made of these tensors; where it says no form, as they were given."""
    structure = executable.structure
    return outputs if structure is None else structure.unflatten(_several(outputs))


def _several(outputs: Any) -> tuple[Any, ...]:
    return tuple(outputs) if isinstance(outputs, list | tuple) else (outputs,)


def _on_host(value: Any) -> bool:
    return isinstance(value, np.ndarray) or value.device.type == "cpu"
