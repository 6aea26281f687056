// SPDX-License-Identifier: Apache-2.0
// What a device module knows of its kernels: tensors, workspace, launches.
#pragma once

#include <tvm/ffi/string.h>

#include <cstdint>
#include <string>
#include <vector>

namespace uir::runtime {

namespace ffi = tvm::ffi;

/*! \brief A tensor that the caller passes. */
struct ParameterSpec {
  std::string name;
  int64_t bytes = 0;
  /*! \brief "in", "out" or "inout". */
  std::string role;
};

/*! \brief Device memory that lives for one call. */
struct WorkspaceSpec {
  std::string name;
  int64_t bytes = 0;
};

/*! \brief One kernel of the source text. */
struct LaunchSpec {
  std::string name;
  int64_t grid = 1;
  /*! \brief Threads of a block. */
  int64_t block = 1;
  int64_t shared_bytes = 0;
  bool cooperative = false;
  /*! \brief Which cores run it, where a device has several kinds ("aiv", "aic", "mix"); else empty. */
  std::string core;
  /*! \brief Positions in parameters, then workspaces, in the order of the kernel's arguments. */
  std::vector<int> arguments;
};

/*! \brief A function of the module: its launches run one after the other. */
struct KernelSpec {
  /*! \brief The function's name. */
  std::string entry;
  /*! \brief Kind of the hardware: "cuda", "ascend", "bang". */
  std::string kind;
  /*! \brief What the source is printed for: "sm_90a". */
  std::string arch;
  /*! \brief Bytes of which the address of a tensor is a multiple: the widest access of what is printed. */
  int64_t alignment = 32;
  /*! \brief What a host model is told of the hardware, as JSON. */
  std::string device;
  /*! \brief Architectures whose binaries a saved module holds. */
  std::vector<std::string> saved;
  std::vector<ParameterSpec> params;
  std::vector<WorkspaceSpec> workspace;
  std::vector<LaunchSpec> launches;
};

//! \brief The kernels of a module's metadata.
//! \param json {"kernels": [{"entry", "kind", "arch", "alignment", "device": {}, "saved": [arch], "params": [{"name",
//! "bytes", "role"}], "workspace": [{"name", "bytes"}], "launches": [{"name", "grid", "block", "shared_bytes",
//! "cooperative", "core", "params": [name]}]}]}; without "kind" it is cuda
//! \throws ValueError Text of another form.
std::vector<KernelSpec> ParseKernelSpecs(const ffi::String& json);

}  // namespace uir::runtime
