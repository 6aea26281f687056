// SPDX-License-Identifier: Apache-2.0
// TPipe, TBuf and TQue: who has which piece of a core's memory.
#pragma once

#include "sync.h"

namespace uir_ascendc {

/*! \brief The flag of a queue whose buffers go from one position to another: who fills them, who empties them. */
constexpr Ends QueueEnds(AscendC::TPosition source, AscendC::TPosition target) {
  int from = MemoryOf(source), to = MemoryOf(target);
  if (from == kUirUb && to == kUirUb) return {kUirMte2, kUirMte3};
  if (from == kUirGm) return {kUirMte2, to == kUirUb ? kUirV : kUirMte1};
  if (from == kUirUb) return {kUirV, kUirMte3};
  if (from == kUirL1) return {kUirMte1, kUirM};
  return {kUirM, kUirFix};
}

/*! \brief Where the buffers of TQue<position> come from and go to. */
constexpr AscendC::TPosition QueueSource(AscendC::TPosition position) {
  using AscendC::TPosition;
  switch (position) {
    case TPosition::A2:
      return TPosition::A1;
    case TPosition::B2:
      return TPosition::B1;
    case TPosition::C2:
      return TPosition::C1;
    case TPosition::CO1:
    case TPosition::VECOUT:
      return position;
    default:
      return TPosition::GM;
  }
}
constexpr AscendC::TPosition QueueTarget(AscendC::TPosition position) {
  using AscendC::TPosition;
  return position == TPosition::VECOUT || position == TPosition::CO1 ? TPosition::GM : position;
}

}  // namespace uir_ascendc

namespace AscendC {

/*! \brief Buffers that go in order from a producer to a consumer. */
template <TPosition src, TPosition dst, int32_t depth, auto mask = 0>
class TQueBind {
 public:
  template <typename T>
  LocalTensor<T> AllocTensor(Site at = Site::Here()) {
    return Step<T>(kUirAlloc, at);
  }
  template <typename T>
  void FreeTensor(LocalTensor<T>& tensor, Site at = Site::Here()) {
    uir_ascendc_queue_step(queue_, kUirFree, &tensor.uir_tensor(), at.line());
  }
  template <typename T>
  bool EnQue(const LocalTensor<T>& tensor, Site at = Site::Here()) {
    UirTensor given = tensor.uir_tensor();
    uir_ascendc_queue_step(queue_, kUirEnque, &given, at.line());
    return true;
  }
  template <typename T>
  LocalTensor<T> DeQue(Site at = Site::Here()) {
    return Step<T>(kUirDeque, at);
  }
  bool VacantInQue() { return GetTensorCountInQue() < depth; }
  bool HasTensorInQue() { return GetTensorCountInQue() > 0; }
  int32_t GetTensorCountInQue() { return uir_ascendc_queue_count(queue_, kUirEnque); }
  bool HasIdleBuffer() { return uir_ascendc_queue_count(queue_, kUirAlloc) > 0; }

 private:
  friend class TPipe;
  static constexpr TPosition kPosition =
      uir_ascendc::MemoryOf(src) == kUirGm || dst == TPosition::A2 || dst == TPosition::B2 || dst == TPosition::C2
          ? dst
          : src;

  template <typename T>
  LocalTensor<T> Step(int step, Site at) {
    LocalTensor<T> tensor;
    tensor.uir_place(kPosition);
    uir_ascendc_queue_step(queue_, step, &tensor.uir_tensor(), at.line());
    return tensor;
  }
  void Begin(uint64_t count, uint64_t bytes, Site at) {
    constexpr uir_ascendc::Ends ends = uir_ascendc::QueueEnds(src, dst);
    queue_ = uir_ascendc_queue(uir_ascendc::MemoryOf(kPosition), ends.from, ends.to, depth, count, bytes, at.line());
  }
  int queue_{-1};
};

template <TPosition pos, int32_t depth, auto mask = 0>
class TQue : public TQueBind<uir_ascendc::QueueSource(pos), uir_ascendc::QueueTarget(pos), depth, mask> {};

/*! \brief Memory without order. */
template <TPosition pos = TPosition::LCM>
class TBuf {
 public:
  template <typename T>
  LocalTensor<T> Get() {
    return GetWithOffset<T>(static_cast<uint32_t>(bytes_ / sizeof(T)), 0);
  }
  template <typename T>
  LocalTensor<T> Get(uint32_t len) {
    return GetWithOffset<T>(len, 0);
  }
  /*! \brief `size` elements from `bufOffset` bytes on. */
  template <typename T>
  LocalTensor<T> GetWithOffset(uint32_t size, uint32_t bufOffset, Site at = Site::Here()) {
    uint64_t bytes = uint64_t{size} * sizeof(T);
    if (bufOffset + bytes > bytes_) {
      uir_ascendc_fail("out-of-bounds", "takes a piece of a TBuf that ends behind the buffer", at.line());
    }
    return LocalTensor<T>(pos, static_cast<uint32_t>(address_ + bufOffset), size);
  }

 private:
  friend class TPipe;
  uint64_t address_{0};
  uint64_t bytes_{0};
};

/*! \brief The owner of a core's buffers and event ids. */
class TPipe {
 public:
  TPipe(Site at = Site::Here()) : line_(at.line()) { uir_ascendc_pipe_begin(line_); }
  ~TPipe() { Destroy(); }
  TPipe(const TPipe&) = delete;
  TPipe& operator=(const TPipe&) = delete;

  template <class T>
  bool InitBuffer(T& que, uint8_t num, uint32_t len, Site at = Site::Here()) {
    que.Begin(num, len, at);
    return true;
  }
  template <TPosition pos>
  bool InitBuffer(TBuf<pos>& buf, uint32_t len, Site at = Site::Here()) {
    buf.bytes_ = (uint64_t{len} + 31) / 32 * 32;
    buf.address_ = uir_ascendc_buffer(uir_ascendc::MemoryOf(pos), buf.bytes_, at.line());
    return true;
  }
  template <HardEvent evt>
  TEventID AllocEventID(Site at = Site::Here()) {
    constexpr uir_ascendc::Ends ends = uir_ascendc::EndsOf(evt);
    return static_cast<TEventID>(uir_ascendc_event(ends.from, ends.to, 1, at.line()));
  }
  template <HardEvent evt>
  void ReleaseEventID(TEventID id, Site at = Site::Here()) {
    constexpr uir_ascendc::Ends ends = uir_ascendc::EndsOf(evt);
    uir_ascendc_release_event(ends.from, ends.to, id, at.line());
  }
  template <HardEvent evt>
  TEventID FetchEventID(Site at = Site::Here()) {
    return FetchEventID(evt, at);
  }
  TEventID FetchEventID(HardEvent evt, Site at = Site::Here()) {
    uir_ascendc::Ends ends = uir_ascendc::EndsOf(evt);
    return static_cast<TEventID>(uir_ascendc_event(ends.from, ends.to, 0, at.line()));
  }
  void Destroy() {
    if (!ended_) uir_ascendc_pipe_end(line_);
    ended_ = true;
  }

 private:
  int line_;
  bool ended_{false};
};

}  // namespace AscendC
