// SPDX-License-Identifier: Apache-2.0
/*!
 * \file launch.cc
 * \brief Run one launch: load the library, bring arguments into the engine's memory, run, report.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

#include "machine.h"
#include "simt.h"

namespace uir {
namespace simt {

using engine::Finding;
using engine::JsonObject;
using engine::Memory;

namespace {

/*! \brief A loaded library: kept for the life of the process, as kernels are launched again and again. */
struct Module {
  void* handle{nullptr};
  uintptr_t begin{0};
  uintptr_t end{0};
};

/*! \brief Addresses that a library occupies. */
void FindExtent(Module* module) {
  struct link_map* map = nullptr;
  if (dlinfo(module->handle, RTLD_DI_LINKMAP, &map) != 0 || !map) return;
  module->begin = map->l_addr;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto* found = static_cast<Module*>(data);
        if (info->dlpi_addr != found->begin) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& header = info->dlpi_phdr[i];
          if (header.p_type == PT_LOAD) {
            found->end = std::max<uintptr_t>(found->end, info->dlpi_addr + header.p_vaddr + header.p_memsz);
          }
        }
        return 1;
      },
      module);
}

const Module* Load(const std::string& path, std::string* error) {
  // By file, not by name: a name may be given again to another file.
  static auto* modules = new std::map<std::pair<dev_t, ino_t>, Module>();
  struct stat file;
  if (stat(path.c_str(), &file) != 0) {
    *error = path + ": no such file";
    return nullptr;
  }
  auto known = modules->find({file.st_dev, file.st_ino});
  if (known != modules->end()) return &known->second;
  Module module;
  module.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module.handle) {
    *error = dlerror();
    return nullptr;
  }
  FindExtent(&module);
  return &modules->emplace(std::make_pair(file.st_dev, file.st_ino), module).first->second;
}

/*! \brief Arguments that lie elsewhere are copied into the engine's memory for the launch. */
class Arguments {
 public:
  bool Place(const UirSimtLaunch& launch, std::string* error) {
    // All kernels are called with as many integers as the widest call has.
    machine.args.assign(64, 0);
    machine.parameters.clear();
    bool all_sized = true;
    for (int i = 0; i < launch.num_args; ++i) {
      const UirSimtArg& arg = launch.args[i];
      void* value = arg.value;
      if (arg.bytes > 0 && !Memory::Global().InRange(value)) {
        std::string label = arg.name ? arg.name : "parameter " + std::to_string(i);
        void* copy = Memory::Global().Alloc(static_cast<size_t>(arg.bytes), 256, label);
        if (!copy) {
          *error = "no memory for a copy of " + label;
          return false;
        }
        Memory::Global().Copy(copy, value, static_cast<size_t>(arg.bytes));
        copies_.push_back({copy, value, static_cast<size_t>(arg.bytes)});
        value = copy;
      } else if (arg.bytes >= 0 && arg.name) {
        engine::Allocation* allocation = Memory::Global().Find(value);
        if (allocation && allocation->label.empty()) allocation->label = arg.name;
      }
      machine.args[static_cast<size_t>(i)] = reinterpret_cast<uint64_t>(value);
      if (arg.bytes > 0) {
        uintptr_t begin = reinterpret_cast<uintptr_t>(value);
        std::string name = arg.name ? arg.name : "parameter " + std::to_string(i);
        machine.parameters.push_back({begin, begin + static_cast<uintptr_t>(arg.bytes), name});
      }
      all_sized = all_sized && arg.bytes != 0;
    }
    // Where one parameter is known by its address alone, its allocation bounds it.
    if (!all_sized) machine.parameters.clear();
    return true;
  }

  void Return() {
    for (const Copy& copy : copies_) {
      // The memory of a parameter that the kernel only reads may be read-only.
      if (std::memcmp(copy.original, copy.address, copy.bytes) != 0) {
        std::memcpy(copy.original, copy.address, copy.bytes);
      }
      Memory::Global().Release(copy.address);
    }
  }

 private:
  struct Copy {
    void* address;
    void* original;
    size_t bytes;
  };
  std::vector<Copy> copies_;
};

