// SPDX-License-Identifier: Apache-2.0
// A core's share of the bandwidth of global memory, which its loads and stores divide between them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace uir::engine {

//! \brief When the share is in use.
//!
//! Transfers are known in program order, not in order of time: a load for the next tile may begin before a store of
//! this one that was issued first. Each therefore takes the free time from its own beginning on, in pieces.
class Bandwidth {
 public:
  /*! \brief Use `cycles` of the share from `start` on; when the last of them ends. */
  double Take(double start, double cycles) {
    if (cycles <= 0) return start;
    // The first interval that ends behind the start.
    size_t i = static_cast<size_t>(
        std::upper_bound(used_.begin(), used_.end(), start, [](double t, const Use& use) { return t < use.second; }) -
        used_.begin());
    size_t first = i;
    double begin = start, at = start;
    if (i < used_.size() && used_[i].first <= start) {
      begin = used_[i].first;
      at = used_[i].second;
      ++i;
    }
    while (i < used_.size() && used_[i].first - at < cycles) {
      cycles -= used_[i].first - at;
      at = used_[i].second;
      ++i;
    }
    double end = at + cycles;
    // All from the first to here is one interval now.
    used_.erase(used_.begin() + static_cast<ptrdiff_t>(first), used_.begin() + static_cast<ptrdiff_t>(i));
    used_.insert(used_.begin() + static_cast<ptrdiff_t>(first), Use(begin, end));
    if (used_.size() > kKept) used_.erase(used_.begin(), used_.begin() + kKept / 2);
    return end;
  }

 private:
  using Use = std::pair<double, double>;
  /*! \brief Older intervals are forgotten: nothing begins so long before what was issued since. */
  static constexpr size_t kKept = 1024;
  std::vector<Use> used_;
};

}  // namespace uir::engine
