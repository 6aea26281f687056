// SPDX-License-Identifier: Apache-2.0
// What a kernel's source was compiled to, or is when it is first needed.
#pragma once

#include <tvm/ffi/container/map.h>
#include <tvm/ffi/string.h>

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/kernel_spec.h"

namespace uir::runtime {

/*! \brief Architecture ("sm_90a", or the name of a host model) -> cubin or shared object. */
using BinaryMap = ffi::Map<ffi::String, ffi::Bytes>;

//! \brief The binaries of one source.
//!
//! What is missing is asked of the global function `uir.device.compile(source, arch) -> Bytes`, which the Python
//! package defines; with TVM's runtime alone there may be none, and then only what was saved can run.
class Binaries {
 public:
  Binaries(const KernelSpec& spec, std::string source, BinaryMap saved)
      : spec_(spec), source_(std::move(source)), all_(std::move(saved)) {}
  ~Binaries();

  const std::string& source() const { return source_; }

  /*! \brief The first binary of an architecture that the predicate takes. */
  std::optional<ffi::Bytes> Find(const std::function<bool(const std::string& arch)>& takes) const;

  /*! \brief The binary of an architecture, compiled where it is missing.
   *  \throws DeviceError There is nothing to compile it with. */
  ffi::Bytes Of(const std::string& arch);

  /*! \brief Path of a shared object with the binary of an architecture.
   *  \throws DeviceError There is nothing to compile it with, or no place to write it to. */
  const std::string& FileOf(const std::string& arch);

  /*! \brief Calls what unloads the shared object of an architecture, where `FileOf` made one; as it goes. */
  void Unload(const std::string& arch, void (*unload)(const char* path)) const;

  /*! \brief Compile what the kernel's places need and what is missing. */
  void Complete();

  BinaryMap All() const;

 private:
  /*! \brief `Of`; the caller holds the lock. */
  ffi::Bytes Get(const std::string& arch);

  const KernelSpec& spec_;
  std::string source_;
  mutable std::mutex lock_;
  BinaryMap all_;
  /*! \brief Where shared objects lie, in a folder of their own (empty before one is needed), by architecture. */
  std::string folder_;
  std::map<std::string, std::string> files_;
};

}  // namespace uir::runtime
