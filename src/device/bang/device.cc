// SPDX-License-Identifier: Apache-2.0
#include "device/bang/device.h"

#include <cmath>
#include <cstdlib>

#include "device/engine/json.h"

namespace uir::bang {

using engine::JsonValue;

namespace {

constexpr const char* kPipeNames[] = {"S", "IO", "MOVE", "COMPUTE"};
constexpr const char* kMemoryNames[] = {"GDRAM", "NRAM", "WRAM", "SRAM", "LDRAM", "none"};
constexpr int64_t kTypeBytes[] = {2, 2, 4, 1, 1, 2, 2, 4, 4};

void ReadFigures(const JsonValue& figures, Device* device) {
  auto read = [&](const char* name, auto* value) {
    using T = std::decay_t<decltype(*value)>;
    *value = static_cast<T>(figures.NumberAt(name, static_cast<double>(*value)));
  };
  // hardware models name architectures, as compilers' options do
  const JsonValue& arch = figures.At("arch");
  device->arch = arch.kind == JsonValue::kText ? std::strtoll(arch.text.c_str(), nullptr, 10)
                                               : static_cast<int64_t>(arch.NumberOr(static_cast<double>(device->arch)));
  read("clusters", &device->clusters);
  read("cores_per_cluster", &device->cores_per_cluster);
  read("nram_bytes", &device->bytes[kBangNram]);
  read("wram_bytes", &device->bytes[kBangWram]);
  read("sram_bytes", &device->bytes[kBangSram]);
  read("clock_hz", &device->clock_hz);
  read("vector_bytes_per_cycle", &device->vector_bytes_per_cycle);
  read("matmul_f16", &device->matmul_half);
  read("matmul_f32", &device->matmul_float);
  device->memory_bytes_per_cycle = figures.NumberAt("dram_bytes_per_second", 0) / device->clock_hz;
  device->cluster_bytes_per_cycle = figures.NumberAt("cluster_bytes_per_second", 0) / device->clock_hz;
}

void ReadCosts(const JsonValue& costs, Device* device) {
  device->kernel_cycles = costs.NumberAt("kernel_cycles", 0);
  device->scalar_cycles = costs.NumberAt("scalar_cycles", 0);
  device->scalar_dram_cycles = costs.NumberAt("scalar_dram_cycles", 0);
  device->sync_cycles = costs.NumberAt("sync_cycles", 0);
  device->cluster_sync_cycles = costs.NumberAt("cluster_sync_cycles", 0);
  device->access_bytes = costs.NumberAt("access_bytes", 0);
  device->start = costs.NumberAt("start", 0);
  device->default_pass = costs.NumberAt("default", 1);
  for (uint32_t pipe = 0; pipe < kBangPipes; ++pipe) {
    const JsonValue& given = costs.At("pipes").At(kPipeNames[pipe]);
    device->pipes[pipe] = {given.NumberAt("bytes_per_cycle", 0), given.NumberAt("start", 0), given.NumberAt("head", 0),
                           given.NumberAt("row", 0)};
  }
  for (const auto& entry : costs.At("passes").object) device->passes[entry.first] = entry.second.number;
}

}  // namespace

double Device::CyclesOf(const std::string& function, int64_t bytes) const {
  if (!timed) return 0;
  auto found = passes.find(function);
  double pass = found == passes.end() ? default_pass : found->second;
  return std::ceil(static_cast<double>(bytes) / vector_bytes_per_cycle) * pass;
}

std::string ReadDevice(const char* json, Device* device) {
  if (!json || !*json) return "";
  JsonValue value;
  if (!engine::ParseJson(json, &value)) return "the description of the device is no JSON";
  ReadFigures(value.At("figures"), device);
  if (device->arch <= 0) return "the description of the device has an `arch` that is no number";
  device->timed = value.At("costs").kind == JsonValue::kObject;
  if (!device->timed) return "";
  if (device->clock_hz <= 1) return "the description of the device has no clock_hz, without which no time is counted";
  ReadCosts(value.At("costs"), device);
  return "";
}

const char* PipeName(uint32_t pipe) { return pipe < kBangPipes ? kPipeNames[pipe] : ""; }
const char* MemoryName(uint32_t memory) {
  return kMemoryNames[memory < kBangMemories ? memory : uint32_t{kBangMemories}];
}
int64_t TypeBytes(uint32_t type) { return type < kBangTypes ? kTypeBytes[type] : 1; }

}  // namespace uir::bang
