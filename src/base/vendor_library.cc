// SPDX-License-Identifier: Apache-2.0
#include "base/vendor_library.h"

#include <dlfcn.h>
#include <link.h>
#include <tvm/ffi/error.h>

#include <climits>
#include <cstdlib>

namespace uir {

namespace {

/*! \brief The file behind a library, links followed: its name tells the version. */
std::string FileOf(void* handle, const std::string& name) {
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map) return name;
  char real[PATH_MAX];
  return realpath(map->l_name, real) ? real : map->l_name;
}

}  // namespace

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

// The caller holds the lock.
void VendorLibrary::Load() {
  if (tried_) return;
  tried_ = true;
  loaded_.clear();
  error_.clear();
  std::vector<std::string> names = facts_.names;
  if (!path_.empty()) names.insert(names.begin(), path_);
  for (const std::string& name : names) {
    if (name.empty()) continue;
    handle_ = dlopen(name.c_str(), RTLD_NOW | (facts_.global ? RTLD_GLOBAL : RTLD_LOCAL));
    if (handle_) {
      loaded_ = name;
      error_.clear();
      return;
    }
    const char* reason = dlerror();
    error_ += (error_.empty() ? "" : "; ") + (reason ? std::string(reason) : name);
  }
}

std::string VendorLibrary::Path(std::string* error) {
  std::lock_guard<std::mutex> lock(mutex_);
  Load();
  *error = error_;
  return loaded_;
}

std::string VendorLibrary::Bind(const std::vector<LibrarySymbol>& symbols, std::string* remedy) {
  std::lock_guard<std::mutex> lock(mutex_);
  Load();
  if (!handle_) {
    if (remedy) *remedy = facts_.install;
    return std::string(facts_.title) + " cannot be loaded: " + error_;
  }
  for (const LibrarySymbol& symbol : symbols) {
    *symbol.slot = dlsym(handle_, symbol.name);
    if (*symbol.slot || symbol.optional) continue;
    if (remedy) *remedy = facts_.upgrade;
    return std::string(facts_.title) + " at " + FileOf(handle_, loaded_) + " has no function " + symbol.name + ".";
  }
  return "";
}

void VendorLibrary::Require(const std::vector<LibrarySymbol>& symbols) {
  std::string remedy;
  const std::string missing = Bind(symbols, &remedy);
  if (!missing.empty()) ThrowLibraryError(missing, facts_.names.front() + " or another release of it", remedy);
}

void VendorLibrary::ThrowFailed(const char* call, const std::string& reason, const std::string& problem) const {
  ThrowLibraryError(std::string(facts_.title) + ": " + call + " failed: " + reason +
                        (problem.empty() ? "" : "\n  where:  " + problem),
                    "a problem that this release supports on this device",
                    "compute it in a kernel of its own, or another release: " + facts_.upgrade);
}

}  // namespace uir
