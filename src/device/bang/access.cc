// SPDX-License-Identifier: Apache-2.0
// Loads and stores of scalar code, and what the device tells it of the launch.
//
// The scalar unit waits for the vector unit by itself where both touch the same bytes (kernels of the vendor read a
// vector function's result without any wait): for the last function that does, and with it for those before. It issues
// all instructions, so that its own accesses come before what is issued later. Copies it must wait for.
#include <string>

#include "device/bang/instruction.h"
#include "device/engine/global_range.h"

using namespace uir::bang;
using uir::engine::Epoch;
using uir::engine::Finding;
using uir::engine::Pipes;

namespace {

/*! \brief An access on its way. */
struct Access {
  const uint8_t* at;
  size_t bytes;
  bool write;
  int line;
};

std::string Describe(const Access& access) {
  return std::string(access.write ? "a store" : "a load") + " of " + std::to_string(access.bytes) +
         (access.bytes == 1 ? " byte" : " bytes");
}

void Judge(const Access& access, uint32_t memory, uir::engine::PipeShadow* shadow, size_t offset) {
  Core& core = *machine.core;
  Pipes& pipes = core.pipes;
  const Device& device = machine.device;
  uint32_t number = pipes.Issue(kBangScalar);
  uint64_t epoch = Epoch::Pack(pipes.core(), kBangScalar, number, static_cast<uint32_t>(access.line));
  uint64_t compute = Epoch::Actor(Epoch::Pack(pipes.core(), kBangCompute, 0, 0));
  uint32_t last = shadow->Last(compute, offset, access.bytes, access.write);
  if (last) pipes.WaitedFor(kBangScalar, kBangCompute, last);
  uint64_t race = access.write ? shadow->Write(pipes, epoch, offset, access.bytes)
                               : shadow->Read(pipes, epoch, offset, access.bytes);
  pipes.OrderWithin(kBangScalar);
  double cycles = memory == kBangGdram ? device.scalar_dram_cycles : device.scalar_cycles;
  double start = pipes.Ready(kBangScalar);
  pipes.Occupy(kBangScalar, start + cycles, start + cycles);
  uir::engine::PipeUse& use = core.use[kBangScalar];
  use.busy += cycles;
  ++use.instructions;
  use.bytes += static_cast<int64_t>(access.bytes);
  if (machine.timeline) {
    machine.moments.push_back({pipes.core(), kBangScalar, access.write ? "store" : "load", access.line,
                               machine.end + start, machine.end + start + cycles});
  }
  if (!race) return;
  constexpr const char* kWaits[] = {"__sync()", "__sync_io()", "__sync_move()", "__sync_compute()"};
  bool other_core = Epoch::Core(race) != pipes.core();
  std::string what = Describe(access) + " at byte " + std::to_string(offset) + " of " + MemoryName(memory) +
                     " is not ordered with line " + std::to_string(Epoch::Line(race)) + " on " +
                     PipeName(Epoch::Pipe(race));
  what += other_core ? " of " + machine.cores[Epoch::Core(race)]->Name() + ": a meeting of the cores is missing"
                     : std::string(": ") + kWaits[Epoch::Pipe(race)] + " is missing";
  Finding finding = FindingAt("race", what, memory, kBangScalar, access.line);
  SetOther(&finding, race);
  Report(finding);
}

void ToLocal(const Access& access, uint32_t memory) {
  LocalMemory* local = machine.MemoryOf(memory);
  const uir::engine::Section& section = machine.sections[memory];
  auto offset = static_cast<size_t>(access.at - section.begin);
  auto fault = [&](const char* kind, const std::string& what) {
    Report(FindingAt(kind, Describe(access) + what, memory, kBangScalar, access.line));
  };
  if (!local) {
    return fault("no-memory", std::string(" in ") + MemoryName(memory) +
                                  (machine.core->memory_core ? ", which a memory core does not have"
                                                             : ", which a Block launch does not have"));
  }
  if (memory == kBangWram) return fault("space", " in WRAM, which scalar code cannot reach");
  if (offset + access.bytes > section.bytes) {
    Fail(FindingAt("out-of-bounds",
                   Describe(access) + " at byte " + std::to_string(offset) + " of the " + MemoryName(memory) +
                       ", of which the text declares " + std::to_string(section.bytes),
                   memory, kBangScalar, access.line));
  }
  if (access.write) {
    SetKnown(local->known.get() + offset, static_cast<int64_t>(access.bytes));
  } else if (!AllKnown(local->known.get() + offset, static_cast<int64_t>(access.bytes))) {
    fault("unwritten",
          " at byte " + std::to_string(offset) + " of the " + MemoryName(memory) + ", which nothing wrote");
  }
  Judge(access, memory, &local->race, offset);
}

void ToGlobal(const Access& access) {
  uir::engine::Allocation* allocation = nullptr;
  std::string why = uir::engine::WhyOutside(machine.parameters, reinterpret_cast<uint64_t>(access.at), 0,
                                            static_cast<int64_t>(access.bytes), Describe(access).c_str(), &allocation);
  if (!why.empty()) Fail(FindingAt("out-of-bounds", why, kBangGdram, kBangScalar, access.line));
  auto offset = static_cast<size_t>(access.at - allocation->data);
  if (access.write) {
    allocation->written.Insert(offset, access.bytes);
  } else if (allocation->written.FirstMissing(offset, access.bytes) != offset + access.bytes) {
    Report(FindingAt("unwritten", Describe(access) + " of global memory that nothing wrote", kBangGdram, kBangScalar,
                     access.line));
  }
  auto known = machine.global.find(allocation);
  if (known == machine.global.end()) {
    known = machine.global.emplace(allocation, uir::engine::PipeShadow(allocation->bytes)).first;
  }
  Judge(access, kBangGdram, &known->second, offset);
}

}  // namespace

