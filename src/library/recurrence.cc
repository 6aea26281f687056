// SPDX-License-Identifier: Apache-2.0
// Recurrent layers: a step's product with the weight panel by panel, and the gates of the panel's columns at once.

#include "library/recurrence.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "base/rounding.h"
#include "library/cpu_features.h"
#include "library/parallel.h"

#define UIR_INLINE inline __attribute__((always_inline))

namespace uir::library {
namespace {

/*! Columns of a group: numbers of a weight that lie side by side. A panel has a group of every gate, or four of one. */
constexpr int kColumns = 16;

//! Multiply-adds of a step from which one more thread pays: a thread does some thirty in a nanosecond, and meeting
//! the others takes half a microsecond.
constexpr double kWorth = 48e3;

/*! Groups of a gate in a panel. */
int64_t Blocks(const RecurrenceAttrs& attrs) { return attrs.gates() == 1 ? 4 : 1; }

int64_t PanelCount(const RecurrenceAttrs& attrs) { return CeilDiv(attrs.hidden, Blocks(attrs) * kColumns); }

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
any::Panel PanelOf(Cell cell) {
  const int index = static_cast<int>(cell);
#ifdef UIR_WIDTHS
  if (HasAvx512()) {
    return avx512::kPanels[index];
  }
  if (HasAvx2()) return avx2::kPanels[index];
#endif
  return any::kPanels[index];
}

//! Who computes which panels of a step. Each thread has its own, step after step. Who waits takes over what nobody has
//! begun: threads may come late, or not at all.
class Shares {
 public:
  Shares(int64_t panels, int threads) : panels_(panels), shares_(threads) {
    for (int thread = 0; thread < threads; ++thread) shares_[thread].panels = Part(panels, 1, threads, thread);
  }

  /*! `run(panel)` for panels of a step until all are done, by whomever. A thread does all steps, in their order. */
  template <typename Run>
  void Do(int64_t step, int thread, const Run& run) {
    Report(step, RunSome(step, shares_[thread], run));
    for (int looks = 1; steps_.load(std::memory_order_acquire) <= step; ++looks) {
      if (looks % kPatience != 0) continue;
      for (Share& each : shares_) Report(step, RunSome(step, each, run));
      if (looks > 16 * kPatience) std::this_thread::yield();
    }
  }

 private:
  /*! Looks for others' last panels before their next ones are taken over: less than a microsecond. */
  static constexpr int kPatience = 256;

  struct alignas(64) Share {
    Range panels;
    std::atomic<int64_t> begun{0};  // of all steps
  };

  /*! Panels of a share that this thread took and ran. */
  template <typename Run>
  static int64_t RunSome(int64_t step, Share& share, const Run& run) {
    const int64_t size = share.panels.size, end = (step + 1) * size;
    int64_t ran = 0;
    for (int64_t begun = share.begun.load(std::memory_order_relaxed); begun < end;) {
      if (!share.begun.compare_exchange_weak(begun, begun + 1, std::memory_order_relaxed)) continue;
      // every other step backwards: the last panels of the step before are still in the cache
      const int64_t place = begun - step * size;
      run(share.panels.begin + (step % 2 ? size - 1 - place : place));
      ++ran, ++begun;
    }
    return ran;
  }

  void Report(int64_t step, int64_t ran) {
    if (ran == 0) return;
    if (done_.fetch_add(ran, std::memory_order_acq_rel) + ran == (step + 1) * panels_) {
      steps_.store(step + 1, std::memory_order_release);
    }
  }

  const int64_t panels_;
  std::vector<Share> shares_;
  alignas(64) std::atomic<int64_t> done_{0};   // panels
  alignas(64) std::atomic<int64_t> steps_{0};  // of which all panels are done
};

}  // namespace

int64_t PackedElements(const RecurrenceAttrs& attrs) {
  return PanelCount(attrs) * attrs.gates() * Blocks(attrs) * attrs.hidden * kColumns;
}

void PackPanels(const RecurrenceAttrs& attrs, const float* weight, float* panels) {
  const int64_t hidden = attrs.hidden, blocks = Blocks(attrs);
  const float* first = weight + attrs.weight.offset;
  for (int64_t panel = 0; panel < PanelCount(attrs); ++panel) {
    for (int64_t group = 0; group < attrs.gates() * blocks; ++group) {
      const int64_t gate = group / blocks, begin = (panel * blocks + group % blocks) * kColumns;
      for (int64_t k = 0; k < hidden; ++k) {
        for (int64_t column = begin; column < begin + kColumns; ++column) {
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
  const any::Panel cell = PanelOf(attrs.cell);
  Shares shares(PanelCount(attrs), tasks);
  ParallelRun(tasks, [&](int task) {
    const float* before = data.state;
    for (int64_t number = 0; number < attrs.steps; ++number) {
      const int64_t time = attrs.reverse ? attrs.steps - 1 - number : number;
      const Step step{attrs, data, data.inputs + time * attrs.batch * wide, before, data.rows + time * state};
      shares.Do(number, task, [&](int64_t panel) { cell(step, panel); });
      before = step.after;
    }
  });
}

}  // namespace uir::library
