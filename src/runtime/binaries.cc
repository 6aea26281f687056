// SPDX-License-Identifier: Apache-2.0
#include "runtime/binaries.h"

#include <stdlib.h>
#include <tvm/ffi/function.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "runtime/error.h"

namespace uir::runtime {

namespace {

constexpr const char* kCompiler = "uir.device.compile";

/*! \brief A new folder for temporary files. */
std::string MakeFolder() {
  const char* base = std::getenv("TMPDIR");
  std::string name = std::string(base && *base ? base : "/tmp") + "/uir-kernel-XXXXXX";
  if (!mkdtemp(name.data())) {
    DeviceError(
        {"There is no place for a kernel's code.", name, "a folder that can be written", "", "set TMPDIR to one"});
  }
  return name;
}

}  // namespace

Binaries::~Binaries() {
  for (const auto& [arch, file] : files_) std::remove(file.c_str());
  if (!folder_.empty()) rmdir(folder_.c_str());
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

std::optional<ffi::Bytes> Binaries::Find(const std::function<bool(const std::string& arch)>& takes) const {
  std::lock_guard<std::mutex> guard(lock_);
  for (const auto& [arch, image] : all_) {
    if (takes(std::string(arch))) return image;
  }
  return std::nullopt;
}

ffi::Bytes Binaries::Of(const std::string& arch) {
  std::lock_guard<std::mutex> guard(lock_);
  return Get(arch);
}

const std::string& Binaries::FileOf(const std::string& arch) {
  std::lock_guard<std::mutex> guard(lock_);
  auto found = files_.find(arch);
  if (found != files_.end()) return found->second;
  ffi::Bytes image = Get(arch);
  if (folder_.empty()) folder_ = MakeFolder();
  std::string path = folder_ + "/" + arch + ".so";
  std::ofstream file(path, std::ios::binary);
  file.write(image.data(), static_cast<std::streamsize>(image.size()));
  if (!file.flush()) {
    DeviceError({"A kernel's code cannot be written.", path, std::to_string(image.size()) + " bytes", "",
                 "free space there, or set TMPDIR to another folder"});
  }
  return files_.emplace(arch, path).first->second;
}

void Binaries::Unload(const std::string& arch, void (*unload)(const char* path)) const {
  std::lock_guard<std::mutex> guard(lock_);
  auto found = files_.find(arch);
  if (found != files_.end()) unload(found->second.c_str());
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
