# SPDX-License-Identifier: Apache-2.0
"""Scales and zero points of ONNX's quantised operators: whether they are what the standard says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import QuantizationError


def check_scale(scale: np.ndarray | None, where: str, name: str = "the scale", divides: bool = False) -> None:
    """Refuse constant scales that mean nothing.

    Parameters
    ----------
    scale : numpy.ndarray or None
        None where it is computed.
    where : str
        The node.
    name : str
    divides : bool
        Whether numbers are divided by it: then 0 means nothing either.

    Raises
    ------
    QuantizationError
    """
    if scale is None:
        return
    wide = np.asarray(scale).astype(np.float64)
    if not np.isfinite(wide).all() or (divides and not (wide > 0).all()):
        bad = wide[~(np.isfinite(wide) & (wide > 0))].reshape(-1)[0]
        raise QuantizationError(
            f"{name} is {bad:g}",
            where=where,
            need="finite numbers above 0" if divides else "finite numbers",
            remedy="calibrate the model again, with data that reach the tensor",
        )


def check_parts(
    where: str,
    shape: Sequence[int],
    dtype: str,
    scale: Sequence[int],
    zero: tuple[Sequence[int], str] | None,
    axis: int,
    block: int,
) -> None:
    """Refuse scales and zero points that do not fit a tensor.

    Parameters
    ----------
    where : str
        The node.
    shape, dtype : sequence of int, str
        Of the tensor, and of its codes.
    scale : sequence of int
        Shape of the scales: one, one for each place of `axis`, or one for each block.
    zero : (shape, dtype) or None
    axis, block : int
        As the node says; 0: no blocks.

    Raises
    ------
    QuantizationError
    """
    rank, sizes = len(shape), tuple(scale)
    if zero is not None and zero[1] != dtype:
        raise QuantizationError(
            f"the zero point is {zero[1]}, the codes are {dtype}",
            where=where,
            need="one type for both",
            remedy=f"give a zero point of {dtype}",
        )
    if zero is not None and tuple(zero[0]) != sizes and int(np.prod(zero[0])) * int(np.prod(sizes)) != 1:
        raise QuantizationError(
            f"zero points of {tuple(zero[0])} go with scales of {sizes}",
            where=where,
            need="a zero point for each scale",
            remedy="quantise the model again",
        )
    if sizes in ((), (1,)):
        return
    if not -rank <= axis < rank:
        raise QuantizationError(
            f"scales are along axis {axis} of a tensor of {rank} axes",
            where=where,
            need=f"an axis of {-rank} to {rank - 1}",
            remedy="correct the attribute axis",
        )
    along = shape[axis]
    if len(sizes) == 1 and not block and sizes[0] != along:
        raise QuantizationError(
            f"{sizes[0]} scales are along axis {axis}, which has {along} places",
            where=where,
            need="a scale for each place, or one for all",
            remedy="quantise the model again, or correct the attribute axis",
        )
    if len(sizes) > 1:
        wanted = [-(-size // block) if block and at == axis % rank else size for at, size in enumerate(shape)]
        if block and sizes != tuple(wanted):
            raise QuantizationError(
                f"scales of {sizes} are for blocks of {block} along axis {axis} of {tuple(shape)}",
                where=where,
                need=f"scales of {tuple(wanted)}",
                remedy="correct the attributes axis and block_size, or quantise the model again",
            )
