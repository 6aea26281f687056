# SPDX-License-Identifier: Apache-2.0
"""One-operator functions of Relay: every operator that `uir_tvm.frontend.relay` takes, in its several modes.

Runs under the Python of an old TVM (see `scripts/make_relay_fixtures.py`), hence no syntax of today's.
"""

from __future__ import annotations

import numpy as np
from tvm import relay as R


class Input:
    """A parameter of a case and the numbers that it is tried with.

    Floats are normal, integers uniform in [low, high), booleans fair coins; ``low`` and ``high`` make floats
    uniform too.  ``values`` are given as they are.
    """

    def __init__(self, shape, dtype="float32", low=None, high=None, values=None):
        self.shape, self.dtype, self.low, self.high, self.values = shape, dtype, low, high, values

    def draw(self, random):
        if self.values is not None:
            return np.array(self.values, self.dtype).reshape(self.shape)
        if self.dtype == "bool":
            return random.randint(0, 2, self.shape).astype("bool")
        if self.dtype.startswith("float"):
            if self.low is None:
                return random.standard_normal(self.shape).astype(self.dtype)
            return random.uniform(self.low, self.high, self.shape).astype(self.dtype)
        low = (0 if self.dtype.startswith("u") else -9) if self.low is None else self.low
        high = 10 if self.high is None else self.high
        return random.randint(low, high, self.shape).astype(self.dtype)


X = Input((2, 3, 4))
POSITIVE = Input((2, 3, 4), low=0.1, high=3.0)
UNIT = Input((2, 3, 4), low=-0.95, high=0.95)
INT = Input((2, 3, 4), "int32")
IMAGE = Input((1, 4, 6, 8))
NHWC = Input((1, 6, 8, 4))


def const(value, dtype="float32"):
    return R.const(np.array(value, dtype))


CASES = {}


def case(name, inputs, build):
    assert name not in CASES, name
    CASES[name] = (inputs, build)


# -- elementwise ----------------------------------------------------------------------------------------
for _name in (
    "abs negative sign ceil floor trunc round exp tanh sigmoid erf sin cos tan sinh cosh atan asinh "
    "copy zeros_like ones_like isnan isinf isfinite"
).split():
    case(_name, [X], lambda x, f=getattr(R, _name): f(x))
for _name in "log log2 log10 sqrt rsqrt".split():
    case(_name, [POSITIVE], lambda x, f=getattr(R, _name): f(x))
for _name in "asin acos atanh".split():
    case(_name, [UNIT], lambda x, f=getattr(R, _name): f(x))
case("acosh", [Input((2, 3), low=1.1, high=4.0)], lambda x: R.acosh(x))
case("round_half", [Input((6,), values=[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])], lambda x: R.round(x))
case("isnan_some", [Input((4,), values=[np.nan, 1, np.inf, -np.inf])], lambda x: R.isnan(x))
case("isinf_some", [Input((4,), values=[np.nan, 1, np.inf, -np.inf])], lambda x: R.isinf(x))
case("isfinite_some", [Input((4,), values=[np.nan, 1, np.inf, -np.inf])], lambda x: R.isfinite(x))
case("fast_exp", [X], lambda x: R.Call(R.op.get("fast_exp"), [x]))
case("fast_tanh", [X], lambda x: R.Call(R.op.get("fast_tanh"), [x]))
case("fast_erf", [X], lambda x: R.Call(R.op.get("fast_erf"), [x]))
case("logical_not", [Input((2, 3), "bool")], lambda x: R.logical_not(x))
case("bitwise_not", [INT], lambda x: R.bitwise_not(x))
case("abs_int", [INT], lambda x: R.abs(x))
case("clip", [X], lambda x: R.clip(x, -0.5, 0.75))
case("clip_open", [X], lambda x: R.clip(x, -np.inf, 0.5))
case("clip_int", [INT], lambda x: R.clip(x, -2, 3))
case("cast", [X], lambda x: R.cast(x, "int32"))
case("cast_bool", [INT], lambda x: R.cast(x, "bool"))
case("cast_half", [X], lambda x: R.cast(R.cast(x, "float16"), "float32"))
case("cast_like", [X, INT], lambda x, y: R.cast_like(x, y))

# -- binary ---------------------------------------------------------------------------------------------
_ROW = Input((3, 1))
for _name in (
    "add subtract multiply divide maximum minimum equal not_equal less less_equal greater greater_equal"
).split():
    case(_name, [X, _ROW], lambda x, y, f=getattr(R, _name): f(x, y))
for _name in "floor_divide floor_mod trunc_divide trunc_mod mod".split():
    case(_name, [X, Input((4,), low=0.3, high=2.0)], lambda x, y, f=getattr(R, _name): f(x, y))
    case(
        _name + "_int",
        [INT, Input((4,), "int32", values=[3, -2, 4, -5])],
        lambda x, y, f=getattr(R, _name): f(x, y),
    )
case("divide_int", [INT, Input((4,), "int32", values=[3, -2, 4, -5])], lambda x, y: R.divide(x, y))
case("power", [POSITIVE, Input((4,))], lambda x, y: R.power(x, y))
for _name in "logical_and logical_or logical_xor".split():
    case(_name, [Input((2, 3), "bool"), Input((3,), "bool")], lambda x, y, f=getattr(R, _name): f(x, y))
for _name in "bitwise_and bitwise_or bitwise_xor".split():
    case(_name, [INT, Input((4,), "int32")], lambda x, y, f=getattr(R, _name): f(x, y))
for _name in "left_shift right_shift".split():
    case(_name, [INT, Input((4,), "int32", 0, 5)], lambda x, y, f=getattr(R, _name): f(x, y))

# -- reductions -----------------------------------------------------------------------------------------
for _name in "sum mean prod max min variance std".split():
    case(_name, [X], lambda x, f=getattr(R, _name): f(x, axis=1))
    case(_name + "_all", [X], lambda x, f=getattr(R, _name): f(x, keepdims=True))
    case(_name + "_exclude", [X], lambda x, f=getattr(R, _name): f(x, axis=[0, -1], exclude=True))
