# SPDX-License-Identifier: Apache-2.0
"""What a converter sees of a node, and the short forms in which converters are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import onnx
from onnx import helper
from tvm import relax

from ....errors import FrontendError, UnsupportedOperatorError
from ...relax_view import dtype_of, shape_of
from ..known import VersionedNode, attributes_of

if TYPE_CHECKING:
    from ..walk import Walk

#: A node -> the expressions of its outputs; None leaves the node to TVM's converter.
Converter = Callable[["OnnxNode"], "Sequence[Any] | None"]


class OnnxNode:
    """A node with its operands as Relax expressions.

    Attributes
    ----------
    step : VersionedNode
    inputs : list of Expr or None
        None for an operand that is left out.
    attributes : dict
        With the defaults of the operator's schema.
    """

    def __init__(self, step: VersionedNode, inputs: Sequence[Any], walk: Walk) -> None:
        self.step, self.inputs, self.walk = step, list(inputs), walk
        self.attributes: dict[str, Any] = attributes_of(step)
        self.builder = walk.builder

    def input(self, place: int) -> Any:
        """An operand; None where it is left out."""
        return self.inputs[place] if place < len(self.inputs) else None

    def constant(self, place: int) -> np.ndarray | None:
        """The numbers of a constant operand."""
        names = self.step.node.input
        return self.walk.known.array(names[place]) if place < len(names) and names[place] else None

    def shape(self, place: int = 0) -> tuple[int, ...]:
        """The shape of an operand."""
        shape = shape_of(self.inputs[place])
        assert shape is not None, "operands have fixed shapes"
        return shape

    def dtype(self, place: int = 0) -> str:
        """The dtype of an operand."""
        return dtype_of(self.inputs[place])

    def result(self, place: int = 0) -> tuple[tuple[int, ...] | None, str]:
        """Shape and dtype of an output, as the standard infers them."""
        name = self.step.node.output[place]
        element = self.walk.known.element(name)
        return self.walk.known.shape(name), helper.tensor_dtype_to_np_dtype(element).name if element else ""

    def axis(self, number: int, rank: int | None = None) -> int:
        """An axis of the first operand, from its start; one outside is refused."""
        rank = len(self.shape()) if rank is None else rank
        if not -rank <= number < rank:
            raise FrontendError(
                f"{self.step.operator} names axis {number}",
                where=self.step.text,
                need=f"an axis of {-rank} to {rank - 1}",
                remedy="give an axis that the operand has",
            )
        return number % rank

    def emit(self, expr: Any) -> Any:
        """Bind an expression to a variable."""
        return self.builder.emit(expr)

    def sub(self, operator: str, inputs: Sequence[Any], outputs: int = 1, **attributes: Any) -> Any:
        """Another node's result by TVM's converter."""
        node = helper.make_node(operator, [""] * len(inputs), [f"r{i}" for i in range(outputs)], **attributes)
        results = [
            self.emit(value) for value in self.walk._stock(VersionedNode(node, self.step.version), inputs)
        ]
        return results[0] if outputs == 1 else results

    def refuse(self, why: str, need: str = "", remedy: str = "") -> NoReturn:
        """Say that this form of the operator cannot be compiled."""
        raise UnsupportedOperatorError(
            f"{self.step.operator} {why}",
            where=self.step.text,
            need=need,
            remedy=remedy or "write it by other operators",
        )


def dtype_of_element(element: int) -> str:
    """The name of an element type of ``onnx.TensorProto``."""
    return helper.tensor_dtype_to_np_dtype(element).name


def number(value: float, dtype: str) -> Any:
    """A constant of rank 0."""
    return relax.const(np.array(value).astype(helper.tensor_dtype_to_np_dtype(_element(dtype))), dtype)


def _element(dtype: str) -> int:
    import ml_dtypes

    return helper.np_dtype_to_tensor_dtype(np.dtype(getattr(ml_dtypes, dtype, dtype)))


__all__ = ["Converter", "OnnxNode", "dtype_of_element", "number", "onnx"]
