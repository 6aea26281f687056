// SPDX-License-Identifier: Apache-2.0
#include "device/ascendc/device.h"

#include "device/engine/json.h"

namespace uir::ascendc {

using engine::JsonValue;

namespace {

constexpr const char* kPipeNames[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL"};
constexpr const char* kMemoryNames[] = {"GM", "UB", "L1", "L0A", "L0B", "L0C", "BT", "FB", "none"};
constexpr const char* kTypeNames[] = {"half",    "bfloat16_t", "float",   "int8_t",   "uint8_t", "int16_t", "uint16_t",
                                      "int32_t", "uint32_t",   "int64_t", "uint64_t", "double",  "int4b_t"};
constexpr uint64_t kTypeBytes[] = {2, 2, 4, 1, 1, 2, 2, 4, 4, 8, 8, 8, 1};

Cost CostOf(const JsonValue& value) {
  if (value.list.size() != 2) return {};
  return {value.list[0].number, value.list[1].number};
}

void ReadFigures(const JsonValue& figures, Device* device) {
  struct {
    uint32_t memory;
    const char* name;
  } sizes[] = {{kUirUb, "ub_bytes"},
               {kUirL1, "l1_bytes"},
               {kUirL0a, "l0a_bytes"},
               {kUirL0b, "l0b_bytes"},
               {kUirL0c, "l0c_bytes"}};
  for (const auto& size : sizes) {
    uint64_t& bytes = device->bytes[size.memory];
    bytes = static_cast<uint64_t>(figures.NumberAt(size.name, static_cast<double>(bytes)));
  }
  device->usable_ub =
      static_cast<uint64_t>(figures.NumberAt("ub_usable_bytes", static_cast<double>(device->usable_ub)));
  device->clock_hz = figures.NumberAt("clock_hz", 1);
  device->memory_bytes_per_cycle = figures.NumberAt("dram_bytes_per_second", 0) / device->clock_hz;
  device->l2_bytes = static_cast<uint64_t>(figures.NumberAt("l2_bytes", 0));
}

void ReadCosts(const JsonValue& costs, Device* device) {
  device->kernel_cycles = costs.NumberAt("kernel_cycles", 0);
  device->scalar_cycles = costs.NumberAt("scalar_cycles", 0);
  device->sync_cycles = costs.NumberAt("sync_cycles", 0);
  device->issue_cycles = costs.NumberAt("issue_cycles", 0);
  device->cube_operations = costs.NumberAt("cube_operations", 2 * 16 * 16 * 16);
  device->l2_read = costs.At("l2").NumberAt("read", 0);
  device->l2_write = costs.At("l2").NumberAt("write", 0);
  for (uint32_t pipe = 0; pipe < kUirPipes; ++pipe) {
    const JsonValue& given = costs.At("pipes").At(kPipeNames[pipe]);
    device->pipes[pipe] = {given.NumberAt("bytes_per_cycle", 0), given.NumberAt("start", 0), given.NumberAt("head", 0),
                           given.NumberAt("head_per_block", 0), given.NumberAt("row", 0)};
  }
  for (const auto& entry : costs.At("vector").object) {
    device->vector[entry.first] = {CostOf(entry.second.At("4")), CostOf(entry.second.At("2"))};
  }
  for (const auto& entry : costs.At("casts").object) device->casts[entry.first] = CostOf(entry.second);
  device->default_function = costs.At("default").text;
}

}  // namespace

Cost Device::Of(const std::string& function, uint64_t element_bytes) const {
  if (!timed) return {};
  auto found = vector.find(function);
  if (found == vector.end()) found = vector.find(default_function);
  if (found == vector.end()) return {};
  const Cost& cost = found->second[element_bytes <= 2 ? 1 : 0];
  // Elements of eight bytes take the time of two.
  return element_bytes == 8 ? Cost{2 * cost.slope, cost.start} : cost;
}

std::string ReadDevice(const char* json, Device* device) {
  if (!json || !*json) return "";
  JsonValue value;
  if (!engine::ParseJson(json, &value)) return "the description of the device is no JSON";
  ReadFigures(value.At("figures"), device);
  device->timed = value.At("costs").kind == JsonValue::kObject;
  if (!device->timed) return "";
  if (device->clock_hz <= 1) return "the description of the device has no clock_hz, without which no time is counted";
  ReadCosts(value.At("costs"), device);
  return "";
}

const char* PipeName(uint32_t pipe) { return kPipeNames[pipe <= kUirAll ? pipe : uint32_t{kUirAll}]; }
const char* MemoryName(uint32_t memory) {
  return kMemoryNames[memory <= kUirMemories ? memory : uint32_t{kUirMemories}];
}
const char* TypeName(uint32_t type) { return type < kUirTypes ? kTypeNames[type] : "?"; }
uint64_t TypeBytes(uint32_t type) { return type < kUirTypes ? kTypeBytes[type] : 1; }

}  // namespace uir::ascendc
