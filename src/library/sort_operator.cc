// SPDX-License-Identifier: Apache-2.0
// The packed function of sorts: operands checked, attributes parsed once.

#include <tvm/ffi/function.h>
#include <tvm/ffi/reflection/registry.h>

#include <array>
#include <memory>

#include "library/arguments.h"
#include "library/parallel.h"
#include "library/plan_cache.h"
#include "library/sort.h"

namespace uir::library {
namespace {

constexpr const char* kOp = "sort";

struct NamedType {
  uint8_t code, bits;
  SortType type;
};
constexpr std::array<NamedType, 13> kTypes = {{
    {kDLInt, 8, SortType::kI8},
    {kDLInt, 16, SortType::kI16},
    {kDLInt, 32, SortType::kI32},
    {kDLInt, 64, SortType::kI64},
    {kDLUInt, 8, SortType::kU8},
    {kDLUInt, 16, SortType::kU16},
    {kDLUInt, 32, SortType::kU32},
    {kDLUInt, 64, SortType::kU64},
    {kDLBool, 8, SortType::kU8},
    {kDLFloat, 16, SortType::kF16},
    {kDLBfloat, 16, SortType::kBF16},
    {kDLFloat, 32, SortType::kF32},
    {kDLFloat, 64, SortType::kF64},
}};

SortType TypeOf(const DLTensor* tensor) {
  for (const NamedType& each : kTypes) {
    if (tensor->dtype.lanes == 1 && tensor->dtype.code == each.code && tensor->dtype.bits == each.bits) {
      return each.type;
    }
  }
  TVM_FFI_THROW(ValueError) << "Library operator " << kOp << ": operand 1 has type code "
                            << static_cast<int>(tensor->dtype.code) << " with " << static_cast<int>(tensor->dtype.bits)
                            << " bits.\n  limit:  bool, integers of 8 to 64 bits, float16, bfloat16, float32 and "
                               "float64\n  remedy: cast it to a type that holds its numbers.";
}

std::shared_ptr<const SortAttrs> Find(const ffi::String& text) {
  static auto* cache = new PlanCache<SortAttrs>();
  return cache->Get(text, [&] { return std::make_shared<SortAttrs>(SortAttrs::Parse(text)); });
}

/*! (x, attributes, [values], [indices]) */
void Sort(ffi::PackedArgs args, ffi::Any*) {
  const bool has_text = args.size() >= 3 && args[1].as<ffi::String>();
  const std::shared_ptr<const SortAttrs> attrs = has_text ? Find(args[1].cast<ffi::String>()) : nullptr;
  if (!attrs || args.size() != 2 + attrs->values + attrs->indices) {
    TVM_FFI_THROW(ValueError)
        << "Library operator " << kOp << " got " << args.size()
        << " arguments.\n  need:   x, attributes, and the results that they name: values, indices";
  }
  auto tensor = [&](int place, const char* operand, int64_t along) {
    const DLTensor* found = args[place].cast<DLTensor*>();
    CheckTensor(found, kOp, operand, kDLCPU);
    CheckElements(found, Count({attrs->outer, along, attrs->inner}), true, kOp, operand);
    return found;
  };
  SortData data;
  const DLTensor* x = tensor(0, "1", attrs->length);
  data.x = Data(x), data.type = TypeOf(x);
  if (attrs->values) {
    const DLTensor* values = tensor(2, "values", attrs->count);
    if (TypeOf(values) != data.type) {
      TVM_FFI_THROW(ValueError) << "Library operator " << kOp << ": the values have another type than operand 1.";
    }
    data.values = const_cast<char*>(Data(values));
  }
  if (attrs->indices) {
    const DLTensor* indices = tensor(2 + attrs->values, "indices", attrs->count);
    const DLDataType type = indices->dtype;
    if (type.code != kDLInt || type.lanes != 1 || (type.bits != 32 && type.bits != 64)) {
      TVM_FFI_THROW(ValueError) << "Library operator " << kOp << ": the indices are neither int32 nor int64.";
    }
    data.indices = const_cast<char*>(Data(indices)), data.wide_indices = type.bits == 64;
  }
  if (!attrs->empty()) RunSort(*attrs, data, PoolThreads());
}

TVM_FFI_STATIC_INIT_BLOCK() { tvm::ffi::reflection::GlobalDef().def_packed("uir.library.cpu.sort", Sort); }

}  // namespace
}  // namespace uir::library
