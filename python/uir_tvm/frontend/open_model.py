# SPDX-License-Identifier: Apache-2.0
"""Models with open sizes, as front ends hand them on: read once, bound to sizes as often as it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import attrs
import numpy as np
import tvm
from tvm import relax

from ..errors import DynamicShapeError
from ..model_state import callers
from ..sizes.open_symbols import LEAST
from ..sizes.size_space import SizeSpace
from ..sizes.symbolic_shapes import OpenSignature, Sizes

if TYPE_CHECKING:
    from .relax_symbols import OpenKernel

#: What an operator outside kernels computes: its operands' numbers -> its results'.
HostFunction = Callable[[Sequence[np.ndarray | None]], Sequence[np.ndarray]]
#: Shapes of inputs by name; of an input that is a number, the number as a tuple of one.
InputShapes = Mapping[str, tuple[int, ...]]


class StageRunner(Protocol):
    """Runs the stages of a model in the order in which its import asks for them."""

    def run(self, module: tvm.IRModule, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Run a stage: its parameters and results are the values of these names."""

    def values_of(self, names: Sequence[str]) -> list[np.ndarray]:
        """The numbers of values, on which all that follows is specialised."""

    def compute(
        self,
        operator: str,
        reason: str,
        function: HostFunction,
        inputs: Sequence[str],
        outputs: Sequence[str],
    ) -> list[np.ndarray]:
        """Run an operator outside kernels, for a reason; all that follows goes by its results' shapes."""


class OpenModel(Protocol):
    """A model whose inputs have sizes, or decide by values, that are not known yet."""

    @property
    def signature(self) -> OpenSignature:
        """Its inputs."""

    @property
    def structure(self) -> str | None:
        """How its arguments are nested (`uir_tvm.structure.Structure` as JSON text); None: they are flat."""

    @property
    def symbolic(self) -> SymbolicForm | None:
        """How it is read for all sizes at once; None: only for numbers."""

    def fixed(self, sizes: Sizes) -> OpenModel:
        """The model with numbers for some symbols."""

    def module(self, shapes: InputShapes) -> tvm.IRModule:
        """A normalised Relax module for these shapes of all inputs."""

    def run(
        self, shapes: InputShapes, values: Mapping[str, np.ndarray], driver: StageRunner
    ) -> Sequence[str]:
        """Import the model for these shapes and values, stage by stage; the outputs' names."""


@attrs.frozen(eq=False)
class SymbolicForm:
    """A model read with its symbols, for all sizes at once.

    Attributes
    ----------
    variables : mapping of str to str
        The name that each symbol has in Relax.
    module : callable
        The normalised module, its sizes read in a space. It raises whatever keeps the model from being read
        so.
    check : callable
        Raises SizeError for sizes that the model does not take.
    inputs : tuple of str
        The model's names of the module's parameters, where those have others.
    asserted : callable
        What ``check`` asks, as conditions that `sizes.saved_sizes.holds` reads; OpenSizeError where they
        have no text.
    least : int
        Sizes below this mean something else: the model is read for them by themselves.
    """

    variables: Mapping[str, str]
    module: Callable[[SizeSpace], tvm.IRModule]
    check: Callable[[Sizes], None]
    inputs: tuple[str, ...] = ()
    asserted: Callable[[], tuple[str, ...]] = tuple
    least: int = LEAST


@attrs.frozen(eq=False)
class BoundAtOnce:
    """A model that is one module once its sizes are known.

    Parameters
    ----------
    signature : OpenSignature
        Of what is still open.
    bound : callable
        The module for a size of every symbol.
    structure : str, optional
        As of `OpenModel`.
    given : mapping of str to int
        Symbols that have their size already.
    symbolic : SymbolicForm, optional
        How it is read for all sizes at once; None: only for numbers.
    kernel : OpenKernel, optional
        Where it is one kernel with symbols.
    """

    signature: OpenSignature
    bound: Callable[[Sizes], tvm.IRModule]
    structure: str | None = None
    given: Sizes = attrs.field(factory=dict)
    symbolic: SymbolicForm | None = None
    kernel: OpenKernel | None = None

    def fixed(self, sizes: Sizes) -> BoundAtOnce:
        """See `OpenModel.fixed`."""
        return attrs.evolve(
            self,
            signature=self.signature.fixed(sizes),
            given={**self.given, **sizes},
            symbolic=None,
            kernel=None,
        )

    def module(self, shapes: InputShapes) -> tvm.IRModule:
        """See `OpenModel.module`."""
        return self.bound({**self.given, **self.signature.bind(shapes)})

    def run(
        self, shapes: InputShapes, values: Mapping[str, np.ndarray], driver: StageRunner
    ) -> Sequence[str]:
        """See `OpenModel.run`."""
        module = self.module(shapes)
        names, count = callers(module)
        outputs = [f"output{index}" for index in range(count)]
        driver.run(module, names, outputs)
        return outputs


def has_open_sizes(model: OpenModel) -> DynamicShapeError:
    """The error that hands a model on: `uir_tvm.compile` binds it, at the call if need be."""
    signature = model.signature
    names = signature.symbols
    needed = ", ".join(f"{name!r}: ..." for name in names)
    options = " ".join(f"--size {name}=..." for name in names)
    return DynamicShapeError(
        f"the model leaves {', '.join(names)} open" if names else "the model finds sizes while it runs",
        where="; ".join(map(str, signature.inputs)),
        need="fixed sizes",
        remedy=(f"pass sizes={{{needed}}} ({options}), or " if names else "")
        + "call uir_tvm.compile, which compiles at the call",
        model=model,
    )


def count_of_results(module: tvm.IRModule) -> int:
    """How many tensors ``main`` returns."""
    result = module["main"].ret_ty
    return len(result.fields) if isinstance(result, relax.TupleType) else 1
