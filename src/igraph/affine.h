// SPDX-License-Identifier: Apache-2.0
// Quasi-affine expressions over pid, loop variables and symbols.
//
// An expression is a constant plus terms c*x, c*floor(e/k) and c*(e mod k).  It is kept in one
// canonical form (terms merged and sorted), so structural equality decides syntactic equality.
// Addresses of tensors that have several open dimensions also have terms c*s*x, products of sizes
// with a variable, a quotient or a remainder; they are not affine, and whoever asks isl must part them first.
// Coefficients and values are of 64 bits; what would leave them throws IGraphError.
#pragma once

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/object.h>
#include <tvm/ffi/optional.h>
#include <tvm/ffi/string.h>

#include <string>
#include <vector>

namespace uir {

namespace ffi = tvm::ffi;

class Affine;

/*! \brief One term of an expression: coeff * (var | floor(inner / divisor) | inner mod divisor | var * inner). */
class TermNode : public ffi::Object {
 public:
  int64_t coeff = 0;
  /*! \brief "var", "floordiv", "mod" or "product". */
  ffi::String kind;
  /*! \brief The variable's name, or that of a product's first factor; empty for floordiv and mod. */
  ffi::String var;
  //! \brief The inner Affine of floordiv and mod; of a product the other factors, one term with the coefficient 1.
  //! Factors are sorted; a quotient or remainder, of which a product has at most one, comes last.
  ffi::Optional<ffi::ObjectRef> inner;
  int64_t divisor = 1;

  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("uir.Term", TermNode, ffi::Object);
};

class Term : public ffi::ObjectRef {
 public:
  Term(int64_t coeff, ffi::String kind, ffi::String var, ffi::Optional<ffi::ObjectRef> inner, int64_t divisor);
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Term, ffi::ObjectRef, TermNode);
};

/*! \brief constant + sum of terms, canonical. */
class AffineNode : public ffi::Object {
 public:
  int64_t constant = 0;
  ffi::Array<Term> terms;

  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("uir.Affine", AffineNode, ffi::Object);
};

class Affine : public ffi::ObjectRef {
 public:
  /*! \brief Canonicalise and build. */
  Affine(int64_t constant, std::vector<Term> terms);

  static Affine Constant(int64_t value);
  static Affine Var(const ffi::String& name);

  Affine operator+(const Affine& other) const;
  Affine operator-(const Affine& other) const { return *this + other.Scale(-1); }
  Affine Scale(int64_t factor) const;
  /*! \brief The product, multiplied out; throws IGraphError where two quotients or remainders meet. */
  Affine operator*(const Affine& other) const;
  /*! \brief floor(this / divisor); throws ValueError unless divisor > 0. */
  Affine FloorDiv(int64_t divisor) const;
  /*! \brief this - divisor * floor(this / divisor). */
  Affine Mod(int64_t divisor) const;
  /*! \brief Value for concrete variables; throws ValueError on an unbound one. */
  int64_t Evaluate(const ffi::Map<ffi::String, int64_t>& env) const;
  /*! \brief Names of the variables, sorted, each once. */
  ffi::Array<ffi::String> Variables() const;
  /*! \brief The text form, e.g. "4096*lid + 64*pid + (pid / 3)"; parsed back by the text format. */
  std::string ToString() const;

  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Affine, ffi::ObjectRef, AffineNode);
};

//! \brief Replace variables by expressions.
//! \note A free function: naming Map<String, Affine> inside the class would instantiate the type
//!       traits of Affine while it is incomplete.
Affine Substitute(const Affine& expr, const ffi::Map<ffi::String, Affine>& env);

//! \brief The expression in the notation of "isl" or "python", each variable as `names` has it.
//! \note Throws ValueError for another language or a variable without a name.
std::string Render(const Affine& expr, const ffi::Map<ffi::String, ffi::String>& names, const std::string& language);

/*! \brief The expression inside a floordiv or mod term; the other factors of a product. */
inline Affine InnerOf(const Term& term) { return term->inner.value().as_or_throw<Affine>(); }

}  // namespace uir
