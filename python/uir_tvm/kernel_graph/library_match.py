# SPDX-License-Identifier: Apache-2.0
"""Contractions as library operators, with the bias, activation and residual that the library adds."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np

from ..environment import num_threads
from ..library.library_tables import LibraryTable
from ..sizes.open_arithmetic import broadcast_shapes, representative, same
from .activation_patterns import PATTERNS, activation_of
from .choices import APART, DEFAULT, KERNEL, PLAIN, THREADS, UNPACKED, pick
from .geometry import MatmulGeometry, matmul_geometry
from .op_kinds import QUANTIZED_PRODUCT
from .patterns import reading_counts
from .program import Op, Program, Value, View, compose
from .quantized_products import joined_weights, quantized_product, unpack_products
from .scales import fold_scales, scale_weights
from .strided_views import Layout


def match_library(program: Program, table: LibraryTable, *, join: bool = True) -> None:
    """Turn matmul and conv2d into library operators and give them their epilogues.

    Parameters
    ----------
    program : Program
        Changed in place.
    table : LibraryTable
        What the target's library can do.
    join : bool
        Whether products may take more than a bias, and products of one matrix become one.

    Notes
    -----
    ``library.matmul`` and ``library.conv2d`` have operands a, b, then what `Op.attrs` says: ``epilogue`` is a
    tuple of ``bias``, ``residual`` and names of activations, in the order of their application; each of the
    first two has one more operand.  ``shape`` is the shape in which the product is meant: the result may
    have another of as many elements.
    """
    unpack_products(program, table)
    for index, op in enumerate(program.ops):
        new: Op | None
        if op.name == QUANTIZED_PRODUCT:
            new = quantized_product(program, op, table)
            _settle(new, table, kernel=False)
        else:
            new = MATCHERS[op.name](op, table) if op.name in MATCHERS else None
            new = None if new is None or _settle(new, table) == KERNEL else new
        if new is not None:
            program.ops[index] = new
            op.result.producer = new
    if table.scales and join:
        fold_scales(program, table.activations)
        scale_weights(program)
    _absorb(program, table, only_bias=True)
    if join:
        combine(program, table)
        _absorb(program, table, only_bias=False)


def _settle(op: Op, table: LibraryTable, kernel: bool = True) -> str:
    """How a library operator is to run, where measurements have said that; noted in its attributes."""
    if not table.adjustable:
        return DEFAULT
    constant = op.operands[1].base.constant is not None
    sizes = "x".join(map(str, op.attrs["shape"]))
    inner = op.operands[0].shape[-1] if op.name == "library.matmul" else op.operands[1].shape[1:]
    told = " constant" if constant else ""
    op.attrs["site"] = f"{op.name.removeprefix('library.')} {sizes} of {inner} {op.result.dtype}{told}"
    options = [f"{THREADS}{count}" for count in range(1, num_threads()) if count & (count - 1) == 0]
    options += [UNPACKED] * (constant and table.packs) + [KERNEL] * kernel
    products = op.result.size * math.prod(inner if isinstance(inner, tuple) else (inner,))
    if representative(products) <= PLAIN_MOST:
        options.append(PLAIN)
    op.attrs["option"] = pick(op.attrs["site"], options)
    return str(op.attrs["option"])


def _matmul(op: Op, table: LibraryTable) -> Op | None:
    """A matrix product of the library's dtypes."""
    a, b = op.operands
    constant = b.base.constant is not None and len(b.shape) == 2
    dtypes = (op.result.dtype, a.base.dtype, b.base.dtype)
    if not op.result.size or not table.takes("matmul", *dtypes, constant=constant):
        return None
    shapes = [view.shape for view in (a, b)]
    if len(shapes[0]) == 1:
        shapes[0] = (1, *shapes[0])
    if len(shapes[1]) == 1:
        shapes[1] = (*shapes[1], 1)
    batch = broadcast_shapes(shapes[0][:-2], shapes[1][:-2])
    views = []
    for view, shape in zip((a, b), shapes, strict=True):
        matrix = view.reshape(shape)
        if matrix is None:
            return None
        views.append(matrix.broadcast((*batch, *shape[-2:])))
    shape = (*batch, shapes[0][-2], shapes[1][-1])
    attributes = {"shape": shape, "alpha": 1.0, "epilogue": (), "unit_stride": table.unit_stride}
    return Op("library.matmul", None, views, op.results, attributes)


def _conv2d(op: Op, table: LibraryTable) -> Op | None:
    """A convolution in NCHW."""
    assert op.call is not None
    found = op.call.attrs
    layouts = (found.data_layout, found.kernel_layout, found.out_layout or found.data_layout)
    data, weight = op.operands
    if tuple(map(str, layouts)) != ("NCHW", "OIHW", "NCHW") or not op.result.size:
        return None
    if not table.takes("conv2d", op.result.dtype, data.base.dtype, weight.base.dtype):
        return None
    window: dict[str, Any] = {
        name: tuple(int(number) for number in getattr(found, name))
        for name in ("strides", "padding", "dilation")
    }
    window["groups"] = int(found.groups)
    above, left, below, right = window["padding"]
    if table.symmetric_padding and (above, left) != (below, right):
        return None
    attributes = {"shape": op.shape, "epilogue": (), "conv": window}
    return Op("library.conv2d", None, [data, weight], op.results, attributes)


