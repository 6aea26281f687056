// SPDX-License-Identifier: Apache-2.0
#include "runtime/host_tensors.h"

#include <tvm/ffi/dtype.h>

#include <cstring>
#include <utility>

namespace uir::runtime {
namespace {

char* Data(const DLTensor& tensor) { return static_cast<char*>(tensor.data) + tensor.byte_offset; }

int64_t ItemBytes(const DLTensor& tensor) { return (tensor.dtype.bits * tensor.dtype.lanes + 7) / 8; }

/*! Whether dimensions from `first` on have no gaps. */
bool IsDense(const DLTensor& tensor, int first) {
  if (!tensor.strides) return true;
  int64_t expected = 1;
  for (int d = tensor.ndim - 1; d >= first; --d) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != expected) return false;
    expected *= tensor.shape[d];
  }
  return true;
}

/*! Elements from one index to the next of a dimension. */
int64_t Step(const DLTensor& tensor, int dimension) {
  if (tensor.strides) return tensor.strides[dimension];
  int64_t step = 1;
  for (int d = dimension + 1; d < tensor.ndim; ++d) step *= tensor.shape[d];
  return step;
}

void CopyDimension(const DLTensor& from, const DLTensor& to, int dimension, const char* source, char* target) {
  const int64_t item = ItemBytes(from);
  if (IsDense(from, dimension) && IsDense(to, dimension)) {
    int64_t bytes = item;
    for (int d = dimension; d < from.ndim; ++d) bytes *= from.shape[d];
    std::memcpy(target, source, bytes);
    return;
  }
  const int64_t source_step = Step(from, dimension) * item, target_step = Step(to, dimension) * item;
  for (int64_t i = 0; i < from.shape[dimension]; ++i) {
    CopyDimension(from, to, dimension + 1, source + i * source_step, target + i * target_step);
  }
}

/*! The first byte, and the one behind the last. */
std::pair<const char*, const char*> Span(const DLTensor& tensor) {
  const int64_t item = ItemBytes(tensor);
  int64_t low = 0, high = 0;
  for (int d = 0; d < tensor.ndim; ++d) {
    const int64_t reach = Step(tensor, d) * (tensor.shape[d] - 1);
    (reach < 0 ? low : high) += reach;
  }
  return {Data(tensor) + low * item, Data(tensor) + (high + 1) * item};
}

}  // namespace

bool Fits(const DLTensor& tensor, const TensorType& type) {
  if (tensor.device.device_type != kDLCPU || !(tensor.dtype == type.dtype)) return false;
  if (static_cast<size_t>(tensor.ndim) != type.shape.size()) return false;
  for (int d = 0; d < tensor.ndim; ++d) {
    if (tensor.shape[d] != type.shape[d]) return false;
  }
  return true;
}

bool IsEmpty(const DLTensor& tensor) {
  for (int d = 0; d < tensor.ndim; ++d) {
    if (tensor.shape[d] == 0) return true;
  }
  return false;
}

bool IsReady(const DLTensor& tensor) {
  return reinterpret_cast<uintptr_t>(Data(tensor)) % kDataAlignment == 0 && (IsDense(tensor, 0) || IsEmpty(tensor));
}

bool IsPlain(const DLTensor& tensor) {
  // as the host allocates memory of any kind
  constexpr uintptr_t kAllocated = 16;
  return IsEmpty(tensor) || (reinterpret_cast<uintptr_t>(Data(tensor)) % kAllocated == 0 && IsDense(tensor, 0));
}

void CopyElements(const DLTensor& from, const DLTensor& to) {
  if (!IsEmpty(from)) CopyDimension(from, to, 0, Data(from), Data(to));
}

bool MayMeet(const DLTensor& a, const DLTensor& b) {
  if (IsEmpty(a) || IsEmpty(b)) return false;
  const auto first = Span(a), second = Span(b);
  return first.first < second.second && second.first < first.second;
}

}  // namespace uir::runtime
