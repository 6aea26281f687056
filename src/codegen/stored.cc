// SPDX-License-Identifier: Apache-2.0
// The table of element types.
#include "codegen/stored.h"

#include "codegen/error.h"

namespace uir::codegen {

namespace {

constexpr ScalarType kTypes[] = {
    {"fp32", Kind::kFloat, 4, "float"},      {"fp16", Kind::kFloat, 2, "half"},
    {"bf16", Kind::kFloat, 2, "bfloat16_t"}, {"int8", Kind::kInt, 1, "int8_t"},
    {"int16", Kind::kInt, 2, "int16_t"},     {"int32", Kind::kInt, 4, "int32_t"},
    {"int64", Kind::kInt, 8, "int64_t"},     {"uint8", Kind::kUint, 1, "uint8_t"},
    {"uint16", Kind::kUint, 2, "uint16_t"},  {"uint32", Kind::kUint, 4, "uint32_t"},
    {"uint64", Kind::kUint, 8, "uint64_t"},  {"bool", Kind::kBool, 1, "uint8_t"},
};

/*! \brief Dtypes of the iGraph that these cores have no type for, and what it is that they lack. */
constexpr struct {
  const char* name;
  const char* lacks;
} kRefused[] = {{"fp64", "fp64"}, {"fp8e4m3", "fp8"}, {"fp8e5m2", "fp8"}};

}  // namespace

const ScalarType* FindType(const std::string& dtype) {
  for (const ScalarType& type : kTypes) {
    if (dtype == type.name) return &type;
  }
  return nullptr;
}

const ScalarType& TypeOf(const std::string& dtype, const std::string& core, const std::string& where) {
  if (const ScalarType* type = FindType(dtype)) return *type;
  for (const auto& refused : kRefused) {
    if (dtype == refused.name) {
      CodegenError(core + " has no " + refused.lacks + ".", where, "values of " + dtype,
                   "fp32, fp16, bf16, integers and bool", "compute it in fp32, or on the host");
    }
  }
  CodegenError("'" + dtype + "' is no dtype.", where);
}

}  // namespace uir::codegen
