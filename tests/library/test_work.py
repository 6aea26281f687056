# SPDX-License-Identifier: Apache-2.0
"""What library operators compute and move, counted by hand."""

from __future__ import annotations

import attrs
from uir_tvm.library.attrs import Conv2dAttrs, MatmulAttrs
from uir_tvm.library.integer_matmul_attrs import IntegerMatmulAttrs
from uir_tvm.library.work import work_of


def test_a_product_with_one_matrix_for_a_batch() -> None:
    """3 x (4 x 5 by 5 x 6): the right matrix is read once; bias and residual are read as well."""
    plain = MatmulAttrs.contiguous((3, 4, 5), (5, 6))
    work = work_of("matmul", plain.to_json())
    assert (work.sizes, work.operations) == ("3x4x5x6", 2 * 3 * 4 * 5 * 6)
    assert work.elements == 3 * 4 * 5 + 5 * 6 + 3 * 4 * 6
    added = attrs.evolve(plain, bias=True, residual="before_activation")
    assert work_of("matmul", added.to_json()).elements == work.elements + 6 + 3 * 4 * 6


def test_a_convolution_in_groups() -> None:
    """Two channels and nine taps for each of 6 x 4 x 4 results."""
    attributes = Conv2dAttrs(
        input=(1, 4, 4, 4), weight=(6, 2, 3, 3), padding=(1, 1, 1, 1), groups=2, bias=True
    )
    work = work_of("conv2d", attributes.to_json())
    assert (work.sizes, work.operations) == ("1x4x4x4 by 6x2x3x3", 2 * 96 * 18)
    assert work.elements == 64 + 108 + 96 + 6


def test_a_product_of_bytes() -> None:
    """4 x 5 by 6 x 5 bytes, and 24 results of four."""
    work = work_of("integer_matmul", IntegerMatmulAttrs(m=4, n=6, k=5).to_json())
    assert (work.sizes, work.operations) == ("4x5x6", 2 * 4 * 5 * 6)
    assert work.elements == 4 * 5 + 6 * 5 + 4 * 24
