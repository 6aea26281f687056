// SPDX-License-Identifier: Apache-2.0
// Flags between the pipes of a core, barriers of a pipe, and event ids.
#include <string>

#include "device/ascendc/machine.h"

using namespace uir::ascendc;
using uir::engine::Epoch;
using uir::engine::Finding;

namespace {

/*! \brief Pipes that a core of this kind has. */
bool HasPipe(const Core& core, int pipe) {
  if (pipe == kUirS || pipe == kUirMte2 || pipe == kUirMte3) return true;
  return core.vector == (pipe == kUirV);
}

std::string FlagName(int from, int to, int id) {
  return std::string(PipeName(static_cast<uint32_t>(from))) + "_" + PipeName(static_cast<uint32_t>(to)) + " " +
         std::to_string(id);
}

/*! \brief The flag, or null after a finding. */
Flag* FlagOf(int from, int to, int id, int pipe, int line) {
  Core& core = *machine.core;
  const char* wrong = id < 0 || id > 7 ? "event-id" : !HasPipe(core, from) || !HasPipe(core, to) ? "pipe" : nullptr;
  if (wrong) {
    std::string what = "flag " + FlagName(from, to, id);
    what += id < 0 || id > 7 ? ": ids are 0 to 7" : ": this core has no such pipe";
    Report(FindingAt(wrong, what, kUirMemories, static_cast<uint32_t>(pipe), line));
    return nullptr;
  }
  return &core.flags[static_cast<size_t>(from)][static_cast<size_t>(to)][static_cast<size_t>(id)];
}

/*! \brief Whether the text may use an id: those that a TPipe or a queue holds are not its own. */
bool IsFree(int from, int to, int id, int line) {
  const Core& core = *machine.core;
  if (id < 0 || id > 7 || !(core.events_own[static_cast<size_t>(from)][static_cast<size_t>(to)] >> id & 1)) return true;
  Report(FindingAt("event-id", "flag " + FlagName(from, to, id) + " is held by the TPipe or by a queue", kUirMemories,
                   static_cast<uint32_t>(from), line));
  return false;
}

/*! \brief Flags and barriers take their time on the scalar unit, which issues them. */
void CountSync(int line) {
  CheckDeadline(line);
  Core& core = *machine.core;
  using uir::engine::Pipes;
  core.pipes.Occupy(Pipes::kScalar, core.pipes.Ready(Pipes::kScalar) + machine.device.issue_cycles, 0);
}

void Wait(int from, int to, int id, bool orders, int line) {
  Flag* flag = FlagOf(from, to, id, to, line);
  if (!flag) return;
  CountSync(line);
  Core& core = *machine.core;
  auto pipe = static_cast<uint32_t>(to);
  if (!flag->up) {
    Report(FindingAt("flag-not-set", "waits for flag " + FlagName(from, to, id) + ", which nothing has set",
                     kUirMemories, pipe, line));
    return;
  }
  flag->up = false;
  if (orders) core.pipes.Acquire(pipe, flag->carried);
  uint32_t number = core.pipes.Issue(pipe);
  flag->waited = Epoch::Pack(core.pipes.core(), pipe, number, static_cast<uint32_t>(line));
}

}  // namespace

