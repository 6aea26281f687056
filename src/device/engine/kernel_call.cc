// SPDX-License-Identifier: Apache-2.0
#include "device/engine/kernel_call.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "device/engine/kept_times.h"
#include "device/engine/memory.h"

namespace uir::engine {

namespace {

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

/*! \brief By file, not by name: a name may be given again to another file. */
using Modules = std::map<std::pair<dev_t, ino_t>, Module>;

Modules& Loaded() {
  static auto* modules = new Modules();
  return *modules;
}

}  // namespace

const Module* LoadModule(const std::string& path, std::string* error) {
  struct stat file;
  if (stat(path.c_str(), &file) != 0) {
    *error = path + ": no such file";
    return nullptr;
  }
  auto known = Loaded().find({file.st_dev, file.st_ino});
  if (known != Loaded().end()) return &known->second;
  Module module;
  module.handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module.handle) {
    *error = dlerror();
    return nullptr;
  }
  FindExtent(&module);
  return &Loaded().emplace(std::make_pair(file.st_dev, file.st_ino), module).first->second;
}

void UnloadModule(const std::string& path) {
  struct stat file;
  if (stat(path.c_str(), &file) != 0) return;
  auto known = Loaded().find({file.st_dev, file.st_ino});
  if (known == Loaded().end()) return;
  ForgetTimes();
  dlclose(known->second.handle);
  Loaded().erase(known);
}

bool Arguments::Add(const Argument& argument, std::string* error) {
  std::string name = argument.name ? argument.name : "parameter " + std::to_string(count_);
  if (count_ == kMost) {
    *error = "more than " + std::to_string(kMost) + " parameters: the model passes no more";
    return false;
  }
  void* value = argument.value;
  if (argument.bytes > 0 && !Memory::Global().InRange(value)) {
    size_t bytes = static_cast<size_t>(argument.bytes);
    void* copy = Memory::Global().Alloc(bytes, 256, name);
    if (!copy) {
      *error = "no memory for a copy of " + name;
      return false;
    }
    Memory::Global().Copy(copy, value, bytes);
    copies_.push_back({copy, value, bytes});
    value = copy;
  } else if (argument.bytes >= 0 && argument.name) {
    Allocation* allocation = Memory::Global().Find(value);
    if (allocation && allocation->label.empty()) allocation->label = argument.name;
  }
  values[count_++] = reinterpret_cast<uint64_t>(value);
  if (argument.bytes > 0) {
    uintptr_t begin = reinterpret_cast<uintptr_t>(value);
    ranges_.push_back({begin, begin + static_cast<uintptr_t>(argument.bytes), name});
  }
  all_sized_ = all_sized_ && argument.bytes != 0;
  return true;
}

void Arguments::Return() {
  for (const Copy& copy : copies_) {
    // The memory of a parameter that the kernel only reads may be read-only.
    if (std::memcmp(copy.original, copy.address, copy.bytes) != 0) {
      std::memcpy(copy.original, copy.address, copy.bytes);
    }
    Memory::Global().Release(copy.address);
  }
  copies_.clear();
}

void CallKernel(void* kernel, const uint64_t* a, size_t count) {
  using U = uint64_t;
  if (count <= 6) {
    reinterpret_cast<void (*)(U, U, U, U, U, U)>(kernel)(a[0], a[1], a[2], a[3], a[4], a[5]);
    return;
  }
  if (count <= 16) {
    using F = void (*)(U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U);
    reinterpret_cast<F>(kernel)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13],
                                a[14], a[15]);
    return;
  }
  struct Rest {
    U of[48];  // passed by value: on the stack, where further integers stand
  } rest;
  std::memcpy(rest.of, a + 16, sizeof(rest.of));
  using F = void (*)(U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, Rest);
  reinterpret_cast<F>(kernel)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13],
                              a[14], a[15], rest);
}

}  // namespace uir::engine