std::string CheckShape(const UirSimtLaunch& launch) {
  if (launch.grid < 1 || static_cast<uint32_t>(launch.grid) >= engine::RaceShadow::kMaxBlocks) {
    return "a grid of " + std::to_string(launch.grid) + " blocks: the model runs 1 to " +
           std::to_string(engine::RaceShadow::kMaxBlocks - 1);
  }
  if (launch.block < 1 || static_cast<uint32_t>(launch.block) > kMaxThreads) {
    return "a block of " + std::to_string(launch.block) + " threads: devices run 1 to 1024";
  }
  if (launch.shared_bytes < 0 || static_cast<size_t>(launch.shared_bytes) > kPoolBytes) {
    return std::to_string(launch.shared_bytes) + " bytes of shared memory: the model has " + std::to_string(kPoolBytes);
  }
  if (launch.num_args > 64) return std::to_string(launch.num_args) + " parameters: the model passes at most 64";
  return "";
}

std::string FindingJson(const Finding& finding) {
  Line line = finding.site ? LineOf(finding.site) : Line();
  Line caller = finding.caller ? LineOf(finding.caller) : line;
  Line other = finding.other_site ? LineOf(finding.other_site) : Line();
  return JsonObject()
      .Text("kind", finding.kind)
      .Text("what", finding.what)
      .Text("kernel", machine.kernel_name)
      .Number("line", caller.kernel)
      .Number("inner_line", line.inner)
      .Text("space", finding.space)
      .Number("block", finding.block)
      .Number("thread", finding.thread)
      .Number("other_line", other.kernel)
      .Number("other_block", finding.other_block)
      .Number("other_thread", finding.other_thread)
      .Number("count", finding.count)
      .Done();
}

std::string ResultJson(const std::string& error, double seconds) {
  std::vector<std::string> findings;
  for (const Finding& finding : machine.findings->list()) findings.push_back(FindingJson(finding));
  JsonObject counters;
  for (size_t i = 0; i < kCounterCount; ++i) counters.Number(CounterName(i), machine.counters.of[i]);
  return JsonObject()
      .Bool("ok", error.empty() && findings.empty())
      .Text("error", error)
      .Text("kernel", machine.kernel_name)
      .Real("seconds", seconds)
      .Raw("findings", engine::JsonList(findings))
      .Raw("counters", counters.Done())
      .Done();
}

/*! \brief Everything up to the first lane; what went wrong, or empty. */
std::string Prepare(const UirSimtLaunch& launch, Arguments* arguments) {
  machine.kernel_name = launch.kernel ? launch.kernel : "";
  std::string error = CheckShape(launch);
  if (!error.empty()) return error;
  const Module* module = Load(launch.library, &error);
  if (!module) return error;
  machine.kernel = dlsym(module->handle, launch.kernel);
  if (!machine.kernel) return "no kernel '" + machine.kernel_name + "' in " + launch.library;
  machine.module_begin = module->begin;
  machine.module_end = module->end;
  machine.trace.Reset(module->end - module->begin);
  SetLineSource(launch.library, module->begin);
  machine.grid = static_cast<uint32_t>(launch.grid);
  machine.threads = static_cast<uint32_t>(launch.block);
  machine.shared_bytes = static_cast<size_t>(launch.shared_bytes);
  machine.cooperative = launch.cooperative != 0;
  machine.shared_shift = engine::RaceShadow::kWidestShift;
  machine.has_deadline = launch.max_seconds > 0;
  if (machine.has_deadline) {
    machine.deadline =
        std::chrono::steady_clock::now() + std::chrono::microseconds(static_cast<int64_t>(launch.max_seconds * 1e6));
  }
  if (!machine.stacks.Reserve(machine.cooperative ? size_t{machine.grid} * machine.threads : kMaxThreads)) {
    return "no memory for the stacks of the threads";
  }
  if (!arguments->Place(launch, &error)) return error;
  return "";
}

}  // namespace
}  // namespace simt
}  // namespace uir

extern "C" int uir_simt_launch(const UirSimtLaunch* launch, char** result) {
  using namespace uir::simt;
  static std::mutex running;
  std::lock_guard<std::mutex> lock(running);
  machine.findings.reset(
      new uir::engine::Findings(launch->max_findings > 0 ? static_cast<size_t>(launch->max_findings) : 16));
  machine.counters = Counters();
  machine.aborted = false;
  machine.pending_write = nullptr;
  auto begin = std::chrono::steady_clock::now();
  Arguments arguments;
  std::string error = Prepare(*launch, &arguments);
  if (error.empty()) RunGrid();
  arguments.Return();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::string json = ResultJson(error, seconds);
  bool found = !machine.findings->empty();
  if (result) *result = strdup(json.c_str());
  return !error.empty() ? 2 : found ? 1 : 0;
}
