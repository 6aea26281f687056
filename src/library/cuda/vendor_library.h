// SPDX-License-Identifier: Apache-2.0
// A vendor's shared library, found and loaded when it is first used.
#ifndef UIR_LIBRARY_CUDA_VENDOR_LIBRARY_H_
#define UIR_LIBRARY_CUDA_VENDOR_LIBRARY_H_

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace uir::library::cuda {

/*!
 * One shared library. `SetPath` names a file to try before the names that the dynamic linker knows (a package that pip
 * installed lies in no folder of the linker's).
 */
class VendorLibrary {
 public:
  /*! `title` for messages; `names` in the order in which they are tried; `package` is what pip calls it. */
  VendorLibrary(const char* title, std::vector<std::string> names, const char* package)
      : title_(title), names_(std::move(names)), package_(package) {}

  /*! Where to look first. What was loaded before stays loaded, and is no longer used. */
  void SetPath(const std::string& path);

  /*! Address of a function; throws LibraryError where the library or the function is missing. */
  void* Symbol(const char* name);

  /*! The file that was loaded; empty, with the reason in `error`, where there is none. Never throws. */
  std::string Path(std::string* error);

  /*! How often another file was named: what was bound before belongs to an older one. */
  int generation();

  /*! Throw LibraryError: a call failed. `problem` may be empty. */
  [[noreturn]] void ThrowFailed(const char* call, const std::string& reason, const std::string& problem) const;

 private:
  void Load();

  const char* title_;
  std::vector<std::string> names_;
  const char* package_;
  std::mutex mutex_;
  std::string path_, loaded_, error_;
  void* handle_ = nullptr;
  bool tried_ = false;
  int generation_ = 0;
};

template <typename Signature>
using FunctionPointer = Signature*;

/*! A structure of a library's functions, bound anew for each file that is named: plans refer to the one they began
 * with. */
template <typename Api>
class BoundApi {
 public:
  /*! `bind` fills in the functions, and throws LibraryError where one is missing. */
  BoundApi(VendorLibrary* library, void (*bind)(VendorLibrary*, Api*)) : library_(library), bind_(bind) {}

  const Api& Get() {
    const int generation = library_->generation();
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = bound_.find(generation);
    if (found != bound_.end()) return found->second;
    Api api;
    bind_(library_, &api);
    return bound_.emplace(generation, api).first->second;
  }

 private:
  VendorLibrary* library_;
  void (*bind_)(VendorLibrary*, Api*);
  std::mutex mutex_;
  std::map<int, Api> bound_;
};

/*! Throw a LibraryError: what, need, remedy. */
[[noreturn]] void ThrowLibraryError(const std::string& what, const std::string& need, const std::string& remedy);

}  // namespace uir::library::cuda

#endif  // UIR_LIBRARY_CUDA_VENDOR_LIBRARY_H_
