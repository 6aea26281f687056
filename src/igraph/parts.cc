// SPDX-License-Identifier: Apache-2.0
#include "igraph/parts.h"

#include <vector>

#include "igraph/checked.h"

namespace uir {

std::pair<Affine, Affine> Split(const Affine& expr, const std::function<bool(const Affine& term)>& chosen) {
  std::vector<Term> some, rest;
  for (const Term& term : expr->terms) (chosen(Affine(0, {term})) ? some : rest).push_back(term);
  return {Affine(0, std::move(some)), Affine(expr->constant, std::move(rest))};
}

std::pair<Affine, Affine> SplitMultiples(const Affine& expr, int64_t k) {
  auto [outside, inside] = Split(expr, [k](const Affine& term) { return term->terms[0]->coeff % k == 0; });
  const Affine multiples = Affine::Constant(CheckedAdd(expr->constant, -FloorModInt(expr->constant, k)));
  return {outside + multiples, inside - multiples};
}

Affine Substitute(const Affine& expr, const ffi::Map<ffi::String, Affine>& env, const Space& space) {
  Affine result = Affine::Constant(expr->constant);
  for (const Term& term : expr->terms) {
    Affine atom = Affine::Constant(0);
    if (term->kind == "var") {
      atom = Substitute(Affine::Var(term->var), env);
    } else if (term->kind == "product") {
      atom = Substitute(Affine::Var(term->var), env) * Substitute(InnerOf(term), env, space);
    } else {
      const Affine inner = Substitute(InnerOf(term), env, space);
      atom = term->kind == "floordiv" ? space.FloorDiv(inner, term->divisor) : space.Mod(inner, term->divisor);
    }
    result = result + atom.Scale(term->coeff);
  }
  return result;
}

}  // namespace uir
