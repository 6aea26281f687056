// SPDX-License-Identifier: Apache-2.0
#include "device/engine/kept_times.h"

#include <unordered_map>
#include <utility>

#include "device/engine/memory.h"

namespace uir::engine {

namespace {

/*! \brief More launches than one model has. */
constexpr size_t kMost = 4096;

using Times = std::unordered_map<std::string, KeptTimes>;

Times& Kept() {
  static auto* times = new Times();
  return *times;
}

/*! \brief An argument's part of the key; `before` are those in front of it. */
std::string ArgumentKey(const UirSimtArg& arg, const UirSimtArg* before, int32_t count) {
  auto address = reinterpret_cast<uintptr_t>(arg.value);
  if (arg.bytes < 0) return "i" + std::to_string(address);
  const std::string bytes = ":" + std::to_string(arg.bytes);
  // memory of the host is copied into an allocation of its own
  const Allocation* allocation = Memory::Global().Find(arg.value);
  if (!allocation) return "h" + bytes;
  const auto offset = static_cast<int64_t>(static_cast<const uint8_t*>(arg.value) - allocation->data);
  for (int32_t i = 0; i < count; ++i) {
    if (before[i].bytes < 0 || Memory::Global().Find(before[i].value) != allocation) continue;
    const auto from = static_cast<const uint8_t*>(arg.value) - static_cast<const uint8_t*>(before[i].value);
    return "s" + std::to_string(i) + ":" + std::to_string(from) + bytes;
  }
  // with 0 bytes the allocation bounds what is accessed
  const int64_t room = arg.bytes == 0 ? static_cast<int64_t>(allocation->bytes) - offset : 0;
  return "p" + std::to_string(offset % (int64_t{1} << Memory::kPageBits)) + ":" + std::to_string(room) + bytes;
}

}  // namespace

std::string TimesKey(const std::vector<std::string>& facts, const UirSimtArg* args, int32_t num_args) {
  std::string key;
  for (const std::string& fact : facts) key += fact + '\n';
  for (int32_t i = 0; i < num_args; ++i) key += ArgumentKey(args[i], args, i) + ' ';
  return key;
}

const KeptTimes* FindTimes(const std::string& key) {
  auto found = Kept().find(key);
  return found == Kept().end() ? nullptr : &found->second;
}

void KeepTimes(const std::string& key, KeptTimes times) {
  if (Kept().size() >= kMost) Kept().clear();
  Kept()[key] = std::move(times);
}

void ForgetTimes() { Kept().clear(); }

}  // namespace uir::engine
