// SPDX-License-Identifier: Apache-2.0
// The named scalar functions of unary, binary, compare, cast and reduce iOps as CUDA C++ expressions.
//
// Operands are expressions of the *compute* type of a dtype (see scalar.h) that may be evaluated several times; so
// is the result (bool of comparisons and predicates).  The meaning is that of `uir_tvm.igraph.iops_scalar`: max and
// min keep NaN, integers wrap, an integer over zero gives zero, shifts by the width or more give zero (or the sign).
#pragma once

#include <tvm/ffi/any.h>
#include <tvm/ffi/container/array.h>
#include <tvm/ffi/string.h>

#include <set>
#include <string>
#include <vector>

namespace uir::codegen::cuda {

/*! \brief An expression, and the device functions (keys of helpers.h) that it calls. */
struct Expression {
  std::string text;
  std::vector<std::string> helpers;
  /*! \brief The dtype of the result: that of the operands, or "bool". */
  std::string dtype;
};

/*! \brief `name` of `x`; `params` are numbers (int or float), rounded to `dtype`. */
Expression UnaryExpression(const std::string& name, const std::string& dtype, const std::string& x,
                           const tvm::ffi::Array<tvm::ffi::Any>& params);

/*! \brief `name` of `a` and `b`. */
Expression BinaryExpression(const std::string& name, const std::string& dtype, const std::string& a,
                            const std::string& b);

/*! \brief Whether `a` and `b` of `dtype` compare so. */
Expression CompareExpression(const std::string& name, const std::string& dtype, const std::string& a,
                             const std::string& b);

//! \brief A stored value of `from` as a stored value of `to`.
//!
//! `round` is "rint", "floor", "ceil", "trunc", "round" or empty (rint; of float to integer trunc).  Integers out of
//! range saturate and NaN gives 0.
Expression CastExpression(const std::string& from, const std::string& to, const std::string& round,
                          const std::string& x);

/*! \brief Two partial results of reduce `name` joined, in the *carried* type of the dtype (see scalar.h). */
Expression JoinExpression(const std::string& name, const std::string& dtype, const std::string& a,
                          const std::string& b);

/*! \brief The value of reduce `name` over nothing, in the carried type. */
std::string IdentityLiteral(const std::string& name, const std::string& dtype);

/*! \brief A stored value in the carried type, and back (rounded, wrapped). */
std::string Carry(const std::string& dtype, const std::string& value);
std::string Uncarry(const std::string& dtype, const std::string& value);

/*! \brief C's functions that expressions call, which no variable of a kernel may hide. */
std::set<std::string> FunctionNames();

}  // namespace uir::codegen::cuda