namespace uir::ascendc {

void SetFlag(int from, int to, int id, int line) {
  Flag* flag = FlagOf(from, to, id, from, line);
  if (!flag) return;
  CountSync(line);
  Core& core = *machine.core;
  auto pipe = static_cast<uint32_t>(from);
  ++machine.counters["flags"];
  if (flag->up) {
    Finding finding = FindingAt("flag-set-twice", "flag " + FlagName(from, to, id) + " is set while it is up",
                                kUirMemories, pipe, line);
    finding.other_site = static_cast<uint64_t>(flag->set_line);
    Report(finding);
  } else if (flag->waited && Epoch::Pipe(flag->waited) != uir::engine::Pipes::kScalar) {
    // The pipe must know that the last wait has taken the flag. A wait of the scalar unit held up the issue of this.
    core.pipes.Issue(pipe);
    if (!core.pipes.Ordered(pipe, flag->waited)) {
      Finding finding = FindingAt(
          "flag-set-twice",
          "flag " + FlagName(from, to, id) + " is set while it may still be up: nothing orders the wait before it",
          kUirMemories, pipe, line);
      SetOther(&finding, flag->waited);
      Report(finding);
    }
  }
  flag->up = true;
  flag->set_line = line;
  flag->carried = core.pipes.Publish(pipe);
  flag->carried.time += machine.device.sync_cycles;
}

void WaitFlag(int from, int to, int id, int line) { Wait(from, to, id, true, line); }

int TakeOwnEvent(int from, int to, int line) {
  Core& core = *machine.core;
  auto a = static_cast<size_t>(from), b = static_cast<size_t>(to);
  int id = uir_ascendc_event(from, to, 1, line);
  core.events_own[a][b] |= static_cast<uint8_t>(1u << id);
  if (core.flags[a][b][static_cast<size_t>(id)].up) {
    Report(FindingAt("event-id",
                     "flag " + FlagName(from, to, id) + " is up and was not taken from the TPipe, which gives it to " +
                         "one of its own functions",
                     kUirMemories, static_cast<uint32_t>(from), line));
  }
  return id;
}

void ReleaseOwnEvent(int from, int to, int id, int line) {
  uint8_t& own = machine.core->events_own[static_cast<size_t>(from)][static_cast<size_t>(to)];
  own &= static_cast<uint8_t>(~(1u << id));
  uir_ascendc_release_event(from, to, id, line);
}

}  // namespace uir::ascendc

extern "C" {

void uir_ascendc_set_flag(int from, int to, int id, int line) {
  if (IsFree(from, to, id, line)) SetFlag(from, to, id, line);
}

void uir_ascendc_wait_flag(int from, int to, int id, int line) {
  if (IsFree(from, to, id, line)) WaitFlag(from, to, id, line);
}

void uir_ascendc_take_flag(int from, int to, int id, int line) { Wait(from, to, id, false, line); }

void uir_ascendc_pipe_barrier(int pipe, int line) {
  Core& core = *machine.core;
  CountSync(line);
  ++machine.counters["barriers"];
  if (pipe == kUirAll) {
    core.pipes.BarrierAll();
    return;
  }
  if (pipe == kUirS || !HasPipe(core, pipe)) {
    std::string what = pipe == kUirS ? "PipeBarrier<PIPE_S> is an error of the device: the scalar unit runs in order"
                                     : "a barrier of a pipe that this core does not have";
    Report(FindingAt("pipe", what, kUirMemories, static_cast<uint32_t>(pipe), line));
    return;
  }
  core.pipes.Barrier(static_cast<uint32_t>(pipe));
}

int uir_ascendc_event(int from, int to, int take, int line) {
  uint8_t& taken = machine.core->events_taken[static_cast<size_t>(from)][static_cast<size_t>(to)];
  for (int id = 0; id < 8; ++id) {
    if (taken >> id & 1) continue;
    if (take) taken |= static_cast<uint8_t>(1u << id);
    return id;
  }
  Fail(FindingAt("event-id", "no event id of " + FlagName(from, to, 0) + " is free: there are eight", kUirMemories,
                 static_cast<uint32_t>(from), line));
}

void uir_ascendc_release_event(int from, int to, int id, int line) {
  uint8_t& taken = machine.core->events_taken[static_cast<size_t>(from)][static_cast<size_t>(to)];
  if (id < 0 || id > 7 || !(taken >> id & 1)) {
    Report(FindingAt("event-id", "releases event id " + FlagName(from, to, id) + ", which was not taken", kUirMemories,
                     static_cast<uint32_t>(from), line));
    return;
  }
  taken &= static_cast<uint8_t>(~(1u << id));
}

}  // extern "C"