case("sum_int", [INT], lambda x: R.sum(x, axis=[0, 2], keepdims=True))
case("mean_int", [INT], lambda x: R.mean(x, axis=[2]))
case("variance_unbiased", [X], lambda x: R.variance(x, axis=2, keepdims=True, unbiased=True))
case("all", [Input((2, 3, 4), "bool")], lambda x: R.all(x, axis=1))
case("any", [Input((2, 3, 4), "bool")], lambda x: R.any(x, axis=[0, 2], keepdims=True))
for _name in "argmax argmin".split():
    case(_name, [X], lambda x, f=getattr(R, _name): f(x, axis=1))
    case(_name + "_keep", [X], lambda x, f=getattr(R, _name): f(x, axis=-1, keepdims=True))
    case(_name + "_all", [X], lambda x, f=getattr(R, _name): f(x))
    case(_name + "_exclude", [X], lambda x, f=getattr(R, _name): f(x, axis=[1], exclude=True))
    case(
        _name + "_last",
        [Input((2, 6), "int32", 0, 3)],
        lambda x, f=getattr(R, _name): f(x, axis=1, select_last_index=True),
    )
case("logsumexp", [X], lambda x: R.logsumexp(x, axis=1))
for _name in "cumsum cumprod".split():
    case(_name, [X], lambda x, f=getattr(R, _name): f(x, axis=1))
    case(_name + "_exclusive", [X], lambda x, f=getattr(R, _name): f(x, axis=2, exclusive=True))
    case(_name + "_flat", [Input((2, 3), "int32", 1, 4)], lambda x, f=getattr(R, _name): f(x, dtype="int64"))

# -- views and data movement ----------------------------------------------------------------------------
for _i, _shape in enumerate(
    [(-1,), (0, -1), (0, 0, -4, 2, 2), (-2,), (-3, 4), (6, 4), (-4, 1, 2, -2), (0, -3), (4, -1, 2)]
):
    case(f"reshape_{_i}", [X], lambda x, s=_shape: R.reshape(x, s))
case("reshape_split_any", [X], lambda x: R.reshape(x, (0, 0, -4, -1, 2)))
case("reverse_reshape", [X], lambda x: R.reverse_reshape(x, (-1, 0)))
case("reshape_like", [X, Input((6, 4))], lambda x, y: R.reshape_like(x, y))
case(
    "reshape_like_range",
    [X, Input((3, 2, 4))],
    lambda x, y: R.reshape_like(x, y, lhs_begin=0, lhs_end=2, rhs_begin=0, rhs_end=2),
)
case("transpose", [X], lambda x: R.transpose(x, (2, 0, 1)))
case("transpose_reversed", [X], lambda x: R.transpose(x))
case("transpose_negative", [X], lambda x: R.transpose(x, (0, -1, -2)))
case("expand_dims", [X], lambda x: R.expand_dims(x, 1, 2))
case("expand_dims_last", [X], lambda x: R.expand_dims(x, -1))
case("squeeze", [Input((1, 3, 1, 4))], lambda x: R.squeeze(x))
case("squeeze_axis", [Input((1, 3, 1, 4))], lambda x: R.squeeze(x, [-2]))
case("batch_flatten", [X], lambda x: R.nn.batch_flatten(x))
case("broadcast_to", [Input((3, 1))], lambda x: R.broadcast_to(x, (2, 3, 4)))
case("broadcast_to_like", [Input((3, 1)), X], lambda x, y: R.broadcast_to_like(x, y))
case("collapse_sum_like", [X, Input((3, 1))], lambda x, y: R.collapse_sum_like(x, y))
case("collapse_sum_to", [X], lambda x: R.collapse_sum_to(x, (1, 4)))
case("concatenate", [X, Input((2, 1, 4))], lambda x, y: R.concatenate([x, y, x], axis=1))
case("concatenate_last", [X, X], lambda x, y: R.concatenate([x, y], axis=-1))
case("stack", [X, X], lambda x, y: R.stack([x, y], axis=1))
case("stack_last", [X, X], lambda x, y: R.stack([x, y], axis=-1))
case("split", [X], lambda x: R.split(x, 2, axis=2).astuple())
case("split_at", [X], lambda x: R.split(x, (1, 3), axis=-1).astuple())
case("tile", [X], lambda x: R.tile(x, (2, 1, 2)))
case("tile_more", [Input((2, 3))], lambda x: R.tile(x, (2, 1, 2)))
case("tile_fewer", [X], lambda x: R.tile(x, (2,)))
case("repeat", [X], lambda x: R.repeat(x, 2, axis=1))
case("repeat_last", [X], lambda x: R.repeat(x, 3, axis=-1))
case("reverse", [X], lambda x: R.reverse(x, 1))
case(
    "reverse_sequence",
    [Input((4, 3)), Input((3,), "int32", values=[2, 4, 1])],
    lambda x, n: R.reverse_sequence(x, n, seq_axis=0, batch_axis=1),
)
case("layout_transform", [IMAGE], lambda x: R.layout_transform(x, "NCHW", "NHWC"))
case("layout_transform_block", [IMAGE], lambda x: R.layout_transform(x, "NCHW", "NCHW2c"))
case("layout_transform_unblock", [Input((1, 2, 3, 3, 4))], lambda x: R.layout_transform(x, "NCHW4c", "NCHW"))
case("meshgrid", [Input((3,)), Input((4,))], lambda x, y: R.meshgrid([x, y]).astuple())
case("meshgrid_xy", [Input((3,)), Input((4,))], lambda x, y: R.meshgrid([x, y], indexing="xy").astuple())
case("full", [Input((), values=2.5)], lambda x: R.full(x, (2, 3), "float32"))
case("full_like", [X, Input((), values=-1.5)], lambda x, y: R.full_like(x, y))
case("zeros", [Input((2, 3))], lambda x: R.add(x, R.zeros((2, 3), "float32")))
case("ones", [Input((2, 3))], lambda x: R.add(x, R.ones((2, 3), "float32")))
case("arange", [Input((5,))], lambda x: R.add(x, R.arange(const(5.0))))
case(
    "arange_int",
    [Input((4,), "int32")],
    lambda x: R.add(x, R.arange(const(7, "int32"), const(-1, "int32"), const(-2, "int32"), "int32")),
)
case("shape_of", [X], lambda x: R.shape_of(x, "int64"))
case("ndarray_size", [X], lambda x: R.ndarray_size(x, "int64"))
case("trilu_upper", [X], lambda x: R.trilu(x, const(1, "int32"), True))
case("trilu_lower", [X], lambda x: R.trilu(x, const(-1, "int32"), False))
case("strided_slice", [X], lambda x: R.strided_slice(x, [0, 1, 1], [2, 3, 4]))
case("strided_slice_negative", [X], lambda x: R.strided_slice(x, [0, -2, -3], [2, 100, -1]))
case("strided_slice_strides", [X], lambda x: R.strided_slice(x, [0, 0, 0], [2, 3, 4], [1, 2, 3]))
case("strided_slice_back", [X], lambda x: R.strided_slice(x, [1, 2, 3], [-3, -4, -5], [-1, -1, -2]))
case("strided_slice_axes", [X], lambda x: R.strided_slice(x, [1], [3], axes=[2]))
case("strided_slice_size", [X], lambda x: R.strided_slice(x, [0, 1, 2], [1, -1, 2], slice_mode="size"))
case("slice_like", [X, Input((1, 2, 2))], lambda x, y: R.slice_like(x, y))
case("slice_like_axes", [X, Input((1, 2, 2))], lambda x, y: R.slice_like(x, y, axes=(1, -1)))
case(
    "strided_set",
    [X, Input((1, 2, 2))],
    lambda x, v: R.strided_set(
        x, v, const([0, 1, 0], "int64"), const([1, 3, 4], "int64"), const([1, 1, 2], "int64")
    ),
)
case(
    "sequence_mask", [Input((4, 3, 2)), Input((3,), "int32", 0, 5)], lambda x, n: R.sequence_mask(x, n, -1.0)
)
case(
    "sequence_mask_axis",
    [Input((3, 4, 2)), Input((3,), "int32", 0, 5)],
    lambda x, n: R.sequence_mask(x, n, 0.5, axis=1),
)
case("sliding_window", [Input((2, 5, 6))], lambda x: R.sliding_window(x, 1, [3, 2], [1, 2]))
case("matrix_set_diag", [Input((2, 3, 4)), Input((2, 3))], lambda x, d: R.matrix_set_diag(x, d))
case(
    "unravel_index",
    [Input((4,), "int32", values=[0, 5, 11, 7])],
    lambda x: R.unravel_index(x, const([3, 4], "int32")),
)
case("where", [Input((2, 3, 4), "bool"), X, _ROW], lambda c, x, y: R.where(c, x, y))
case("where_int", [Input((4,), "int32", 0, 2), X, X], lambda c, x, y: R.where(c, x, y))

