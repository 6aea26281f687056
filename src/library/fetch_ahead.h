// SPDX-License-Identifier: Apache-2.0
// Rows of memory that are brought closer while something else is computed, some lines at a time: all at once they would
// keep what that reads waiting.
#pragma once

#include <cstdint>

#include "library/conv2d_tile_kernels.h"

namespace uir::library {

/*! Of some rows of so many bytes, `step` bytes from one to the next, the lines that were not asked for so far. */
class FetchAhead {
 public:
  FetchAhead() = default;
  FetchAhead(const void* first, int64_t step, int64_t bytes, int64_t rows)
      : at_(static_cast<const char*>(first)), step_(step), bytes_(bytes), rows_(bytes > 0 ? rows : 0) {}

  /*! The next lines, into the first cache (kCache 3) or the second (2). */
  template <int kCache>
  inline __attribute__((always_inline)) void Next(int lines) {
    for (; rows_ > 0 && lines > 0; --lines) {
      __builtin_prefetch(at_ + done_, 0, kCache);
      done_ += kLine;
      if (done_ >= bytes_) done_ = 0, at_ += step_, --rows_;
    }
  }

 private:
  const char* at_ = nullptr;
  int64_t step_ = 0, bytes_ = 0, rows_ = 0, done_ = 0;
};

}  // namespace uir::library
