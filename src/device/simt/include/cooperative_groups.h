// SPDX-License-Identifier: Apache-2.0
// Stands for the toolkit's header of this name: the grid and the block as groups.
#pragma once

#include "uir_simt/prelude.h"

namespace cooperative_groups {

class grid_group {
 public:
  __attribute__((always_inline)) void sync() const { uir_simt_grid_sync(); }
  unsigned long long size() const {
    return static_cast<unsigned long long>(uir_simt_grid_size()) * uir_simt_block_size();
  }
  unsigned long long thread_rank() const {
    return static_cast<unsigned long long>(uir_simt_block()) * uir_simt_block_size() + uir_simt_thread();
  }
};

class thread_block {
 public:
  __attribute__((always_inline)) void sync() const { uir_simt_syncthreads(); }
  unsigned size() const { return uir_simt_block_size(); }
  unsigned thread_rank() const { return uir_simt_thread(); }
};

UIR_SIMT_INLINE grid_group this_grid() { return {}; }
UIR_SIMT_INLINE thread_block this_thread_block() { return {}; }

}  // namespace cooperative_groups
