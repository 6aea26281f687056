// SPDX-License-Identifier: Apache-2.0
// What a launch would have taken on the device, by the model of its pipes.
#include <algorithm>

#include "device/ascendc/machine.h"

namespace uir::ascendc {

std::string ModelledJson() {
  const Device& device = machine.device;
  engine::Spent spent;
  spent.clock_hz = device.timed ? device.clock_hz : 0;
  spent.pipes = kUirPipes;
  spent.pipe_name = PipeName;
  for (const auto& core : machine.cores) {
    spent.end = std::max(spent.end, core->pipes.End());
    spent.cores.push_back(core->use.data());
  }
  if (device.memory_bytes_per_cycle > 0) spent.memory = machine.memory_bytes / device.memory_bytes_per_cycle;
  spent.memory_bytes = machine.memory_bytes;
  spent.start = device.kernel_cycles;
  if (machine.timeline) spent.timeline = &machine.moments;
  return engine::ModelledJson(spent);
}

}  // namespace uir::ascendc
