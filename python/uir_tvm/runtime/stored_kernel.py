# SPDX-License-Identifier: Apache-2.0
"""A kernel of a loaded model that is compiled for the sizes of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from .. import _native
from ..errors import ArtifactError, NotCompiledError
from ..one_at_a_time import one_at_a_time
from .kernels_by_sizes import enter, entered

if TYPE_CHECKING:
    from .open_kernels import KernelBySizes

#: Options of a compilation that its files keep: what they say of the code, not of the machine.
KEPT_OPTIONS = ("verify", "passes", "fast_math", "fuse")


@attrs.define(eq=False, weakref_slot=True)
class StoredKernel:
    """A function with open sizes, from a file.

    Attributes
    ----------
    name : str
        Under which the model's code asks for it.
    reason : str
        Why no kernel serves all sizes.
    function : str
        The function as JSON of TVM.
    variables : mapping of str to str
        The name that each symbol has in the function, in the order of the program's symbols.
    target, device : str
        As of `Executable`'s description.
    options : mapping of str to Any
        Those of `KEPT_OPTIONS`.
    made : dict
        The records of what was compiled, by sizes in the order of the symbols.
    """

    name: str
    reason: str
    function: str
    variables: Mapping[str, str]
    target: str
    device: str
    options: Mapping[str, Any]
    made: dict[tuple[int, ...], tuple[Any, ...]] = attrs.Factory(dict)

    @one_at_a_time
    def make(self, sizes: tuple[int, ...]) -> Callable[..., None]:
        """The kernel for these sizes: a function of inputs and outputs.

        Raises
        ------
        NotCompiledError
            There is nothing here that compiles.
        """
        if _native.runtime_only():
            raise NotCompiledError(
                f"The kernel {self.label} is compiled for the sizes of a call, and no compiler is here.",
                where=", ".join(f"{name} = {size}" for name, size in zip(self.variables, sizes, strict=True)),
                limit=self.reason,
                remedy="load the model where TVM's compiler is, or save it with code for chosen sizes "
                "(--specialize)",
            )
        import tvm

        from .. import pipeline
        from ..bound_kernel import bound_kernel
        from ..options import CompileOptions
        from ..target import registry

        function = tvm.ir.load_json(self.function)
        names = dict(zip(self.variables.values(), sizes, strict=True))
        numbers = {
            variable: tvm.tirx.IntImm(variable.ty.dtype, names[str(variable.name)])
            for variable in variables_of(function)
        }
        bound = bound_kernel(function, numbers).with_attr("global_symbol", self.label)
        target = registry.resolve(self.target, self.device).target
        with pipeline.recording(CompileOptions(**self.options)) as records:
            library = tvm.compile(tvm.IRModule({self.label: bound}), target=target)
        self.made[sizes] = tuple(records.values())
        return library[self.label]  # type: ignore[no-any-return]

    @property
    def label(self) -> str:
        """What its function is called."""
        return self.name.partition("#")[0]

    def to_json(self) -> dict[str, Any]:
        """What a file keeps of it."""
        return {
            "name": self.name,
            "reason": self.reason,
            "function": self.function,
            "variables": dict(self.variables),
            "options": dict(self.options),
        }


def loaded(data: Mapping[str, Any], target: str, device: str) -> StoredKernel | KernelBySizes:
    """The kernel that `StoredKernel.to_json` tells of; the one that is here already, where one is."""
    known = entered(data["name"])
    if known is not None:
        return known  # type: ignore[return-value]
    made = StoredKernel(
        str(data["name"]),
        str(data["reason"]),
        str(data["function"]),
        dict(data["variables"]),
        target,
        device,
        {name: data["options"][name] for name in KEPT_OPTIONS},
    )
    enter(made)
    return made


def stored(kernel: StoredKernel | KernelBySizes, target: str, device: str) -> StoredKernel:
    """The kernel as a file keeps it.

    Raises
    ------
    ArtifactError
        It is no one function with open sizes.
    """
    if isinstance(kernel, StoredKernel):
        return kernel
    import tvm

    names = {name: str(variable.name) for name, variable in kernel.space.variables.items()}
    function = kernel.function
    if function is None or not {str(each.name) for each in variables_of(function)} <= set(names.values()):
        raise ArtifactError(
            f"The kernel {kernel.kernel.group.name} cannot be stored for all sizes.",
            limit=kernel.reason,
            remedy="compile the model with CompileOptions(specialize=[...]) (--specialize)",
        )
    options = {name: getattr(kernel.options, name) for name in KEPT_OPTIONS}
    text = str(tvm.ir.save_json(function))
    return StoredKernel(kernel.name, kernel.reason, text, names, target, device, options)


def variables_of(function: Any) -> list[Any]:
    """The variables of a function that are sizes: in its buffers' shapes, and parameters that are numbers."""
    from tvm import tirx

    from ..bound_kernel import symbols_in

    numbers = [param for param in function.params if not tirx.is_buffer_var(param)]
    return list(dict.fromkeys([*symbols_in(function), *numbers]))
