// SPDX-License-Identifier: Apache-2.0
// The pipes of one core: what each knows to have happened, and until when each is busy.
//
// A core issues instructions in program order; each goes to one pipe. A pipe begins them in order, but one may begin
// before the last has ended, and pipes wait for each other only where the program says so. What orders two accesses is
// therefore a vector clock of each pipe: how many instructions of every pipe have ended when the next one begins.
// The first pipe is the scalar one, which issues all others: it runs in order, and what it waits for comes before
// whatever is issued afterwards. Its own loads and stores reach other pipes by a flag only.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "device/engine/clocks.h"

namespace uir::engine {

/*! \brief An instruction: its core, pipe, number there and line, in 63 bits; 0 is none. */
struct Epoch {
  static constexpr uint32_t kMaxCores = 1u << 14;
  static constexpr uint32_t kMaxLine = (1u << 18) - 1;
  static constexpr uint32_t kMaxNumber = (1u << 28) - 1;

  static uint64_t Pack(uint32_t core, uint32_t pipe, uint32_t number, uint32_t line) {
    if (line > kMaxLine) line = kMaxLine;
    return uint64_t{core} << 49 | uint64_t{pipe} << 46 | uint64_t{line} << 28 | number;
  }
  static uint32_t Core(uint64_t epoch) { return static_cast<uint32_t>(epoch >> 49) & (kMaxCores - 1); }
  static uint32_t Pipe(uint64_t epoch) { return static_cast<uint32_t>(epoch >> 46) & 7; }
  static uint32_t Line(uint64_t epoch) { return static_cast<uint32_t>(epoch >> 28) & kMaxLine; }
  static uint32_t Number(uint64_t epoch) { return static_cast<uint32_t>(epoch) & kMaxNumber; }
  /*! \brief Core and pipe alone. */
  static uint64_t Actor(uint64_t epoch) { return epoch >> 46; }
};

/*! \brief The pipes of one core. Times are in cycles. */
class Pipes {
 public:
  static constexpr uint32_t kMost = 8;
  static constexpr uint32_t kScalar = 0;

  using Numbers = std::array<uint32_t, kMost>;
  /*! \brief What is known of other cores. */
  struct Far {
    std::vector<Numbers> of;
    uint32_t uses{0};
  };
  /*! \brief What a pipe has done and knows, with the time at which that is so. */
  struct Known {
    Numbers near{};
    Shared<Far> far;
    double time{0};
  };

  Pipes(uint32_t core, uint32_t cores) : core_(core), cores_(cores) {}

  uint32_t core() const { return core_; }

  /*! \brief Issue an instruction to a pipe; its number. */
  uint32_t Issue(uint32_t pipe);

  /*! \brief Whether the instruction has ended before the present of a pipe. */
  bool Ordered(uint32_t pipe, uint64_t epoch) const {
    uint32_t core = Epoch::Core(epoch), other = Epoch::Pipe(epoch), number = Epoch::Number(epoch);
    const Known& known = pipes_[pipe];
    if (core == core_) return (pipe == kScalar && other == kScalar) || known.near[other] >= number;
    return known.far && known.far->of[core][other] >= number;
  }

  /*! \brief What a flag carries that the pipe sets now: all that was issued to it has ended. */
  Known Publish(uint32_t pipe) const;
  /*! \brief The pipe waits for what was published. */
  void Acquire(uint32_t pipe, const Known& published);
  /*! \brief The pipe has waited for an instruction of another one, and with it for those before. */
  void WaitedFor(uint32_t pipe, uint32_t other, uint32_t number) {
    pipes_[pipe].near[other] = std::max(pipes_[pipe].near[other], number);
    pipes_[pipe].time = std::max(Ready(pipe), ended_[other]);
  }
  /*! \brief What was issued to the pipe ends before what is issued to it from here on. */
  void Barrier(uint32_t pipe) {
    pipes_[pipe].near[pipe] = issued_[pipe];
    pipes_[pipe].time = std::max(pipes_[pipe].time, ended_[pipe]);
  }
  /*! \brief As `Barrier`, of a pipe that works off its instructions one by one: without any time. */
  void OrderWithin(uint32_t pipe) { pipes_[pipe].near[pipe] = issued_[pipe]; }
  /*! \brief All pipes wait for all. */
  void BarrierAll();
  /*! \brief As a record of all cores, for another core to acquire. */
  Known ForOthers(const Known& known) const;

  /*! \brief When a pipe can begin an instruction that is issued now. */
  double Ready(uint32_t pipe) const { return std::max(pipes_[pipe].time, pipes_[kScalar].time); }
  /*! \brief The pipe can begin its next instruction at `next`, and its last has taken effect at `end`. */
  void Occupy(uint32_t pipe, double next, double end) {
    pipes_[pipe].time = next;
    ended_[pipe] = std::max(ended_[pipe], end);
  }
  /*! \brief When the last instruction of all pipes has taken effect. */
  double End() const;

 private:
  static void Join(Known* into, const Known& from);

  uint32_t core_;
  uint32_t cores_;
  Numbers issued_{};
  std::array<double, kMost> ended_{};
  std::array<Known, kMost> pipes_{};
};

}  // namespace uir::engine
