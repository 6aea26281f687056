// SPDX-License-Identifier: Apache-2.0
/*!
 * \file binaries.h
 * \brief What a kernel's source was compiled to, or is when it is first needed.
 */
#ifndef UIR_RUNTIME_BINARIES_H_
#define UIR_RUNTIME_BINARIES_H_

#include <tvm/ffi/container/map.h>
#include <tvm/ffi/string.h>

#include <mutex>
#include <string>

#include "runtime/kernel_spec.h"

namespace uir::runtime {

/*! \brief Architecture ("sm_90a", or `kModelArch`) -> cubin or shared object. */
using BinaryMap = ffi::Map<ffi::String, ffi::Bytes>;

/*! \brief The architecture of shared objects for the host model. */
constexpr const char* kModelArch = "simt";

/*!
 * \brief The binaries of one source.
 *
 * What is missing is asked of the global function `uir.device.compile(source, arch) -> Bytes`, which the Python
 * package defines; with TVM's runtime alone there may be none, and then only what was saved can run.
 */
class Binaries {
 public:
  Binaries(const KernelSpec& spec, std::string source, BinaryMap saved)
      : spec_(spec), source_(std::move(source)), all_(std::move(saved)) {}
  ~Binaries();

  const std::string& source() const { return source_; }

  /*! \brief The cubin that runs on a GPU of this architecture.
   *  \throws DeviceError The source is for another one, or there is nothing to compile it with. */
  ffi::Bytes ForGpu(const std::string& device_arch);

  /*! \brief Path of the shared object for the host model.
   *  \throws DeviceError There is nothing to compile it with. */
  const std::string& ForModel();

  /*! \brief Compile what the kernel's places need and what is missing. */
  void Complete();

  BinaryMap All() const;

 private:
  ffi::Bytes Get(const std::string& arch);

  const KernelSpec& spec_;
  std::string source_;
  mutable std::mutex lock_;
  BinaryMap all_;
  /*! \brief Where the shared object lies, in a folder of its own; empty before it is needed. */
  std::string folder_, library_;
};

}  // namespace uir::runtime

#endif  // UIR_RUNTIME_BINARIES_H_
