// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel_spec.h"

#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/extra/serialization.h>

#include <algorithm>

#include "base/attrs.h"
#include "igraph/checked.h"
#include "runtime/error.h"

namespace uir::runtime {

namespace json = ffi::json;

namespace {

template <typename T>
T Field(const json::Object& object, const char* name) {
  auto it = object.find(ffi::String(name));
  if (it == object.end()) TVM_FFI_THROW(ValueError) << "Metadata of kernels lack the field " << name << ".";
  return (*it).second.cast<T>();
}

std::string Text(const json::Object& object, const char* name) { return std::string(Field<ffi::String>(object, name)); }

Affine ParseAffine(const ffi::Any& graph) { return ffi::FromJSONGraph(graph).cast<Affine>(); }

MemorySpec ParseMemory(const json::Object& row) {
  MemorySpec memory;
  memory.bytes = Field<int64_t>(row, "bytes");
  if (row.find(ffi::String("dims")) == row.end()) return memory;
  for (const ffi::Any& dim : Field<json::Array>(row, "dims")) memory.dims.push_back(ParseAffine(dim));
  memory.item_bytes = Field<int64_t>(row, "item_bytes");
  return memory;
}

Size ParseSize(const json::Object& row) {
  auto size = ffi::make_object<SizeNode>();
  size->name = Field<ffi::String>(row, "name");
  size->low = Field<int64_t>(row, "low");
  size->high = Field<int64_t>(row, "high");
  size->multiple_of = Field<int64_t>(row, "multiple_of");
  return Size(size);
}

/*! \brief The position of a name among parameters, then workspaces. */
int PositionOf(const KernelSpec& kernel, const std::string& name) {
  int position = 0;
  for (const ParameterSpec& p : kernel.params) {
    if (p.name == name) return position;
    ++position;
  }
  for (const WorkspaceSpec& w : kernel.workspace) {
    if (w.name == name) return position;
    ++position;
  }
  TVM_FFI_THROW(ValueError) << "Kernel " << kernel.entry << " takes " << name
                            << ", which is neither a parameter nor a workspace.";
}

LaunchSpec ParseLaunch(const KernelSpec& kernel, const json::Object& row) {
  LaunchSpec launch;
  launch.name = Text(row, "name");
  launch.grid = Field<int64_t>(row, "grid");
  launch.block = Field<int64_t>(row, "block");
  launch.shared_bytes = Field<int64_t>(row, "shared_bytes");
  launch.cooperative = Field<bool>(row, "cooperative");
  launch.core = AttrOr<std::string>(row, "core", "");
  if (auto groups = row.find(ffi::String("groups")); groups != row.end()) {
    launch.groups = ParseAffine((*groups).second);
  }
  for (const ffi::Any& name : Field<json::Array>(row, "params")) {
    launch.arguments.push_back(PositionOf(kernel, std::string(name.cast<ffi::String>())));
  }
  return launch;
}

KernelSpec ParseKernel(const json::Object& row) {
  KernelSpec kernel;
  kernel.entry = Text(row, "entry");
  kernel.kind = AttrOr<std::string>(row, "kind", "cuda");
  kernel.arch = Text(row, "arch");
  // modules saved before this field was there have none
  auto alignment = row.find(ffi::String("alignment"));
  kernel.alignment = alignment != row.end() ? (*alignment).second.cast<int64_t>() : kernel.kind == "cuda" ? 16 : 32;
  auto device = row.find(ffi::String("device"));
  kernel.device = device == row.end() ? "{}" : std::string(json::Stringify((*device).second));
  for (const ffi::Any& arch : Field<json::Array>(row, "saved")) {
    kernel.saved.push_back(std::string(arch.cast<ffi::String>()));
  }
  for (const ffi::Any& item : Field<json::Array>(row, "params")) {
    json::Object p = item.cast<json::Object>();
    // modules saved before "floating" was there have none
    kernel.params.push_back({Text(p, "name"), ParseMemory(p), Text(p, "role"), AttrOr(p, "floating", true)});
  }
  for (const ffi::Any& item : Field<json::Array>(row, "workspace")) {
    json::Object w = item.cast<json::Object>();
    kernel.workspace.push_back({Text(w, "name"), ParseMemory(w)});
  }
  // modules saved before this field was there have none
  if (row.find(ffi::String("sizes")) != row.end()) {
    for (const ffi::Any& item : Field<json::Array>(row, "sizes")) {
      kernel.sizes.push_back(ParseSize(item.cast<json::Object>()));
    }
  }
  for (const ffi::Any& item : Field<json::Array>(row, "launches")) {
    kernel.launches.push_back(ParseLaunch(kernel, item.cast<json::Object>()));
  }
  return kernel;
}

}  // namespace

int64_t MemorySpec::BytesAt(const SizeValues& sizes) const {
  if (dims.empty()) return bytes;
  int64_t count = item_bytes;
  for (const Affine& dim : dims) count = CheckedMul(count, dim.Evaluate(sizes));
  return count;
}

int64_t BlocksOf(const LaunchSpec& launch, const SizeValues& sizes) {
  constexpr int64_t kMostBlocks = INT32_MAX;
  const int64_t blocks = launch.groups ? std::min(launch.grid, launch.groups.value().Evaluate(sizes)) : launch.grid;
  if (blocks > kMostBlocks) {
    DeviceError({"A kernel has too many groups at its sizes.", launch.name, std::to_string(blocks) + " blocks",
                 std::to_string(kMostBlocks) + " in a launch", "call it with smaller sizes"});
  }
  return std::max<int64_t>(blocks, 0);
}

SizeValues CheckedSizes(const KernelSpec& kernel, const std::vector<int64_t>& values) {
  SizeValues sizes;
  for (size_t k = 0; k < values.size(); ++k) {
    const Size& size = kernel.sizes[k];
    const int64_t value = values[k];
    if (value < size->low || value > size->high || value % size->multiple_of != 0) {
      const std::string multiple =
          size->multiple_of > 1 ? " and a multiple of " + std::to_string(size->multiple_of) : "";
      SizeError({"The size " + std::string(size->name) + " is " + std::to_string(value) + ".", kernel.entry,
                 "a value from " + std::to_string(size->low) + " to " + std::to_string(size->high) + multiple, "",
                 "compile for a wider range of sizes"});
    }
    sizes.Set(size->name, value);
  }
  return sizes;
}

std::vector<KernelSpec> ParseKernelSpecs(const ffi::String& text) {
  ffi::String fault;
  ffi::Any value = json::Parse(text, &fault);
  if (!fault.empty()) TVM_FFI_THROW(ValueError) << "Metadata of kernels are no JSON: " << fault;
  std::vector<KernelSpec> kernels;
  for (const ffi::Any& row : Field<json::Array>(value.cast<json::Object>(), "kernels")) {
    kernels.push_back(ParseKernel(row.cast<json::Object>()));
  }
  return kernels;
}

}  // namespace uir::runtime
