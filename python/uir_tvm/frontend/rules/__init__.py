# SPDX-License-Identifier: Apache-2.0
"""Rewrite rules on single Relax calls, as tables by operator.

A rule takes a normalised call and the rewriter, and returns an equal expression or None; the first
rule of an operator that answers wins. The rules of `SIMPLIFY` keep every value bit for bit.
"""

from __future__ import annotations

from . import contraction, elementwise, image_convolutions, narrow, positions, resizes, sampling, views
from .rewriter import Rewriter, Rule

SIMPLIFY: dict[str, tuple[Rule, ...]] = {
    **{name: (elementwise.elementwise,) for name in elementwise.ELEMENTWISE},
    **{name: (elementwise.neutral, elementwise.elementwise) for name in elementwise.NEUTRAL},
    **{name: (elementwise.reduce_broadcast,) for name in elementwise.REDUCTIONS},
    **{name: (elementwise.reduce_stack, elementwise.reduce_broadcast) for name in elementwise.STACKED},
    **{
        name: (views.squeeze_before_permute, views.unmerge_before_permute, views.view)
        for name in views.RESHAPES
    },
    **{name: (views.same,) for name in views.MARKS},
    **{name: (narrow.widened,) for name in narrow.WIDENED},
    "divide": (elementwise.reciprocal_root, elementwise.neutral, elementwise.elementwise),
    "add": (
        elementwise.neutral,
        positions.equal_everywhere,
        positions.counted_from_size,
        elementwise.elementwise,
    ),
    "subtract": (positions.equal_everywhere, positions.counted_from_size, elementwise.elementwise),
    **{name: (positions.compared_positions, elementwise.elementwise) for name in positions.DECIDED},
    **{
        name: (positions.compared, positions.compared_positions, elementwise.elementwise)
        for name in ("less", "greater_equal")
    },
    "astype": (elementwise.cast, elementwise.elementwise),
    "broadcast_to": (views.broadcast,),
    "clip": (elementwise.clip,),
    "concat": (views.wide_concat,),
    "dynamic_strided_slice": (views.fixed_slice,),
    "gather_elements": (views.constant_indices, positions.of_one_number),
    "cumsum": (positions.running_nothing,),
    "gather_nd": (views.constant_indices, positions.of_one_number, positions.indexed_together),
    "index_tensor": (views.constant_indices, positions.of_one_number, positions.indexed),
    **{f"image.resize{rank}d": (resizes.repeated_pixels,) for rank in (2, 3)},
    "multinomial_from_uniform": (sampling.multinomial_from_uniform,),
    "nn.pixel_shuffle": (views.pixel_shuffle,),
    "permute_dims": (views.permute,),
    "power": (elementwise.power, elementwise.elementwise),
    "repeat": (resizes.repeat,),
    "shape_of": (views.shape_of_static,),
    "strided_slice": (views.strided_slice, views.slice_before_permute, views.slice_before_reshape),
    "tensor_to_shape": (views.shape_of_constant,),
    "take": (views.constant_indices, positions.repeated_indices, views.take_range, resizes.repeated_elements),
    "where": (elementwise.select, elementwise.elementwise),
}

# On a simplified graph; each entry comes before those of SIMPLIFY.
CONTRACT: dict[str, tuple[Rule, ...]] = {
    "add": (contraction.fold_shift,),
    "nn.conv1d": (image_convolutions.conv1d,),
    "nn.conv1d_transpose": (image_convolutions.conv1d_transpose,),
    "nn.conv2d_transpose": (image_convolutions.conv2d_transpose,),
    "nn.conv3d": (image_convolutions.conv3d,),
    "multiply": (contraction.fold_scale, contraction.scale_before_view),
    "reshape": (contraction.rows_in_shape,),
}

# The passes of normalisation, in order.
PASSES: tuple[dict[str, tuple[Rule, ...]], ...] = (
    SIMPLIFY,
    {name: CONTRACT.get(name, ()) + SIMPLIFY.get(name, ()) for name in SIMPLIFY.keys() | CONTRACT.keys()},
)

__all__ = ["CONTRACT", "PASSES", "SIMPLIFY", "Rewriter", "Rule"]
