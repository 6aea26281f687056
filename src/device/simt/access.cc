// SPDX-License-Identifier: Apache-2.0
// What is checked of every load and store: bounds, alignment, written bytes, races.
#include <cstdio>
#include <cstring>
#include <string>

#include "device/simt/include/uir_simt/abi.h"
#include "device/simt/machine.h"

namespace uir::simt {

using engine::Allocation;
using engine::Finding;
using engine::Memory;
using engine::Race;

namespace {

std::string Describe(bool write, uint32_t bytes) {
  return std::string(write ? "a write" : "a read") + " of " + std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

bool AllWritten(const engine::ByteSet& written, size_t offset, uint32_t bytes) {
  return bytes <= 64 ? written.HasAll(offset, bytes) : written.FirstMissing(offset, bytes) == offset + bytes;
}

void ReportRace(const Race& race, bool write, const char* space, uint32_t bytes, size_t offset,
                const std::string& memory, uint64_t site) {
  std::string what = Describe(write, bytes) + " at byte " + std::to_string(offset) + " of " + memory + " races with " +
                     (race.other_writes ? "a write" : "a read");
  if (race.thread >= 0) {
    what += " of thread " + std::to_string(race.thread);
    if (race.block != machine.block->index) what += " of block " + std::to_string(race.block);
  } else {
    what += " of other blocks";
  }
  Finding finding = FindingAt("race", what, space, site);
  finding.other_block = race.block;
  finding.other_thread = race.thread;
  finding.other_site = machine.module_begin + race.site;
  Report(finding);
}

[[noreturn]] void OutOfBounds(const char* space, const std::string& what, uint64_t site) {
  Fail(FindingAt("out-of-bounds", what, space, site));
}

void CheckAlignment(uintptr_t at, uint32_t bytes, bool write, const char* space, uint64_t site) {
  // An access is as wide as the instruction that makes it, a power of two up to 16 bytes; wider ones are several.
  uint32_t need = bytes >= 16 ? 16 : bytes & (~bytes + 1);
  if (at % need == 0) return;
  Fail(FindingAt("misaligned",
                 Describe(write, bytes) + " at an address that is " + std::to_string(at % need) +
                     " bytes past a multiple of " + std::to_string(need),
                 space, site));
}

void Trace(uintptr_t at, uint32_t bytes, bool shared, uint64_t site) {
  if (!machine.trace.Note(machine.Offset(site), machine.LaneOf(), at, bytes, shared)) YieldLane();
}

/*! \brief All checks of an access to shared memory. */
void CheckPool(uintptr_t address, uint32_t bytes, bool write, bool atomic, uint64_t site) {
  Block& block = *machine.block;
  size_t offset = address - reinterpret_cast<uintptr_t>(uir_simt_pool);
  if (offset + bytes > machine.shared_bytes) {
    OutOfBounds("shared",
                Describe(write, bytes) + " at byte " + std::to_string(offset) + " of a pool of " +
                    std::to_string(machine.shared_bytes),
                site);
  }
  CheckAlignment(address, bytes, write, "shared", site);
  if (!block.ranges.empty()) {
    bool held = false;
    for (size_t i = 0; i < block.ranges.size() && !held; ++i) {
      held = block.ranges[i].begin <= offset && offset + bytes <= block.ranges[i].end;
      if (held && i > 0) std::swap(block.ranges[i], block.ranges[0]);
    }
    if (!held) {
      OutOfBounds("shared",
                  Describe(write, bytes) + " at byte " + std::to_string(offset) +
                      " of the pool lies in no range that the text named",
                  site);
    }
  }
  if (block.in_flight_bytes) {
    for (uint32_t i = 0; i < bytes; i += 64) {
      if (!block.in_flight.HasAny(offset + i, bytes - i < 64 ? bytes - i : 64)) continue;
      Report(FindingAt("async-in-flight",
                       Describe(write, bytes) + " at byte " + std::to_string(offset) +
                           " of the pool meets an asynchronous copy that was not waited for",
                       "shared", site));
      break;
    }
  } else if ((!write || atomic) && !AllWritten(block.written, offset, bytes)) {
    Report(
        FindingAt("unwritten",
                  Describe(false, bytes) + " at byte " + std::to_string(offset) + " of the pool, which nothing wrote",
                  "shared", site));
  }
  if (write) block.written.Insert(offset, bytes);
  engine::Accessor me = machine.Me(site, 1);
  Race race = write ? block.race.Write(me, offset, bytes, atomic) : block.race.Read(me, offset, bytes);
  if (race.found) ReportRace(race, write, "shared", bytes, offset, "the pool", site);
}

/*! \brief Note a plain write for products of four warps, which may still read there or need a fence before they do. */
void NoteWrite(uintptr_t address, uint32_t bytes, uint64_t site) {
  Block& block = *machine.block;
  const size_t offset = address - reinterpret_cast<uintptr_t>(uir_simt_pool);
  bool read = false;
  for (size_t chunk = offset / 16; chunk * 16 < offset + bytes; ++chunk) {
    ChunkState& state = block.chunks[chunk];
    state.writer = machine.lane->thread + 1;
    state.fences = machine.lane->fences;
    read = read || state.readers > 0;
  }
  if (!read) return;
  Report(FindingAt("wgmma-in-flight",
                   Describe(true, bytes) + " at byte " + std::to_string(offset) +
                       " of the pool meets a tile that a product still reads",
                   "shared", site));
}

void CheckShared(uintptr_t address, uint32_t bytes, bool write, bool atomic, uint64_t site) {
  CheckPool(address, bytes, write, atomic, site);
  if (write) NoteWrite(address, bytes, site);
  machine.counters[write ? kSharedStores : kSharedLoads] += 1;
  machine.counters[write ? kSharedStoreBytes : kSharedLoadBytes] += bytes;
  Trace(address, bytes, true, site);
}

std::string NameOf(const Allocation& allocation) {
  return (allocation.label.empty() ? std::string("an allocation") : "'" + allocation.label + "'") + " of " +
         std::to_string(allocation.bytes) + " bytes";
}

/*! \brief A tensor may be a part of a larger storage: accesses stay inside of one parameter. */
void CheckParameter(uintptr_t at, uint32_t bytes, bool write, uint64_t site) {
  auto& parameters = machine.parameters;
  if (parameters.empty()) return;
  const engine::ParameterRange* nearest = nullptr;
  uintptr_t distance = ~uintptr_t{0};
  for (size_t i = 0; i < parameters.size(); ++i) {
    const engine::ParameterRange& parameter = parameters[i];
    if (parameter.begin <= at && at + bytes <= parameter.end) {
      if (i > 0) std::swap(parameters[i], parameters[i / 2]);
      return;
    }
    uintptr_t away = at < parameter.begin ? parameter.begin - at : at - parameter.begin;
    if (away < distance) {
      distance = away;
      nearest = &parameter;
    }
  }
  OutOfBounds("global",
              Describe(write, bytes) + " at byte " + std::to_string(static_cast<int64_t>(at - nearest->begin)) +
                  " of '" + nearest->name + "' of " + std::to_string(nearest->end - nearest->begin) + " bytes",
              site);
}

void CheckGlobal(const void* address, uint32_t bytes, bool write, bool atomic, uint64_t site) {
  Allocation* allocation = Memory::Global().Find(address);
  uintptr_t at = reinterpret_cast<uintptr_t>(address);
  if (!allocation) OutOfBounds("global", Describe(write, bytes) + " where nothing is allocated", site);
  int64_t offset = static_cast<const uint8_t*>(address) - allocation->data;
  if (!allocation->Holds(address, bytes)) {
    OutOfBounds("global",
                Describe(write, bytes) + " at byte " + std::to_string(offset) + " of " + NameOf(*allocation) +
                    (allocation->live ? "" : ", which was released"),
                site);
  }
  CheckParameter(at, bytes, write, site);
  CheckAlignment(at, bytes, write, "global", site);
  size_t begin = static_cast<size_t>(offset);
  if ((!write || atomic) && !AllWritten(allocation->written, begin, bytes)) {
    Report(FindingAt("unwritten",
                     Describe(false, bytes) + " at byte " + std::to_string(offset) + " of " + NameOf(*allocation) +
                         ", which nothing wrote",
                     "global", site));
  }
  if (write) allocation->written.Insert(begin, bytes);
  engine::Accessor me = machine.Me(site, machine.generation);
  Race race = write ? allocation->race.Write(me, begin, bytes, atomic) : allocation->race.Read(me, begin, bytes);
  if (race.found) ReportRace(race, write, "global", bytes, begin, NameOf(*allocation), site);
  machine.counters[write ? kGlobalStores : kGlobalLoads] += 1;
  machine.counters[write ? kGlobalStoreBytes : kGlobalLoadBytes] += bytes;
  Trace(at, bytes, false, site);
}

}  // namespace

void CheckEngineRead(size_t offset, uint32_t bytes, uint64_t site) {
  CheckPool(reinterpret_cast<uintptr_t>(uir_simt_pool) + offset, bytes, false, false, site);
}

void CheckAccess(const void* address, uint32_t bytes, bool write, bool atomic, uint64_t site) {
  CheckPendingWrite();
  uintptr_t at = reinterpret_cast<uintptr_t>(address);
  if (at - reinterpret_cast<uintptr_t>(uir_simt_pool) < kPoolBytes) {
    CheckShared(at, bytes, write, atomic, site);
  } else if (Memory::Global().InRange(address)) {
    CheckGlobal(address, bytes, write, atomic, site);
  } else {
    int64_t owner = machine.stacks.Owner(address);
    if (owner == static_cast<int64_t>(machine.block->first_stack + machine.lane->thread)) {
      if (machine.has_products) CheckRegisters(at, bytes, write, site);
      return;
    }
    if (owner >= 0) OutOfBounds("local", Describe(write, bytes) + " in the local memory of another thread", site);
    if (!write && at >= machine.module_begin && at < machine.module_end) return;  // constants of the text
    char where[32];
    std::snprintf(where, sizeof(where), "%#llx", static_cast<unsigned long long>(at));
    OutOfBounds("", Describe(write, bytes) + " at " + where + ", outside of every memory", site);
  }
  if (write && !atomic) {
    machine.pending_write = static_cast<const uint8_t*>(address);
    machine.pending_bytes = bytes;
    machine.pending_site = site;
  }
}

}  // namespace uir::simt
