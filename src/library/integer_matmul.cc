// SPDX-License-Identifier: Apache-2.0
#include "library/integer_matmul.h"

#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include "library/device_operators.h"

namespace uir::library {
namespace {

constexpr const char* kOp = "integer_matmul";

void CheckNumbers(const DLTensor* tensor, uint8_t code, uint8_t bits, const char* operand, const char* name) {
  const DLDataType type = tensor->dtype;
  if (type.code == code && type.bits == bits && type.lanes == 1) return;
  TVM_FFI_THROW(ValueError) << "Library operator " << kOp << ": operand " << operand << " is no " << name
                            << ".\n  remedy: cast it";
}

/*! The products on the host, with exact sums. */
template <typename Sum>
void Run(const IntegerMatmulAttrs& attrs, const int8_t* a, const int8_t* b, Sum* out) {
  for (int64_t part = 0; part < attrs.parts; ++part) {
    for (int64_t row = 0; row < attrs.m; ++row, a += attrs.k) {
      for (int64_t column = 0; column < attrs.n; ++column) {
        const int8_t* right = b + column * attrs.k;
        int32_t sum = 0;
        for (int64_t k = 0; k < attrs.k; ++k) sum += static_cast<int32_t>(a[k]) * right[k];
        *out++ = static_cast<Sum>(sum);
      }
    }
    b += attrs.n * attrs.k;
  }
}

void OnHost(ffi::PackedArgs args, ffi::Any*) {
  const auto attrs = Parsed<IntegerMatmulAttrs>(AttrsText(args, kOp));
  const DLTensor* out = args[args.size() - 1].cast<DLTensor*>();
  const bool floats = out->dtype.code == kDLFloat;
  const IntegerMatmulOperands in = ReadIntegerMatmul(args, *attrs, args.size() == 5, floats, kDLCPU);
  if (in.scale && *reinterpret_cast<const float*>(Data(in.scale)) != 1.0F) {
    TVM_FFI_THROW(ValueError) << "Library operator " << kOp
                              << ": the scale is not 1.\n  limit:  results of int32 "
                                 "are the sums\n  remedy: multiply in an operator after it";
  }
  const auto *a = reinterpret_cast<const int8_t*>(Data(in.a)), *b = reinterpret_cast<const int8_t*>(Data(in.b));
  char* result = const_cast<char*>(Data(in.out));
  if (floats) {
    Run(*attrs, a, b, reinterpret_cast<float*>(result));
  } else {
    Run(*attrs, a, b, reinterpret_cast<int32_t*>(result));
  }
}

}  // namespace

IntegerMatmulOperands ReadIntegerMatmul(const ffi::PackedArgs& args, const IntegerMatmulAttrs& attrs, bool scaled,
                                        bool floats, int device) {
  const int need = scaled ? 5 : 4;
  if (args.size() != need) {
    TVM_FFI_THROW(ValueError) << "Library operator " << kOp << " got " << args.size()
                              << " arguments.\n  need:   " << need << ": two inputs" << (scaled ? ", a scale" : "")
                              << ", attributes, output";
  }
  IntegerMatmulOperands in;
  in.a = args[0].cast<DLTensor*>();
  in.b = args[1].cast<DLTensor*>();
  if (scaled) in.scale = args[2].cast<DLTensor*>();
  in.out = args[need - 1].cast<DLTensor*>();
  const auto check = [device](const DLTensor* tensor, int64_t elements, uint8_t code, uint8_t bits, const char* operand,
                              const char* name) {
    CheckTensor(tensor, kOp, operand, device);
    CheckElements(tensor, elements, true, kOp, operand);
    CheckNumbers(tensor, code, bits, operand, name);
  };
  check(in.a, Count({attrs.parts, attrs.m, attrs.k}), kDLInt, 8, "1", "int8");
  check(in.b, Count({attrs.parts, attrs.n, attrs.k}), kDLInt, 8, "2", "int8");
  if (scaled) check(in.scale, 1, kDLFloat, 32, "3", "float32");
  const uint8_t sums = floats ? kDLFloat : kDLInt;
  check(in.out, Count({attrs.parts, attrs.m, attrs.n}), sums, 32, "out", floats ? "float32" : "int32");
  return in;
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef().def_packed("uir.library.cpu.integer_matmul", OnHost);
}

}  // namespace uir::library
