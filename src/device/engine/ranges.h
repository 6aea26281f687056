// SPDX-License-Identifier: Apache-2.0
// The bytes that an operand of an instruction covers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace uir::engine {

/*! \brief Bytes from an operand's beginning on. */
struct Range {
  int64_t begin;
  int64_t bytes;
};

/*! \brief Ranges in the order in which they are touched; neighbours are joined. */
class Ranges {
 public:
  void Add(int64_t begin, int64_t bytes) {
    if (bytes <= 0) return;
    if (!list_.empty()) {
      Range& last = list_.back();
      if (begin == last.begin + last.bytes) {
        last.bytes += bytes;
        return;
      }
      if (begin >= last.begin && begin + bytes <= last.begin + last.bytes) return;
    }
    list_.push_back({begin, bytes});
  }
  const std::vector<Range>& list() const { return list_; }
  int64_t End() const {
    int64_t end = 0;
    for (const Range& range : list_) end = std::max(end, range.begin + range.bytes);
    return end;
  }
  int64_t Begin() const {
    int64_t begin = list_.empty() ? 0 : list_.front().begin;
    for (const Range& range : list_) begin = std::min(begin, range.begin);
    return begin;
  }
  int64_t Bytes() const {
    int64_t bytes = 0;
    for (const Range& range : list_) bytes += range.bytes;
    return bytes;
  }

 private:
  std::vector<Range> list_;
};

}  // namespace uir::engine
