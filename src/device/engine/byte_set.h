// SPDX-License-Identifier: Apache-2.0
// A set of byte offsets, kept as one bit each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace uir::engine {

/*! \brief Which of `bytes` bytes have a property (written, in flight). Empty at first. */
class ByteSet {
 public:
  ByteSet() = default;
  explicit ByteSet(size_t bytes) { Resize(bytes); }

  /*! \brief Take a new size; the set is empty afterwards. Pages that are never touched cost nothing. */
  void Resize(size_t bytes) {
    words_ = (bytes + 63) / 64 + 1;  // one more, so that a range that ends at the last byte may look beyond it
    bits_.reset(static_cast<uint64_t*>(std::calloc(words_, sizeof(uint64_t))));
  }

  /*! \brief Whether it has no size yet. */
  bool empty() const { return words_ == 0; }

  void Clear() {
    if (bits_) std::memset(bits_.get(), 0, words_ * sizeof(uint64_t));
  }

  /*! \brief Whether all bytes of [offset, offset + count) are members; count is at most 64. */
  bool HasAll(size_t offset, size_t count) const { return (Window(offset) & Mask(count)) == Mask(count); }

  /*! \brief Whether any byte of [offset, offset + count) is a member; count is at most 64. */
  bool HasAny(size_t offset, size_t count) const { return (Window(offset) & Mask(count)) != 0; }

  /*! \brief How many bytes of [offset, offset + count) are members; count is at most 64. */
  size_t Count(size_t offset, size_t count) const {
    return static_cast<size_t>(__builtin_popcountll(Window(offset) & Mask(count)));
  }

  void Insert(size_t offset, size_t count) {
    if (offset % 64 + count <= 64) {
      bits_[offset / 64] |= Mask(count) << offset % 64;
      return;
    }
    Each(offset, count, [this](size_t word, uint64_t mask) { bits_[word] |= mask; });
  }

  void Erase(size_t offset, size_t count) {
    Each(offset, count, [this](size_t word, uint64_t mask) { bits_[word] &= ~mask; });
  }

  /*! \brief Offset of the first byte of the range that is no member; offset + count when all are. */
  size_t FirstMissing(size_t offset, size_t count) const {
    size_t end = offset + count;
    while (offset < end) {
      uint64_t missing = ~Window(offset);
      if (missing) {
        size_t found = offset + static_cast<size_t>(__builtin_ctzll(missing));
        return found < end ? found : end;
      }
      offset += 64;
    }
    return end;
  }

  /*! \brief Make the state of [to, to + count) that of [from, from + count) in `other`. */
  void CopyFrom(const ByteSet& other, size_t from, size_t to, size_t count) {
    for (size_t i = 0; i < count;) {
      size_t step = count - i < 64 ? count - i : 64;
      uint64_t bits = other.Window(from + i) & Mask(step);
      Erase(to + i, step);
      if (bits) {
        size_t word = (to + i) / 64, shift = (to + i) % 64;
        bits_[word] |= bits << shift;
        if (shift) bits_[word + 1] |= bits >> (64 - shift);
      }
      i += step;
    }
  }

 private:
  struct Free {
    void operator()(uint64_t* p) const { std::free(p); }
  };

  static uint64_t Mask(size_t count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

  /*! \brief The 64 bits that begin at the offset. */
  uint64_t Window(size_t offset) const {
    size_t word = offset / 64, shift = offset % 64;
    uint64_t low = bits_[word] >> shift;
    return shift && word + 1 < words_ ? low | bits_[word + 1] << (64 - shift) : low;
  }

  template <typename F>
  static void Each(size_t offset, size_t count, F&& apply) {
    while (count) {
      size_t shift = offset % 64;
      size_t step = 64 - shift < count ? 64 - shift : count;
      apply(offset / 64, Mask(step) << shift);
      offset += step;
      count -= step;
    }
  }

  size_t words_{0};
  std::unique_ptr<uint64_t[], Free> bits_;
};

}  // namespace uir::engine
