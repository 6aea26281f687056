# SPDX-License-Identifier: Apache-2.0
"""Every operator of PyTorch that exports, called with edge values and compared with PyTorch itself."""