# -- indexing -------------------------------------------------------------------------------------------
_IDX = Input((2, 2), "int32", 0, 3)
case("take", [X, _IDX], lambda x, i: R.take(x, i, axis=1))
case("take_flat", [X, Input((5,), "int32", 0, 24)], lambda x, i: R.take(x, i))
case("take_wrap", [X, Input((5,), "int32", -7, 9)], lambda x, i: R.take(x, i, axis=2, mode="wrap"))
case("take_clip", [X, Input((5,), "int32", -7, 9)], lambda x, i: R.take(x, i, axis=2, mode="clip"))
case("take_fast", [X, Input((5,), "int64", 0, 4)], lambda x, i: R.take(x, i, axis=-1, mode="fast"))
case("take_scalar", [X, Input((), "int32", values=1)], lambda x, i: R.take(x, i, axis=0))
case("take_batch", [X, Input((2, 2), "int32", 0, 3)], lambda x, i: R.take(x, i, axis=1, batch_dims=1))
case("gather", [X, Input((2, 2, 4), "int32", 0, 3)], lambda x, i: R.gather(x, 1, i))
case("gather_last", [X, Input((2, 3, 2), "int64", 0, 4)], lambda x, i: R.gather(x, -1, i))
case("gather_nd", [X, Input((2, 5), "int32", 0, 2)], lambda x, i: R.gather_nd(x, i))
case("gather_nd_batch", [X, Input((1, 2, 5), "int32", 0, 3)], lambda x, i: R.gather_nd(x, i, batch_dims=1))
case(
    "scatter_elements",
    [X, Input((2, 2, 4), "int64", values=[0, 1, 2, 0, 1, 2, 0, 1] * 2), Input((2, 2, 4))],
    lambda x, i, u: R.scatter_elements(x, i, u, axis=1),
)
for _mode in "add mul min max".split():
    case(
        "scatter_elements_" + _mode,
        [X, Input((2, 2, 4), "int64", 0, 3), Input((2, 2, 4))],
        lambda x, i, u, m=_mode: R.scatter_elements(x, i, u, axis=1, reduction=m),
    )
