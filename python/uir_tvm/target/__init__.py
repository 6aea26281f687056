# SPDX-License-Identifier: Apache-2.0
"""Targets: what turns iGraphs into code, and how stock TVM comes to know it."""

from .registry import TARGETS, TargetSpec, describe, get, of_target, resolve

__all__ = ["TARGETS", "TargetSpec", "describe", "get", "of_target", "resolve"]
