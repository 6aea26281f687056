# SPDX-License-Identifier: Apache-2.0
"""The GPU benchmark of scripts/gpu_bench.py: cases, contenders, checks and measurements.

These files travel with the artefacts to machines that have neither TVM nor uir_tvm installed: beside the
standard library they import NumPy and torch (and what is measured), except for `build`.
"""

from __future__ import annotations
