# SPDX-License-Identifier: Apache-2.0
"""Library operators: matrix products and convolutions that a vendor's or a BLAS library computes."""

from __future__ import annotations
