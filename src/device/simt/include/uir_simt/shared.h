// SPDX-License-Identifier: Apache-2.0
// Parts of the shared pool, and wide accesses.
#pragma once

#include "keywords.h"

namespace uir_simt {

/*! \brief A pointer into a part of the pool: arithmetic on it stays in the part (one past its end included). */
template <typename T>
class shared_pointer {
 public:
  shared_pointer(T* begin, int64_t size, int64_t at) : begin_(begin), size_(size), at_(at) {}

  __attribute__((always_inline)) T& operator[](int64_t index) const {
    int64_t at = at_ + index;
    if (__builtin_expect(at < 0 || at >= size_, 0)) uir_simt_bad_index("shared", at, size_);
    return begin_[at];
  }
  __attribute__((always_inline)) T& operator*() const { return (*this)[0]; }
  __attribute__((always_inline)) operator T*() const {
    if (__builtin_expect(at_ < 0 || at_ > size_, 0)) uir_simt_bad_index("shared", at_, size_);
    return begin_ + at_;
  }
  template <typename U>
  __attribute__((always_inline)) explicit operator U*() const {
    return reinterpret_cast<U*>(static_cast<T*>(*this));
  }
  template <typename I>
  __attribute__((always_inline)) shared_pointer operator+(I offset) const {
    return {begin_, size_, at_ + static_cast<int64_t>(offset)};
  }
  template <typename I>
  __attribute__((always_inline)) shared_pointer operator-(I offset) const {
    return {begin_, size_, at_ - static_cast<int64_t>(offset)};
  }
  template <typename I>
  __attribute__((always_inline)) shared_pointer& operator+=(I offset) {
    at_ += static_cast<int64_t>(offset);
    return *this;
  }

 private:
  T* begin_;
  int64_t size_;
  int64_t at_;
};

}  // namespace uir_simt

/*! \brief N elements at a byte of the pool. */
template <typename T, int N>
UIR_SIMT_INLINE uir_simt::shared_pointer<T> shared_at(unsigned char* pool, int64_t byte_offset) {
  uir_simt_shared_range(pool + byte_offset, int64_t{N} * static_cast<int64_t>(sizeof(T)), alignof(T));
  return {reinterpret_cast<T*>(pool + byte_offset), N, 0};
}

template <typename T, int N>
struct alignas(sizeof(T) * N) vec {
  T v[N];
};

// One access for the compiler too: its instrumentation then sees the whole width.
template <typename T, int N>
UIR_SIMT_INLINE vec<T, N> load_vec(const T* from) {
  typedef unsigned char bytes __attribute__((vector_size(sizeof(T) * N), may_alias));
  bytes raw = *reinterpret_cast<const bytes*>(from);
  vec<T, N> value;
  __builtin_memcpy(&value, &raw, sizeof(raw));
  return value;
}
template <typename T, int N>
UIR_SIMT_INLINE vec<T, N> load_vec_stream(const T* from) {
  return load_vec<T, N>(from);
}
template <typename T, int N>
UIR_SIMT_INLINE void store_vec(T* to, vec<T, N> value) {
  typedef unsigned char bytes __attribute__((vector_size(sizeof(T) * N), may_alias));
  bytes raw;
  __builtin_memcpy(&raw, &value, sizeof(raw));
  *reinterpret_cast<bytes*>(to) = raw;
}
template <typename T, int N>
UIR_SIMT_INLINE void store_vec_stream(T* to, vec<T, N> value) {
  store_vec<T, N>(to, value);
}
