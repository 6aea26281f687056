# SPDX-License-Identifier: Apache-2.0
"""The ONNX standard's own backend tests on our targets: cases, judge, workers, and the record of a sweep."""
