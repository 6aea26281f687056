# SPDX-License-Identifier: Apache-2.0
"""Extraction: scheduled PrimFunc -> iGraph."""

from .extract import extract

__all__ = ["extract"]
