# SPDX-License-Identifier: Apache-2.0
"""Relay's operators in Relax's, as one table.

A converter takes the context, the call's attributes (defaults filled in) and its arguments, tensors or tuples
of them, and returns what the operator returns.
"""

from __future__ import annotations

from . import (
    convolutions,
    elementwise,
    images,
    indexing,
    layout,
    neural,
    norms,
    pools,
    products,
    quantized,
    reductions,
    shapes,
)

#: The folder's tables, under the headings of the documentation.
TABLES = {
    "Elementwise": elementwise.TABLE,
    "Reductions and scans": reductions.TABLE,
    "Shapes and movement": {**shapes.TABLE, **layout.TABLE},
    "Indexing and sorting": indexing.TABLE,
    "Products": products.TABLE,
    "Convolutions": convolutions.TABLE,
    "Pools": pools.TABLE,
    "Normalisation": norms.TABLE,
    "Activations and other layers": neural.TABLE,
    "Images and vision": images.TABLE,
    "Quantised": quantized.TABLE,
}
CONVERTERS = {name: convert for table in TABLES.values() for name, convert in table.items()}

_RAGGED = "its result's shape depends on data"
_RANDOM = "it draws random numbers"
#: Operators of Relay that have no converter, and why.
REFUSED = {
    **dict.fromkeys(("argwhere", "unique", "sparse_fill_empty_rows", "sparse_reshape"), _RAGGED),
    **dict.fromkeys(
        (
            "random.multinomial",
            "random.normal",
            "random.threefry_generate",
            "random.threefry_split",
            "random.uniform",
        ),
        _RANDOM,
    ),
    **dict.fromkeys(
        ("nn.sparse_add", "nn.sparse_conv2d", "nn.sparse_dense", "nn.sparse_transpose", "sparse_to_dense"),
        "it reads sparse tensors",
    ),
}