extern "C" {

void uir_bang_access(const void* address, size_t bytes, int write, void* site) {
  if (!machine.core) return;  // the file's host half
  if (machine.stacks.Owner(address) >= 0) return;
  uint32_t memory = machine.Where(address);
  if (memory == kBangMemories && machine.constants.Holds(address)) return;
  NeedValues();
  int line = uir::engine::LineOf(reinterpret_cast<uint64_t>(site)).kernel;
  CheckDeadline(line);
  Access access{static_cast<const uint8_t*>(address), bytes, write != 0, line > 0 ? line : 0};
  if (memory == kBangMemories) {
    Fail(FindingAt("out-of-bounds", Describe(access) + " at an address of no memory of the device", kBangMemories,
                   kBangScalar, access.line));
  }
  if (memory == kBangGdram) return ToGlobal(access);
  ToLocal(access, memory);
}

int uir_bang_memory_of(const void* address) { return static_cast<int>(machine.Where(address)); }

int64_t uir_bang_register(int which) {
  if (!machine.core) return 0;
  const Core& core = *machine.core;
  const auto& dim = machine.dim;
  switch (which) {
    case kBangTaskId:
      return core.task[0] + dim[0] * (core.task[1] + dim[1] * core.task[2]);
    case kBangTaskIdX:
      return core.task[0];
    case kBangTaskIdY:
      return core.task[1];
    case kBangTaskIdZ:
      return core.task[2];
    case kBangTaskDim:
      return dim[0] * dim[1] * dim[2];
    case kBangTaskDimX:
      return dim[0];
    case kBangTaskDimY:
      return dim[1];
    case kBangTaskDimZ:
      return dim[2];
    case kBangCoreId:
      return core.memory_core ? kMemoryCore : core.lane;
    case kBangCoreDim:
      return machine.units;
    case kBangClusterDim:
      return machine.union_launch() ? 1 : 0;
    default:  // the cluster's number in a union of one
      return 0;
  }
}

float uir_bang_float_of(uint16_t bits, int type) { return uir::engine::FloatOf(bits, type == kBangHalf); }

uint16_t uir_bang_bits_of(float value, int type) { return uir::engine::BitsOf(value, type == kBangHalf); }

}  // extern "C"
