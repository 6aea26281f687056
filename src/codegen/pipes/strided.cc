// SPDX-License-Identifier: Apache-2.0
#include "codegen/pipes/strided.h"

#include <algorithm>
#include <numeric>

#include "igraph/checked.h"

namespace uir::codegen::pipes {

namespace {

/*! \brief Steps after which the search gives up and says true, which is safe. */
constexpr int kMostSteps = 20000;

class Search {
 public:
  explicit Search(std::vector<Dim> dims) : dims_(std::move(dims)), reach_(dims_.size() + 1), common_(dims_.size() + 1) {
    for (size_t d = dims_.size(); d-- > 0;) {
      reach_[d] = reach_[d + 1] + (dims_[d].first - 1) * dims_[d].second;
      common_[d] = std::gcd(common_[d + 1], dims_[d].second);
    }
  }

  /*! \brief Whether [low, high] is met by the sums of the strides from `d` on. */
  bool Hits(size_t d, int64_t low, int64_t high) {
    low = std::max<int64_t>(low, 0);
    high = std::min(high, reach_[d]);
    if (low > high) return false;
    if (d == dims_.size() || low == 0 || high == reach_[d]) return true;
    if (FloorDivInt(high, common_[d]) * common_[d] < low) return false;
    if (++steps_ > kMostSteps) return true;
    auto [count, stride] = dims_[d];
    // i * stride <= high, and what is left can still reach low
    int64_t last = std::min(count - 1, high / stride);
    int64_t first = std::max<int64_t>(0, -FloorDivInt(reach_[d + 1] - low, stride));
    for (int64_t i = first; i <= last; ++i) {
      if (Hits(d + 1, low - i * stride, high - i * stride)) return true;
    }
    return false;
  }

 private:
  std::vector<Dim> dims_;
  std::vector<int64_t> reach_, common_;
  int steps_ = 0;
};

}  // namespace

bool Reaches(int64_t start, std::vector<Dim> dims, int64_t low, int64_t high) {
  std::vector<Dim> kept;
  for (auto [count, stride] : dims) {
    if (count <= 0) return false;
    if (count == 1 || stride == 0) continue;
    if (stride < 0) {
      start += (count - 1) * stride;
      stride = -stride;
    }
    kept.emplace_back(count, stride);
  }
  std::sort(kept.begin(), kept.end(), [](const Dim& a, const Dim& b) { return a.second > b.second; });
  return Search(std::move(kept)).Hits(0, low + 1 - start, high - 1 - start);
}

}  // namespace uir::codegen::pipes
