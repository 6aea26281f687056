// SPDX-License-Identifier: Apache-2.0
// What the library operators of every device are called with, read and checked.
#pragma once

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "library/attrs.h"
#include "library/dtype.h"

namespace uir::library {

namespace ffi = tvm::ffi;

const char* Data(const DLTensor* tensor);
int64_t Elements(const DLTensor* tensor);
/*! A product of counts; the largest number where it needs more than 64 bits, which no tensor has of elements. */
int64_t Count(std::initializer_list<int64_t> counts);

/*! The layouts in the attributes are those of a contiguous tensor, on the device (a DLDeviceType). */
void CheckTensor(const DLTensor* tensor, const char* op, const char* operand, int device);
void CheckElements(const DLTensor* tensor, int64_t need, bool exact, const char* op, const char* operand);
void CheckType(DType found, DType wanted, const char* op, const char* operand);

/*! (inputs, [bias], [residual], attributes, out), as call_dps_packed passes
 * them. */
struct Arguments {
  const DLTensor *first, *second, *bias = nullptr, *residual = nullptr;
  DLTensor* out;
};

/*! The attributes are the last argument but one. */
ffi::String AttrsText(const ffi::PackedArgs& args, const char* op);

/*! All tensors are on `device`; bias and residual have the type of the output. */
Arguments ReadArguments(const ffi::PackedArgs& args, const Epilogue& epilogue, const char* op, int device);

/*! The tensors but the second are as large as the attributes say. */
void CheckAround(const Arguments& in, const MatmulAttrs& attrs, const char* op);
void CheckAround(const Arguments& in, const Conv2dAttrs& attrs, const char* op);

/*! What a plan runs on (MatmulData, Conv2dData), with `second` as the second operand. */
template <typename Pointers>
Pointers PointersOf(const Arguments& in, const char* second) {
  return {Data(in.first), second, in.bias ? Data(in.bias) : nullptr, in.residual ? Data(in.residual) : nullptr,
          const_cast<char*>(Data(in.out))};
}

//! Whether a device has nothing to compute. \throws ValueError A sum of no products, which no vendor's library has.
bool NothingOnDevice(const MatmulAttrs& attrs);
bool NothingOnDevice(const Conv2dAttrs& attrs);

/*! Elements that a view touches, from the start of its tensor; the largest number where it is beyond 64 bits. */
int64_t Extent(const OperandView& view, const std::vector<int64_t>& batch, int64_t rows, int64_t columns);

}  // namespace uir::library
