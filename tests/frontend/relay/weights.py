# SPDX-License-Identifier: Apache-2.0
"""Numbers of the networks' weights and inputs, of their names alone: nothing of megabytes need be kept.

Shared with `scripts/make_relay_fixtures.py`, which runs under an old Python.
"""

import zlib

import numpy as np


def numbers(name, shape, dtype="float32"):
    """The tensor called ``name``: variances and gammas near 1, others as wide as keeps activations so."""
    random = np.random.RandomState(zlib.crc32(name.encode()))
    if not dtype.startswith("float"):
        return random.randint(0, 16, shape).astype(dtype)
    if name.endswith(("var", "gamma", "scale")):
        return random.uniform(0.8, 1.2, shape).astype(dtype)
    fan = int(np.prod(shape[1:])) if len(shape) > 1 else 16
    return (random.standard_normal(shape) / np.sqrt(max(fan, 1))).astype(dtype)
