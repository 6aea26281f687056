// SPDX-License-Identifier: Apache-2.0
#include "device/ascendc/host/meta.h"

#include "device/ascendc/host/state.h"

namespace uir_acl {
int64_t SizeOf(aclDataType type) {
  switch (type) {
    case ACL_INT64:
      return 8;
    case ACL_FLOAT:
    case ACL_INT32:
      return 4;
    case ACL_FLOAT16:
    case ACL_BF16:
      return 2;
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
      return 1;
  }
  return 0;
}

bool Contiguous(const aclTensor& tensor) {
  int64_t step = 1;
  for (int64_t d = static_cast<int64_t>(tensor.shape.size()) - 1; d >= 0; --d) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != step) return false;
    step *= tensor.shape[d];
  }
  return true;
}

uir_host::Strided AsStrided(const aclTensor& tensor) {
  const auto type = tensor.type == ACL_FLOAT     ? uir_host::Element::kFloat
                    : tensor.type == ACL_FLOAT16 ? uir_host::Element::kHalf
                                                 : uir_host::Element::kBfloat;
  return {tensor.shape, tensor.strides, tensor.offset, type, tensor.data};
}

bool Read(const aclTensor& tensor, std::vector<float>* values, std::string* message) {
  return uir_host::Read(AsStrided(tensor), values, message);
}

void Write(const aclTensor& tensor, const std::vector<float>& values) { uir_host::Write(AsStrided(tensor), values); }

namespace {

template <typename Handle>
Handle* Keep(const char* kind, Handle* handle) {
  Runtime().handles[kind].insert(handle);
  return handle;
}

template <typename Handle>
aclnnStatus Drop(const char* kind, const char* call, const Handle* handle) {
  if (Runtime().handles[kind].erase(handle) == 0) {
    return Fail(kAclnnInner, std::string(call) + ": no handle of this kind, or destroyed before.");
  }
  delete handle;
  return 0;
}

aclTensor* RefuseTensor(const std::string& why) {
  Fail(kAclnnInvalid, "aclCreateTensor: " + why);
  return nullptr;
}

}  // namespace
}  // namespace uir_acl

using namespace uir_acl;

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t* stride,
                           int64_t offset, aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum,
                           void* tensorData) {
  aclTensor tensor{{viewDims, viewDims + viewDimsNum}, {}, offset, dataType, format, static_cast<char*>(tensorData)};
  if (stride != nullptr) {
    tensor.strides.assign(stride, stride + viewDimsNum);
  } else {
    tensor.strides.assign(viewDimsNum, 1);
    for (int64_t d = static_cast<int64_t>(viewDimsNum) - 2; d >= 0; --d) {
      tensor.strides[d] = tensor.strides[d + 1] * tensor.shape[d + 1];
    }
  }
  const std::vector<int64_t> storage(storageDims, storageDims + storageDimsNum);
  int64_t last = offset;
  for (uint64_t d = 0; d < viewDimsNum; ++d) {
    if (tensor.shape[d] < 0 || tensor.strides[d] < 0) return RefuseTensor("a negative extent or stride.");
    last += (tensor.shape[d] - 1) * tensor.strides[d];
  }
  const int64_t size = SizeOf(dataType);
  if (size == 0) return RefuseTensor("a type that exported projects do not use.");
  if (offset < 0 || (Count(tensor.shape) > 0 && last >= Count(storage))) {
    return RefuseTensor("the view leaves its storage of " + std::to_string(Count(storage)) + " elements.");
  }
  if (reinterpret_cast<uintptr_t>(tensorData) % 32 != 0) {
    return RefuseTensor("the address is no multiple of 32.");
  }
  if (!OnDevice(tensorData, Count(storage) * size)) return RefuseTensor("the storage is no device memory.");
  return Keep("tensors", new aclTensor(tensor));
}

aclnnStatus aclDestroyTensor(const aclTensor* tensor) { return Drop("tensors", "aclDestroyTensor", tensor); }

aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  if (value == nullptr || dataType != ACL_FLOAT) {
    Fail(kAclnnInvalid, "aclCreateScalar: exported projects make scalars of float.");
    return nullptr;
  }
  return Keep("scalars", new aclScalar{*static_cast<float*>(value)});
}

aclnnStatus aclDestroyScalar(const aclScalar* scalar) { return Drop("scalars", "aclDestroyScalar", scalar); }

aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
  return Keep("arrays", new aclIntArray{{value, value + size}});
}

aclnnStatus aclDestroyIntArray(const aclIntArray* array) { return Drop("arrays", "aclDestroyIntArray", array); }