case(
    "scatter_nd",
    [X, Input((2, 2), "int64", values=[0, 1, 2, 0]), Input((2, 4))],
    lambda x, i, u: R.scatter_nd(x, i, u, "update"),
)
case(
    "scatter_nd_add",
    [X, Input((2, 3), "int64", values=[0, 1, 0, 2, 0, 2]), Input((3, 4))],
    lambda x, i, u: R.scatter_nd(x, i, u, "add"),
)
case(
    "one_hot",
    [Input((2, 3), "int32", 0, 4)],
    lambda i: R.one_hot(i, const(2.0), const(-1.0), 4, -1, "float32"),
)
case(
    "one_hot_axis",
    [Input((2, 3), "int32", -1, 5)],
    lambda i: R.one_hot(i, const(1, "int32"), const(0, "int32"), 4, 1, "int32"),
)
case(
    "adv_index",
    [X, Input((2, 1), "int64", 0, 2), Input((3,), "int64", 0, 3)],
    lambda x, i, j: R.adv_index([x, i, j]),
)
case("argsort", [X], lambda x: R.argsort(x, axis=1))
case("argsort_down", [X], lambda x: R.argsort(x, axis=-1, is_ascend=False, dtype="int64"))
case("sort", [X], lambda x: R.sort(x, axis=1))
case("sort_down", [X], lambda x: R.sort(x, axis=2, is_ascend=False))
case("topk", [X], lambda x: R.topk(x, 2, axis=2, dtype="int64").astuple())
case("topk_values", [X], lambda x: R.topk(x, 2, axis=1, ret_type="values", is_ascend=True))
case("topk_indices", [X], lambda x: R.topk(x, 1, axis=-1, ret_type="indices"))
case(
    "searchsorted",
    [Input((5,), values=[-1.0, -0.2, 0.1, 0.4, 1.2]), Input((2, 3))],
    lambda s, x: R.searchsorted(s, x),
)
case("einsum", [Input((2, 3)), Input((3, 4))], lambda x, y: R.einsum([x, y], "ij,jk->ki"))

# -- products -------------------------------------------------------------------------------------------
case("dense", [Input((3, 4)), Input((5, 4))], lambda x, w: R.nn.dense(x, w))
case("dense_units", [Input((3, 4)), Input((5, 4))], lambda x, w: R.nn.dense(x, w, units=5))
case(
    "dense_int",
    [Input((3, 4), "int8"), Input((5, 4), "int8")],
    lambda x, w: R.nn.dense(x, w, out_dtype="int32"),
)
case("matmul", [Input((3, 4)), Input((4, 5))], lambda x, w: R.nn.matmul(x, w))
case(
    "matmul_transposed",
    [Input((4, 3)), Input((5, 4))],
    lambda x, w: R.nn.matmul(x, w, transpose_a=True, transpose_b=True),
)
case("batch_matmul", [Input((2, 3, 4)), Input((2, 5, 4))], lambda x, y: R.nn.batch_matmul(x, y))
case(
    "batch_matmul_plain",
    [Input((2, 4, 3)), Input((1, 4, 5))],
    lambda x, y: R.nn.batch_matmul(x, y, transpose_a=True, transpose_b=False),
)
case("bias_add", [IMAGE, Input((4,))], lambda x, b: R.nn.bias_add(x, b))
case("bias_add_last", [X, Input((4,))], lambda x, b: R.nn.bias_add(x, b, axis=-1))

# -- convolutions ---------------------------------------------------------------------------------------
case(
    "conv1d",
    [Input((1, 3, 8)), Input((4, 3, 3))],
    lambda x, w: R.nn.conv1d(x, w, padding=1, kernel_size=3, channels=4),
)
case(
    "conv1d_nwc",
    [Input((1, 8, 3)), Input((3, 3, 4))],
    lambda x, w: R.nn.conv1d(
        x, w, strides=2, data_layout="NWC", kernel_layout="WIO", kernel_size=3, channels=4
    ),
)
case(
    "conv2d",
    [IMAGE, Input((5, 4, 3, 3))],
    lambda x, w: R.nn.conv2d(x, w, padding=(1, 1), kernel_size=(3, 3), channels=5),
)
case(
    "conv2d_strided",
    [IMAGE, Input((5, 4, 3, 2))],
    lambda x, w: R.nn.conv2d(
        x, w, strides=(2, 1), padding=(1, 0, 2, 1), dilation=(1, 2), kernel_size=(3, 2), channels=5
    ),
)
case(
    "conv2d_groups",
    [IMAGE, Input((6, 2, 3, 3))],
    lambda x, w: R.nn.conv2d(x, w, groups=2, kernel_size=(3, 3), channels=6),
)
case(
    "conv2d_depthwise",
    [IMAGE, Input((4, 1, 3, 3))],
    lambda x, w: R.nn.conv2d(x, w, groups=4, padding=(1, 1), kernel_size=(3, 3), channels=4),
)
case(
    "conv2d_nhwc",
    [NHWC, Input((3, 3, 4, 5))],
    lambda x, w: R.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="HWIO", kernel_size=(3, 3), channels=5),
)
case(
    "conv2d_nhwc_depthwise",
    [NHWC, Input((3, 3, 4, 1))],
    lambda x, w: R.nn.conv2d(
        x, w, groups=4, data_layout="NHWC", kernel_layout="HWOI", kernel_size=(3, 3), channels=4
    ),
)
case(
    "conv3d",
    [Input((1, 2, 4, 5, 6)), Input((3, 2, 2, 3, 3))],
    lambda x, w: R.nn.conv3d(x, w, padding=(1, 1, 1), kernel_size=(2, 3, 3), channels=3),
)
case(
    "conv1d_transpose",
    [Input((1, 3, 5)), Input((3, 2, 3))],
    lambda x, w: R.nn.conv1d_transpose(
        x, w, strides=(2,), padding=(1,), output_padding=(1,), kernel_size=(3,), channels=2
    ),
)
case(
    "conv2d_transpose",
    [Input((1, 3, 4, 5)), Input((3, 2, 3, 3))],
    lambda x, w: R.nn.conv2d_transpose(
        x, w, strides=(2, 2), padding=(1, 1), output_padding=(1, 1), kernel_size=(3, 3), channels=2
    ),
)
case(
    "conv3d_transpose",
    [Input((1, 2, 3, 3, 3)), Input((2, 2, 2, 2, 2))],
    lambda x, w: R.nn.conv3d_transpose(x, w, strides=(2, 2, 2), kernel_size=(2, 2, 2), channels=2),
)
case(
    "deformable_conv2d",
    [Input((1, 2, 5, 5)), Input((1, 18, 3, 3), low=-0.9, high=0.9), Input((3, 2, 3, 3))],
    lambda x, o, w: R.nn.deformable_conv2d(x, o, w, kernel_size=(3, 3), channels=3),
)

