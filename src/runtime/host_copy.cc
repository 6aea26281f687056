// SPDX-License-Identifier: Apache-2.0
// Copies between device tensors and the host: for callers, and for functions that run there in the device's stead.
#include <dlpack/dlpack.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>
#include <tvm/runtime/device_api.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace uir::runtime {

namespace ffi = tvm::ffi;

namespace {

/*! \brief A tensor in host memory of its own. */
struct HostCopy {
  DLTensor tensor{};
  std::vector<int64_t> shape;
  std::unique_ptr<void, decltype(&std::free)> data{nullptr, std::free};
};

constexpr size_t kAlignment = tvm::runtime::kAllocAlignment;

void Copy(DLTensor* from, DLTensor* to, DLDevice device) {
  tvm::runtime::DeviceAPI* api = tvm::runtime::DeviceAPI::Get(device);
  void* stream = TVMFFIEnvGetStream(device.device_type, device.device_id);
  api->CopyDataFromTo(from, to, stream);
  // the host goes on with the data at once, as after copies of ext_dev (device_memory.h)
  if (device.device_type != kDLExtDev) api->StreamSync(device, stream);
}

DLTensor OfHost(const DLTensor& tensor, void* data) {
  DLTensor made = tensor;
  made.data = data;
  made.device = {kDLCPU, 0};
  made.strides = nullptr;
  made.byte_offset = 0;
  return made;
}

/*! \brief Where bytes of the host fill a tensor, or those of a tensor memory of the host. */
void CheckBytes(const DLTensor& tensor, int64_t bytes) {
  TVM_FFI_CHECK(static_cast<size_t>(bytes) == tvm::ffi::GetDataSize(tensor), ValueError)
      << bytes << " bytes of the host for a tensor of " << tvm::ffi::GetDataSize(tensor);
}

/*! \brief Fills a tensor with as many bytes of the host, in the order of the current stream. */
void Write(DLTensor* to, void* from, int64_t bytes) {
  CheckBytes(*to, bytes);
  DLTensor host = OfHost(*to, from);
  Copy(&host, to, to->device);
}

/*! \brief Copies a tensor to memory of the host, once what is on the current stream is done. */
void Read(DLTensor* from, void* to, int64_t bytes) {
  CheckBytes(*from, bytes);
  DLTensor host = OfHost(*from, to);
  Copy(from, &host, from->device);
}

/*! \brief A copy of a tensor of a device, as the address of a DLTensor; `FromHost` takes it back.
 *  \param dtype What its elements are: `tensor` may describe them as integers of their size. */
void* ToHost(DLTensor* tensor, const ffi::String& dtype) {
  auto copy = std::make_unique<HostCopy>();
  copy->shape.assign(tensor->shape, tensor->shape + tensor->ndim);
  size_t bytes = tvm::ffi::GetDataSize(*tensor);
  copy->data.reset(std::aligned_alloc(kAlignment, (bytes + kAlignment) / kAlignment * kAlignment));
  if (!copy->data) throw std::bad_alloc();
  copy->tensor = *tensor;
  copy->tensor.data = copy->data.get();
  copy->tensor.device = {kDLCPU, 0};
  copy->tensor.shape = copy->shape.data();
  copy->tensor.dtype = ffi::StringToDLDataType(dtype);
  copy->tensor.strides = nullptr;
  copy->tensor.byte_offset = 0;
  DLTensor same = *tensor;
  same.dtype = copy->tensor.dtype;
  Copy(&same, &copy->tensor, tensor->device);
  return &copy.release()->tensor;
}

/*! \brief Frees a copy, and before that copies it to the tensor where it was written. */
void FromHost(void* handle, DLTensor* tensor, bool written) {
  // the tensor is the first member
  std::unique_ptr<HostCopy> copy(static_cast<HostCopy*>(handle));
  DLTensor same = *tensor;
  same.dtype = copy->tensor.dtype;
  if (written) Copy(&copy->tensor, &same, tensor->device);
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef()
      .def("uir.runtime.to_host", &ToHost)
      .def("uir.runtime.from_host", &FromHost)
      .def("uir.runtime.write_tensor", &Write)
      .def("uir.runtime.read_tensor", &Read);
}

}  // namespace uir::runtime
