// SPDX-License-Identifier: Apache-2.0
// The scalar functions by themselves, as packed functions: for tests, and for people who ask what is printed.
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/reflection/registry.h>

#include <set>

#include "codegen/cuda/functions.h"
#include "codegen/cuda/helpers.h"
#include "codegen/cuda/scalar.h"
#include "codegen/error.h"

namespace uir::codegen::cuda {
namespace {

namespace ffi = tvm::ffi;

/*! \brief The text of expressions and what must stand before them. */
ffi::Map<ffi::String, ffi::Any> Described(const Expression& expression) {
  ffi::Array<ffi::String> helpers;
  for (const std::string& key : expression.helpers) helpers.push_back(key);
  return {{"text", ffi::String(expression.text)}, {"dtype", ffi::String(expression.dtype)}, {"helpers", helpers}};
}

/*! \brief `of` is "unary", "binary" or "compare": a function of stored values, rounded to the stored type. */
ffi::Map<ffi::String, ffi::Any> Stored(const std::string& of, const std::string& name, const std::string& dtype,
                                       const ffi::Array<ffi::Any>& params, const std::string& a, const std::string& b) {
  const ScalarType& type = TypeOf(dtype);
  std::string x = Widen(type, a), y = Widen(type, b);
  Expression made = of == "unary"     ? UnaryExpression(name, dtype, x, params)
                    : of == "binary"  ? BinaryExpression(name, dtype, x, y)
                    : of == "compare" ? CompareExpression(name, dtype, x, y)
                                      : Expression{};
  if (made.dtype.empty()) CodegenError("There is no class of scalar functions " + of + ".", "");
  made.text = Narrow(TypeOf(made.dtype), made.text);
  for (const std::string& key : ConversionHelpers(type)) made.helpers.push_back(key);
  return Described(made);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  tvm::ffi::reflection::GlobalDef()
      .def("uir.codegen.cuda.scalar_function",
           [](ffi::String of, ffi::String name, ffi::String dtype, ffi::Array<ffi::Any> params, ffi::String a,
              ffi::String b) { return Stored(of, name, dtype, params, a, b); })
      .def("uir.codegen.cuda.scalar_cast", [](ffi::String from, ffi::String to, ffi::String round,
                                              ffi::String x) { return Described(CastExpression(from, to, round, x)); })
      .def("uir.codegen.cuda.scalar_literal",
           [](ffi::String dtype, ffi::Any value) {
             const ScalarType& type = TypeOf(dtype);
             if (auto whole = value.as<int64_t>()) return ffi::String(StoredLiteral(type, *whole));
             return ffi::String(StoredLiteral(type, value.cast<double>()));
           })
      .def("uir.codegen.cuda.stored_type",
           [](ffi::String dtype) { return ffi::String(TypeOf(std::string(dtype)).stored); })
      .def("uir.codegen.cuda.helper_text", [](ffi::Array<ffi::String> keys) {
        std::set<std::string> wanted;
        for (const ffi::String& key : keys) wanted.insert(std::string(key));
        return ffi::String(HelperText(wanted));
      });
}

}  // namespace
}  // namespace uir::codegen::cuda
