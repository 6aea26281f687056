# SPDX-License-Identifier: Apache-2.0
"""Extraction: scheduled PrimFunc -> iGraph."""

from .. import loaded  # noqa: F401
from .extract import extract

__all__ = ["extract"]
