// SPDX-License-Identifier: Apache-2.0
// What products with a weight of few bits share, for vectors of kLanes floats. No guard: quantized_matmul.cc includes
// this for every width, each in a namespace and for instructions of its own; UIR_VECTORS has their bits, 0 for any.

#include "library/vector_epilogue.h"
//
#include "library/half_vectors.h"

typedef int32_t Ints __attribute__((vector_size(kLanes * sizeof(int32_t))));
typedef Bits UnalignedBits __attribute__((aligned(1)));
typedef Vector UnalignedVector __attribute__((aligned(1)));

/*! Vectors of a block of outputs. */
constexpr int kVectors = kBlock / kLanes;

UIR_INLINE void Words(const char* from, Bits (&words)[kVectors]) {
  for (int v = 0; v < kVectors; ++v) words[v] = reinterpret_cast<const UnalignedBits*>(from)[v];
}

/*! Codes number `at` of words, as numbers. */
template <int kBits, int kAt>
UIR_INLINE void Codes(const Bits& words, Vector& codes) {
#if UIR_VECTORS == 512
  if constexpr (kBits == 4) {  // the low four bits of an index choose among 16 numbers
    const Vector numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    codes = _mm512_permutexvar_ps(reinterpret_cast<__m512i>(words >> (kAt * kBits)), numbers);
    return;
  }
#endif
  constexpr uint32_t kMask = (1u << kBits) - 1;
  codes = __builtin_convertvector(reinterpret_cast<Ints>((words >> (kAt * kBits)) & kMask), Vector);
}

/*! All codes of words in the order of their k. */
template <int kBits, int kAt = 0>
UIR_INLINE void AllCodes(const Bits& words, Vector* codes) {
  if constexpr (kAt < 32 / kBits) {
    Codes<kBits, kAt>(words, codes[Place<kBits>(kAt)]);
    AllCodes<kBits, kAt + 1>(words, codes);
  }
}

/*! A vector of scales or offsets. */
UIR_INLINE void Factors(const char* from, bool half, Vector (&factors)[kVectors]) {
  for (int v = 0; v < kVectors; ++v) {
    if (!half) {
      factors[v] = reinterpret_cast<const UnalignedVector*>(from)[v];
      continue;
    }
    FromHalves(from + v * kLanes * 2, factors[v]);
  }
}

/*! A group's scales, and what is added: value = scale * code + shift, where a code of `zero` is zero. */
UIR_INLINE void GroupOf(const Panels& panels, const char* group, float zero, Vector (&scale)[kVectors],
                        Vector (&shift)[kVectors]) {
  const char* scales = group + panels.code_bytes;
  Factors(scales, panels.half, scale);
  if (panels.offsets) {
    Factors(scales + panels.scale_bytes, panels.half, shift);
    for (int v = 0; v < kVectors; ++v) shift[v] -= zero * scale[v];
  } else {
    for (int v = 0; v < kVectors; ++v) shift[v] = -zero * scale[v];
  }
}
