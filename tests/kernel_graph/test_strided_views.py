# SPDX-License-Identifier: Apache-2.0
"""Layouts against NumPy: every operation on a view reads the elements that NumPy's reads."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from uir_tvm.kernel_graph.strided_views import Digit, Layout, digits, factored_shape, rebase


def addresses(layout: Layout) -> np.ndarray:
    """The address of every element, in the view's shape."""
    total = np.array(layout.offset)
    for dim in layout.dims:
        index = np.zeros(1, "int64")
        for extent, stride in dim:
            index = (index[:, None] + np.arange(extent) * stride).reshape(-1)
        total = total[..., None] + index
    return total


@st.composite
def chains(draw: st.DrawFn) -> tuple[Layout, np.ndarray, int]:
    """A random chain of view operations, and the addresses by NumPy."""
    shape = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4))
    layout, array = Layout.contiguous(shape), np.arange(prod(shape)).reshape(shape)
    for _ in range(draw(st.integers(0, 5))):
        step = draw(st.sampled_from(["permute", "slice", "reshape", "broadcast"]))
        if step == "permute":
            axes = draw(st.permutations(range(array.ndim)))
            layout, array = layout.permute(axes), array.transpose(axes)
        elif step == "slice":
            axis = draw(st.integers(0, array.ndim - 1))
            begin = draw(st.integers(0, array.shape[axis] - 1))
            stride = draw(st.integers(1, 2))
            extent = draw(st.integers(1, (array.shape[axis] - begin - 1) // stride + 1))
            found = layout.slice(axis, begin, extent, stride)
            if found is not None:
                cut = [slice(None)] * array.ndim
                cut[axis] = slice(begin, begin + extent * stride, stride)
                layout, array = found, array[tuple(cut)][(slice(None),) * axis + (slice(0, extent),)]
        elif step == "broadcast":
            target = [3 if extent == 1 else extent for extent in array.shape]
            layout, array = layout.broadcast([2, *target]), np.broadcast_to(array, [2, *target])
        else:
            factors = [f for f in (2, 3) if array.size % f == 0]
            target = draw(
                st.sampled_from([[array.size], *([f, array.size // f] for f in factors), [*array.shape, 1]])
            )
            found = layout.reshape(target)
            if found is not None:
                layout, array = found, array.reshape(target)
    return layout, array, prod(shape)


@settings(max_examples=150, deadline=None)
@given(chains())
def test_view_operations_read_what_numpy_reads(chain: tuple[Layout, np.ndarray, int]) -> None:
    layout, array, _ = chain
    assert layout.shape == array.shape
    np.testing.assert_array_equal(addresses(layout), array)


@settings(max_examples=150, deadline=None)
@given(chains(), st.data())
def test_digits_are_coordinates_of_the_same_element(
    chain: tuple[Layout, np.ndarray, int], data: st.DataObject
) -> None:
    layout, array, size = chain
    shapes = [(size,)] + [(f, size // f) for f in (2, 3, 4) if size % f == 0]
    factored = factored_shape(layout, size)
    shape = data.draw(st.sampled_from(shapes if factored is None else [*shapes, factored]))
    found = digits(layout, shape)
    if found is None:
        return
    dims, offsets = found
    coordinates = np.array(np.broadcast_to(np.array(offsets), (*array.shape, len(shape))))
    for axis, dim in enumerate(dims):
        rest = np.arange(array.shape[axis])
        for digit in reversed(dim):
            step = (rest % digit.extent) * digit.coefficient
            coordinates[..., digit.position] += step.reshape(
                [-1 if a == axis else 1 for a in range(array.ndim)]
            )
            rest = rest // digit.extent
    assert (coordinates < np.array(shape)).all()  # no carry: what makes the index affine
    np.testing.assert_array_equal(np.ravel_multi_index(tuple(np.moveaxis(coordinates, -1, 0)), shape), array)


def test_heads_of_grouped_queries_are_a_view() -> None:
    """Keys (kv, s, d) repeated for groups of heads have no single stride, and yet no copy."""
    keys = Layout.contiguous((2, 1, 5, 4)).broadcast((2, 3, 5, 4)).reshape((6, 5, 4))
    assert keys is not None
    assert keys.dims[0] == ((2, 20), (3, 0))
    expected = np.repeat(np.arange(40).reshape(2, 5, 4), 3, axis=0)
    np.testing.assert_array_equal(addresses(keys), expected)


def test_inverse_of_a_permutation_stores_the_reader_s_order() -> None:
    """A tensor stored in the order of its transposed reading is contiguous for that reader."""
    reading = Layout.contiguous((2, 3, 4)).permute((1, 0, 2))
    storage = reading.reshape((24,)).inverse_of()
    assert storage is not None
    assert rebase(reading, storage) == Layout.contiguous((3, 2, 4))
    moved = rebase(Layout.contiguous((2, 3, 4)), storage)
    assert moved is not None
    expected = np.arange(24).reshape(3, 2, 4).transpose(1, 0, 2)
    np.testing.assert_array_equal(addresses(moved), expected)


def test_reshape_that_cuts_an_atom_is_no_view() -> None:
    assert Layout.contiguous((4, 6)).permute((1, 0)).reshape((8, 3)) is None
    assert Layout.contiguous((4, 6)).slice(1, 0, 5).reshape((20,)).strides() is None


def test_the_digits_of_a_run_are_those_of_the_tensor() -> None:
    """A run across rows carries from digit to digit, every second element of rows of even length too."""
    rows = (Digit(3, 0, 1), Digit(4, 1, 1))
    assert digits(Layout.contiguous((12,)), (3, 4)) == ((rows,), (0, 0))
    halves = (Digit(3, 0, 1), Digit(3, 1, 2))
    assert digits(Layout.strided((9,), (2,)), (3, 6)) == ((halves,), (0, 0))
    # of rows of odd length it begins at another place in every second row
    assert digits(Layout.strided((9,), (2,)), (4, 5)) is None
