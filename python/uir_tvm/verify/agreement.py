# SPDX-License-Identifier: Apache-2.0
"""What a function gives on some arguments, and whether what another gave agrees with it, by dtype."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from ..igraph.dtypes import DTYPES

#: Largest difference relative to the size of an element, by dtype. fp32: sums of some hundred terms in
#: another order, and functions a few ULP apart; narrow floats round after every operation of a target that
#: computes in them; fp64 has its own ULP. What is no float is equal.
TOLERANCE: Mapping[str, float] = {
    "fp64": 1e-11,
    "fp32": 2e-5,
    "fp16": 1e-2,
    "bf16": 8e-2,
    "fp8e4m3": 0.25,
    "fp8e5m2": 0.5,
}
#: The same by the dtypes' names in TVM, which arrays go by too.
TVM_TOLERANCE: Mapping[str, float] = {DTYPES[name].tvm: value for name, value in TOLERANCE.items()}
#: No element counts as smaller: inputs are some units large, and differences of them may cancel.
SMALLEST = 1 / 16
#: Where there are sums, an element counts as large as most of the others are: what cancels in one sum has the
#: error of sums that do not cancel. Not as the largest one, behind which errors of the others would hide.
MOST = 0.9
#: Differing elements that are shown.
SHOWN = 8


@attrs.frozen
class Reference:
    """A function's arguments and what it makes of them.

    Parameters
    ----------
    names : tuple of str
        Of the parameters, in order.
    written : tuple of bool
        Which of them the function writes.
    arguments : tuple of ndarray
        Before a call. What is written holds random numbers too: what a candidate leaves out must not look
        right.
    results : tuple of tuple of ndarray
        All parameters after a call; where there are narrow floats, also those of the function with its values
        in fp32 until they are stored. An element is right if it agrees with either.
    sums : bool
        Whether it sums, in whatever order.
    interval : (float, float)
        Which floats were drawn.
    """

    names: tuple[str, ...]
    written: tuple[bool, ...]
    arguments: tuple[np.ndarray, ...]
    results: tuple[tuple[np.ndarray, ...], ...]
    sums: bool
    interval: tuple[float, float]

    @property
    def nbytes(self) -> int:
        """Of all arrays."""
        arrays = {id(array): array for row in (self.arguments, *self.results) for array in row}
        return sum(array.nbytes for array in arrays.values())


@attrs.frozen
class ParameterDifference:
    """One parameter after a call, which is not what it should be.

    Parameters
    ----------
    name : str
        Of the parameter.
    count, total : int
        Elements that differ, and that there are.
    largest : float
        Error, relative to the size of the element; infinite where one side is no number.
    examples : tuple of str
        The first elements that differ.
    """

    name: str
    count: int
    total: int
    largest: float
    examples: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.count} of {self.total} elements of {self.name} differ, "
            f"by up to {self.largest:.3g} of their size"
        )


def differences(
    reference: Reference, got: Sequence[np.ndarray | None], tolerance: Mapping[str, float] | None = None
) -> list[ParameterDifference]:
    """The parameters that differ from the reference after a call.

    Parameters
    ----------
    got : sequence of ndarray or None
        All parameters after a call on the reference's arguments, of any shape; None: not known.
    tolerance : mapping of str to float, optional
        In the place of `TVM_TOLERANCE`, for some dtypes.
    """
    table = {**TVM_TOLERANCE, **(tolerance or {})}
    found = []
    for at, (name, ours) in enumerate(zip(reference.names, got, strict=True)):
        if ours is None:
            continue
        forms = [row[at] for row in reference.results]
        ours = ours.reshape(forms[0].shape)
        if not reference.written[at] and np.array_equal(_bytes(ours), _bytes(forms[0])):
            continue
        allowed = table.get(str(ours.dtype), 0.0) if reference.written[at] else 0.0
        difference = _difference(name, ours, forms, allowed, reference.sums)
        if difference is not None:
            found.append(difference)
    return found


def _bytes(array: np.ndarray) -> np.ndarray:
    """What an array holds: as such, large tables are compared in no time."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _difference(
    name: str, ours: np.ndarray, forms: Sequence[np.ndarray], allowed: float, sums: bool
) -> ParameterDifference | None:
    errors = [relative_errors(ours, form, least_size(form, sums)) for form in forms]
    least = np.minimum.reduce(errors)
    wrong = least > allowed
    if not wrong.any():
        return None
    places = np.argwhere(wrong)[:SHOWN]
    examples = tuple(
        f"{name}[{', '.join(map(str, place))}] is {ours[tuple(place)]!s}, not {forms[0][tuple(place)]!s}"
        for place in places
    )
    return ParameterDifference(name, int(wrong.sum()), wrong.size, float(least.max()), examples)


def relative_errors(got: np.ndarray, wanted: np.ndarray, least: float) -> np.ndarray:
    """Errors relative to the sizes of the elements: 0 of equal ones, infinite where one side is no number.

    Parameters
    ----------
    got, wanted : ndarray
        Of one shape; what is no float has an error of 0 or infinity.
    least : float
        What an element counts as at least.
    """
    if wanted.dtype.kind in "biu":
        return np.where(got == wanted, 0.0, np.inf)
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(all="ignore"):
        size = np.maximum(np.where(np.isfinite(b), np.abs(b), 1.0), least)
        error = np.abs(a - b) / size
        same = (a == b) | (np.isnan(a) & np.isnan(b))
    return np.where(same, 0.0, np.where(np.isfinite(error), error, np.inf))


def least_size(wanted: np.ndarray, sums: bool) -> float:
    """How large any element of a result counts at least; 0 for what is no float.

    Parameters
    ----------
    wanted : ndarray
        The result.
    sums : bool
        Whether its kernel sums.
    """
    if wanted.dtype.kind in "biu":
        return 0.0
    size = np.abs(wanted.astype(np.float64))
    finite = size[np.isfinite(size)]
    return max(SMALLEST, float(np.quantile(finite, MOST))) if sums and finite.size else SMALLEST
