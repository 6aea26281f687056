# SPDX-License-Identifier: Apache-2.0
"""Weights as checkpoints of GPTQ and AWQ have them, as quantised tensors of ours.

Both keep codes in words of 32 bits, for the reversed product ``x @ weight``: along the inputs (GPTQ) or along
the outputs (AWQ), a scale in float16 and a zero point for each group of inputs and each output::

    weight[i, o] = scale[group(i), o] * (code[i, o] - point[group(i), o])

Sources: AutoGPTQ and GPTQModel (``QuantLinear.pack``), AutoAWQ (``WQLinear_GEMM.from_linear``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from ..errors import ModelFormatError
from ..quantized_weight import MOST_GROUP, QuantizedWeight, affine_weight

#: Bits of a code -> those of a quantised tensor's.
BITS = {2: 4, 3: 4, 4: 4, 8: 8}
#: The output whose code lies in each of a word's 8 places, the lowest first, in AWQ.
AWQ_PLACES = (0, 2, 4, 6, 1, 3, 5, 7)


@attrs.frozen
class PackedLayout:
    """How a checkpoint's packed weights lie.

    Attributes
    ----------
    method : str
        gptq or awq.
    bits : int
    group : int
        Inputs that share a scale; -1: all.
    shift : int
        What is added to stored zero points.
    """

    method: str
    bits: int
    group: int
    shift: int

    @property
    def parts(self) -> tuple[str, ...]:
        """Tensors of a module, after its name and a dot."""
        return ("qweight", "qzeros", "scales", *(["g_idx"] if self.method == "gptq" else []))


def layout_of(told: Mapping[str, Any], where: str) -> PackedLayout:
    """The layout that ``quantization_config`` tells of.

    Raises
    ------
    ModelFormatError
        For bits, groups or a version of the layout that there is none of.
    """
    method = str(told["quant_method"]).lower()
    bits, group = (
        told.get("bits", told.get("w_bit", 4)),
        told.get("group_size", told.get("q_group_size", 128)),
    )
    version = str(told.get("version", told.get("checkpoint_format", told.get("format", ""))) or "").lower()
    needs = {"gptq": (tuple(BITS), ("", "gptq", "gptq_v2")), "awq": ((4,), ("", "gemm"))}
    some_bits, versions = needs[method]
    for name, value, choices in (("bits", bits, some_bits), ("a layout", version, versions)):
        if value not in choices:
            raise ModelFormatError(
                f"{where} has weights of {method} with {name} of {value!r}.",
                need=" or ".join(str(choice) for choice in choices if choice != ""),
                remedy="quantise the model again, or load it before it is quantised",
            )
    if not isinstance(group, int) or isinstance(group, bool) or (group != -1 and group < 1):
        raise ModelFormatError(
            f"{where} has weights of {method} in groups of {group!r}.",
            need="a positive number of inputs, or -1 for all",
            remedy="correct quantization_config in config.json",
        )
    return PackedLayout(method, bits, group, int(method == "gptq" and version != "gptq_v2"))


def weight_of(
    parts: Mapping[str, np.ndarray], layout: PackedLayout, shape: tuple[int, int], where: str
) -> tuple[QuantizedWeight, np.ndarray | None]:
    """The weight of a module, and the order in which its columns are those of the module's input.

    Parameters
    ----------
    parts : mapping of str to numpy.ndarray
        ``qweight`` and ``qzeros`` of int32, ``scales`` of floats, and perhaps ``g_idx``.
    layout : PackedLayout
    shape : tuple of int
        Outputs and inputs of the module.
    where : str
        The module, for errors.

    Returns
    -------
    QuantizedWeight, and numpy.ndarray of int64 or None
        None: columns are in order.

    Raises
    ------
    ModelFormatError
        For parts that do not fit the module or one another.
    """
    outputs, inputs = shape
    group = inputs if layout.group == -1 else layout.group
    if inputs % group:
        raise ModelFormatError(
            f"{where} has {inputs} inputs, in groups of {group}.",
            need="groups that divide them",
            remedy="quantise the model again with another group_size",
        )
    groups = inputs // group
    along = layout.method == "gptq"
    words = (inputs * layout.bits / 32, outputs) if along else (inputs, outputs * layout.bits / 32)
    need = {
        "qweight": ("int32", words),
        "qzeros": ("int32", (groups, outputs * layout.bits / 32)),
        "scales": ("float", (groups, outputs)),
        **({"g_idx": ("int", (inputs,))} if "g_idx" in parts else {}),
    }
    for name, (dtype, size) in need.items():
        found = parts[name]
        if found.shape != size or not found.dtype.name.startswith(dtype):
            whole = tuple(int(number) if number == int(number) else number for number in size)
            raise ModelFormatError(
                f"{where}.{name} is {found.dtype}{found.shape}.",
                need=f"{dtype}{whole}, by the module's sizes, {layout.bits} bits and groups of {group}",
                remedy="correct quantization_config in config.json, or quantise the model again",
            )
    if along:
        codes = unpacked(parts["qweight"].T, layout.bits)
        points = unpacked(parts["qzeros"], layout.bits).T
    else:
        codes = _awq(parts["qweight"]).T
        points = _awq(parts["qzeros"]).T
    order = _order(parts["g_idx"], groups, group, where) if "g_idx" in parts else None
    codes = codes if order is None else codes[:, order]
    scales, points = parts["scales"].T, points.astype(np.float32) + layout.shift
    return affine_weight(codes, np.ascontiguousarray(scales), points, BITS[layout.bits], MOST_GROUP), order


def unpacked(words: np.ndarray, bits: int) -> np.ndarray:
    """Codes [rows, count] of words of 32 bits along the last axis, the lowest bits first."""
    bytes_ = np.ascontiguousarray(words).view(np.uint8)
    if 8 % bits == 0:
        shifts = np.arange(0, 8, bits, dtype=np.uint8)
        return (bytes_[..., None] >> shifts & np.uint8((1 << bits) - 1)).reshape(len(words), -1)
    single = np.unpackbits(bytes_, axis=1, bitorder="little").reshape(len(words), -1, bits)
    return np.packbits(single, axis=2, bitorder="little")[..., 0]


def _awq(words: np.ndarray) -> np.ndarray:
    """Codes [rows, outputs] of AWQ's words."""
    codes = unpacked(words, 4).reshape(len(words), -1, 8)
    return codes[:, :, np.argsort(AWQ_PLACES)].reshape(len(words), -1)


def _order(index: np.ndarray, groups: int, group: int, where: str) -> np.ndarray | None:
    """The inputs group by group, where they are not so already."""
    if not np.array_equal(np.bincount(index.clip(0), minlength=groups), np.full(groups, group)):
        raise ModelFormatError(
            f"{where}.g_idx puts its inputs in groups of {index.min()} to {index.max()}.",
            need=f"{groups} groups, each with {group} inputs",
            remedy="quantise the model again",
        )
    order = np.argsort(index, kind="stable")
    return None if np.array_equal(order, np.arange(len(order))) else order
