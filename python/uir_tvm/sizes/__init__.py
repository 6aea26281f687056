# SPDX-License-Identifier: Apache-2.0
"""Sizes that a model leaves open: symbols, arithmetic, conditions, and their texts in files.

From below: `symbolic_shapes` (expressions as text), `open_bounds`, `open_symbols` and `open_terms`
(polynomials), `open_size` (a size), `size_condition`, `open_arithmetic` (what models do with sizes),
`size_space` (what is known of all sizes of a program), `saved_sizes` (both in files).
"""
