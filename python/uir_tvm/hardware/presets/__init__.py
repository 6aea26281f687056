# SPDX-License-Identifier: Apache-2.0
"""One module per kind of target; see `uir_tvm.hardware.registry` for what a module defines."""
