// SPDX-License-Identifier: Apache-2.0
#include "device/ascendc/instruction.h"

#include <algorithm>

#include "device/engine/global_range.h"

namespace uir::ascendc {

using engine::Epoch;
using engine::Finding;

namespace {

constexpr size_t kSector = 32;  // least that the memory moves

std::string Hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

//! \brief Bytes that the memory moves for a range: the sectors of it that the second-level cache does not hold yet, and
//! holds afterwards.
int64_t Missed(GlobalShadow* shadow, size_t begin, size_t bytes) {
  size_t end = (begin + bytes - 1) / kSector + 1, missed = 0;
  uint64_t size = machine.device.l2_bytes;
  for (size_t at = begin / kSector; at < end;) {
    size_t count = std::min<size_t>(64, end - at), fresh = count - shadow->touched.Count(at, count);
    missed += fresh;
    if (fresh && machine.touched_bytes + fresh * kSector <= size) {
      shadow->touched.Insert(at, count);
      machine.touched_bytes += fresh * kSector;
    }
    at += count;
  }
  return static_cast<int64_t>(missed * kSector);
}

GlobalShadow* ShadowOf(engine::Allocation* allocation) {
  auto known = machine.global.find(allocation);
  if (known != machine.global.end()) return &known->second;
  GlobalShadow& shadow = machine.global[allocation];
  shadow.race = engine::PipeShadow(allocation->bytes);
  shadow.touched.Resize(allocation->bytes / kSector + 1);
  return &shadow;
}

}  // namespace

Operand& Instruction::Add(const UirTensor& tensor, const char* role, bool write) {
  operands_.push_back({tensor, role, write, {}, nullptr, nullptr, nullptr});
  return operands_.back();
}

void Instruction::Fault(const char* kind, const std::string& what, uint32_t memory) {
  faulty_ = true;
  Report(FindingAt(kind, name() + ": " + what, memory, pipe_, line_));
}

void Instruction::NeedTensor(const UirTensor& tensor, const char* role) {
  if (tensor.memory == kUirGm || tensor.bytes > 0) return;
  Fault("out-of-bounds", std::string("the ") + role + " begins behind the end of its tensor", tensor.memory);
}

bool Instruction::PlaceLocal(Operand* operand, int64_t alignment) {
  const UirTensor& tensor = operand->tensor;
  LocalMemory& memory = machine.core->memory[tensor.memory];
  auto fault = [&](const char* kind, const std::string& what) {
    Fault(kind, std::string("the ") + operand->role + what, tensor.memory);
    return false;
  };
  auto where = [&] { return std::string(MemoryName(tensor.memory)); };
  if (!memory.data) return fault("no-memory", " lies in " + where() + ", which this core does not have");
  if (tensor.address % static_cast<uint64_t>(alignment) != 0) {
    return fault("misaligned", " begins at byte " + Hex(tensor.address) + " of the " + where() + "; " +
                                   std::to_string(alignment) + " bytes of alignment are needed");
  }
  int64_t end = operand->ranges.End(), begin = operand->ranges.Begin();
  if (begin < 0 || tensor.address + static_cast<uint64_t>(end) > memory.bytes) {
    return fault("out-of-bounds", " reaches byte " + std::to_string(static_cast<int64_t>(tensor.address) + end) +
                                      " of the " + where() + ", which has " + std::to_string(memory.bytes));
  }
  // A tensor owns the rest of its last block; one that begins behind its end is none.
  int64_t owned = static_cast<int64_t>((tensor.address + tensor.bytes + 31) / 32 * 32 - tensor.address);
  if (end > owned || tensor.bytes == 0) {
    return fault("out-of-bounds", " is a tensor of " + std::to_string(tensor.bytes) + " bytes, of which " +
                                      std::to_string(end) + " are touched");
  }
  operand->data = memory.data.get() + tensor.address;
  operand->known = memory.known.get() + tensor.address;
  return true;
}

bool Instruction::PlaceGlobal(Operand* operand) {
  const UirTensor& tensor = operand->tensor;
  int64_t begin = operand->ranges.Begin(), end = operand->ranges.End();
  if (end == begin) return true;
  engine::Allocation* allocation = nullptr;
  std::string why = engine::WhyOutside(machine.parameters, tensor.address, begin, end, operand->role, &allocation);
  if (!why.empty()) {
    Fault("out-of-bounds", why, kUirGm);
    return false;
  }
  if (tensor.bytes != ~uint64_t{0} && static_cast<uint64_t>(end) > tensor.bytes) {
    Fault("out-of-bounds",
          std::string("the ") + operand->role + " is a tensor of " + std::to_string(tensor.bytes) +
              " bytes, of which " + std::to_string(end) + " are touched",
          kUirGm);
    return false;
  }
  operand->data = reinterpret_cast<uint8_t*>(tensor.address);
  operand->allocation = allocation;
  return true;
}

bool Instruction::Place(Operand* operand, int64_t alignment) {
  if (operand->tensor.memory == kUirGm) return PlaceGlobal(operand);
  if (operand->tensor.memory >= kUirMemories) {
    Fault("no-memory", std::string("the ") + operand->role + " is a tensor that no buffer stands behind");
    return false;
  }
  return PlaceLocal(operand, alignment);
}

void Instruction::Judge(const Operand& operand) {
  if (!machine.values || operand.ranges.list().empty()) return;
  Core& core = *machine.core;
  bool global = operand.tensor.memory == kUirGm;
  engine::PipeShadow* shadow = global ? &ShadowOf(operand.allocation)->race : &core.memory[operand.tensor.memory].race;
  uint64_t base = global ? static_cast<uint64_t>(operand.data - operand.allocation->data) : operand.tensor.address;
  uint64_t race = engine::NoteAccess(shadow, core.pipes, epoch_, base, operand.ranges, operand.write);
  if (!race) return;
  bool same_pipe = Epoch::Actor(race) == Epoch::Actor(epoch_);
  std::string what =
      name() + ": the " + operand.role + " in " + MemoryName(operand.tensor.memory) + " is " +
      (operand.write ? "written" : "read") + " while line " + std::to_string(Epoch::Line(race)) +
      (same_pipe ? " on the same pipe may still run: PipeBarrier<PIPE_" + std::string(PipeName(pipe_)) + "> is missing"
                 : std::string(" on ") + PipeName(Epoch::Pipe(race)) + " is not ordered with it");
  Finding finding = FindingAt("race", what, operand.tensor.memory, pipe_, line_);
  SetOther(&finding, race);
  Report(finding);
}

bool Instruction::Begin(int64_t alignment) {
  CheckDeadline(line_);
  for (Operand& operand : operands_) {
    if (!Place(&operand, alignment)) return false;
  }
  if (faulty_) return false;
  Core& core = *machine.core;
  core.pipes.Occupy(engine::Pipes::kScalar, core.pipes.Ready(engine::Pipes::kScalar) + machine.device.issue_cycles, 0);
  uint32_t number = core.pipes.Issue(pipe_);
  epoch_ = Epoch::Pack(core.pipes.core(), pipe_, number, static_cast<uint32_t>(line_));
  // Reads first: an instruction may write over its own operands.
  for (const Operand& operand : operands_) {
    if (!operand.write) Judge(operand);
  }
  for (const Operand& operand : operands_) {
    if (operand.write) Judge(operand);
  }
  return true;
}

bool Instruction::Touch(Operand* operand) {
  if (!Place(operand, 1)) return false;
  Judge(*operand);
  return true;
}

double Instruction::Start() {
  Core& core = *machine.core;
  const PipeCost& cost = machine.device.pipes[pipe_];
  double start = core.pipes.Ready(pipe_);
  if (core.use[pipe_].instructions == 0) start += cost.head + cost.head_per_block * static_cast<double>(machine.blocks);
  return start;
}

void Instruction::End(double cycles, double latency, int64_t bytes) {
  Core& core = *machine.core;
  double start = Start(), next = start + cycles, end = next + latency;
  core.pipes.Occupy(pipe_, next, end);
  PipeUse& use = core.use[pipe_];
  use.busy += cycles;
  ++use.instructions;
  use.bytes += bytes;
  if (machine.timeline) machine.moments.push_back({core.pipes.core(), pipe_, name_, line_, start, end});
}

void Instruction::EndTransfer(const Operand& global, int64_t rows, bool write) {
  Core& core = *machine.core;
  const Device& device = machine.device;
  const PipeCost& cost = device.pipes[pipe_];
  int64_t bytes = global.ranges.Bytes(), missed = 0;
  if (bytes && device.timed) {
    GlobalShadow* shadow = ShadowOf(global.allocation);
    auto base = static_cast<size_t>(global.data - global.allocation->data);
    for (const Range& range : global.ranges.list()) {
      missed += Missed(shadow, base + static_cast<size_t>(range.begin), static_cast<size_t>(range.bytes));
    }
  }
  double start = Start(), moved = static_cast<double>(missed);
  double own = cost.bytes_per_cycle > 0 ? moved / cost.bytes_per_cycle : 0;
  double cache = write ? device.l2_write : device.l2_read;
  if (cache > 0 && missed < bytes) own += static_cast<double>(bytes - missed) / cache;
  if (rows > 1) own += static_cast<double>(rows - 1) * cost.row;
  double share = device.memory_bytes_per_cycle / static_cast<double>(machine.blocks);
  double end = start + own;
  if (share > 0) end = std::max(end, core.bandwidth.Take(start, moved / share));
  machine.memory_bytes += moved;
  core.pipes.Occupy(pipe_, end, end + cost.start);
  PipeUse& use = core.use[pipe_];
  use.busy += own;  // without the time that other transfers use the memory
  ++use.instructions;
  use.bytes += bytes;
  if (machine.timeline) machine.moments.push_back({core.pipes.core(), pipe_, name_, line_, start, end + cost.start});
}

}  // namespace uir::ascendc
