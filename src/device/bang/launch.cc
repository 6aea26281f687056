// SPDX-License-Identifier: Apache-2.0
// Run one launch: load the library, bring arguments into the engine's memory, run, report.
#include <cstring>

#include "device/bang/bang.h"
#include "device/bang/machine.h"
#include "device/engine/kept_times.h"
#include "device/engine/launch_lock.h"
#include "device/engine/whole_launch.h"

namespace uir::bang {

namespace {

constexpr const char* kSections[] = {"", "uir_nram", "uir_wram", "uir_sram", "uir_ldram"};
constexpr int kBlock = 1, kUnion1 = 4;

/*! \brief Take a launch's shape; what is wrong with it, or empty. */
std::string TakeShape(int64_t x, int64_t y, int64_t z, int64_t units) {
  if (x < 1 || y < 1 || z < 1) {
    return "a launch of " + std::to_string(x) + " x " + std::to_string(y) + " x " + std::to_string(z) + " tasks";
  }
  int64_t tasks = x * y * z;
  if (units > 1 && x % units != 0) {
    return "a Union1 launch with dim.x " + std::to_string(x) + ": it must be a multiple of 4";
  }
  machine.dim = {x, y, z};
  machine.units = units;
  machine.groups = tasks / units;
  if (machine.groups * (units + 1) >= engine::Epoch::kMaxCores) {
    return std::to_string(tasks) + " tasks are more than the model runs";
  }
  return "";
}

/*! \brief The text may not declare more of a memory than the device has. */
bool CheckCapacity() {
  bool fits = true;
  for (uint32_t memory = kBangNram; memory < kBangMemories; ++memory) {
    uint64_t bytes = machine.sections[memory].bytes, most = machine.device.bytes[memory];
    if (bytes <= most) continue;
    fits = false;
    Report(FindingAt("capacity",
                     "the text declares " + std::to_string(bytes) + " bytes of " + MemoryName(memory) +
                         ", of which there are " + std::to_string(most),
                     memory, kBangPipes, 0));
  }
  return fits;
}

/*! \brief Everything up to the first core; what went wrong, or empty. */
std::string Prepare(const UirBangLaunch& launch, engine::Arguments* arguments) {
  std::string error = ReadDevice(launch.device, &machine.device);
  if (!error.empty()) return error;
  if (launch.units != 0 && launch.units != 1 && launch.units != machine.device.cores_per_cluster) {
    return "groups of " + std::to_string(launch.units) + " cores: a launch has groups of 1 (Block) or " +
           std::to_string(machine.device.cores_per_cluster) + " (Union1)";
  }
  error = machine.FindKernel(launch.library);
  if (!error.empty()) return error;
  for (uint32_t memory = kBangNram; memory < kBangMemories; ++memory) {
    machine.sections[memory] = engine::FindSection(launch.library, machine.module->begin, kSections[memory]);
  }
  machine.constants = engine::FindSection(launch.library, machine.module->begin, ".rodata");
  engine::SetLineSource(launch.library, machine.module->begin, ".mlu");
  if (!machine.stacks.Reserve(static_cast<size_t>(machine.device.cores_per_cluster) + 1)) {
    return "no memory for the stacks of the cores";
  }
  for (int i = 0; i < launch.num_args; ++i) {
    const UirSimtArg& arg = launch.args[i];
    if (!arguments->Add({arg.value, arg.bytes, arg.name}, &error)) return error;
  }
  machine.Take(*arguments, launch.max_seconds, launch.timeline != 0);
  return "";
}

/*! \brief Leave nothing of the launch before. */
void Reset(const UirBangLaunch& launch, bool with_values) {
  machine.ResetLaunch(launch.kernel, launch.max_findings, with_values);
  machine.device = Device();
  machine.cores.clear();
  machine.clusters.clear();
  machine.core = nullptr;
  machine.launched = false;
  machine.global.clear();
  machine.end = 0;
  machine.use.clear();
}

std::string RunKernels(const UirBangLaunch& launch) {
  if (!CheckCapacity()) return "";
  if (launch.units == 0) {
    // Its parameters are the queue, then those of the kernel.
    std::vector<uint64_t> arguments = machine.args;
    arguments.insert(arguments.begin(), 0);
    arguments.pop_back();
    engine::CallKernel(machine.kernel, arguments.data(), arguments.size());
    return machine.launched ? "" : "the function '" + machine.kernel_name + "' launches no kernel";
  }
  int64_t groups = launch.groups;
  std::string error = launch.units == 1 ? TakeShape(groups, 1, 1, 1) : TakeShape(launch.units, groups, 1, launch.units);
  if (error.empty()) RunCores();
  return error;
}

/*! \brief Run the launch; what went wrong, or empty. */
std::string RunLaunch(const UirBangLaunch& launch) {
  engine::Arguments arguments;
  std::string error = Prepare(launch, &arguments);
  if (error.empty()) error = RunKernels(launch);
  arguments.Return();
  return error;
}

/*! \brief By what the launch's times are kept; empty where they are not. */
std::string TimesKeyOf(const UirBangLaunch& launch) {
  if (launch.timeline || launch.units == 0) return "";
  auto text = [](const char* given) { return std::string(given ? given : ""); };
  const std::vector<std::string> facts = {text(launch.library), text(launch.kernel), text(launch.device),
                                          std::to_string(launch.groups), std::to_string(launch.units)};
  return engine::TimesKey(facts, launch.args, launch.num_args);
}

}  // namespace
}  // namespace uir::bang

extern "C" {

int uir_bang_launch(const UirBangLaunch* launch, char** result) {
  using namespace uir::bang;
  std::lock_guard<std::mutex> lock(uir::engine::LaunchLock());
  std::string answer;
  int code = uir::engine::WholeLaunch(
      &machine,
      {launch->times_only != 0, [&] { return TimesKeyOf(*launch); },
       [&](bool with_values) { Reset(*launch, with_values); }, [&] { return RunLaunch(*launch); }, ModelledJson},
      &answer);
  machine.cores.clear();
  machine.clusters.clear();
  machine.global.clear();
  if (result) *result = strdup(answer.c_str());
  return code;
}

void uir_bang_enqueue(const char* name, void* kernel, const uint32_t* dim, int type, void*, const uint64_t* args,
                      size_t count, int line) {
  using namespace uir::bang;
  machine.launched = true;
  if (machine.aborted) return;
  auto report = [&](const std::string& what) {
    machine.core = nullptr;
    Report(FindingAt("launch", std::string(name) + ": " + what, kBangMemories, kBangPipes, line));
  };
  if (type != kBlock && type != kUnion1)
    return report("type " + std::to_string(type) + ": the model runs Block and Union1");
  std::string error = TakeShape(dim[0], dim[1], dim[2], type == kBlock ? 1 : machine.device.cores_per_cluster);
  if (!error.empty()) return report(error);
  machine.kernel = kernel;
  machine.args.assign(uir::engine::Arguments::kMost, 0);
  std::copy(args, args + count, machine.args.begin());
  machine.global.clear();  // kernels of a queue follow each other
  RunCores();
}

}  // extern "C"
