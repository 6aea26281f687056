// SPDX-License-Identifier: Apache-2.0
// The variables that offsets and bounds speak of, what they range over, and their text in a C-like language.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "igraph/space.h"

namespace uir::codegen {

/*! \brief How tightly an expression binds, as far as the printers need to know. */
enum class Precedence { kSum, kProduct, kAtom };

//! \brief pid, the sizes of the graph and the loops that are open: name in the graph -> text in the source, range.
//!
//! `Text` prints a quasi-affine expression so that every intermediate value is right: where one may leave the
//! 32-bit range the variables are widened to int64_t; where the operand of a division may be negative the
//! division is corrected to round down.
class Scope {
 public:
  /*! \brief Makes a variable known; it replaces one of the same name. */
  void Bind(const std::string& name, const std::string& text, Range range, int64_t multiple_of = 1);
  //! \brief Says that a variable, whose least value is 0, is at most the value of an expression of others.
  //!
  //! What depends on both is then known more closely: of n - 4*pid with pid at most (n + 3) / 4 - 1 that it is not 0.
  void BindLast(const std::string& name, const Affine& last) { BindMost(Affine::Var(name), last); }
  /*! \brief The same of a sum of variables: pid + 48*k is at most the last group. */
  void BindMost(const Affine& sum, const Affine& last) { most_.push_back({sum, last}); }
  /*! \brief Forgets what the last call of these two said. */
  void Unbind() { most_.pop_back(); }
  /*! \brief Forgets a variable. */
  void Unbind(const std::string& name);

  /*! \brief What is known of the variables. */
  const Space& space() const { return space_; }
  /*! \brief Least and greatest value (interval arithmetic: it may be wider than the truth). */
  Range Of(const Affine& expr) const;
  //! \brief The greatest power of two, up to `limit`, that divides every value of the expression; of 0 it is `limit`.
  //! It may be less than the truth, where floor divisions hide it.
  int64_t PowerOfTwo(const Affine& expr, int64_t limit) const;
  /*! \brief Whether the expression needs 64 bits somewhere on its way. */
  bool Wide(const Affine& expr) const;
  /*! \brief C text; parenthesised where it binds less tightly than `at_least`. */
  std::string Text(const Affine& expr, Precedence at_least = Precedence::kSum) const;
  /*! \brief "int" or "int64_t": the type of `Text(expr)`. */
  std::string Type(const Affine& expr) const { return Wide(expr) ? "int64_t" : "int"; }

 private:
  std::string Atom(const Term& term, bool wide) const;
  std::string Sum(const Affine& expr, bool wide, Precedence at_least) const;
  /*! \brief What is known of a sum of variables beside its range. */
  struct Most {
    Affine sum, value;
  };

  Space space_;
  std::vector<Most> most_;
  std::map<std::string, std::string> texts_;
};

}  // namespace uir::codegen
