// SPDX-License-Identifier: Apache-2.0
// Flags and barriers of pipes and cores, and where the kernel runs.
#pragma once

#include "tensor.h"

namespace uir_ascendc {

struct Ends {
  int from, to;
};

constexpr Ends EndsOf(AscendC::HardEvent event) {
  // In the order of HardEvent.
  constexpr Ends ends[] = {
      {kUirMte2, kUirMte1}, {kUirMte1, kUirMte2}, {kUirMte1, kUirM},    {kUirM, kUirMte1},   {kUirMte2, kUirV},
      {kUirV, kUirMte2},    {kUirMte3, kUirV},    {kUirV, kUirMte3},    {kUirM, kUirV},      {kUirV, kUirM},
      {kUirV, kUirV},       {kUirMte3, kUirMte1}, {kUirMte1, kUirMte3}, {kUirMte1, kUirV},   {kUirMte2, kUirM},
      {kUirM, kUirMte2},    {kUirV, kUirMte1},    {kUirM, kUirFix},     {kUirFix, kUirM},    {kUirMte3, kUirMte2},
      {kUirMte2, kUirMte3}, {kUirS, kUirV},       {kUirV, kUirS},       {kUirS, kUirMte2},   {kUirMte2, kUirS},
      {kUirS, kUirMte3},    {kUirMte3, kUirS},    {kUirMte2, kUirFix},  {kUirFix, kUirMte2}, {kUirFix, kUirS},
      {kUirM, kUirS},       {kUirFix, kUirMte3},  {kUirMte1, kUirFix},  {kUirFix, kUirMte1}, {kUirFix, kUirFix},
  };
  static_assert(sizeof(ends) / sizeof(ends[0]) == static_cast<int>(AscendC::HardEvent::MAX), "one for each event");
  return ends[static_cast<int>(event)];
}

//! \brief Take a flag as WaitFlag does, but order nothing by it.
//!
//! No function of the toolkit: tests put it in the place of a wait, to see whether somebody misses what the wait
//! orders.
template <AscendC::HardEvent event>
void take_flag(int32_t id, Site at = Site::Here()) {
  constexpr Ends ends = EndsOf(event);
  uir_ascendc_take_flag(ends.from, ends.to, id, at.line());
}

}  // namespace uir_ascendc

namespace AscendC {

template <HardEvent event>
void SetFlag(int32_t eventID, Site at = Site::Here()) {
  constexpr uir_ascendc::Ends ends = uir_ascendc::EndsOf(event);
  uir_ascendc_set_flag(ends.from, ends.to, eventID, at.line());
}
template <HardEvent event>
void WaitFlag(int32_t eventID, Site at = Site::Here()) {
  constexpr uir_ascendc::Ends ends = uir_ascendc::EndsOf(event);
  uir_ascendc_wait_flag(ends.from, ends.to, eventID, at.line());
}
template <pipe_t pipe>
void PipeBarrier(Site at = Site::Here()) {
  uir_ascendc_pipe_barrier(pipe, at.line());
}
template <bool isAIVOnly = true>
void SyncAll(Site at = Site::Here()) {
  uir_ascendc_sync_all(isAIVOnly, at.line());
}
template <uint8_t modeId, pipe_t pipe>
void CrossCoreSetFlag(uint16_t flagId, Site at = Site::Here()) {
  uir_ascendc_cross_set(modeId, pipe, flagId, at.line());
}
template <uint8_t modeId = 0, pipe_t pipe = PIPE_S>
void CrossCoreWaitFlag(uint16_t flagId, Site at = Site::Here()) {
  uir_ascendc_cross_wait(pipe, flagId, at.line());
}

/*! \brief Cores of the other kind in the block: vector cores of a cube core. */
inline int64_t GetSubBlockNum() { return uir_ascendc_sub_block_count(); }
inline int64_t GetBlockNum() { return uir_ascendc_block_count(); }
inline int64_t GetBlockIdx() { return uir_ascendc_block_index(); }
inline int64_t GetSubBlockIdx() { return uir_ascendc_sub_block(); }

}  // namespace AscendC
