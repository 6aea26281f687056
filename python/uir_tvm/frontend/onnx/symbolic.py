# SPDX-License-Identifier: Apache-2.0
"""An ONNX model read once for all sizes that it leaves open.

The graph is walked as for numbers. Shapes and what is computed of them are open sizes (`open_arrays`), and
each node that must run is converted when it is met: Relax tells the shape of its result where ONNX does not.
What needs a number raises, and the model is imported for each shape.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import tvm
from tvm import tirx

from ...one_at_a_time import one_at_a_time
from ...sizes.open_size import OpenSize
from ...sizes.size_space import SizeSpace, reading_open_sizes
from ...sizes.symbolic_shapes import OpenSignature
from ..normalize import normalize
from ..relax_view import dtype_of, shape_of
from .declared import check_results, checked_values
from .found import convert_found, takes
from .input_shapes import forget_nameless, graph_inputs
from .known import Known, VersionedNode
from .model_file import load
from .simplifier import Simplifier
from .walk import Walk, check_operators


@one_at_a_time
def symbolic_module(
    model: onnx.ModelProto,
    signature: OpenSignature,
    values: Mapping[str, np.ndarray],
    space: SizeSpace,
) -> tvm.IRModule:
    """A normalised Relax module with symbols.

    Parameters
    ----------
    model : onnx.ModelProto
    signature : OpenSignature
        Its inputs but those with values.
    values : mapping of str to numpy.ndarray
    space : SizeSpace
        Of the signature's symbols.

    Raises
    ------
    Exception
        Of many kinds, from code that needs a number where a size is open.
    """
    loaded = load(model)
    forget_nameless(loaded.graph)
    for name in space.symbols:
        space.meet(name, tirx.Var(name, "int64"))
    with reading_open_sizes(space):
        simplifier = Simplifier(
            loaded,
            checked_values(loaded, values),
            convert=lambda step: _convert(step, walk, simplifier.known, space),
        )
        sizes = {each.name: [space.said(str(size)) for size in each.sizes] for each in signature.inputs}
        for value in graph_inputs(loaded.graph):
            if value.name in sizes:
                simplifier.known.add_type(value.name, value.type.tensor_type.elem_type, sizes[value.name])
        walk = Walk(simplifier.known, simplifier.inputs)
        module = normalize(walk.module(simplifier.simplify))
        check_results(loaded.graph.output, module["main"])
        return module


def _convert(step: VersionedNode, walk: Walk, known: Known, space: SizeSpace) -> None:
    """Convert a node, and note the shapes of its results as Relax tells them."""
    if takes(step, known):
        convert_found(step, walk, known, space)
        return
    check_operators([step])
    walk.convert(step)
    for name in step.node.output:
        if not name:
            continue
        value = walk.values[name]
        shape = shape_of(value)
        if shape is not None and any(isinstance(size, OpenSize) for size in shape):
            known.add_type(name, known.element(name) or _element(dtype_of(value)), shape)


def _element(dtype: str) -> int:
    return onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
