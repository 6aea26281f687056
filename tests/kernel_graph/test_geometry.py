# SPDX-License-Identifier: Apache-2.0
"""Sizes and strides of a matrix product name the elements of its views, and what rows a library can take."""

from __future__ import annotations

import numpy as np
import pytest
from uir_tvm.kernel_graph.geometry import BatchAxis, MatmulGeometry, common_atoms, matmul_geometry
from uir_tvm.kernel_graph.strided_views import Layout

from .test_strided_views import addresses

WHOLE = Layout.contiguous
#: Heads of attention as batches of products: composite, permuted, repeated, and with rows to fold.
PRODUCTS: dict[str, tuple[Layout, Layout, Layout]] = {
    "one product": (WHOLE((3, 4)), WHOLE((4, 5)), WHOLE((3, 5))),
    "a vector": (WHOLE((1, 4)), WHOLE((4, 1)), WHOLE((1, 1))),
    "heads side by side": (
        WHOLE((2, 3, 4, 5)).permute([0, 2, 1, 3]),
        WHOLE((2, 4, 6, 5)).permute([0, 1, 3, 2]),
        WHOLE((2, 4, 3, 6)),
    ),
    "repeated heads": (
        WHOLE((2, 4, 3, 5)),
        WHOLE((2, 2, 1, 5, 6)).broadcast((2, 2, 2, 5, 6)).reshape((2, 4, 5, 6)) or WHOLE(()),
        WHOLE((2, 4, 3, 6)),
    ),
    "one matrix for a batch": (WHOLE((2, 3, 4)), WHOLE((4, 5)).broadcast((2, 4, 5)), WHOLE((2, 3, 5))),
    "a batch of one": (WHOLE((1, 3, 4)), WHOLE((1, 4, 5)), WHOLE((1, 3, 5))),
}


def operand_addresses(found: MatmulGeometry, index: int) -> np.ndarray:
    """Of a, b or the result: an address for every batch, row and column."""
    shape = ((found.m, found.k), (found.k, found.n), (found.m, found.n))[index]
    total = np.array(found.offsets[index])
    axes = [(axis.extent, axis.strides[index]) for axis in found.batch]
    for extent, stride in (*axes, *zip(shape, found.strides[index], strict=True)):
        total = total[..., None] + np.arange(extent) * stride
    return total.reshape(-1, *shape)


@pytest.mark.parametrize("name", PRODUCTS)
def test_strides_name_the_elements_of_the_views(name: str) -> None:
    layouts = PRODUCTS[name]
    found = matmul_geometry(*layouts)
    assert found is not None and found.unit_stride
    for index, layout in enumerate(layouts):
        named = operand_addresses(found, index)
        # where rows of a batch are folded, its one b stands for all
        wanted = addresses(layout).reshape(-1, *named.shape[1:])[: len(named)]
        np.testing.assert_array_equal(named, wanted)


def test_rows_that_overlap_are_not_plain_rows() -> None:
    """Every row begins one element after the last: BLAS would refuse such a leading dimension."""
    windows, weights, result = Layout.strided((4, 3), (1, 1)), WHOLE((3, 5)), WHOLE((4, 5))
    for layouts in ((windows, weights, result), (WHOLE((4, 3)), Layout.strided((3, 5), (1, 1)), result)):
        found = matmul_geometry(*layouts)
        assert found is not None and not found.unit_stride
        np.testing.assert_array_equal(operand_addresses(found, 0)[0], addresses(layouts[0]))


def test_splittings_of_one_range_are_refined_until_they_agree() -> None:
    lists = [[(2, 100), (1, 9), (6, 1)], [(4, 30), (3, 7)]]
    axes = common_atoms(lists)
    assert axes is not None and [axis.extent for axis in axes] == [2, 2, 3]
    for index, atoms in enumerate(lists):
        one = addresses(Layout((tuple(atoms),)))
        np.testing.assert_array_equal(
            addresses(Layout((tuple((axis.extent, axis.strides[index]) for axis in axes),))), one
        )
    # neighbours that walk every operand in one run are one axis
    assert common_atoms([[(2, 3), (3, 1)], [(6, 5)]]) == [BatchAxis(6, (1, 5))]


@pytest.mark.parametrize("other", [[(4, 1)], [(12, 1)], []])
def test_splittings_that_cannot_agree_are_none(other: list[tuple[int, int]]) -> None:
    assert common_atoms([[(6, 1)], other]) is None
