// SPDX-License-Identifier: Apache-2.0
/*!
 * \file report.cc
 * \brief What a launch would have taken on the device, by the model of its pipes.
 */
#include <algorithm>

#include "machine.h"

namespace uir {
namespace ascendc {

using engine::JsonObject;

std::string ModelledJson() {
  const Device& device = machine.device;
  double end = 0, memory = 0;
  const Core* slowest = nullptr;
  for (const auto& core : machine.cores) {
    if (!slowest || core->pipes.End() > end) {
      end = core->pipes.End();
      slowest = core.get();
    }
  }
  if (!device.timed || !slowest) return JsonObject().Real("seconds", 0).Text("bound", "").Raw("pipes", "{}").Done();
  double rate = device.clock_hz;
  if (device.memory_bytes_per_cycle > 0) memory = machine.memory_bytes / device.memory_bytes_per_cycle;
  std::string bound = "memory";
  double longest = memory;
  JsonObject pipes;
  for (uint32_t pipe = 0; pipe < kUirPipes; ++pipe) {
    PipeUse all;
    double busiest = 0;
    for (const auto& core : machine.cores) {
      const PipeUse& use = core->use[pipe];
      busiest = std::max(busiest, use.busy);
      all.instructions += use.instructions;
      all.bytes += use.bytes;
    }
    if (!all.instructions) continue;
    if (busiest > longest) {
      longest = busiest;
      bound = PipeName(pipe);
    }
    pipes.Raw(PipeName(pipe), JsonObject()
                                  .Real("busy_seconds", busiest / rate)
                                  .Number("instructions", all.instructions)
                                  .Number("bytes", all.bytes)
                                  .Done());
  }
  pipes.Raw("memory", JsonObject()
                          .Real("busy_seconds", memory / rate)
                          .Number("instructions", 0)
                          .Number("bytes", static_cast<int64_t>(machine.memory_bytes))
                          .Done());
  JsonObject out;
  out.Real("seconds", (std::max(end, memory) + device.kernel_cycles) / rate)
      .Text("bound", bound)
      .Raw("pipes", pipes.Done());
  if (machine.timeline) {
    std::vector<std::string> moments;
    for (const Moment& moment : machine.moments) {
      moments.push_back(JsonObject()
                            .Number("core", moment.core)
                            .Text("pipe", PipeName(moment.pipe))
                            .Text("name", moment.name)
                            .Number("line", moment.line)
                            .Real("start", moment.start / rate)
                            .Real("end", moment.end / rate)
                            .Done());
    }
    out.Raw("timeline", engine::JsonList(moments));
  }
  return out.Done();
}

}  // namespace ascendc
}  // namespace uir
