// SPDX-License-Identifier: Apache-2.0
// Named integers with what is known of them, and what follows for quasi-affine expressions.
//
// pid and loop variables run over [0, extent); a size that a kernel gets when it runs lies between two numbers and is
// a multiple of a third.  Everything here holds for all values that the space admits.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "igraph/affine.h"
#include "igraph/range.h"

namespace uir {

/*! \brief What is known of a variable. */
struct Known {
  Range range;
  int64_t multiple_of = 1;
};

class Space {
 public:
  /*! \brief Makes a variable known; it replaces one of the same name. */
  void Bind(const std::string& name, Known known);
  /*! \brief Forgets a variable. */
  void Unbind(const std::string& name);
  /*! \brief What is known of a variable; throws ValueError where it was never bound. */
  const Known& Of(const ffi::String& name) const;

  //! \brief Least and greatest value: reached where every variable occurs once, else it may be wider than the truth.
  //! Throws IGraphError where a bound leaves 64 bits.
  Range RangeOf(const Affine& expr) const;
  /*! \brief A residue class that holds every value. */
  Congruence ClassOf(const Affine& expr) const;
  /*! \brief No number met while the expression is evaluated, parts of sums too, is larger; at most 2^63 - 1. */
  int64_t MagnitudeOf(const Affine& expr) const;

  /*! \brief floor(expr / k), simplified by the ranges: (8p + i) / 16 -> p / 2 for 0 <= i < 8. */
  Affine FloorDiv(const Affine& expr, int64_t k) const;
  /*! \brief expr - k * floor(expr / k), simplified. */
  Affine Mod(const Affine& expr, int64_t k) const;
  /*! \brief Joins c*k*floor(e/k) + c*(e mod k) into c*e, also where the quotient was simplified. */
  Affine Fold(const Affine& expr) const;

 private:
  Range RangeOf(const Term& term) const;
  Congruence ClassOf(const Term& term) const;
  Affine Joined(const Affine& expr) const;
  Affine Spread(const Affine& expr) const;
  std::optional<std::pair<Affine, Affine>> Aligned(const Affine& expr, int64_t k) const;

  // few, and looked up far more often than bound
  std::vector<std::pair<std::string, Known>> known_;
};

/*! \brief A residue class that holds every value, whatever integers the variables are. */
Congruence ClassOf(const Affine& expr);

/*! \brief A run-time integer: low <= value <= high, a multiple of multiple_of. */
class SizeNode : public ffi::Object {
 public:
  ffi::String name;
  int64_t low = 0;
  int64_t high = 0;
  int64_t multiple_of = 1;

  static constexpr TVMFFISEqHashKind _type_s_eq_hash_kind = kTVMFFISEqHashKindTreeNode;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("uir.Size", SizeNode, ffi::Object);
};

class Size : public ffi::ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(Size, ffi::ObjectRef, SizeNode);
};

}  // namespace uir
