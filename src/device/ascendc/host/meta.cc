// SPDX-License-Identifier: Apache-2.0
#include "meta.h"

#include <cstring>

#include "device/simt/simt.h"
#include "state.h"

namespace uir_acl {
namespace {

float HalfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t rest = static_cast<uint32_t>(bits & 0x7fff) << 13;
  uint32_t wide = rest;
  float value;
  // The exponent's bias goes from 15 to 127; subnormals become normal by a product, infinities keep all ones.
  std::memcpy(&value, &wide, 4);
  if ((bits & 0x7c00) == 0x7c00) {
    wide = rest | 0x7f800000;
    std::memcpy(&value, &wide, 4);
  } else {
    value *= 0x1p112F;
  }
  uint32_t out;
  std::memcpy(&out, &value, 4);
  out |= sign;
  std::memcpy(&value, &out, 4);
  return value;
}

uint16_t FloatToHalf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t size = bits & 0x7fffffff;
  if (size > 0x7f800000) return sign | 0x7e00;
  if (size >= 0x477ff000) return sign | 0x7c00;
  if (size < 0x38800000) {
    // Subnormal: in units of 2^-24, rounded by the addition of a float whose last bit is that unit.
    float magnitude;
    std::memcpy(&magnitude, &size, 4);
    magnitude += 0.5F;
    std::memcpy(&bits, &magnitude, 4);
    return sign | static_cast<uint16_t>(bits - 0x3f000000);
  }
  const uint32_t rounded = size + 0xfff + (size >> 13 & 1);
  return sign | static_cast<uint16_t>((rounded - 0x38000000) >> 13);
}

float BfloatToFloat(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

uint16_t FloatToBfloat(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float Load(aclDataType type, const char* data) {
  uint16_t bits;
  std::memcpy(&bits, data, 2);
  if (type == ACL_FLOAT16) return HalfToFloat(bits);
  if (type == ACL_BF16) return BfloatToFloat(bits);
  float value;
  std::memcpy(&value, data, 4);
  return value;
}

void Store(aclDataType type, float value, char* data) {
  if (type == ACL_FLOAT) {
    std::memcpy(data, &value, 4);
    return;
  }
  const uint16_t bits = type == ACL_FLOAT16 ? FloatToHalf(value) : FloatToBfloat(value);
  std::memcpy(data, &bits, 2);
}

/*! Calls `run(first element, its address)` for every row of the last dimension. */
template <typename Run>
void EachRow(const aclTensor& tensor, Run run) {
  const int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  const int64_t rows = columns == 0 ? 0 : Count(tensor.shape) / columns;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t offset = tensor.offset, rest = row;
    for (int64_t d = static_cast<int64_t>(tensor.shape.size()) - 2; d >= 0; --d) {
      offset += rest % tensor.shape[d] * tensor.strides[d];
      rest /= tensor.shape[d];
    }
    run(row * columns, tensor.data + offset * SizeOf(tensor.type));
  }
}

}  // namespace

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

int64_t Count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

bool Contiguous(const aclTensor& tensor) {
  int64_t step = 1;
  for (int64_t d = static_cast<int64_t>(tensor.shape.size()) - 1; d >= 0; --d) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != step) return false;
    step *= tensor.shape[d];
  }
  return true;
}

bool Read(const aclTensor& tensor, std::vector<float>* values, std::string* message) {
  values->resize(Count(tensor.shape));
  const int64_t size = SizeOf(tensor.type);
  const int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  const int64_t step = tensor.shape.empty() ? 1 : tensor.strides.back();
  bool good = true;
  EachRow(tensor, [&](int64_t first, const char* row) {
    if (!good) return;
    const int64_t runs = step == 1 ? 1 : columns;
    for (int64_t r = 0; r < runs && good; ++r) {
      good = uir_simt_first_unwritten(row + r * step * size, step == 1 ? columns * size : size) < 0;
    }
    if (!good) *message = "nothing wrote an element at or after element " + std::to_string(first) + " of an operand";
    for (int64_t c = 0; c < columns && good; ++c) (*values)[first + c] = Load(tensor.type, row + c * step * size);
  });
  return good;
}

void Write(const aclTensor& tensor, const std::vector<float>& values) {
  const int64_t size = SizeOf(tensor.type);
  const int64_t columns = tensor.shape.empty() ? 1 : tensor.shape.back();
  const int64_t step = tensor.shape.empty() ? 1 : tensor.strides.back();
  std::vector<char> line(columns * size);
  EachRow(tensor, [&](int64_t first, char* row) {
    for (int64_t c = 0; c < columns; ++c) Store(tensor.type, values[first + c], &line[c * size]);
    if (step == 1) {
      uir_simt_copy(row, line.data(), line.size());
      return;
    }
    for (int64_t c = 0; c < columns; ++c) uir_simt_copy(row + c * step * size, &line[c * size], size);
  });
}

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
