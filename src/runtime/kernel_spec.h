// SPDX-License-Identifier: Apache-2.0
// What a device module knows of its kernels: tensors, workspace, sizes, launches; and what these are at a call.
#pragma once

#include <tvm/ffi/string.h>

#include <cstdint>
#include <string>
#include <vector>

#include "igraph/space.h"

namespace uir::runtime {

namespace ffi = tvm::ffi;

/*! \brief The sizes of a call by their names. */
using SizeValues = ffi::Map<ffi::String, int64_t>;

/*! \brief How much memory a tensor or a workspace is. */
struct MemorySpec {
  /*! \brief Where sizes decide it, the most that it may be. */
  int64_t bytes = 0;
  /*! \brief Where sizes decide it: its dimensions, expressions of sizes, and the bytes of an element; else empty. */
  std::vector<Affine> dims;
  int64_t item_bytes = 1;

  int64_t BytesAt(const SizeValues& sizes) const;
};

/*! \brief A tensor that the caller passes. */
struct ParameterSpec {
  std::string name;
  MemorySpec memory;
  /*! \brief "in", "out" or "inout". */
  std::string role;
  /*! \brief Whether its elements are numbers of floating point. */
  bool floating = true;
};

/*! \brief Device memory that lives for one call. */
struct WorkspaceSpec {
  std::string name;
  MemorySpec memory;
};

/*! \brief One kernel of the source text. */
struct LaunchSpec {
  std::string name;
  /*! \brief Blocks; where sizes decide their number, the most that are launched: a kernel that has more groups deals
   * them to its blocks. */
  int64_t grid = 1;
  /*! \brief The number of groups as an expression of sizes, where they decide it. */
  ffi::Optional<Affine> groups;
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
  /*! \brief Numbers that the caller passes after the tensors, and every kernel takes after its own. */
  std::vector<Size> sizes;
  std::vector<LaunchSpec> launches;
};

/*! \brief What one call of a function is given, and what follows of its sizes. */
struct CallArguments {
  /*! \brief Of parameters, then workspaces: addresses on the device, and bytes. */
  std::vector<void*> pointers;
  std::vector<int64_t> bytes;
  /*! \brief In the order of the function's sizes. */
  std::vector<int64_t> sizes;
  /*! \brief Of every launch, in order; one of no blocks is left out. */
  std::vector<int64_t> blocks;
};

//! \brief The blocks of a launch.
//! \throws DeviceError There are more than devices take.
int64_t BlocksOf(const LaunchSpec& launch, const SizeValues& sizes);

/*! \brief The values of sizes by their names.
 *  \throws SizeError One that the function is not made for. */
SizeValues CheckedSizes(const KernelSpec& kernel, const std::vector<int64_t>& values);

//! \brief The kernels of a module's metadata.
//! \param json {"kernels": [{"entry", "kind", "arch", "alignment", "device": {}, "saved": [arch], "params": [{"name",
//! "bytes", "role", "floating"}], "workspace": [{"name", "bytes"}], "sizes": [{"name", "low", "high", "multiple_of"}],
//! "launches":
//! [{"name", "grid", "block", "shared_bytes", "cooperative", "core", "params": [name]}]}]}; without "kind" it is cuda.
//! Where sizes decide them, parameters and workspaces have "dims" and "item_bytes" too, launches "groups"; their
//! expressions are JSON graphs of tvm-ffi
//! \throws ValueError Text of another form.
std::vector<KernelSpec> ParseKernelSpecs(const ffi::String& json);

}  // namespace uir::runtime
