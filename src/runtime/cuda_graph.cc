// SPDX-License-Identifier: Apache-2.0
// What programs with captured launches call: TVM's capture for each set of tensors, and copies in the stream's order.
//
// A CUDA graph launches kernels with the addresses that they had when it was captured.  TVM looks captured graphs up
// by their number alone, and replays them whatever tensors it is given.  Here the addresses are a part of what it looks
// up: tensors that lie elsewhere (the state of a clone) are captured once more, and no replay uses any but its own.
#include <dlpack/dlpack.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/runtime/device_api.h>

#include <cstdint>
#include <vector>

namespace uir::runtime {

namespace ffi = tvm::ffi;

namespace {

/*! \brief Where the tensors among a captured function's arguments lie. */
void Addresses(const ffi::Array<ffi::Any>& args, std::vector<int64_t>* found) {
  for (const ffi::Any& arg : args) {
    if (auto tensor = arg.try_cast<DLTensor*>()) {
      found->push_back(static_cast<int64_t>(reinterpret_cast<uintptr_t>((*tensor)->data) + (*tensor)->byte_offset));
    } else if (auto inner = arg.as<ffi::Array<ffi::Any>>()) {
      Addresses(*inner, found);
    }
  }
}

/*! \brief (machine, function, its arguments, its number, perhaps sizes): what the function returns. */
void RunOrCapture(ffi::PackedArgs args, ffi::Any* result) {
  std::vector<int64_t> key;
  Addresses(args[2].cast<ffi::Array<ffi::Any>>(), &key);
  if (args.size() > 4) {
    for (int64_t size : args[4].cast<ffi::Shape>()) key.push_back(size);
  }
  const ffi::Shape place(key.begin(), key.end());
  const ffi::AnyView given[] = {args[0], args[1], args[2], args[3], place};
  ffi::Function::GetGlobalRequired("vm.builtin.cuda_graph.run_or_capture").CallPacked(given, 5, result);
}

/*! \brief A copy to memory that stays where it is, or from there, behind what the stream has been given. */
void CopyOnStream(DLTensor* from, DLTensor* to) {
  const DLDevice device = to->device;
  void* stream = TVMFFIEnvGetStream(device.device_type, device.device_id);
  tvm::runtime::DeviceAPI::Get(device)->CopyDataFromTo(from, to, stream);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef().def_packed("uir.cuda_graph.run_or_capture", RunOrCapture).def("uir.cuda_graph.copy", CopyOnStream);
}

}  // namespace

}  // namespace uir::runtime
