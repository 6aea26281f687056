// SPDX-License-Identifier: Apache-2.0
// A vendor's shared library: found and loaded when it is first used, its functions bound by a table.
//
// What is declared of a library is declared by us rather than included, so that everything builds and loads where the
// vendor's toolkit is not installed.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace uir {

/*! \brief What a library is called, where it is, and what a user without it can do. */
struct LibraryFacts {
  /*! \brief In messages: "cuBLASLt". */
  const char* title;
  /*! \brief Files in the order in which they are tried. */
  std::vector<std::string> names;
  /*! \brief Where no file can be loaded. */
  std::string install;
  /*! \brief Where the one that was loaded lacks a function. */
  std::string upgrade;
  /*! \brief Whether libraries that this one loads look up its symbols. */
  bool global = false;
};

/*! \brief A function of a library and the pointer that it goes to. */
struct LibrarySymbol {
  template <typename Function>
  LibrarySymbol(const char* name, Function** slot, bool optional = false)
      : name(name), slot(reinterpret_cast<void**>(slot)), optional(optional) {}

  const char* name;
  void** slot;
  /*! \brief Some releases are without it: its pointer is null then. */
  bool optional;
};

/*! \brief Throw a LibraryError: what, need, remedy. */
[[noreturn]] void ThrowLibraryError(const std::string& what, const std::string& need, const std::string& remedy);

/*! \brief One shared library. It is never closed: handles and plans made with it may outlive any of us. */
class VendorLibrary {
 public:
  explicit VendorLibrary(LibraryFacts facts) : facts_(std::move(facts)) {}

  //! \brief Where to look before the names that the dynamic linker knows (a package that pip installed lies in no
  //! folder of the linker's). What was loaded before stays loaded, and is no longer used.
  void SetPath(const std::string& path);
  /*! \brief The file that was loaded; empty, with the reason in `error`, where there is none. */
  std::string Path(std::string* error);
  /*! \brief How often another file was named: what was bound before belongs to an older one. */
  int generation();

  /*! \brief Fills in the pointers; what is missing, or empty. `remedy`, if given, receives what to do about it. */
  std::string Bind(const std::vector<LibrarySymbol>& symbols, std::string* remedy = nullptr);
  /*! \brief The same. \throws LibraryError The library or a function is missing. */
  void Require(const std::vector<LibrarySymbol>& symbols);

  /*! \brief Throw LibraryError: a call failed. `problem` may be empty. */
  [[noreturn]] void ThrowFailed(const char* call, const std::string& reason, const std::string& problem = "") const;

 private:
  void Load();

  LibraryFacts facts_;
  std::mutex mutex_;
  std::string path_, loaded_, error_;
  void* handle_ = nullptr;
  bool tried_ = false;
  int generation_ = 0;
};

//! \brief A structure of a library's functions, bound anew for each file that is named: plans refer to the one they
//! began with.
template <typename Api>
class BoundApi {
 public:
  //! \param symbols The table of its functions.
  //! \param start What makes the library ready once it is bound; answers why it is not, or nothing.
  BoundApi(VendorLibrary* library, std::vector<LibrarySymbol> (*symbols)(Api*),
           std::string (*start)(const Api&) = nullptr)
      : library_(library), symbols_(symbols), start_(start) {}

  /*! \brief The functions; nullptr where there are none, and `why`, if given, says so. */
  const Api* Load(std::string* why = nullptr) {
    Bound& bound = Here();
    if (why) *why = bound.error;
    return bound.error.empty() ? &bound.api : nullptr;
  }
  /*! \brief The functions. \throws LibraryError There are none. */
  const Api& Get() {
    Bound& bound = Here();
    if (!bound.error.empty()) library_->Require(symbols_(&bound.api));
    return bound.api;
  }

 private:
  struct Bound {
    Api api;
    std::string error;
  };
  Bound& Here() {
    const int generation = library_->generation();
    std::lock_guard<std::mutex> lock(mutex_);
    auto [at, made] = bound_.try_emplace(generation);
    if (!made) return at->second;
    Bound& bound = at->second;
    bound.error = library_->Bind(symbols_(&bound.api));
    if (bound.error.empty() && start_) bound.error = start_(bound.api);
    return bound;
  }

  VendorLibrary* library_;
  std::vector<LibrarySymbol> (*symbols_)(Api*);
  std::string (*start_)(const Api&);
  std::mutex mutex_;
  std::map<int, Bound> bound_;
};

}  // namespace uir
