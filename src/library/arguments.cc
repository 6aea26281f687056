// SPDX-License-Identifier: Apache-2.0
#include "library/arguments.h"

#include <tvm/ffi/error.h>

#include <algorithm>
#include <string>

namespace uir::library {

const char* Data(const DLTensor* tensor) { return static_cast<const char*>(tensor->data) + tensor->byte_offset; }

int64_t Elements(const DLTensor* tensor) {
  int64_t count = 1;
  for (int d = 0; d < tensor->ndim; ++d) count *= tensor->shape[d];
  return count;
}

int64_t Count(std::initializer_list<int64_t> counts) {
  int64_t product = 1;
  bool beyond = false, none = false;
  for (int64_t count : counts) {
    none = none || count == 0;
    beyond = __builtin_mul_overflow(product, count, &product) || beyond;
  }
  return none ? 0 : beyond ? INT64_MAX : product;
}

void CheckTensor(const DLTensor* tensor, const char* op, const char* operand, int device) {
  if (tensor->device.device_type != device) {
    TVM_FFI_THROW(ValueError) << "Library operator " << op << ": operand " << operand << " is on device type "
                              << static_cast<int>(tensor->device.device_type) << ".\n  need:   "
                              << (device == kDLCPU ? "memory of the host" : "device type " + std::to_string(device))
                              << "\n  remedy: copy it to the " << (device == kDLCPU ? "CPU" : "device") << " first.";
  }
  if (!tensor->strides || Elements(tensor) == 0) return;
  int64_t expected = 1;
  for (int d = tensor->ndim - 1; d >= 0; --d) {
    if (tensor->shape[d] != 1 && tensor->strides[d] != expected) {
      TVM_FFI_THROW(ValueError) << "Library operator " << op << ": operand " << operand
                                << " is not contiguous.\n  remedy: pass the tensor that holds it, "
                                   "and the view in the attributes.";
    }
    expected *= tensor->shape[d];
  }
}

void CheckElements(const DLTensor* tensor, int64_t need, bool exact, const char* op, const char* operand) {
  const int64_t have = Elements(tensor);
  if (exact ? have != need : have < need) {
    TVM_FFI_THROW(ValueError) << "Library operator " << op << ": operand " << operand
                              << " does not fit its attributes.\n  need:   " << (exact ? "" : "at least ") << need
                              << " elements\n  limit:  the tensor has " << have
                              << "\n  remedy: make the attributes for this tensor's shape.";
  }
}

void CheckType(DType found, DType wanted, const char* op, const char* operand) {
  if (found != wanted) {
    TVM_FFI_THROW(ValueError) << "Library operator " << op << ": operand " << operand
                              << " has another type than the output.\n  remedy: cast it to the "
                                 "output's type.";
  }
}

ffi::String AttrsText(const ffi::PackedArgs& args, const char* op) {
  if (args.size() < 4) {
    TVM_FFI_THROW(ValueError) << "Library operator " << op << " got " << args.size()
                              << " arguments.\n  need:   two inputs, [bias], [residual], attributes, "
                                 "output";
  }
  return args[args.size() - 2].cast<ffi::String>();
}

Arguments ReadArguments(const ffi::PackedArgs& args, const Epilogue& epilogue, const char* op, int device) {
  const bool residual = epilogue.residual != Residual::kNone;
  const int need = 4 + epilogue.bias + residual;
  if (args.size() != need) {
    TVM_FFI_THROW(ValueError) << "Library operator " << op << " got " << args.size()
                              << " arguments.\n  need:   " << need << ": two inputs" << (epilogue.bias ? ", bias" : "")
                              << (residual ? ", residual" : "") << ", attributes, output";
  }
  Arguments out;
  int at = 0;
  out.first = args[at++].cast<DLTensor*>();
  out.second = args[at++].cast<DLTensor*>();
  if (epilogue.bias) out.bias = args[at++].cast<DLTensor*>();
  if (residual) out.residual = args[at++].cast<DLTensor*>();
  out.out = args[at + 1].cast<DLTensor*>();
  CheckTensor(out.first, op, "1", device);
  CheckTensor(out.second, op, "2", device);
  CheckTensor(out.out, op, "out", device);
  const DType type = DTypeOf(out.out->dtype, op, "out");
  if (out.bias)
    CheckTensor(out.bias, op, "bias", device), CheckType(DTypeOf(out.bias->dtype, op, "bias"), type, op, "bias");
  if (out.residual) {
    CheckTensor(out.residual, op, "residual", device);
    CheckType(DTypeOf(out.residual->dtype, op, "residual"), type, op, "residual");
  }
  return out;
}

void CheckAround(const Arguments& in, const MatmulAttrs& attrs, const char* op) {
  const int64_t out_elements = Extent(attrs.out, attrs.batch, attrs.m, attrs.n);
  CheckElements(in.first, Extent(attrs.a, attrs.batch, attrs.m, attrs.k), false, op, "1");
  CheckElements(in.out, out_elements, false, op, "out");
  if (in.bias) CheckElements(in.bias, attrs.n, true, op, "bias");
  if (in.residual) CheckElements(in.residual, out_elements, false, op, "residual");
}

void CheckAround(const Arguments& in, const Conv2dAttrs& attrs, const char* op) {
  const int64_t out_elements = Count({attrs.n, attrs.o, attrs.oh, attrs.ow});
  CheckElements(in.first, Count({attrs.n, attrs.c, attrs.h, attrs.w}), true, op, "1");
  CheckElements(in.out, out_elements, true, op, "out");
  if (in.bias) CheckElements(in.bias, attrs.o, true, op, "bias");
  if (in.residual) CheckElements(in.residual, out_elements, true, op, "residual");
}

bool NothingOnDevice(const MatmulAttrs& attrs) {
  if (attrs.empty()) return true;
  if (attrs.k == 0) {
    TVM_FFI_THROW(ValueError) << "Library operator matmul: k is 0.\n  limit:  a vendor's library sums at least one "
                                 "product\n  remedy: compute it on uir-cpu, or leave it out of the model";
  }
  return false;
}

bool NothingOnDevice(const Conv2dAttrs& attrs) {
  if (attrs.channels_last()) {
    TVM_FFI_THROW(ValueError) << "Library operator conv2d: a layout is NHWC.\n  limit:  this library takes images "
                                 "channel by channel\n  remedy: leave \"input_layout\" and \"output_layout\" out";
  }
  return attrs.empty();
}

int64_t Extent(const OperandView& view, const std::vector<int64_t>& batch, int64_t rows, int64_t columns) {
  std::vector<int64_t> extents = batch;
  extents.insert(extents.end(), {rows, columns});
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return 0;
  int64_t elements = 1;
  bool beyond = __builtin_add_overflow(elements, view.offset, &elements);
  for (size_t d = 0; d < extents.size(); ++d) {
    int64_t span = 0;
    beyond = __builtin_mul_overflow(extents[d] - 1, view.strides[d], &span) || beyond;
    beyond = __builtin_add_overflow(elements, span, &elements) || beyond;
  }
  return beyond ? INT64_MAX : elements;
}

}  // namespace uir::library
