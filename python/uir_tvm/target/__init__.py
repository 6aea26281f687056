# SPDX-License-Identifier: Apache-2.0
"""Targets: what turns iGraphs into code, and how stock TVM comes to know it.

A target is a folder with a record (`record.TargetRecord`), which says everything that only it has.
"""
