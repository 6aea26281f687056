// SPDX-License-Identifier: Apache-2.0
#include "library/cuda/vendor_library.h"

#include <dlfcn.h>
#include <tvm/ffi/error.h>

namespace uir::library::cuda {

void ThrowLibraryError(const std::string& what, const std::string& need, const std::string& remedy) {
  throw tvm::ffi::Error("LibraryError", what + "\n  need:   " + need + "\n  remedy: " + remedy, "");
}

void VendorLibrary::SetPath(const std::string& path) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (path == path_) return;
  path_ = path;
  tried_ = false;
  handle_ = nullptr;
  ++generation_;
}

int VendorLibrary::generation() {
  std::lock_guard<std::mutex> lock(mutex_);
  return generation_;
}

// The caller holds the lock. A library is never closed: handles and plans made with it may outlive any of us.
void VendorLibrary::Load() {
  if (tried_) return;
  tried_ = true;
  loaded_.clear();
  error_.clear();
  std::vector<std::string> names = names_;
  if (!path_.empty()) names.insert(names.begin(), path_);
  for (const std::string& name : names) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_) {
      loaded_ = name;
      error_.clear();
      return;
    }
    const char* reason = dlerror();
    if (!error_.empty()) error_ += "; ";
    error_ += reason ? reason : name;
  }
}

std::string VendorLibrary::Path(std::string* error) {
  std::lock_guard<std::mutex> lock(mutex_);
  Load();
  *error = error_;
  return loaded_;
}

void VendorLibrary::ThrowFailed(const char* call, const std::string& reason, const std::string& problem) const {
  ThrowLibraryError(
      std::string(title_) + ": " + call + " failed: " + reason + (problem.empty() ? "" : "\n  where:  " + problem),
      "a problem that this release supports on this GPU",
      std::string("compute it in a kernel of its own, or install another release of ") + package_);
}

void* VendorLibrary::Symbol(const char* name) {
  std::lock_guard<std::mutex> lock(mutex_);
  Load();
  if (!handle_) {
    ThrowLibraryError(std::string(title_) + " cannot be loaded: " + error_, names_.front() + " or its older release",
                      std::string("pip install ") + package_ + ", or put its folder into LD_LIBRARY_PATH");
  }
  void* symbol = dlsym(handle_, name);
  if (!symbol) {
    ThrowLibraryError(std::string(title_) + " at " + loaded_ + " has no function " + name + ".", names_.front(),
                      std::string("pip install --upgrade ") + package_);
  }
  return symbol;
}

}  // namespace uir::library::cuda
