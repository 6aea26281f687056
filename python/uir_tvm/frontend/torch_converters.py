# SPDX-License-Identifier: Apache-2.0
"""Converters of PyTorch operators to Relax: ours where TVM's are wrong, and a check on every one."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
import tvm
from torch import fx
from tvm import relax
from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

from ..errors import FrontendError, last_line
from ..sizes.open_arithmetic import is_open, structure
from ..sizes.open_size import OpenSize
from .relax_view import dtype_of, shape_of
from .torch_affine import AFFINE
from .torch_convolutions import CONVOLUTIONS
from .torch_graph import arguments, describe, target_name
from .torch_opaque import is_complex, obstacle, opaque, opaque_converter
from .torch_quantized import NAME, convert_dequantize
from .torch_recurrent import RECURRENT
from .torch_scatter import SCATTERS
from .torch_slices import meet_variables, select, size_of, slice_of, split
from .torch_sorting import SORTS
from .torch_windows import WINDOWS

Converter = Callable[[fx.Node, Any], Any]

#: Operators of elements whose other operand may be a size.
COMPUTED_WITH = frozenset(
    "add sub rsub mul div remainder floor_divide maximum minimum eq ne lt le gt ge".split()
)

REMEDY = (
    'pass converters={"library::operator": function(node, importer) -> relax.Var, or '
    "uir_tvm.InTorch(function)} to uir_tvm.compile (custom_convert_map of from_torch), "
    "or write the operator in terms of others in the model"
)

_RANDOM = "draws random numbers; call eval() on the module before export"
_SPECIAL = "is a special function that no target computes; write it as a series, or run it outside the model"
_LOOP = "is computed by a loop whose length depends on data; run it outside the model"
_COMPLEX = "makes or reads complex numbers; compute with their real and imaginary parts"
_BITS = "reads a number's bits as another's; keep the dtype, or run it outside the model"
_VALUE = "makes a Python number of a tensor's value; keep it a tensor"

# The importer has converters for these which are not what PyTorch computes, or which no target can run.
REFUSED: dict[str, str] = {
    "bernoulli.p": _RANDOM,
    "native_dropout.default": _RANDOM,
    **dict.fromkeys(
        (
            "exponential.default",
            "multinomial.default",
            "normal_functional.default",
            "rand.default",
            "rand_like.default",
            "randint.default",
            "randint.low",
            "randn.default",
            "randn_like.default",
            "randperm.default",
            "uniform.default",
        ),
        _RANDOM,
    ),
    "item.default": _VALUE,
    "_local_scalar_dense.default": _VALUE,
    **dict.fromkeys(
        (
            "digamma.default",
            "erfinv.default",
            "i0.default",
            "igamma.default",
            "igammac.default",
            "lgamma.default",
            "polygamma.default",
            "special_i0e.default",
            "special_i1.default",
            "special_i1e.default",
            "special_zeta.default",
        ),
        _SPECIAL,
    ),
    **dict.fromkeys(("gcd.default", "lcm.default"), _LOOP),
    **dict.fromkeys(("nextafter.default", "view.dtype"), _BITS),
    **dict.fromkeys(
        ("complex.default", "polar.default", "view_as_complex.default", "view_as_real.default"), _COMPLEX
    ),
    "masked_select.default": "has a shape that depends on data; use torch.where",
    "to_sparse.default": "makes a sparse tensor; keep it dense",
    "_sparse_mm.default": "multiplies sparse tensors; keep them dense",
    "_sparse_addmm.default": "multiplies sparse tensors; keep them dense",
}


def _matmul(node: fx.Node, importer: ExportedProgramImporter) -> relax.Var:
    """matmul in the operands' own dtype (TVM's converter makes every product float32)."""
    left, right = (importer.env[arg] for arg in node.args[:2])
    return importer.block_builder.emit(relax.op.matmul(left, right))


def _linear(node: fx.Node, importer: ExportedProgramImporter) -> relax.Var:
    """x @ weight^T + bias, the bias as the second operand of its sum."""
    args = importer.retrieve_args(node)
    emit = importer.block_builder.emit
    product = emit(relax.op.matmul(args[0], emit(relax.op.permute_dims(args[1]))))
    bias = args[2] if len(args) > 2 else None
    return product if bias is None else emit(relax.op.add(product, bias))


def _addmm(node: fx.Node, importer: ExportedProgramImporter) -> relax.Var:
    """beta * bias + alpha * (x @ y), the bias as the second operand of its sum."""
    bias, left, right = (importer.env[arg] for arg in node.args[:3])
    emit = importer.block_builder.emit
    product = emit(relax.op.matmul(left, right))
    alpha, beta = node.kwargs.get("alpha", 1), node.kwargs.get("beta", 1)
    if alpha != 1:
        product = emit(relax.op.multiply(product, relax.const(alpha, str(product.ty.dtype))))
    if beta == 0:
        return product
    if beta != 1:
        bias = emit(relax.op.multiply(bias, relax.const(beta, str(bias.ty.dtype))))
    return emit(relax.op.add(product, bias))


def _embedding(node: fx.Node, importer: ExportedProgramImporter) -> relax.Var:
    """Rows of a table by indices of any shape and integer dtype (TVM's converter casts them to int32)."""
    weight, indices = (importer.env[arg] for arg in node.args[:2])
    return importer.block_builder.emit(relax.op.take(weight, indices, axis=0))


def _indexed(name: str, node: fx.Node, importer: ExportedProgramImporter) -> relax.Var:
    """Indexing by tensors, negative indices from the end (TVM's converter reads before the tensor)."""
    source, indices = node.args[:2]
    assert isinstance(source, fx.Node) and isinstance(indices, list | tuple)
    known, emit = dict(importer.env), importer.block_builder.emit
    for axis, index in enumerate(indices):
        if not isinstance(index, fx.Node) or index.meta["val"].dtype in (torch.bool, torch.uint8):
            continue
        value = importer.env[index]
        zero = relax.const(0, dtype_of(value))
        size = _size_tensor(size_of(source.meta["val"].shape[axis]), dtype_of(value), emit)
        negative, wrapped = emit(relax.op.less(value, zero)), emit(relax.op.add(value, size))
        importer.env[index] = emit(relax.op.where(negative, wrapped, value))
    try:
        return importer.create_convert_map()[name](node)
    finally:
        importer.env = known


def _size_tensor(size: Any, dtype: str, emit: Callable[..., Any]) -> tvm.ir.Expr:
    """A size as a tensor of no axes."""
    if not isinstance(size, OpenSize):
        return relax.const(size, dtype)
    return emit(relax.op.reshape(emit(relax.op.arange(size, size + 1, 1, dtype)), ()))


def _reduced(operation: Callable[..., Any], node: fx.Node, importer: ExportedProgramImporter) -> relax.Var:
    """Maximum or minimum over axes."""
    axes = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", [])
    keepdim = node.args[2] if len(node.args) > 2 else node.kwargs.get("keepdim", False)
    axes = list(axes) if isinstance(axes, list | tuple) else [axes]
    return importer.block_builder.emit(operation(importer.env[node.args[0]], axes or None, keepdims=keepdim))


def _layer_norm(node: fx.Node, importer: ExportedProgramImporter) -> relax.Var:
    """Layer normalisation, with or without weight and bias (TVM's converter fails where it is given None)."""
    given = arguments(node, "x", "shape", "weight", "bias", "eps")
    x, shape = importer.env[given["x"]], list(given["shape"])
    dtype = dtype_of(x)
    factors = []
    for name, number in (("weight", 1), ("bias", 0)):
        factor = given.get(name)
        if factor is None:
            factors.append(
                importer.block_builder.emit(relax.op.full(shape, relax.const(number, dtype), dtype))
            )
        else:
            factors.append(importer.env[factor])
    axes = list(range(-len(shape), 0))
    eps = float(given.get("eps", 1e-5))
    return importer.block_builder.emit(relax.op.nn.layer_norm(x, *factors, axes=axes, epsilon=eps))


def _max_pool3d(stock: Stock, node: fx.Node, importer: ExportedProgramImporter) -> relax.Var:
    """A pool whose stride is its window where there is none (TVM's converter fails)."""
    if len(node.args) < 3 or not node.args[2]:
        node.args = (*node.args[:2], node.args[1], *node.args[3:])
    return stock.convert("max_pool3d.default", node, importer)


def _shift(
    operation: Callable[..., relax.Expr], node: fx.Node, importer: ExportedProgramImporter
) -> relax.Expr:
    """A shift by a tensor or a number."""
    x, y = (importer.env[arg] if isinstance(arg, fx.Node) else arg for arg in node.args[:2])
    like = x if isinstance(node.args[0], fx.Node) else y
    x, y = (arg if isinstance(arg, relax.Expr) else relax.const(arg, dtype_of(like)) for arg in (x, y))
    return importer.block_builder.emit(operation(x, y))


class Stock:
    """TVM's own converters, which are methods of the importer that runs them."""

    def __init__(self) -> None:
        self.names = tuple(ExportedProgramImporter().create_convert_map())
        self._bound: dict[str, Callable[[fx.Node], Any]] = {}
        self._importer: ExportedProgramImporter | None = None

    def convert(self, name: str, node: fx.Node, importer: ExportedProgramImporter) -> Any:
        """Convert a node as the importer would have done by itself."""
        if self._importer is not importer:
            self._importer, self._bound = importer, importer.create_convert_map()
        return self._bound[name](node)


CONVERTERS: dict[str, Converter] = {
    **{name: partial(_indexed, name) for name in ("index.Tensor", "index_put.default", "index_put_.default")},
    "select.int": select,
    "layer_norm.default": _layer_norm,
    "matmul.default": _matmul,
    "mm.default": _matmul,
    "bmm.default": _matmul,
    "linear.default": _linear,
    "addmm.default": _addmm,
    "embedding.default": _embedding,
    NAME: convert_dequantize,
    "amax.default": partial(_reduced, relax.op.max),
    "amin.default": partial(_reduced, relax.op.min),
    "prod.dim_int": partial(_reduced, relax.op.prod),
    **{
        f"{name}.{overload}": partial(_shift, operation)
        for side, operation in (("left", relax.op.left_shift), ("right", relax.op.right_shift))
        for name in (f"bitwise_{side}_shift", f"__{side[0]}shift__")
        for overload in ("Tensor", "Tensor_Scalar", "Scalar")
    },
    **AFFINE,
    **CONVOLUTIONS,
    **RECURRENT,
    **SORTS,
    **WINDOWS,
    **SCATTERS,
}


def converter_map(
    extra: dict[str, Converter] | None = None, rest: Mapping[str, str] | None = None
) -> dict[str, Converter]:
    """Every converter there is, each checking what it returns against PyTorch's own shape and dtype.

    Parameters
    ----------
    extra : dict of str to Converter, optional
        The caller's converters by operator name (``mul.Tensor``); they come before ours and TVM's.
    rest : mapping of str to str, optional
        Operators that PyTorch computes at run time, each with the reason. None: a converter that fails is an
        error; otherwise PyTorch computes what it was to convert.

    Returns
    -------
    dict of str to Converter
        For ``custom_convert_map`` of TVM's importer.
    """
    stock = Stock()
    known: dict[str, Converter] = {name: partial(stock.convert, name) for name in stock.names}
    known.update(CONVERTERS)
    known["max_pool3d.default"] = partial(_max_pool3d, stock)
    known["slice.Tensor"] = partial(slice_of, stock.convert)
    known["split_with_sizes.default"] = partial(split, stock.convert)
    for name in REFUSED:
        known.pop(name, None)
    known.update(extra or {})
    if rest is None:
        return {name: partial(_checked, convert) for name, convert in known.items()}
    found = {name: partial(_checked_or_left, convert) for name, convert in known.items()}
    return found | {name: opaque_converter(reason) for name, reason in rest.items()}


def _checked_or_left(convert: Converter, node: fx.Node, importer: ExportedProgramImporter) -> Any:
    """Convert a node; what is complex, and what its converter fails on, is left to PyTorch where that can."""
    if is_complex(node) and node.target is not operator.getitem and not obstacle(node):
        return opaque("computes with complex numbers", node, importer)
    try:
        return _checked(convert, node, importer)
    except FrontendError as error:
        if obstacle(node):
            raise
        return opaque(error.what, node, importer)


def _checked(convert: Converter, node: fx.Node, importer: ExportedProgramImporter) -> Any:
    """Convert a node and compare the result's type with what PyTorch inferred for it."""
    try:
        with _sizes_as_tensors(node, importer):
            result = convert(node, importer)
    except FrontendError:
        raise
    except Exception as error:
        raise FrontendError(
            f"TVM's importer fails on operator {target_name(node)!r}: {last_line(error)}",
            where=describe(node),
            remedy=REMEDY,
        ) from error
    expected = node.meta.get("val")
    if isinstance(expected, torch.Tensor) and isinstance(result, tvm.ir.Expr) and not expected.is_complex():
        result = importer.block_builder.normalize(result)
        want = (tuple(map(size_of, expected.shape)), str(expected.dtype).removeprefix("torch."))
        result = _shaped(result, want, importer)
        if want[0] == () and isinstance(result.ty, relax.TensorType) and shape_of(result) == (1,):
            # the importer makes a tensor of rank 1 of a size among the operands
            result = importer.block_builder.emit(relax.op.reshape(result, ()))
        have = (shape_of(result), dtype_of(result)) if isinstance(result.ty, relax.TensorType) else None
        if have != want:
            raise FrontendError(
                f"TVM's importer makes {have} of operator {target_name(node)!r}, PyTorch makes {want}",
                where=describe(node),
                remedy=REMEDY,
            )
    return result


@contextlib.contextmanager
def _sizes_as_tensors(node: fx.Node, importer: ExportedProgramImporter) -> Iterator[None]:
    """Let sizes that are computed with tensors be tensors of one element, where a node is converted."""
    sizes = [each for each in node.all_input_nodes if isinstance(each.meta.get("val"), torch.SymInt)]
    tensors = [each for each in node.all_input_nodes if isinstance(each.meta.get("val"), torch.Tensor)]
    if target_name(node).partition(".")[0] not in COMPUTED_WITH or not tensors:
        sizes = []
    kept = {each: importer.env[each] for each in sizes}
    emit = importer.block_builder.emit
    for each, size in kept.items():
        dtype = str(tensors[0].meta["val"].dtype).removeprefix("torch.")
        flat = emit(relax.op.shape_to_tensor(relax.ShapeExpr([size])))
        number = emit(relax.op.reshape(flat, ()))
        importer.env[each] = emit(relax.op.astype(number, "int64" if dtype == "bool" else dtype))
    try:
        yield
    finally:
        importer.env.update(kept)


def _shaped(result: tvm.ir.Expr, want: tuple[Any, str], importer: ExportedProgramImporter) -> tvm.ir.Expr:
    """A tensor with a shape of open sizes as PyTorch says it, where Relax does not know or say as much."""
    shape, dtype = want
    if not is_open(shape) or not isinstance(result.ty, relax.TensorType) or dtype_of(result) != dtype:
        return result
    meet_variables(importer)
    said, known = relax.ShapeExpr(shape), result.ty.shape
    if isinstance(known, relax.ShapeExpr) and len(known) == len(said):
        analyzer = tvm.sym.Analyzer()
        if all(analyzer.can_prove_equal(a, b) for a, b in zip(known.values, said.values, strict=True)):
            return result
        found = shape_of(result)
        if found is None or structure(found) != structure(shape):
            return result
    elif int(result.ty.ndim) != len(shape):
        return result
    return importer.block_builder.match_cast(result, relax.TensorType(said, dtype))
