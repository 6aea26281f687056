# SPDX-License-Identifier: Apache-2.0
"""uir-cuda: CUDA C++ from iGraphs."""

from __future__ import annotations
