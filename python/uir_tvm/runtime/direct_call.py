# SPDX-License-Identifier: Apache-2.0
"""Calls that C++ makes alone: tensors are checked, kernels called and results made there (`src/runtime`).

It takes programs without branches whose shapes are known, on tensors in the host's memory. Whatever it does
not take (other shapes and types, tensors with strides, positions beyond a state) it leaves untouched: the
call by way of TVM's virtual machine then converts it, or says what is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tvm
import tvm_ffi
from tvm_ffi.core import Error as FfiError

from .. import threads
from ..state_spec import GROWS, StateSpec
from ..target.code_parts import make_ready
from ..tensor_view import PLAIN
from .kernel_errors import failing
from .tensors import TensorSpec

if TYPE_CHECKING:
    from .executable import Executable
    from .executable_state import ModelState

#: The kind of the modules that C++ reads.
KIND = "relax.VMExecutable"
#: Makes the runners of a program for the tensors of a state: (inputs) and (outputs and inputs).
Bind = Callable[[Sequence[tvm.runtime.Tensor]], Sequence[Callable[..., Any]]]


def programs_of(library: Any) -> Callable[..., Any] | None:
    """What prepares programs of a library of the virtual machine; they take turns, and share their memory."""
    module = getattr(library, "mod", library)
    if getattr(module, "kind", "") != KIND:
        return None
    make = tvm_ffi.get_global_func("uir.runtime.programs", allow_missing=True)
    if make is None:
        return None
    make_ready(module)
    return make(module)


def direct_of(executable: Executable, sizes: tuple[int, ...] | None = None) -> DirectCall | None:
    """How C++ calls an executable; None where only the virtual machine can.

    Parameters
    ----------
    executable : Executable
        Whose shapes are known.
    sizes : tuple of int, optional
        What its ``main`` takes for open sizes.

    Raises
    ------
    UirError
        A kernel that is compiled for these sizes cannot be.
    """
    info = executable.info
    specs: list[TensorSpec | StateSpec] = [*info.inputs, *info.state]
    if any(size < 0 for spec in specs for size in spec.shape) or any(
        each.how == GROWS for each in info.state
    ):
        return None
    if executable.device.type != "cpu":
        return None
    prepare = executable.programs
    if prepare is None:
        return None
    if not threads.ready():
        threads.before_running()  # the library plans for the threads that there are
    with failing():
        made = prepare(
            [tvm_ffi.Shape(spec.shape) for spec in specs],
            [spec.dtype for spec in specs],
            len(info.inputs),
            None if sizes is None else tvm_ffi.Shape(sizes),
            json.dumps(
                [_numbered(row, info.inputs, [each.name for each in info.state]) for row in info.positions]
            ),
        )
    return None if isinstance(made, str) else DirectCall(made, info.outputs, bool(info.state))


def _numbered(row: Mapping[str, Any], inputs: Sequence[TensorSpec], states: Sequence[str]) -> dict[str, Any]:
    """A row of positions with arguments by their numbers."""

    def index(given: Mapping[str, Any]) -> dict[str, Any]:
        made = {key: value for key, value in given.items() if key not in ("input", "state")}
        if "input" in given:
            made["argument"] = given["input"]
        if "state" in given:
            made["argument"] = len(inputs) + states.index(given["state"])
        if "operands" in given:
            made["operands"] = [index(each) for each in given["operands"]]
        return made

    return {"length": int(row["length"]), "index": index(row["index"])}


class DirectCall:
    """One program as Python calls it.

    Parameters
    ----------
    bind : callable
    outputs : sequence of TensorSpec
    has_state : bool
    """

    def __init__(self, bind: Bind, outputs: Sequence[TensorSpec], has_state: bool) -> None:
        self._bind = bind
        self._to_numpy = [np.from_dlpack if spec.dtype in PLAIN else _copied for spec in outputs]
        #: What the call works on.
        self.state: ModelState | None = None
        #: Takes the inputs; gives what `__call__` gives, or an error.
        self.run: Callable[..., Any]
        self._into: Callable[..., Any]
        if not has_state:
            self.run, self._into = bind([])

    def bound(self, state: ModelState) -> DirectCall:
        """The call with this state."""
        made = object.__new__(DirectCall)
        vars(made).update(vars(self), state=state)
        made.run, made._into = self._bind(state.tensors)
        return made

    def run_by(self, run: Callable[..., Any]) -> DirectCall:
        """The call by another function that gives such results; it makes them all."""
        made = object.__new__(DirectCall)
        vars(made).update(vars(self), run=run)
        del made._into
        return made

    def __call__(self, inputs: Sequence[Any], outputs: Sequence[Any] | None = None) -> Any:
        """A result, or a tuple of them; True where they go to ``outputs``; None: it takes another way.

        Raises
        ------
        StateError
            An earlier call failed while it wrote the state.
        """
        if not threads.ready():
            threads.before_running()
        if self.state is None:
            made = self._called(inputs, outputs)
        else:
            with self.state.lock:
                self.state.check()
                made = self._called(inputs, outputs)
                if made.__class__ is FfiError:
                    self.state.failed(made.py_error())
        kind = made.__class__
        if kind is tvm.runtime.Tensor:
            return self._to_numpy[0](made)
        if kind is tvm_ffi.Array:
            results = tuple(made)
            if results and results[0].__class__ is not tvm.runtime.Tensor:
                return results
            return tuple([to(each) for to, each in zip(self._to_numpy, results, strict=True)])
        if kind is FfiError:
            raise made.py_error()
        return made

    def _called(self, inputs: Sequence[Any], outputs: Sequence[Any] | None) -> Any:
        """What C++ says; it raises nothing itself, so that an error is one of taking the tensors."""
        try:
            return self.run(*inputs) if outputs is None else self._into(*outputs, *inputs)
        except Exception:
            return None


def _copied(value: tvm.runtime.Tensor) -> np.ndarray:
    return value.numpy()