#: Multiply-adds up to which plain C++ may be as fast as the library, whose calls have a price.
PLAIN_MOST = 1 << 22

MATCHERS = {"matmul": _matmul, "nn.conv2d": _conv2d}


def _absorb(program: Program, table: LibraryTable, only_bias: bool) -> None:
    """Take the sole reader of a library operator's result into its epilogue, as long as that goes."""
    counts = reading_counts(program)
    outputs = program.output_bases()
    users = program.users()
    merged: set[Op] = set()
    for op in program.ops:
        if not op.name.startswith("library."):
            continue
        while op.result not in outputs:
            step = _function_step(op, users, outputs, table)  # before a bias: x + 3 may be a part of it
            if step is None and counts[op.result] == 1:
                (reader, position), *_ = users[op.result]
                step = _step(op, reader, position, table)
            if step is None or step.inside & merged or (only_bias and step.token != "bias"):
                break
            if (
                table.adjustable
                and step.token != "bias"
                and pick(f"{op.attrs['site']} + {step.token}", (APART,))
            ):
                break
            op.attrs["epilogue"] = (*op.attrs["epilogue"], step.token)
            if step.operand is not None:
                op.operands.append(step.operand)
            op.results = step.last.results
            op.result.producer = op
            merged |= step.inside
    if merged:
        _reorder(program, merged)


def _reorder(program: Program, merged: set[Op]) -> None:
    """Drop swallowed operators; an operator moves to after the residual that it now reads."""
    program.ops = [op for op in program.ops if op not in merged]
    program.sort()


@attrs.frozen(eq=False)
class _Step:
    """A term of an epilogue: the operators that it is, the last of them, the operand that it adds."""

    token: str
    last: Op
    inside: set[Op]
    operand: View | None = None


def _function_step(
    op: Op, users: dict[Value, list[tuple[Op, int]]], outputs: set[Value], table: LibraryTable
) -> _Step | None:
    """The activation of several operators, or with parameters, that all readers of a result are."""
    found = activation_of(op.result, users, outputs)
    if found is None:
        return None
    function, last, inside = found
    name = table.activations.get(function.name)
    alike = (last.result.dtype, last.result.size) == (op.result.dtype, op.result.size)
    if name is None or not alike or not same(last.result.shape, op.result.shape):
        return None
    token = f"{name}({','.join(map(str, function.parameters))})"
    allowed = table.allows((*op.attrs["epilogue"], token), op.name.removeprefix("library."))
    return _Step(token, last, inside) if allowed else None


def _step(op: Op, reader: Op, position: int, table: LibraryTable) -> _Step | None:
    """The epilogue that a reader is, with its operand in the product's shape."""
    shape, result = op.attrs["shape"], op.result
    view = reader.operands[position]
    if reader.kind.kind != "elementwise" or len(reader.results) != 1:
        return None
    if (reader.result.dtype, reader.result.size) != (result.dtype, result.size):
        return None
    if not _in_order(view, result.shape):
        return None
    epilogue, kind = op.attrs["epilogue"], op.name.removeprefix("library.")
    if len(reader.operands) == 1:
        token = None if reader.name in PATTERNS else table.activations.get(reader.name)
        return _Step(token, reader, {reader}) if token and table.allows((*epilogue, token), kind) else None
    if reader.name != "add" or len(reader.operands) != 2:
        return None
    other = reader.operands[1 - position].reshape(shape)
    if other is None or other.base.dtype != result.dtype:
        return None
    token = "bias" if _is_bias(op, other) else "residual"
    if not table.allows((*epilogue, token), kind):
        return None
    if token == "residual" and not _lies_as_result(op, other):
        return None
    return _Step(token, reader, {reader}, other)


def _lies_as_result(op: Op, residual: View) -> bool:
    """Whether a residual has the element order of the result, as the library wants it."""
    whole = residual.layout.offset == 0 and residual.layout.size == residual.base.size
    return whole and residual.layout == Layout.contiguous(op.attrs["shape"])


def _in_order(view: View, shape: tuple[int, ...]) -> bool:
    """Whether a reader takes the whole value in its order, in whatever shape."""
    again = view.reshape(shape)
    return again is not None and again.is_whole


def _is_bias(op: Op, view: View) -> bool:
    """Whether a tensor varies along the channels alone, and is a constant or a vector in memory."""
    channel = len(view.shape) - 1 if op.name == "library.matmul" else 1
    dims = view.layout.dims
    if any(stride for axis, dim in enumerate(dims) if axis != channel for _, stride in dim):
        return False
    vector = view.base.size == view.shape[channel] and dims[channel] == ((view.base.size, 1),)
    return view.base.constant is not None or (vector and view.layout.offset == 0)


