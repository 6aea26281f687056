# SPDX-License-Identifier: Apache-2.0
"""ONNX operators whose data decide the shapes of their results, in a model that is read for all sizes.

They run outside kernels. The sizes that they find have names (``found_0``), and what follows is compiled once
for all of them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import onnx
import tvm
from tvm import relax, tirx

from ...opaque_call import FOUND, ONNX, dumps
from ...sizes.open_size import OpenSize, expressions
from ...sizes.size_space import SizeSpace
from ..open_model import HostFunction
from .host_operators import HOST, RAGGED, by_standard
from .known import Known, VersionedNode, attributes_of, element_name

if TYPE_CHECKING:
    from .walk import Walk

#: A size with a name of its own; at most what is given.
Fresh = Callable[[Any], OpenSize]
#: The shapes of a node's results, and their element types.
Results = list[tuple[list[Any], int]]

INT64 = onnx.TensorProto.INT64


def _non_zero(step: VersionedNode, known: Known, fresh: Fresh) -> Results:
    shape = known.shape(step.node.input[0]) or ()
    return [([len(shape), fresh(prod(shape))], INT64)]


def _compress(step: VersionedNode, known: Known, fresh: Fresh) -> Results:
    name = step.node.input[0]
    shape, axis = list(known.shape(name) or ()), attributes_of(step).get("axis")
    if axis is None:
        return [([fresh(prod(shape))], known.element(name))]
    place = int(axis) % len(shape)  # type: ignore[call-overload]
    return [([*shape[:place], fresh(shape[place]), *shape[place + 1 :]], known.element(name))]


def _unique(step: VersionedNode, known: Known, fresh: Fresh) -> Results:
    name = step.node.input[0]
    shape, axis = list(known.shape(name) or ()), attributes_of(step).get("axis")
    if axis is None:
        shape, place = [prod(shape)], 0
    else:
        place = int(axis) % len(shape)  # type: ignore[call-overload]
    count = fresh(shape[place])
    values: list[Any] = [*shape[:place], count, *shape[place + 1 :]]
    rows: Results = [
        (values, known.element(name)),
        ([count], INT64),
        ([shape[place]], INT64),
        ([count], INT64),
    ]
    wanted = [bool(name) for name in [*step.node.output, "", "", ""][:4]]
    return [row for row, want in zip(rows, wanted, strict=True) if want]


def _boxes(step: VersionedNode, known: Known, fresh: Fresh) -> Results:
    return [([fresh(None), 3], INT64)]


#: Operator -> the shapes of its results.
RESULTS: dict[str, Callable[[VersionedNode, Known, Fresh], Results]] = {
    "Compress": _compress,
    "NonMaxSuppression": _boxes,
    "NonZero": _non_zero,
    "Unique": _unique,
}


def convert_found(step: VersionedNode, walk: Walk, known: Known, space: SizeSpace) -> None:
    """Make the values of a node's results: a call at run time, whose results have the sizes that it finds."""

    def fresh(most: Any) -> OpenSize:
        name = f"found_{len(space.found)}"
        high = most if isinstance(most, int) else None
        return space.find(name, (0, high), tirx.Var(name, "int64"))

    results = RESULTS[step.node.op_type](step, known, fresh)
    names = list(step.node.input)
    given = [name for name in names if name]
    text = dumps(
        ONNX + step.operator,
        [{"tensor": given.index(name)} if name else None for name in names],
        {},
        (),
        RAGGED,
        node=base64.b64encode(step.node.SerializeToString()).decode(),
        version=step.version,
        results=[([str(size) for size in shape], element_name(kind)) for shape, kind in results],
    )
    ranks = [relax.TensorType(dtype=element_name(kind), ndim=len(shape)) for shape, kind in results]
    made = walk.builder.emit(
        relax.op.call_pure_packed(
            FOUND,
            *[walk.value(name) for name in given],
            tvm.ir.StringImm(text),
            ty_args=ranks[0] if len(ranks) == 1 else relax.TupleType(ranks),
        )
    )
    outputs = [name for name in step.node.output if name]
    for index, (name, (shape, kind)) in enumerate(zip(outputs, results, strict=True)):
        part = made if len(ranks) == 1 else walk.builder.emit(relax.TupleGetItem(made, index))
        cast = relax.TensorType(relax.ShapeExpr(expressions(shape)), element_name(kind))
        walk.values[name] = walk.builder.match_cast(part, cast)
        known.add_type(name, kind, shape)


def function_of(node: str, version: int) -> HostFunction:
    """What computes a node, of its text in a call.

    Parameters
    ----------
    node : str
        The node, serialised, in base64.
    version : int
        Of its domain's operators.
    """
    step = VersionedNode(onnx.NodeProto.FromString(base64.b64decode(node)), version)
    return HOST.get(step.node.op_type, by_standard)(step)


def takes(step: VersionedNode, known: Known) -> bool:
    """Whether a node can be called so: all that it reads has a shape."""
    names: Sequence[str] = [name for name in step.node.input if name]
    return step.node.op_type in RESULTS and all(known.shape(name) is not None for name in names)
