// SPDX-License-Identifier: Apache-2.0
// What a kernel that a program calls asks of its arguments. The kernel says in a list of numbers what it expects
// (python/uir_tvm/argument_checks.py) and asks here, by a pointer that TVM fills when it loads the code.
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include <cstddef>
#include <cstring>
#include <limits>

#include "runtime/host_tensors.h"

namespace uir::runtime {
namespace {

/*! What an argument is. The number of a tensor is followed by its device, rank and type, and its shape; of a fixed one
 *  the steps of its axes follow. */
enum Kind : int64_t { kTensor, kFixed, kInteger, kNumber, kPointer };
/*! Sizes that a kernel leaves to its calls, at most. */
constexpr int kSizes = 32;
/*! A length that is an expression of sizes: the kernel itself asks for it. */
constexpr int64_t kElsewhere = std::numeric_limits<int64_t>::min();

constexpr const char* kNumberOf = "Another number of arguments than expected";
constexpr const char* kType = "An argument of another type than expected";
constexpr const char* kTensorType = "An argument of another rank, dtype or device than expected, or without data";
constexpr const char* kShape = "An argument of another shape or layout than expected";

int Wrong(const char* kind, const char* text, const char* called) {
  const char* parts[] = {text, called};
  TVMFFIErrorSetRaisedFromCStrParts(kind, parts, 2);
  return -1;
}

const DLTensor* TensorOf(const TVMFFIAny& given, bool by_address) {
  const int32_t type = given.type_index;
  if (type == kTVMFFITensor) return TVMFFITensorGetDLTensorPtr(given.v_obj);
  const bool is_address = by_address && (type == kTVMFFIDLTensorPtr || type == kTVMFFIOpaquePtr);
  return is_address ? static_cast<const DLTensor*>(given.v_ptr) : nullptr;
}

bool IsPlain(const TVMFFIAny& given, int64_t kind) {
  const int32_t type = given.type_index;
  if (kind == kPointer) {
    return type == kTVMFFINone || type == kTVMFFIOpaquePtr || type == kTVMFFIDLTensorPtr ||
           type >= kTVMFFIStaticObjectBegin;
  }
  return type == kTVMFFIInt || type == kTVMFFIBool || (kind == kNumber && type == kTVMFFIFloat);
}

/*! Rank and type of a tensor as one number, as they lie in memory. */
int64_t RankAndType(const DLTensor& tensor) {
  static_assert(offsetof(DLTensor, dtype) == offsetof(DLTensor, ndim) + 4 && sizeof(DLDataType) == 4);
  int64_t both;
  std::memcpy(&both, &tensor.ndim, sizeof both);
  return both;
}

/*! Whether a tensor has the lengths that are expected; a size has the one that it was first seen with. */
bool HasShape(const DLTensor& tensor, const int64_t* expected, int64_t* sizes) {
  int64_t step = 1;
  for (int32_t d = tensor.ndim - 1; d >= 0; --d) {
    const int64_t length = tensor.shape[d], wanted = expected[d];
    if (wanted >= 0) {
      if (length != wanted) return false;
    } else if (wanted != kElsewhere) {
      int64_t& size = sizes[~wanted];
      if (size < 0) size = length;
      if (size != length) return false;
    }
    if (tensor.strides && length != 1 && tensor.strides[d] != step) return false;
    step *= length;
  }
  return true;
}

/*! The same where no size is open. A step below zero is of an axis along which there is one element: it may be any. */
bool HasFixedShape(const DLTensor& tensor, const int64_t* expected) {
  const int32_t rank = tensor.ndim;
  int64_t other = 0;
  for (int32_t d = 0; d < rank; ++d) other |= tensor.shape[d] ^ expected[d];
  if (const int64_t* strides = tensor.strides) {
    const int64_t* steps = expected + rank;
    for (int32_t d = 0; d < rank; ++d) other |= (strides[d] ^ steps[d]) & ~(steps[d] >> 63);
  }
  return other == 0;
}

/*! 0, or -1 with an error set. \param expected How many sizes are open, whether tensors may be given by their
 * addresses, how many arguments there are, and what each is. \param called What tells which function it is. */
int CheckArguments(const TVMFFIAny* given, int32_t count, const int64_t* expected, const char* called) {
  int64_t sizes[kSizes];
  const int64_t open = *expected++;
  for (int64_t i = 0; i < open; ++i) sizes[i] = -1;
  const bool by_address = *expected++ != 0;
  if (count != *expected++ || (count > 0 && !given)) return Wrong("TypeError", kNumberOf, called);
  int32_t device = -1;
  for (int32_t i = 0; i < count; ++i) {
    const int64_t kind = *expected++;
    if (kind > kFixed) {
      if (!IsPlain(given[i], kind)) return Wrong("TypeError", kType, called);
      continue;
    }
    const DLTensor* tensor = TensorOf(given[i], by_address);
    if (!tensor) return Wrong("TypeError", kType, called);
    if (device < 0) device = tensor->device.device_id;
    if (tensor->device.device_type != expected[0] || tensor->device.device_id != device ||
        RankAndType(*tensor) != expected[1] || tensor->byte_offset != 0 || (!tensor->data && !IsEmpty(*tensor))) {
      return Wrong("ValueError", kTensorType, called);
    }
    const int64_t* shape = expected + 2;
    const bool fits = kind == kFixed ? HasFixedShape(*tensor, shape) : HasShape(*tensor, shape, sizes);
    if (!fits) return Wrong("ValueError", kShape, called);
    expected = shape + tensor->ndim * (kind == kFixed ? 2 : 1);
  }
  return 0;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  TVMFFIEnvModRegisterContextSymbol("__uir_check_arguments", reinterpret_cast<void*>(&CheckArguments));
}

}  // namespace
}  // namespace uir::runtime