def operand(op: Op, token: str) -> View | None:
    """The operand of ``bias`` or ``residual``, if the epilogue has one."""
    position = 2
    for name in op.attrs["epilogue"]:
        if name == token:
            return op.operands[position]
        position += name in ("bias", "residual")
    return None


def geometry(op: Op) -> MatmulGeometry | None:
    """Sizes and strides of a ``library.matmul``; None where the library needs a copy of an operand."""
    out = op.result.view().reshape(op.attrs["shape"])
    residual = operand(op, "residual")
    if out is None or (residual is not None and residual.layout != out.layout):
        return None
    found = matmul_geometry(op.operands[0].layout, op.operands[1].layout, out.layout)
    return None if found and op.attrs["unit_stride"] and not found.unit_stride else found


def combine(program: Program, table: LibraryTable) -> None:
    """Products of one matrix with several constant ones -> one product with the constants side by side.

    Before: q = x @ wq + bq; k = x @ wk + bk.  After: qk = x @ [wq wk] + [bq bk], q and k are views of qk.
    """
    outputs = program.output_bases()
    families: dict[Any, list[Op]] = {}
    for op in program.ops:
        if op.name == "library.matmul" and _combinable(op) and op.result not in outputs:
            a = op.operands[0]
            quantized = op.operands[1].base.quantized
            packing = None if quantized is None else quantized.packing
            families.setdefault((a.base, a.layout, op.result.dtype, packing), []).append(op)
    users = program.users()
    for family in families.values():
        if len(family) > 1:
            _combine(program, family, users, table)
    program.remove_dead()
    program.sort()


def _combinable(op: Op) -> bool:
    """A product with one constant matrix and at most a constant bias, in the shape in which it is meant."""
    bias, weight = operand(op, "bias"), op.operands[1]
    one_matrix = not any(stride for dim in weight.layout.dims[:-2] for _, stride in dim)
    return (
        op.attrs["alpha"] == 1.0
        and op.attrs["epilogue"] in ((), ("bias",))
        and (weight.base.constant is not None or weight.base.quantized is not None)
        and one_matrix
        and op.attrs["shape"] == op.result.shape
        and (bias is None or bias.base.constant is not None)
    )


def _combine(
    program: Program, family: list[Op], users: dict[Value, list[tuple[Op, int]]], table: LibraryTable
) -> None:
    widths = [op.result.shape[-1] for op in family]
    lead = family[0].result.shape[:-1]
    if any(op.result.shape[:-1] != lead for op in family):
        return
    if table.adjustable and pick(f"{len(family)} of one matrix: {family[0].attrs['site']}", (APART,)):
        return
    weight = _side_by_side(program, [op.operands[1] for op in family])
    shape = (*lead, sum(widths))
    operands = [family[0].operands[0], weight.broadcast((*lead[:-1], *weight.shape))]
    biases = [operand(op, "bias") for op in family]
    epilogue: tuple[str, ...] = ()
    if any(bias is not None for bias in biases):
        parts = [
            np.zeros(width, weight.base.dtype) if bias is None else dense(bias, 1)
            for bias, width in zip(biases, widths, strict=True)
        ]
        operands.append(program.constant(np.concatenate(parts), "bias").view().broadcast(shape))
        epilogue = ("bias",)
    attributes = {
        "shape": shape,
        "alpha": 1.0,
        "epilogue": epilogue,
        "unit_stride": family[0].attrs["unit_stride"],
    }
    first = family[0].result
    joined = program.add_op(
        "library.matmul", operands, shape, first.dtype, attributes=attributes, hint=first.name
    )
    _settle(joined, table, kernel=False)
    whole, begin, pieces = joined.result.view(), 0, []
    for width in widths:
        layout = whole.layout.slice(len(lead), begin, width)
        assert layout is not None
        pieces.append(View(whole.base, layout))
        begin += width
    for op, piece in zip(family, pieces, strict=True):
        readings = [reader.operands[position] for reader, position in users.get(op.result, [])]
        if any(compose(reading, piece) is reading for reading in readings):
            return
    program.ops.insert(program.ops.index(family[0]), joined)
    for op, piece in zip(family, pieces, strict=True):
        program.replace_value(op.result, piece)


def _side_by_side(program: Program, weights: list[View]) -> View:
    """The columns of all these matrices, as one constant."""
    if all(weight.base.quantized is None for weight in weights):
        arrays = [dense(weight, 2) for weight in weights]
        return program.constant(np.concatenate(arrays, axis=1), "weight").view()
    return joined_weights(program, [weight.base for weight in weights])


def dense(view: View, rank: int) -> np.ndarray:
    """The last ``rank`` dimensions of a view of a constant, at index 0 of the others, contiguous."""
    flat = np.ascontiguousarray(view.base.array).reshape(-1)[view.layout.offset :]
    dims = view.layout.dims[len(view.layout.dims) - rank :]
    atoms = [atom for dim in dims for atom in dim]
    strided = np.lib.stride_tricks.as_strided(
        flat, [extent for extent, _ in atoms], [stride * flat.itemsize for _, stride in atoms]
    )
    return np.ascontiguousarray(strided.reshape(view.shape[len(view.shape) - rank :]))
