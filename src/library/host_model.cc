// SPDX-License-Identifier: Apache-2.0
#include "library/host_model.h"

#include <tvm/runtime/device_api.h>

#include <algorithm>
#include <string>
#include <vector>

#include "device/engine/engine_api.h"
#include "library/arguments.h"
#include "runtime/modelled.h"

namespace uir::library {

namespace {

/*! What is asked for modelled times needs to know of a call: `function` ends in the operator's name, `dtype` is that of
 * its first operand. */
void Note(const std::string& function, const ffi::String& attributes, DLDataType dtype) {
  bool timeline = false;
  if (!runtime::modelled::Wanted(&timeline)) return;
  const std::string op = function.substr(function.rfind('.') + 1);
  ffi::json::Object what;
  what.Set(ffi::String("attrs"), attributes);
  what.Set(ffi::String("dtype"), ffi::String(ffi::DLDataTypeToString(dtype)));
  runtime::modelled::Note(op, "library", what);
}

/*! Bytes of all elements. */
size_t BytesOf(const DLTensor& tensor) {
  return static_cast<size_t>(Elements(&tensor)) * ((tensor.dtype.bits * tensor.dtype.lanes + 7) / 8);
}

}  // namespace

void OnHostModel(const char* function, const ffi::PackedArgs& args) {
  const int count = args.size();
  std::vector<DLTensor> tensors(count);
  std::vector<ffi::AnyView> views(count);
  const bool computes = runtime::modelled::LibraryComputes();
  bool stand_in = !computes;
  for (int i = 0; i < count; ++i) {
    if (i == count - 2) {
      views[i] = args[i];
      continue;
    }
    tensors[i] = *args[i].cast<DLTensor*>();
    CheckTensor(&tensors[i], function, std::to_string(i + 1).c_str(), kDLExtDev);
    stand_in = stand_in || uir_simt_stands_in(Data(&tensors[i]), BytesOf(tensors[i])) != 0;
    tensors[i].device = {kDLCPU, 0};
    views[i] = &tensors[i];
  }
  Note(function, args[count - 2].cast<ffi::String>(), tensors[0].dtype);
  DLTensor* out = args[count - 1].cast<DLTensor*>();
  const size_t bytes = BytesOf(*out);
  std::vector<char> result(std::max<size_t>(bytes, 1));
  DLTensor* staged = &tensors[count - 1];
  // What a view of the output leaves out keeps its values.
  std::copy_n(Data(out), bytes, result.data());
  staged->data = result.data();
  staged->byte_offset = 0;
  if (computes) {
    ffi::Any none;
    ffi::Function::GetGlobalRequired(function).CallPacked(views.data(), count, &none);
  } else {
    std::fill(result.begin(), result.end(), 0);
  }
  tvm::runtime::DeviceAPI::Get(out->device)->CopyDataFromTo(staged, out, nullptr);
  if (stand_in) uir_simt_set_stand_in(static_cast<char*>(out->data) + out->byte_offset, bytes, 1);
}

}  // namespace uir::library