# -- pools ----------------------------------------------------------------------------------------------
for _dims, _shape in ((1, (1, 2, 9)), (2, (1, 2, 7, 8)), (3, (1, 2, 5, 6, 7))):
    for _kind in ("max", "avg"):
        _pool = getattr(R.nn, f"{_kind}_pool{_dims}d")
        case(
            f"{_kind}_pool{_dims}d",
            [Input(_shape)],
            lambda x, f=_pool, n=_dims: f(x, pool_size=(3,) * n, strides=(2,) * n, padding=(1,) * n),
        )
        case(
            f"{_kind}_pool{_dims}d_ceil",
            [Input(_shape)],
            lambda x, f=_pool, n=_dims: f(x, pool_size=(2,) * n, strides=(3,) * n, ceil_mode=True),
        )
        _adaptive = getattr(R.nn, f"adaptive_{_kind}_pool{_dims}d")
        case(
            f"adaptive_{_kind}_pool{_dims}d",
            [Input(_shape)],
            lambda x, f=_adaptive, n=_dims: f(x, output_size=(2, 3, 4)[:n]),
        )
    case(
        f"avg_pool{_dims}d_counted",
        [Input(_shape)],
        lambda x, f=_pool, n=_dims: f(
            x, pool_size=(3,) * n, strides=(2,) * n, padding=(1,) * n, count_include_pad=True
        ),
    )
case("max_pool2d_nhwc", [Input((1, 7, 8, 2))], lambda x: R.nn.max_pool2d(x, (2, 2), (2, 2), layout="NHWC"))
case(
    "max_pool2d_dilated", [Input((1, 2, 7, 8))], lambda x: R.nn.max_pool2d(x, (2, 2), (1, 1), dilation=(2, 2))
)
case(
    "avg_pool2d_sides",
    [Input((1, 2, 7, 8))],
    lambda x: R.nn.avg_pool2d(x, (3, 2), (2, 2), padding=(1, 0, 0, 1)),
)
case("avg_pool2d_nhwc", [Input((1, 7, 8, 2))], lambda x: R.nn.avg_pool2d(x, (2, 2), (2, 2), layout="NHWC"))
for _kind in ("max", "avg"):
    case(f"global_{_kind}_pool2d", [IMAGE], lambda x, f=getattr(R.nn, f"global_{_kind}_pool2d"): f(x))
    case(
        f"global_{_kind}_pool2d_nhwc",
        [NHWC],
        lambda x, f=getattr(R.nn, f"global_{_kind}_pool2d"): f(x, layout="NHWC"),
    )
    for _dims, _shape in ((1, (1, 2, 9)), (3, (1, 2, 3, 4, 5))):
        case(
            f"global_{_kind}_pool{_dims}d",
            [Input(_shape)],
            lambda x, f=getattr(R.nn, f"global_{_kind}_pool{_dims}d"): f(x),
        )

# -- normalisation and activations ----------------------------------------------------------------------
_C = Input((4,))
_CP = Input((4,), low=0.5, high=2.0)
case("batch_norm", [IMAGE, _C, _C, _C, _CP], lambda x, g, b, m, v: R.nn.batch_norm(x, g, b, m, v)[0])
case(
    "batch_norm_plain",
    [NHWC, _C, _C, _C, _CP],
    lambda x, g, b, m, v: R.nn.batch_norm(x, g, b, m, v, axis=3, epsilon=1e-3, scale=False, center=False)[0],
)
case("layer_norm", [X, _C, _C], lambda x, g, b: R.nn.layer_norm(x, g, b))
case(
    "layer_norm_axis",
    [X, Input((3,)), Input((3,))],
    lambda x, g, b: R.nn.layer_norm(x, g, b, axis=1, epsilon=1e-3, scale=False),
)
case("group_norm", [IMAGE, _C, _C], lambda x, g, b: R.nn.group_norm(x, g, b, num_groups=2))
case("instance_norm", [IMAGE, _C, _C], lambda x, g, b: R.nn.instance_norm(x, g, b, center=False))
case("l2_normalize", [IMAGE], lambda x: R.nn.l2_normalize(x, 1e-4, axis=[1]))
case("l2_normalize_all", [X], lambda x: R.nn.l2_normalize(x, 1e-4))
case("lrn", [IMAGE], lambda x: R.nn.lrn(x, size=3))
case("lrn_last", [NHWC], lambda x: R.nn.lrn(x, size=5, axis=3, bias=1.0, alpha=0.1, beta=0.5))
case("softmax", [X], lambda x: R.nn.softmax(x))
case("softmax_axis", [X], lambda x: R.nn.softmax(x, axis=1))
case("fast_softmax", [X], lambda x: R.nn.fast_softmax(x))
case("log_softmax", [X], lambda x: R.nn.log_softmax(x))
case("relu", [X], lambda x: R.nn.relu(x))
case("leaky_relu", [X], lambda x: R.nn.leaky_relu(x, 0.1))
case("prelu", [IMAGE, _C], lambda x, a: R.nn.prelu(x, a))
case("prelu_last", [X, _C], lambda x, a: R.nn.prelu(x, a, axis=2))
case("dropout", [X], lambda x: R.nn.dropout(x, 0.3))
case("pad", [X], lambda x: R.nn.pad(x, ((0, 0), (1, 2), (2, 1)), 0.5))
case("pad_edge", [IMAGE], lambda x: R.nn.pad(x, ((0, 0), (0, 0), (1, 2), (2, 1)), pad_mode="edge"))
case("pad_reflect", [IMAGE], lambda x: R.nn.pad(x, ((0, 0), (0, 0), (1, 2), (2, 1)), pad_mode="reflect"))
case("mirror_pad", [X], lambda x: R.nn.mirror_pad(x, ((0, 0), (1, 2), (2, 1)), "SYMMETRIC"))
case("mirror_pad_reflect", [X], lambda x: R.nn.mirror_pad(x, ((0, 0), (1, 2), (2, 1)), "REFLECT"))
case("depth_to_space", [Input((1, 8, 2, 3))], lambda x: R.nn.depth_to_space(x, 2))
case("depth_to_space_crd", [Input((1, 8, 2, 3))], lambda x: R.nn.depth_to_space(x, 2, mode="CRD"))
case("depth_to_space_nhwc", [Input((1, 2, 3, 8))], lambda x: R.nn.depth_to_space(x, 2, layout="NHWC"))
case("space_to_depth", [Input((1, 2, 4, 6))], lambda x: R.nn.space_to_depth(x, 2))
case("space_to_depth_nhwc", [Input((1, 4, 6, 2))], lambda x: R.nn.space_to_depth(x, 2, layout="NHWC"))
case(
    "space_to_batch_nd",
    [Input((1, 4, 5, 2))],
    lambda x: R.nn.space_to_batch_nd(x, [2, 2], [[0, 0], [1, 0]], 0.5),
)
case(
    "batch_to_space_nd", [Input((4, 2, 3, 2))], lambda x: R.nn.batch_to_space_nd(x, [2, 2], [[0, 1], [1, 0]])
)
case("dilate", [Input((2, 3))], lambda x: R.nn.dilate(x, (2, 3), 0.5))
case(
    "cross_entropy",
    [Input((3, 4), low=0.1, high=1.0), Input((3, 4), low=0.0, high=1.0)],
    lambda p, t: R.nn.cross_entropy(p, t),
)
case(
    "cross_entropy_with_logits",
    [Input((3, 4)), Input((3, 4))],
    lambda p, t: R.nn.cross_entropy_with_logits(p, t),
)
case(
    "nll_loss",
    [Input((3, 4)), Input((3,), "int32", 0, 4), _CP],
    lambda p, t, w: R.nn.nll_loss(p, t, w),
)
case("fifo_buffer", [Input((2, 1, 3)), Input((2, 4, 3))], lambda x, b: R.nn.fifo_buffer(x, b, 1))

