// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: a step's product with the weight panel by panel, and the gates of the panel's columns at once.

#include "library/recurrence.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

#include "base/rounding.h"
#include "library/parallel.h"

#define UIR_INLINE inline __attribute__((always_inline))

namespace uir::library {
namespace {

/*! Columns of a gate in a panel; four times as many where there is one gate. */
constexpr int kColumns = 16;

//! Multiply-adds of a step from which one more thread pays: a thread does some thirty in a nanosecond, and meeting
//! the others takes half a microsecond.
constexpr double kWorth = 48e3;

int64_t Columns(const RecurrenceAttrs& attrs) { return attrs.gates() == 1 ? 4 * kColumns : kColumns; }

int64_t PanelCount(const RecurrenceAttrs& attrs) { return CeilDiv(attrs.hidden, Columns(attrs)); }

/*! One step: its operands, and the states before and after it. */
struct Step {
  const RecurrenceAttrs& attrs;
  const RecurrenceData& data;
  const float *inputs, *before;
  float* after;
};

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define UIR_WIDTHS 1
#pragma GCC push_options
#pragma GCC target("arch=skylake-avx512")
namespace avx512 {
constexpr int kLanes = 16;
#define UIR_ESTIMATE(x) __builtin_ia32_rcp14ps512_mask(x, Vector{}, static_cast<uint16_t>(-1))
#include "library/recurrence_panels.h"
#undef UIR_ESTIMATE
}  // namespace avx512
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("arch=haswell")
namespace avx2 {
constexpr int kLanes = 8;
#include "library/recurrence_panels.h"
}  // namespace avx2
#pragma GCC pop_options
#endif
namespace any {
constexpr int kLanes = 4;
#include "library/recurrence_panels.h"
}  // namespace any

/*! The widest vectors of this CPU. */
any::Panels PanelsOf(Cell cell) {
  const int index = static_cast<int>(cell);
#ifdef UIR_WIDTHS
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw")) {
    return avx512::kPanels[index];
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::kPanels[index];
#endif
  return any::kPanels[index];
}

/*! Where threads meet: they spin, and let others run where that takes long. */
class Meeting {
 public:
  explicit Meeting(int count) : count_(count) {}
  void Wait() {
    const int phase = phase_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
      arrived_.store(0, std::memory_order_relaxed);
      phase_.store(phase + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; phase_.load(std::memory_order_acquire) == phase; ++spins) {
      if (spins > 4096) std::this_thread::yield();
    }
  }

 private:
  const int count_;
  std::atomic<int> arrived_{0};
  alignas(64) std::atomic<int> phase_{0};
};

}  // namespace

int64_t PackedElements(const RecurrenceAttrs& attrs) {
  return PanelCount(attrs) * attrs.hidden * attrs.gates() * Columns(attrs);
}

void PackPanels(const RecurrenceAttrs& attrs, const float* weight, float* panels) {
  const int64_t columns = Columns(attrs), hidden = attrs.hidden;
  const float* first = weight + attrs.weight.offset;
  for (int64_t panel = 0; panel < PanelCount(attrs); ++panel) {
    for (int64_t k = 0; k < hidden; ++k) {
      for (int64_t gate = 0; gate < attrs.gates(); ++gate) {
        for (int64_t column = panel * columns; column < (panel + 1) * columns; ++column) {
          const int64_t at = k * attrs.weight.strides[0] + (gate * hidden + column) * attrs.weight.strides[1];
          *panels++ = column < hidden ? first[at] : 0.0f;
        }
      }
    }
  }
}

void RunRecurrence(const RecurrenceAttrs& attrs, const RecurrenceData& data, int threads) {
  const int64_t state = attrs.batch * attrs.hidden, wide = attrs.gates() * attrs.hidden;
  if (data.last_cell) std::copy(data.cell, data.cell + state, data.last_cell);
  const double work = static_cast<double>(state) * static_cast<double>(wide);
  const int64_t most = std::max<int64_t>(1, static_cast<int64_t>(work / kWorth));
  const int tasks = static_cast<int>(std::min({most, static_cast<int64_t>(threads), PanelCount(attrs)}));
  const any::Panels cell = PanelsOf(attrs.cell);
  Meeting meeting(tasks);
  ParallelRunTogether(tasks, [&](int task) {
    const float* before = data.state;
    for (int64_t number = 0; number < attrs.steps; ++number) {
      const int64_t time = attrs.reverse ? attrs.steps - 1 - number : number;
      float* after = data.rows + time * state;
      cell({attrs, data, data.inputs + time * attrs.batch * wide, before, after},
           Part(PanelCount(attrs), 1, tasks, task));
      if (tasks > 1) meeting.Wait();
      before = after;
    }
  });
}

}  // namespace uir::library
