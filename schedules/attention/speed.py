# SPDX-License-Identifier: Apache-2.0
"""How fast attention is, beside what the machine model of its hardware says of single steps."""

from __future__ import annotations

import attrs


@attrs.frozen
class AttentionSpeed:
    """Of one kind of hardware; `uir_tvm.kernel_graph.attention_cost` prices by it.

    Parameters
    ----------
    reached : float
        Of the rate of contractions, what products of one kernel reach.
    library : float
        What those of the library reach, where it has no costs of its own (`uir_tvm.hardware.library_costs`).
    narrow_products : bool
        Whether the rate of contractions is that of a unit for narrow types, and products of fp32 are
        multiplications and additions as any others.
    prepared : float
        Functions of each element of an operand of a product before it is where its unit takes it.
    overlaps : bool
        Whether a unit loads blocks of keys while it computes others.
    usual_gain : float
        How many times as fast products of the library must be by the model where one kernel is usual: more
        than once where the model gives orders of magnitude, and the table what is known otherwise.
    times : float
        How many times as long a tile takes as all of its steps by the machine model, if it is no even one:
        what is masked or staged.
    """

    reached: float = 0.8
    library: float = 0.8
    narrow_products: bool = False
    prepared: float = 0.0
    overlaps: bool = False
    usual_gain: float = 1.0
    times: float = 1.0
