// SPDX-License-Identifier: Apache-2.0
#include "runtime/binaries.h"

#include <stdlib.h>
#include <tvm/ffi/function.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "runtime/cuda_launch.h"
#include "runtime/error.h"

namespace uir::runtime {

namespace {

constexpr const char* kCompiler = "uir.device.compile";

/*! \brief A new folder for temporary files. */
std::string MakeFolder() {
  const char* base = std::getenv("TMPDIR");
  std::string name = std::string(base && *base ? base : "/tmp") + "/uir-kernel-XXXXXX";
  if (!mkdtemp(name.data())) {
    DeviceError({"The host model has no place for a kernel's code.", name, "a folder that can be written", "",
                 "set TMPDIR to one"});
  }
  return name;
}

}  // namespace

Binaries::~Binaries() {
  if (folder_.empty()) return;
  std::remove(library_.c_str());
  rmdir(folder_.c_str());
}

ffi::Bytes Binaries::Get(const std::string& arch) {
  if (auto found = all_.Get(arch)) return *found;
  auto compiler = ffi::Function::GetGlobal(kCompiler);
  if (!compiler) {
    DeviceError({"A kernel was not compiled for where it is to run.", spec_.entry, arch,
                 "saved without it, and nothing here compiles", "compile and save the model for this device"});
  }
  ffi::Bytes made = (*compiler)(ffi::String(source_), ffi::String(arch)).cast<ffi::Bytes>();
  all_.Set(arch, made);
  return made;
}

ffi::Bytes Binaries::ForGpu(const std::string& device_arch) {
  std::lock_guard<std::mutex> guard(lock_);
  for (const auto& [arch, image] : all_) {
    if (cuda::Runs(std::string(arch), device_arch)) return image;
  }
  if (!cuda::Runs(spec_.arch, device_arch)) {
    DeviceError({"A kernel was compiled for another kind of GPU.", spec_.entry, spec_.arch,
                 "this GPU is " + device_arch, "compile the model for this GPU (see `uir targets`)"});
  }
  return Get(spec_.arch);
}

const std::string& Binaries::ForModel() {
  std::lock_guard<std::mutex> guard(lock_);
  if (library_.empty()) {
    ffi::Bytes image = Get(kModelArch);
    folder_ = MakeFolder();
    library_ = folder_ + "/kernel.so";
    std::ofstream file(library_, std::ios::binary);
    file.write(image.data(), static_cast<std::streamsize>(image.size()));
    if (!file.flush()) {
      DeviceError({"A kernel's code cannot be written.", library_, std::to_string(image.size()) + " bytes", "",
                   "free space there, or set TMPDIR to another folder"});
    }
  }
  return library_;
}

void Binaries::Complete() {
  std::lock_guard<std::mutex> guard(lock_);
  for (const std::string& arch : spec_.saved) Get(arch);
}

BinaryMap Binaries::All() const {
  std::lock_guard<std::mutex> guard(lock_);
  return all_;
}

}  // namespace uir::runtime
