# SPDX-License-Identifier: Apache-2.0
"""Library operators of the program as calls: attributes, packed weights, operands in memory."""

from __future__ import annotations

from typing import Any

import tvm
from attrs import evolve
from tvm import relax

from ..library.attrs import Conv2dAttrs, MatmulAttrs
from ..library.attrs import OperandLayout as LibraryView
from ..library.cpu import pack_weight
from ..library.library_tables import LibraryTable
from ..library.quantized_attrs import QuantizedMatmulAttrs
from ..options import CONVOLUTIONS
from .choices import DEFAULT, PLAIN, THREADS, UNPACKED
from .library_match import dense, geometry, operand
from .op_kinds import QUANTIZED_PRODUCT
from .program import Op, Program, Value, View
from .quantized_products import packed_product
from .strided_views import Layout

#: Of `CompileOptions.convolution`, and of a convolution's plan.
DIRECT = CONVOLUTIONS[1]


def library_call(program: Program, op: Op, table: LibraryTable) -> tuple[str, Any, list[Value]]:
    """What the library is called with.

    Parameters
    ----------
    program : Program
        Gets the packed weights and dense biases as constants.
    op : Op
        ``library.matmul`` or ``library.conv2d``, after `storage.place`.
    table : LibraryTable

    Returns
    -------
    function : str
        Its registered name.
    attributes : MatmulAttrs or Conv2dAttrs
    operands : list of Value
        Buffers in the function's order, without the output.
    """
    kind = op.name.removeprefix("library.")
    attributes: MatmulAttrs | Conv2dAttrs = _matmul_attrs(op) if kind == "matmul" else conv2d_attrs(op)
    if isinstance(attributes, Conv2dAttrs) and table.adjustable and table.convolution == DIRECT:
        attributes = evolve(attributes, plan=DIRECT)
    option = op.attrs.get("option", DEFAULT)
    if option == PLAIN:
        attributes = evolve(attributes, plan="plain")
    elif option.startswith(THREADS):
        attributes = evolve(attributes, threads=int(option.removeprefix(THREADS)))
    weight = op.operands[1].base
    function = table.functions[kind]
    if weight.quantized is not None:
        assert isinstance(attributes, MatmulAttrs), op
        function = table.functions[QUANTIZED_PRODUCT]
        attributes, weight = packed_product(program, weight.quantized, attributes, table.digits)
    packs = table.packs and weight.constant is not None and option != UNPACKED
    packs = packs and weight.constant is not None and function == table.functions[kind]
    if packs and (isinstance(attributes, Conv2dAttrs) or attributes.packable):
        attributes, weight = packed_weight(program, op.operands[1], attributes)
    elif isinstance(attributes, Conv2dAttrs) and weight.constant is not None and not op.operands[1].is_whole:
        weight = program.constant(dense(op.operands[1], 4), "weight")
    operands = [op.operands[0].base, weight]
    bias, residual = operand(op, "bias"), operand(op, "residual")
    if bias is not None:
        operands.append(dense_bias(program, op))
    if residual is not None:
        operands.append(residual.base)
    return function, attributes, operands


def kind_of_call(op: Op, attributes: Any) -> str:
    """What a call computes: a key of `library.work.WORK`."""
    if isinstance(attributes, QuantizedMatmulAttrs):
        return QUANTIZED_PRODUCT
    return op.name.removeprefix("library.")


def _epilogue(op: Op) -> dict[str, Any]:
    """The library's names for an epilogue."""
    steps = op.attrs["epilogue"]
    activation = next((step for step in steps if step not in ("bias", "residual")), "none")
    residual = "none"
    if "residual" in steps:
        after = activation != "none" and steps.index("residual") > steps.index(activation)
        residual = "after_activation" if after else "before_activation"
    return {"bias": "bias" in steps, "residual": residual, "activation": activation}


def _matmul_attrs(op: Op) -> MatmulAttrs:
    found = geometry(op)
    assert found is not None, op
    views = [
        LibraryView([axis.strides[i] for axis in found.batch] + list(found.strides[i]), found.offsets[i])
        for i in range(3)
    ]
    return MatmulAttrs(
        batch=[axis.extent for axis in found.batch],
        m=found.m,
        n=found.n,
        k=found.k,
        a=views[0],
        b=views[1],
        out=views[2],
        alpha=op.attrs["alpha"],
        **_epilogue(op),
    )


def conv2d_attrs(op: Op) -> Conv2dAttrs:
    data, weight = op.operands[:2]
    return Conv2dAttrs(input=data.shape, weight=weight.shape, **op.attrs["conv"], **_epilogue(op))


def packed_weight(program: Program, view: View, attributes: Any) -> tuple[Any, Value]:
    """A weight in the library's own layout, laid out row-major before, and the attributes that say so."""
    if isinstance(attributes, MatmulAttrs):
        array = dense(view, 2)
        row_major = LibraryView([0] * len(attributes.batch) + [array.shape[1], 1])
        attributes = evolve(attributes, b=row_major)
    else:
        array = dense(view, 4)
    attributes = attributes.with_packed_weight()
    blob = tvm.runtime.from_dlpack(pack_weight(array, attributes))  # no copy: weights are large
    return attributes, program.fresh("packed", blob.shape, "uint8", relax.const(blob, "uint8"))


def dense_bias(program: Program, op: Op) -> Value:
    """A bias as a vector of its own, or a buffer that is one already."""
    view = operand(op, "bias")
    assert view is not None
    channel = len(view.shape) - 1 if op.name == "library.matmul" else 1
    vector, size = view.layout.dims[channel], view.shape[channel]
    if view.base.size == size and view.layout.offset == 0 and vector == ((size, 1),):
        return view.base
    column = View(view.base, Layout((vector,), view.layout.offset))
    return program.constant(dense(column, 1), "bias")