# -- images and vision ----------------------------------------------------------------------------------
case("upsampling", [IMAGE], lambda x: R.nn.upsampling(x, 2, 2))
case("upsampling_nhwc", [NHWC], lambda x: R.nn.upsampling(x, 2, 3, layout="NHWC"))
case("upsampling_bilinear", [IMAGE], lambda x: R.nn.upsampling(x, 2, 2, method="bilinear"))
case("upsampling_aligned", [IMAGE], lambda x: R.nn.upsampling(x, 2, 2, method="bilinear", align_corners=True))
case("upsampling3d", [Input((1, 2, 2, 3, 3))], lambda x: R.nn.upsampling3d(x, 2, 2, 2))
for _method in ("nearest_neighbor", "linear", "cubic"):
    for _mode in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"):
        if (_method, _mode) == ("cubic", "pytorch_half_pixel"):
            continue
        case(
            f"resize2d_{_method}_{_mode}",
            [Input((1, 2, 4, 5))],
            lambda x, m=_method, c=_mode: R.image.resize2d(
                x,
                (7, 9),
                method=m,
                coordinate_transformation_mode=c,
                rounding_method="floor" if m == "nearest_neighbor" and c == "asymmetric" else "",
            ),
        )
case(
    "resize2d_nhwc",
    [Input((1, 4, 5, 2))],
    lambda x: R.image.resize2d(x, (3, 4), layout="NHWC", method="linear"),
)
case("resize1d", [Input((1, 2, 6))], lambda x: R.image.resize1d(x, (9,), method="linear"))
case("resize3d", [Input((1, 2, 3, 4, 3))], lambda x: R.image.resize3d(x, (5, 4, 6), method="linear"))
case(
    "crop_and_resize",
    [
        Input((2, 3, 6, 6)),
        Input((2, 4), values=[0.1, 0.0, 0.8, 0.9, 0.2, 0.2, 1.0, 0.7]),
        Input((2,), "int32", values=[1, 0]),
    ],
    lambda x, b, i: R.image.crop_and_resize(x, b, i, (3, 4), layout="NCHW"),
)
case("affine_grid", [Input((1, 2, 3))], lambda x: R.image.affine_grid(x, (3, 4)))
for _pad in ("zeros", "border"):
    case(
        "grid_sample_" + _pad,
        [Input((1, 2, 4, 5)), Input((1, 2, 3, 3), low=-1.3, high=1.3)],
        lambda x, g, p=_pad: R.image.grid_sample(x, g, padding_mode=p),
    )
case(
    "dilation2d",
    [Input((1, 2, 5, 6)), Input((2, 2, 3))],
    lambda x, w: R.image.dilation2d(x, w, padding=(0, 0, 0, 0)),
)
case(
    "roi_align",
    [Input((1, 2, 8, 8)), Input((2, 5), values=[0, 1, 1, 6, 5, 0, 0, 2, 7, 7])],
    lambda x, r: R.vision.roi_align(x, r, (2, 3), 0.8, 2),
)
case(
    "roi_align_max",
    [Input((1, 2, 8, 8)), Input((2, 5), values=[0, 1, 1, 6, 5, 0, 0, 2, 7, 7])],
    lambda x, r: R.vision.roi_align(x, r, (2, 2), 1.0, 2, mode="max"),
)
case(
    "roi_pool",
    [Input((1, 2, 8, 8)), Input((2, 5), values=[0, 1, 1, 6, 5, 0, 0, 2, 7, 7])],
    lambda x, r: R.vision.roi_pool(x, r, (2, 2), 1.0),
)
case("yolo_reorg", [Input((1, 4, 4, 6))], lambda x: R.vision.yolo_reorg(x, 2))
case(
    "multibox_prior",
    [Input((1, 2, 3, 4))],
    lambda x: R.vision.multibox_prior(x, sizes=(0.4, 0.2), ratios=(1.0, 2.0), clip=True),
)
_BOXES = [
    [0, 0.9, 1, 1, 4, 4],
    [0, 0.75, 1.2, 1, 4, 4.2],
    [1, 0.7, 1, 1, 4, 4],
    [0, 0.05, 5, 5, 8, 8],
    [-1, 0.6, 5, 5, 8, 8],
    [1, 0.5, 5, 5, 8, 8.5],
]
case(
    "get_valid_counts",
    [Input((1, 6, 6), values=_BOXES)],
    lambda x: R.vision.get_valid_counts(x, 0.1, id_index=0, score_index=1).astuple(),
)


