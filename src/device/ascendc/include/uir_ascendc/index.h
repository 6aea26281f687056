// SPDX-License-Identifier: Apache-2.0
// CreateVecIndex, step by step as the toolkit's headers for this chip do it.
//
// It is no vector function: the scalar unit writes the first block, a flag of S_V whose id the TPipe has free orders
// the rest behind it, and additions of V copy block by block and repeat by repeat.  Nothing orders the scalar unit
// behind what V or MTE3 still read of the target.
#pragma once

#include "sync.h"
#include "vector.h"

namespace uir_ascendc {

template <typename T>
inline constexpr bool kIndexed =
    __is_same(T, half) || __is_same(T, float) || __is_same(T, int16_t) || __is_same(T, int32_t);

/*! \brief Elements from `from` on as those before them, and a step. */
template <typename T>
void IndexPart(const AscendC::LocalTensor<T>& dst, uint32_t from, uint32_t distance, uint32_t count, Site at) {
  AscendC::Adds(dst[from], dst[from - distance], static_cast<T>(static_cast<float>(distance)), uint64_t{count}, 1,
                AscendC::UnaryRepeatParams(1, 1, 8, 8), at);
  AscendC::PipeBarrier<PIPE_V>(at);
}

}  // namespace uir_ascendc

namespace AscendC {

template <typename T>
void CreateVecIndex(LocalTensor<T> dst, const T& firstValue, uint32_t count, Site at = Site::Here()) {
  static_assert(uir_ascendc::kIndexed<T>, "CreateVecIndex is of half, float, int16_t and int32_t");
  constexpr uint32_t block = 32 / sizeof(T), repeat = 256 / sizeof(T);
  for (uint32_t i = 0; i < (count < block ? count : block); ++i) {
    if constexpr (__is_same(T, half) || __is_same(T, float)) {
      dst.SetValue(i, static_cast<T>(static_cast<float>(firstValue) + static_cast<float>(i)), at);
    } else {
      dst.SetValue(i, static_cast<T>(int64_t{firstValue} + i), at);
    }
  }
  constexpr uir_ascendc::Ends ends = uir_ascendc::EndsOf(HardEvent::S_V);
  int id = uir_ascendc_event(ends.from, ends.to, 0, at.line());
  SetFlag<HardEvent::S_V>(id, at);
  WaitFlag<HardEvent::S_V>(id, at);
  for (uint32_t from = block; from < count && from < repeat; from += block) {
    uir_ascendc::IndexPart(dst, from, block, count - from < block ? count - from : block, at);
  }
  for (uint32_t from = repeat; from < count; from += repeat) {
    uir_ascendc::IndexPart(dst, from, repeat, count - from < repeat ? count - from : repeat, at);
  }
}

}  // namespace AscendC
