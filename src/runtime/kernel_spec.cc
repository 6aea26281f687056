// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernel_spec.h"

#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/json.h>

#include "base/attrs.h"

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
    kernel.params.push_back({Text(p, "name"), Field<int64_t>(p, "bytes"), Text(p, "role")});
  }
  for (const ffi::Any& item : Field<json::Array>(row, "workspace")) {
    json::Object w = item.cast<json::Object>();
    kernel.workspace.push_back({Text(w, "name"), Field<int64_t>(w, "bytes")});
  }
  for (const ffi::Any& item : Field<json::Array>(row, "launches")) {
    kernel.launches.push_back(ParseLaunch(kernel, item.cast<json::Object>()));
  }
  return kernel;
}

}  // namespace

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
