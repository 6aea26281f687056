// SPDX-License-Identifier: Apache-2.0
#include "device/bang/instruction.h"

#include <algorithm>

#include "device/engine/global_range.h"

namespace uir::bang {

using engine::Epoch;
using engine::Finding;
using engine::Pipes;

namespace {

/*! \brief Pointers of the text that miss a memory by no more are taken to mean it. */
constexpr uint64_t kNear = 16 << 20;

/*! \brief The wait that orders what follows with a queue. */
const char* WaitFor(uint32_t pipe) {
  constexpr const char* kWaits[] = {"__sync()", "__sync_io()", "__sync_move()", "__sync_compute()"};
  return kWaits[pipe < kBangPipes ? pipe : 0];
}

}  // namespace

bool Operand::Knows(int64_t at, int64_t bytes) const {
  if (known) return AllKnown(known + at, bytes);
  auto offset = base + static_cast<uint64_t>(at);
  auto count = static_cast<size_t>(bytes);
  return allocation->written.FirstMissing(offset, count) == offset + count;
}

void Operand::Learn(int64_t at, int64_t bytes, bool value) const {
  if (known) return SetKnown(known + at, bytes, value);
  auto offset = base + static_cast<uint64_t>(at);
  if (value) allocation->written.Insert(offset, static_cast<size_t>(bytes));
}

Operand& Instruction::Add(const void* address, uint32_t memory, const char* role, bool write) {
  operands_.push_back({});
  Operand& operand = operands_.back();
  operand.data = static_cast<uint8_t*>(const_cast<void*>(address));
  operand.role = role;
  operand.write = write;
  operand.memory = memory;
  return operand;
}

void Instruction::Fault(const char* kind, const std::string& what, uint32_t memory) {
  faulty_ = true;
  Report(FindingAt(kind, name() + ": " + what, memory, pipe_, line_));
}

bool Instruction::PlaceLocal(Operand* operand, const engine::Section& section) {
  LocalMemory* memory = machine.MemoryOf(operand->memory);
  if (!memory) {
    Fault("no-memory",
          std::string("the ") + operand->role + " lies in " + MemoryName(operand->memory) +
              (machine.core->memory_core ? ", which a memory core does not have"
                                         : ", which a Block launch does not have: it needs Union1"),
          operand->memory);
    return false;
  }
  int64_t first = operand->data - section.begin;
  int64_t begin = first + operand->ranges.Begin(), end = first + operand->ranges.End();
  if (begin < 0 || end > static_cast<int64_t>(section.bytes)) {
    Fault("out-of-bounds",
          std::string("the ") + operand->role + " covers bytes " + std::to_string(begin) + " to " +
              std::to_string(end) + " of the " + MemoryName(operand->memory) + ", of which the text declares " +
              std::to_string(section.bytes),
          operand->memory);
    return false;
  }
  operand->known = memory->known.get() + first;
  operand->shadow = &memory->race;
  operand->base = static_cast<uint64_t>(first);
  return true;
}

bool Instruction::PlaceGlobal(Operand* operand) {
  auto address = reinterpret_cast<uint64_t>(operand->data);
  int64_t begin = operand->ranges.Begin(), end = operand->ranges.End();
  std::string why = engine::WhyOutside(machine.parameters, address, begin, end, operand->role, &operand->allocation);
  if (!why.empty()) {
    Fault("out-of-bounds", why, kBangGdram);
    return false;
  }
  auto known = machine.global.find(operand->allocation);
  if (known == machine.global.end()) {
    known = machine.global.emplace(operand->allocation, engine::PipeShadow(operand->allocation->bytes)).first;
  }
  operand->shadow = &known->second;
  operand->base = static_cast<uint64_t>(operand->data - operand->allocation->data);
  return true;
}

bool Instruction::Place(Operand* operand) {
  if (operand->ranges.list().empty()) return true;
  uint32_t where = machine.Where(operand->data);
  if (where == kBangMemories && operand->memory != kBangGdram && machine.stacks.Owner(operand->data) < 0) {
    // A pointer a little outside is one that left its memory.
    const engine::Section& section = machine.sections[operand->memory];
    auto at = reinterpret_cast<uint64_t>(operand->data), begin = reinterpret_cast<uint64_t>(section.begin);
    if (section.bytes && at - begin + kNear < section.bytes + 2 * kNear) where = operand->memory;
  }
  if (where != operand->memory) {
    Fault("space",
          std::string("the ") + operand->role + " is to lie in " + MemoryName(operand->memory) + " and lies in " +
              (where == kBangMemories ? "none of the device's memories" : MemoryName(where)),
          operand->memory);
    return false;
  }
  return where == kBangGdram ? PlaceGlobal(operand) : PlaceLocal(operand, machine.sections[where]);
}

void Instruction::Judge(const Operand& operand) {
  if (!machine.values || operand.ranges.list().empty()) return;
  const Pipes& pipes = machine.core->pipes;
  uint64_t race = engine::NoteAccess(operand.shadow, pipes, epoch_, operand.base, operand.ranges, operand.write);
  if (!race) return;
  bool other_core = Epoch::Core(race) != pipes.core();
  const Core& other = *machine.cores[Epoch::Core(race)];
  std::string what = name() + ": the " + operand.role + " in " + MemoryName(operand.memory) + " is " +
                     (operand.write ? "written" : "read") + " while line " + std::to_string(Epoch::Line(race));
  if (other_core) {
    what += " of " + other.Name() + (other.group == machine.core->group ? "" : " of another cluster") +
            " is not ordered with it: a meeting of the cores is missing";
  } else {
    what += std::string(" on ") + PipeName(Epoch::Pipe(race)) + " may still run: " + WaitFor(Epoch::Pipe(race)) +
            " is missing";
  }
  Finding finding = FindingAt("race", what, operand.memory, pipe_, line_);
  SetOther(&finding, race);
  Report(finding);
}

bool Instruction::Begin() {
  CheckDeadline(line_);
  for (Operand& operand : operands_) {
    if (!Place(&operand)) return false;
  }
  if (faulty_) return false;
  Pipes& pipes = machine.core->pipes;
  pipes.OrderWithin(pipe_);  // a queue works off its instructions one by one
  uint32_t number = pipes.Issue(pipe_);
  epoch_ = Epoch::Pack(pipes.core(), pipe_, number, static_cast<uint32_t>(std::max(line_, 0)));
  // Reads first: an instruction may write over its own operands.
  for (const Operand& operand : operands_) {
    if (!operand.write) Judge(operand);
  }
  for (const Operand& operand : operands_) {
    if (operand.write) Judge(operand);
  }
  return true;
}

double Instruction::Start() {
  Core& core = *machine.core;
  double start = core.pipes.Ready(pipe_);
  if (core.use[pipe_].instructions == 0) start += machine.device.pipes[pipe_].head;
  return start;
}

void Instruction::Occupy(double start, double busy, double next, double end, int64_t bytes) {
  Core& core = *machine.core;
  core.pipes.Occupy(pipe_, next, end);
  engine::PipeUse& use = core.use[pipe_];
  use.busy += busy;
  ++use.instructions;
  use.bytes += bytes;
  if (machine.timeline) {
    machine.moments.push_back({core.pipes.core(), pipe_, name(), line_, machine.end + start, machine.end + end});
  }
}

void Instruction::End(double cycles, double latency, int64_t bytes) {
  double start = Start();
  Occupy(start, cycles, start + cycles, start + cycles + latency, bytes);
}

void Instruction::EndTransfer(const Operand& global, int64_t rows) {
  Core& core = *machine.core;
  const Device& device = machine.device;
  const PipeCost& cost = device.pipes[pipe_];
  int64_t bytes = global.ranges.Bytes();
  double start = Start(), moved = static_cast<double>(bytes);
  if (global.write && device.access_bytes > 0) {
    // A write that does not cover a whole access of the memory reads it first.
    for (const Range& range : global.ranges.list()) {
      auto first = global.base + static_cast<uint64_t>(range.begin), last = first + static_cast<uint64_t>(range.bytes);
      auto unit = static_cast<uint64_t>(device.access_bytes);
      moved += static_cast<double>((first % unit ? unit : 0) + (last % unit ? unit : 0));
    }
  }
  // A memory core moves what the cores of its cluster would move together.
  double lanes = core.memory_core ? static_cast<double>(machine.units) : 1;
  double own = cost.bytes_per_cycle > 0 ? moved / (cost.bytes_per_cycle * lanes) : 0;
  own = std::max(own + static_cast<double>(rows - 1) * cost.row, 0.0);
  int64_t at_once = std::min(machine.groups, machine.union_launch() ? device.clusters : device.cores());
  double cores = static_cast<double>(std::max<int64_t>(at_once * machine.units, 1));
  double share = device.memory_bytes_per_cycle / cores;
  if (device.cluster_bytes_per_cycle > 0) {
    // Tasks of a Block launch spread over the clusters.
    double together =
        machine.union_launch()
            ? static_cast<double>(machine.units)
            : static_cast<double>((at_once + device.clusters - 1) / std::max<int64_t>(device.clusters, 1));
    share = std::min(share, device.cluster_bytes_per_cycle / std::max(together, 1.0));
  }
  share *= lanes;
  double end = start + own;
  if (share > 0) end = std::max(end, core.bandwidth.Take(start, moved / share));
  machine.memory_bytes += moved;
  Occupy(start, own, end, end + cost.start, bytes);
}

}  // namespace uir::bang
