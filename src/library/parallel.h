// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>

namespace uir::library {

/*! Threads of TVM's pool, the calling one included: the pool that the compiled
 * kernels use too. */
int PoolThreads();

//! Run `body(0) .. body(tasks - 1)` on the threads that kernels use here
//! (`runtime/pool.h`), the library single-threaded inside; `tasks` <=
//! PoolThreads(). Tasks may run one after another. What a body throws is thrown
//! here, after all have ended.
void ParallelRun(int tasks, const std::function<void(int)>& body);

/*! begin <= index < begin + size. */
struct Range {
  int64_t begin = 0, size = 0;
};

/*! Part number `part` of `parts` of a dimension, borders at multiples of
 * `granule`; the last ones may be empty. */
Range Part(int64_t size, int64_t granule, int parts, int part);

/*! Into how many parts each of three dimensions is cut. */
struct Split {
  std::array<int, 3> parts = {1, 1, 1};
  int count() const { return parts[0] * parts[1] * parts[2]; }
  /*! The part numbers of one task. */
  std::array<int, 3> operator[](int task) const;
};

struct SplitDim {
  int64_t size = 1, granule = 1;
};

//! The split into at most `threads` parts whose largest part costs least. `cost`
//! gets the sizes of a part and returns its cost in multiply-adds; starting the
//! pool costs `kLaunchCost` of them, so that small work stays on one thread.
Split ChooseSplit(const std::array<SplitDim, 3>& dims, int threads,
                  const std::function<double(const std::array<int64_t, 3>&)>& cost);

/*! A launch of the waiting pool takes about 4 microseconds, a core does about
 * 50 multiply-adds in a nanosecond. */
constexpr double kLaunchCost = 200e3;

}  // namespace uir::library
