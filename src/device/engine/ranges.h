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

/*! \brief A list of ranges. Mostly there is one or two: these take no memory of the heap. */
class RangeList {
 public:
  void push_back(const Range& range) {
    if (size_ < kFew) {
      few_[size_++] = range;
      return;
    }
    if (size_++ == kFew) many_.assign(few_, few_ + kFew);
    many_.push_back(range);
  }
  bool empty() const { return size_ == 0; }
  const Range* begin() const { return size_ > kFew ? many_.data() : few_; }
  const Range* end() const { return begin() + size_; }
  Range& back() { return size_ > kFew ? many_.back() : few_[size_ - 1]; }

 private:
  static constexpr size_t kFew = 2;
  size_t size_{0};
  Range few_[kFew];
  std::vector<Range> many_;
};

/*! \brief Ranges in the order in which they are touched; neighbours are joined. */
class Ranges {
 public:
  void Add(int64_t begin, int64_t bytes) {
    if (bytes <= 0) return;
    int64_t end = begin + bytes;
    begin_ = list_.empty() ? begin : std::min(begin_, begin);
    end_ = std::max(end_, end);
    if (!list_.empty()) {
      Range& last = list_.back();
      if (begin == last.begin + last.bytes) {
        last.bytes += bytes;
        bytes_ += bytes;
        return;
      }
      if (begin >= last.begin && end <= last.begin + last.bytes) return;
    }
    bytes_ += bytes;
    list_.push_back({begin, bytes});
  }
  const RangeList& list() const { return list_; }
  /*! \brief The first byte of all, and the one behind the last; both 0 where there are none. */
  int64_t Begin() const { return begin_; }
  int64_t End() const { return end_; }
  /*! \brief Bytes of all ranges. */
  int64_t Bytes() const { return bytes_; }

 private:
  RangeList list_;
  int64_t begin_{0};
  int64_t end_{0};
  int64_t bytes_{0};
};

}  // namespace uir::engine
