// SPDX-License-Identifier: Apache-2.0
#include "device/engine/global_range.h"

namespace uir::engine {

std::string WhyOutside(const std::vector<ParameterRange>& parameters, uint64_t address, int64_t begin, int64_t end,
                       const char* role, Allocation** allocation) {
  uint64_t first = address + static_cast<uint64_t>(begin), bytes = static_cast<uint64_t>(end - begin);
  auto* at = reinterpret_cast<uint8_t*>(first);
  *allocation = Memory::Global().Find(at);
  if (!*allocation || !(*allocation)->Holds(at, bytes)) {
    std::string label = *allocation && !(*allocation)->label.empty() ? " near " + (*allocation)->label : "";
    return std::string("the ") + role + " of " + std::to_string(bytes) + " bytes leaves global memory" + label;
  }
  if (parameters.empty()) return "";
  const ParameterRange* nearest = nullptr;
  for (const ParameterRange& range : parameters) {
    if (first >= range.begin && first + bytes <= range.end) return "";
    if (address + 1 > range.begin && (!nearest || range.begin > nearest->begin)) nearest = &range;
  }
  std::string of =
      nearest ? " of `" + nearest->name + "`, which has " + std::to_string(nearest->end - nearest->begin) : "";
  int64_t from = nearest ? static_cast<int64_t>(first - nearest->begin) : 0;
  return std::string("the ") + role + " covers bytes " + std::to_string(from) + " to " +
         std::to_string(from + static_cast<int64_t>(bytes)) + of;
}

uint64_t NoteAccess(PipeShadow* shadow, const Pipes& pipes, uint64_t epoch, uint64_t base, const Ranges& ranges,
                    bool write) {
  uint64_t race = 0;
  for (const Range& range : ranges.list()) {
    size_t begin = base + static_cast<uint64_t>(range.begin), bytes = static_cast<size_t>(range.bytes);
    uint64_t found = write ? shadow->Write(pipes, epoch, begin, bytes) : shadow->Read(pipes, epoch, begin, bytes);
    // Not a race: the operands of one instruction.
    if (!race && found && found != epoch) race = found;
  }
  return race;
}

}  // namespace uir::engine
