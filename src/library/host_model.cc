// SPDX-License-Identifier: Apache-2.0
#include "library/host_model.h"

#include <tvm/runtime/device_api.h>

#include <algorithm>
#include <string>
#include <vector>

#include "library/arguments.h"

namespace uir::library {

void OnHostModel(const char* function, const ffi::PackedArgs& args) {
  const int count = args.size();
  std::vector<DLTensor> tensors(count);
  std::vector<ffi::AnyView> views(count);
  for (int i = 0; i < count; ++i) {
    if (i == count - 2) {
      views[i] = args[i];
      continue;
    }
    tensors[i] = *args[i].cast<DLTensor*>();
    CheckTensor(&tensors[i], function, std::to_string(i + 1).c_str(), kDLExtDev);
    tensors[i].device = {kDLCPU, 0};
    views[i] = &tensors[i];
  }
  DLTensor* out = args[count - 1].cast<DLTensor*>();
  const size_t bytes = static_cast<size_t>(Elements(out)) * ((out->dtype.bits * out->dtype.lanes + 7) / 8);
  std::vector<char> result(std::max<size_t>(bytes, 1));
  DLTensor* staged = &tensors[count - 1];
  // What a view of the output leaves out keeps its values.
  std::copy_n(Data(out), bytes, result.data());
  staged->data = result.data();
  staged->byte_offset = 0;
  ffi::Any none;
  ffi::Function::GetGlobalRequired(function).CallPacked(views.data(), count, &none);
  tvm::runtime::DeviceAPI::Get(out->device)->CopyDataFromTo(staged, out, nullptr);
}

}  // namespace uir::library
