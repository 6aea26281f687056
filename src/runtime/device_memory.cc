// SPDX-License-Identifier: Apache-2.0
#include "runtime/device_memory.h"

#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/ffi/string.h>

#include <map>
#include <mutex>
#include <utility>

#include "runtime/error.h"

namespace uir::runtime {

namespace ffi = tvm::ffi;

namespace {

/*! \brief Rows by place, devices before the model. */
using MemoryRows = std::map<std::pair<bool, std::string>, MemoryRow>;

MemoryRows& MemoriesByPlace() {
  static MemoryRows* rows = new MemoryRows();
  return *rows;
}

/*! \brief The choice, and what is to be chosen where nothing else is asked for. */
struct Choice {
  std::mutex lock;
  std::string preferred = "auto";
  DeviceMemory* memory = nullptr;
};

Choice& Global() {
  // never destroyed: tensors may be released after all static objects
  static Choice* choice = new Choice();
  return *choice;
}

DeviceMemory* Find(const std::string& place) {
  for (const auto& [key, row] : MemoriesByPlace()) {
    if (place != "auto" && place != row.place) continue;
    if (DeviceMemory* memory = row.find()) return memory;
  }
  DeviceError({"This machine has no device `" + place + "`.", "the memory of ext_dev", "", "",
               "run it where there is one, or on the host model: device=\"model\" or UIR_DEVICE=model"});
}

/*! \brief Settles the memory; the caller holds the lock. */
DeviceMemory& Settled(Choice& choice) {
  if (!choice.memory) choice.memory = Find(choice.preferred);
  return *choice.memory;
}

/*! \brief What to take where nobody chooses: "auto", or the name of a place. */
void Prefer(const ffi::String& place) {
  Choice& choice = Global();
  std::lock_guard<std::mutex> guard(choice.lock);
  choice.preferred = std::string(place);
}

/*! \brief Settles on a place; an error where the process has settled on another. */
void Choose(const ffi::String& name) {
  std::string place = std::string(name);
  Choice& choice = Global();
  std::lock_guard<std::mutex> guard(choice.lock);
  if (!choice.memory) choice.memory = Find(place);
  if (place != choice.memory->place()) {
    DeviceError({"The device ext_dev is another one in this process already.", "ext_dev", place,
                 std::string(choice.memory->place()) + ": " + choice.memory->name(),
                 "run them in processes of their own, or set UIR_DEVICE=" + place});
  }
}

/*! \brief The place that is settled on; empty where none is. */
ffi::String Chosen() {
  Choice& choice = Global();
  std::lock_guard<std::mutex> guard(choice.lock);
  return choice.memory ? choice.memory->place() : "";
}

}  // namespace

void RegisterMemory(const MemoryRow& row) {
  MemoriesByPlace().emplace(std::make_pair(row.place == "model", row.place), row);
}

DeviceMemory& ExtDevMemory() {
  Choice& choice = Global();
  std::lock_guard<std::mutex> guard(choice.lock);
  return Settled(choice);
}

std::string PlaceOf(DLDevice device) {
  switch (static_cast<int>(device.device_type)) {
    case kDLCUDA:
      return "gpu";
    case kDLExtDev:
      return ExtDevMemory().place();
    case kDLCPU:
      return "cpu";
    default:
      return "device type " + std::to_string(static_cast<int>(device.device_type));
  }
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef()
      .def("uir.runtime.ext_dev.prefer", &Prefer)
      .def("uir.runtime.ext_dev.choose", &Choose)
      .def("uir.runtime.ext_dev.chosen", &Chosen);
}

}  // namespace uir::runtime