def _nms(**options):
    def build(x):
        counts = R.vision.get_valid_counts(x, 0.1, id_index=0, score_index=1)
        result = R.vision.non_max_suppression(
            counts[1], counts[0], counts[2], R.const(-1, "int32"), R.const(0.5), **options
        )
        return result.astuple() if hasattr(result, "astuple") else result

    return build


case(
    "non_max_suppression",
    [Input((1, 6, 6), values=_BOXES)],
    _nms(return_indices=False, id_index=0, invalid_to_bottom=True),
)
case(
    "non_max_suppression_force",
    [Input((1, 6, 6), values=_BOXES)],
    _nms(return_indices=False, id_index=0, force_suppress=True, top_k=3),
)
case("non_max_suppression_indices", [Input((1, 6, 6), values=_BOXES)], _nms(return_indices=True, id_index=0))

# -- quantised ------------------------------------------------------------------------------------------
Q = R.qnn.op
U8 = Input((2, 3, 4), "uint8", 0, 256)
S8 = Input((2, 3, 4), "int8", -128, 128)
SC = const(0.05)
ZP = const(3, "int32")
case("qnn_quantize", [X], lambda x: Q.quantize(x, SC, const(7, "int32"), out_dtype="uint8"))
case(
    "qnn_quantize_axis",
    [X],
    lambda x: Q.quantize(x, const([0.1, 0.02, 0.3]), const([0, 1, -2], "int32"), axis=1, out_dtype="int8"),
)
case("qnn_dequantize", [U8], lambda x: Q.dequantize(x, SC, const(120, "int32")))
case(
    "qnn_dequantize_axis",
    [S8],
    lambda x: Q.dequantize(x, const([0.1, 0.02, 0.3]), const([0, 1, -2], "int32"), axis=1),
)
_ACC = Input((2, 3, 4), "int32", -4000, 4000)
for _rounding in ("UPWARD", "TONEAREST"):
    case(
        "qnn_requantize_" + _rounding.lower(),
        [_ACC],
        lambda x, r=_rounding: Q.requantize(
            x,
            const(0.003),
            const(5, "int32"),
            const(0.07),
            const(-3, "int32"),
            rounding=r,
            out_dtype="int8",
            compute_dtype="int64",
        ),
    )
case(
    "qnn_requantize_axis",
    [_ACC],
    lambda x: Q.requantize(
        x,
        const([0.003, 0.01, 0.0007]),
        const([0, 0, 0], "int32"),
        const(0.07),
        const(9, "int32"),
        axis=1,
        rounding="UPWARD",
        out_dtype="uint8",
        compute_dtype="int64",
    ),
)
case(
    "qnn_requantize_default",
    [_ACC],
    lambda x: Q.requantize(
        x, const(0.003), const(5, "int32"), const(0.07), const(-3, "int32"), out_dtype="int8"
    ),
)
case(
    "qnn_requantize_float",
    [_ACC],
    lambda x: Q.requantize(
        x,
        const(0.003),
        const(5, "int32"),
        const(0.07),
        const(-3, "int32"),
        rounding="TONEAREST",
        compute_dtype="float32",
        out_dtype="int8",
    ),
)
case("qnn_requantize_same", [S8], lambda x: Q.requantize(x, SC, ZP, SC, const(-3, "int32"), out_dtype="int8"))
_QI = Input((1, 4, 5, 6), "uint8", 0, 256)
_QW = Input((3, 4, 3, 3), "int8", -128, 128)
case(
    "qnn_conv2d",
    [_QI, _QW],
    lambda x, w: Q.conv2d(
        x, w, const(128, "int32"), const(2, "int32"), SC, SC, kernel_size=(3, 3), channels=3, padding=(1, 1)
    ),
)
case(
    "qnn_conv2d_symmetric",
    [Input((1, 4, 5, 6), "int8", -128, 128), _QW],
    lambda x, w: Q.conv2d(
        x,
        w,
        const(0, "int32"),
        const(0, "int32"),
        SC,
        const([0.1, 0.2, 0.3]),
        kernel_size=(3, 3),
        channels=3,
        strides=(2, 2),
    ),
)
case(
    "qnn_conv2d_nhwc",
    [Input((1, 5, 6, 4), "uint8", 0, 256), Input((3, 3, 4, 3), "uint8", 0, 256)],
    lambda x, w: Q.conv2d(
        x,
        w,
        const(100, "int32"),
        const(130, "int32"),
        SC,
        SC,
        kernel_size=(3, 3),
        channels=3,
        data_layout="NHWC",
        kernel_layout="HWIO",
    ),
)
case(
    "qnn_conv2d_depthwise",
    [_QI, Input((4, 1, 3, 3), "int8", -128, 128)],
    lambda x, w: Q.conv2d(
        x, w, const(128, "int32"), const(2, "int32"), SC, SC, kernel_size=(3, 3), channels=4, groups=4
    ),
)
case(
    "qnn_conv2d_transpose",
    [Input((1, 3, 4, 4), "uint8", 0, 256), Input((3, 2, 3, 3), "int8", -128, 128)],
    lambda x, w: Q.conv2d_transpose(
        x, w, const(128, "int32"), const(2, "int32"), SC, SC, kernel_size=(3, 3), channels=2, strides=(2, 2)
    ),
)
case(
    "qnn_dense",
    [Input((3, 8), "uint8", 0, 256), Input((5, 8), "int8", -128, 128)],
    lambda x, w: Q.dense(x, w, const(128, "int32"), const(1, "int32"), SC, SC, units=5),
)
case(
    "qnn_batch_matmul",
    [Input((2, 3, 8), "int8", -128, 128), Input((2, 5, 8), "int8", -128, 128)],
    lambda x, y: Q.batch_matmul(x, y, const(4, "int32"), const(-1, "int32"), SC, SC),
)
for _name in ("add", "subtract", "mul"):
    case(
        "qnn_" + _name,
        [U8, Input((3, 4), "uint8", 0, 256)],
        lambda x, y, f=getattr(Q, _name): f(
            x,
            y,
            const(0.02),
            const(10, "int32"),
            const(0.03),
            const(120, "int32"),
            const(0.05),
            const(60, "int32"),
        ),
    )
