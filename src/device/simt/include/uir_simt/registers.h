// SPDX-License-Identifier: Apache-2.0
// `reg<T, N>`: an array in registers whose indices are checked.
//
// Its elements begin with values that the model knows again when they reach memory (`Unwritten`): a
// NaN with a payload that survives arithmetic and conversions, or a pattern of bits.
#pragma once

#include "keywords.h"
#include "narrow.h"
#include "unwritten.h"

namespace uir_simt {

template <typename T>
UIR_SIMT_INLINE void set_unwritten(T& element) {
  memset(static_cast<void*>(&element), static_cast<int>(uir_simt_unwritten() & 0xff), sizeof(T));
}
UIR_SIMT_INLINE void set_unwritten(float& element) { element = float_of(uir_simt_unwritten()); }
UIR_SIMT_INLINE void set_unwritten(double& element) { element = double_of(unwritten_double(uir_simt_unwritten())); }
UIR_SIMT_INLINE void set_unwritten(bool& element) { element = true; }

/*! \brief Types of 16 bits whose NaNs have their own patterns name them here (cuda_fp16.h, cuda_bf16.h). */
template <typename T, int N>
class reg {
 public:
  reg() {
    for (int i = 0; i < N; ++i) set_unwritten(values_[i]);
  }

  template <typename I>
  __attribute__((always_inline)) T& operator[](I index) {
    check(static_cast<int64_t>(index), N - 1);
    return values_[index];
  }
  template <typename I>
  __attribute__((always_inline)) const T& operator[](I index) const {
    check(static_cast<int64_t>(index), N - 1);
    return values_[index];
  }
  __attribute__((always_inline)) operator T*() { return values_; }
  __attribute__((always_inline)) operator const T*() const { return values_; }

 private:
  static __attribute__((always_inline)) void check(int64_t index, int64_t last) {
    if (__builtin_expect(index < 0 || index > last, 0)) uir_simt_bad_index("register", index, N);
  }

  T values_[N];
};

}  // namespace uir_simt

using uir_simt::reg;
