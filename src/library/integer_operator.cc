// SPDX-License-Identifier: Apache-2.0
// The packed functions of products of bytes: operands checked, attributes parsed once.

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <memory>

#include "library/arguments.h"
#include "library/integer_product.h"
#include "library/parallel.h"
#include "library/plan_cache.h"

namespace uir::library {
namespace {

constexpr const char* kOp = "integer_product";

std::shared_ptr<const IntegerAttrs> Find(const ffi::String& text) {
  static auto* cache = new PlanCache<IntegerAttrs>();
  return cache->Get(text, [&] { return std::make_shared<IntegerAttrs>(IntegerAttrs::Parse(text)); });
}

/*! Whether a tensor of bytes has signs. */
bool HasSign(const DLTensor* tensor, const char* operand) {
  const DLDataType type = tensor->dtype;
  if ((type.code != kDLInt && type.code != kDLUInt) || type.bits != 8 || type.lanes != 1) {
    TVM_FFI_THROW(ValueError) << "Library operator " << kOp << ": operand " << operand
                              << " is neither int8 nor uint8.\n  remedy: cast it, or quantise it.";
  }
  return type.code == kDLInt;
}

IntegerResult ResultOf(const DLTensor* out) {
  const DLDataType type = out->dtype;
  if (type.lanes == 1 && type.bits == 32 && type.code == kDLInt) return IntegerResult::kSums;
  if (type.lanes == 1 && type.bits == 32 && type.code == kDLFloat) return IntegerResult::kFloats;
  HasSign(out, "out");
  return IntegerResult::kBytes;
}

/*! (x, packed weight, [zero point of x], attributes, out) */
void IntegerProduct(ffi::PackedArgs args, ffi::Any*) {
  const std::shared_ptr<const IntegerAttrs> attrs = Find(AttrsText(args, kOp));
  if (args.size() > 5) {
    TVM_FFI_THROW(ValueError) << "Library operator " << kOp << " got " << args.size() << " arguments.\n  limit:  5";
  }
  const DLTensor* x = args[0].cast<DLTensor*>();
  const DLTensor* weight = args[1].cast<DLTensor*>();
  DLTensor* out = args[args.size() - 1].cast<DLTensor*>();
  CheckTensor(x, kOp, "1", kDLCPU);
  CheckTensor(weight, kOp, "2", kDLCPU);
  CheckTensor(out, kOp, "out", kDLCPU);
  CheckElements(x, Count({attrs->n, attrs->h, attrs->w, attrs->c}), true, kOp, "1");
  CheckElements(weight, IntegerBytes(*attrs), true, kOp, "2");
  CheckElements(out, Count({attrs->n, attrs->oh, attrs->ow, attrs->o}), true, kOp, "out");
  if (HasSign(weight, "2")) TVM_FFI_THROW(ValueError) << "Library operator " << kOp << ": operand 2 is no uint8.";
  IntegerData data{Data(x), HasSign(x, "1"), attrs->zero, Data(weight), const_cast<char*>(Data(out)), ResultOf(out)};
  if (args.size() == 5) {
    const DLTensor* zero = args[2].cast<DLTensor*>();
    CheckTensor(zero, kOp, "3", kDLCPU);
    CheckElements(zero, 1, true, kOp, "3");
    const uint8_t byte = static_cast<uint8_t>(*Data(zero));
    data.zero = HasSign(zero, "3") ? static_cast<int8_t>(byte) : byte;
  }
  if (attrs->rows() == 0) return;
  RunIntegerProduct(*attrs, data, PoolThreads());
}

ffi::Array<ffi::String> Vectors() {
  ffi::Array<ffi::String> names;
  for (const std::string& name : IntegerVectors()) names.push_back(name);
  return names;
}

void SetVectors(const ffi::String& name) {
  if (!SetIntegerVectors(name)) {
    TVM_FFI_THROW(ValueError) << "This CPU has no instructions called \"" << std::string(name) << "\".";
  }
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef()
      .def_packed("uir.library.cpu.integer_product", IntegerProduct)
      .def("uir.library.cpu.integer_bytes", [](ffi::String attrs) { return IntegerBytes(*Find(attrs)); })
      .def("uir.library.cpu.integer_vectors", Vectors)
      .def("uir.library.cpu.set_integer_vectors", SetVectors);
}

}  // namespace
}  // namespace uir::library