case(
    "qnn_concatenate",
    [U8, U8],
    lambda x, y: Q.concatenate(
        R.Tuple([x, y]),
        R.Tuple([const(0.02), const(0.05)]),
        R.Tuple([const(3, "int32"), const(9, "int32")]),
        const(0.05),
        const(9, "int32"),
        1,
    ),
)
for _name in "tanh exp sqrt rsqrt erf sigmoid hardswish log abs".split():
    case(
        "qnn_" + _name,
        [Input((2, 3, 4), "uint8", 0, 256)],
        lambda x, f=getattr(Q, _name): f(x, const(0.01), const(0, "int32"), const(0.02), const(5, "int32")),
    )
case(
    "fixed_point_multiply",
    [_ACC],
    lambda x: R.fixed_point_multiply(x, 1395864371, -3),
)

# -- shapes as values (what old importers left for constants to decide) ---------------------------------
_DYN = R.op.dyn
case("dyn_reshape", [X], lambda x: R.reshape(x, R.const(np.array([4, -1], "int64"))))
case("dyn_broadcast_to", [Input((3, 1))], lambda x: R.broadcast_to(x, R.const(np.array([2, 3, 4], "int64"))))
case("dyn_full", [Input((), values=2.5)], lambda x: R.full(x, R.const(np.array([2, 3], "int64")), "float32"))
case("dyn_zeros", [Input((2, 3))], lambda x: R.add(x, R.zeros(R.const(np.array([2, 3], "int64")), "float32")))
case("dyn_ones", [Input((2, 3))], lambda x: R.add(x, R.ones(R.const(np.array([2, 3], "int64")), "float32")))
case("dyn_tile", [Input((2, 3))], lambda x: R.tile(x, R.const(np.array([2, 2], "int64"))))
case("dyn_topk", [X], lambda x: R.topk(x, R.const(np.array(2, "int64")), axis=-1).astuple())
case(
    "dyn_strided_slice",
    [X],
    lambda x: R.strided_slice(
        x,
        R.const(np.array([0, 1, 0], "int64")),
        R.const(np.array([2, 3, 4], "int64")),
        R.const(np.array([1, 1, 2], "int64")),
    ),
)
case(
    "dyn_one_hot",
    [Input((2, 3), "int32", 0, 4)],
    lambda i: R.one_hot(i, const(1.0), const(0.0), R.const(np.array(4, "int32")), -1, "float32"),
)
case("dyn_expand_dims", [X], lambda x: R.expand_dims(x, R.const(np.array(1, "int64"))))
case(
    "dyn_shape_of",
    [X, Input((6, 4))],
    lambda x, y: R.reshape(x, R.multiply(R.shape_of(y), R.const(np.array([1, 1], "int32")))),
)
case(
    "dyn_pad",
    [Input((2, 3))],
    lambda x: R.nn.pad(x, R.const(np.array([[1, 0], [0, 2]], "int64")), R.const(0.5)),
)
case(
    "dyn_resize2d",
    [Input((1, 2, 3, 4))],
    lambda x: R.image.resize2d(
        x,
        R.const(np.array([6, 8], "int64")),
        method="nearest_neighbor",
        coordinate_transformation_mode="asymmetric",
        rounding_method="floor",
    ),
)
case(
    "dyn_upsampling",
    [Input((1, 2, 3, 4))],
    lambda x: R.nn.upsampling(
        x, R.const(np.float64(2.0)), R.const(np.float64(2.0)), method="nearest_neighbor"
    ),
)
# -- others that the importers of old met -----------------------------------------------------------------
case("invert_permutation", [Input((4,), "int32", values=[2, 0, 3, 1])], lambda x: R.invert_permutation(x))
case("reinterpret", [Input((2, 3))], lambda x: R.reinterpret(x, "int32"))


def _branch(c, x, y):
    return R.If(R.less(R.sum(c), const(0.0)), R.add(x, y), R.multiply(x, y))


case("language_if", [Input((3,)), X, X], _branch)


def _let(x):
    a, b = R.var("a"), R.var("b")
    return R.Let(a, R.exp(x), R.Let(b, R.add(a, x), R.multiply(a, b)))


case("language_let", [X], _let)


def _closure(x):
    p = R.var("p", shape=(2, 3, 4))
    q = R.var("q", shape=(2, 3, 4))
    f = R.var("f")
    return R.Let(f, R.Function([p, q], R.subtract(p, R.tanh(q))), R.Call(f, [x, R.Call(f, [x, x])]))


case("language_function", [X], _closure)


def _tuple(x, y):
    pair = R.Tuple([R.Tuple([x, y]), R.add(x, y)])
    return R.Tuple([R.TupleGetItem(R.TupleGetItem(pair, 0), 1), R.TupleGetItem(pair, 1), x])


case("language_tuple", [X, X], _tuple)
