# SPDX-License-Identifier: Apache-2.0
"""Large constants of a model go past TVM's code generation for its virtual machine.

It looks for constants of the same contents by a hash of all bytes, which it takes twice of each: longer than
the rest of its work by far.  So it gets small tensors instead, and the executable gets the constants.
"""

from __future__ import annotations

from collections.abc import Hashable

import attrs
import numpy as np
import tvm
import tvm_ffi
from tvm import relax
from tvm.relax import _ffi_api
from tvm_ffi.structural import structural_map, structural_walk

from .tensor_view import bytes_of, nbytes_of, same_bytes

#: From so many bytes on a constant is large.
LARGE = 1 << 16
#: Bytes at both ends of a large constant that tell most of them apart.
ENDS = 1 << 10
#: Bytes of a small tensor, at least: its number.
NUMBER = 8


@attrs.define
class LargeConstants:
    """Small tensors, and the constants that they stand for.

    Attributes
    ----------
    length : int
        Of a small tensor, in bytes.
    """

    length: int = NUMBER
    small: list[tvm.runtime.Tensor] = attrs.field(factory=list)
    large: list[tvm.runtime.Tensor] = attrs.field(factory=list)
    _alike: dict[Hashable, list[int]] = attrs.field(factory=dict)

    def small_for(self, tensor: tvm.runtime.Tensor) -> tvm.runtime.Tensor:
        """What stands for a tensor, and for all others of the same contents."""
        data = bytes_of(tensor)
        key = (str(tensor.dtype), tuple(tensor.shape), data[:ENDS].tobytes(), data[-ENDS:].tobytes())
        alike = self._alike.setdefault(key, [])
        for at in alike:
            if same_bytes(tensor, self.large[at]):
                return self.small[at]
        number = len(self.small).to_bytes(self.length, "little")
        alike.append(len(self.small))
        self.small.append(tvm.runtime.tensor(np.frombuffer(number, np.uint8)))
        self.large.append(tensor)
        return self.small[-1]

    def put_back(self, executable: relax.VMExecutable) -> None:
        """Give an executable the constants for the small tensors that it was made with."""
        if self.small:
            tvm_ffi.get_global_func("uir.runtime.put_constants")(executable.mod, self.small, self.large)


def without_large(mod: tvm.IRModule) -> tuple[tvm.IRModule, LargeConstants]:
    """A lowered module with small tensors for its large constants, which keep their types.

    Constants of the same contents get one, as TVM makes them one.  The small ones are vectors of bytes of a
    length that no constant of the module has, each of another number: TVM takes none for another.
    """
    functions = dict(mod.functions.items())  # in their order, which kernels keep
    programs = {var: each for var, each in functions.items() if isinstance(each, relax.Function)}
    found: dict[int, tvm.runtime.Tensor] = {}

    def note(constant: tvm.ir.GenericConst) -> None:
        if isinstance(constant.ty, relax.TensorType):
            found[_address(constant)] = constant.value

    for each in programs.values():
        structural_walk(each, (tvm.ir.GenericConst, note))
    large = {at: tensor for at, tensor in found.items() if _is_large(tensor)}
    if not large:
        return mod, LargeConstants()
    lengths = {int(tensor.shape[0]) for tensor in found.values() if len(tensor.shape) == 1}
    made = LargeConstants(next(n for n in range(NUMBER, NUMBER + len(lengths) + 1) if n not in lengths))
    small = {at: made.small_for(tensor) for at, tensor in large.items()}

    def replaced(constant: tvm.ir.GenericConst) -> tvm.ir.GenericConst:
        tensor = small.get(_address(constant)) if isinstance(constant.ty, relax.TensorType) else None
        return constant if tensor is None else _ffi_api.MakeTensorConst(tensor, constant.ty, constant.span)

    for var, each in programs.items():
        functions[var] = structural_map(each, (tvm.ir.GenericConst, replaced))
    return tvm.IRModule(functions, attrs=mod.attrs), made


def _address(constant: tvm.ir.GenericConst) -> int:
    """Identity of a constant's tensor, for as long as something holds it."""
    return int(constant.value.__chandle__())


def _is_large(tensor: tvm.runtime.Tensor) -> bool:
    return tensor.device.type == "cpu" and nbytes_of(tensor) >= LARGE
