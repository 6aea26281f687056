# SPDX-License-Identifier: Apache-2.0
"""PrimFuncs as users write them, through both doors of every target, against TVM's own LLVM lowering."""
