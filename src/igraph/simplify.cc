// SPDX-License-Identifier: Apache-2.0
// Quotients, remainders and sums of a space, simplified by what is known of the variables.
#include <functional>
#include <set>

#include "igraph/parts.h"
#include "igraph/space.h"

namespace uir {

namespace {

Affine AffineOf(const Term& term) { return Affine(0, {term}); }

/*! \brief The factors g > 1 of k that some coefficients share with it, the greatest first. */
std::set<int64_t, std::greater<int64_t>> CommonFactors(const Affine& expr, int64_t k) {
  std::set<int64_t, std::greater<int64_t>> factors;
  for (const Term& term : expr->terms) factors.insert(std::gcd(term->coeff, k));
  factors.erase(1);
  return factors;
}

bool Divides(int64_t k, int64_t a, int64_t b) {
  int64_t product;
  return !__builtin_mul_overflow(a, b, &product) && product % k == 0;
}

}  // namespace

/*! \brief (multiples of k, a rest in [0, k)) where an expression is their sum; what is known of sizes counts. */
std::optional<std::pair<Affine, Affine>> Space::Aligned(const Affine& expr, int64_t k) const {
  std::vector<Term> whole, rest;
  for (const Term& term : expr->terms) (ClassOf(AffineOf(term)).IsMultiple(k) ? whole : rest).push_back(term);
  if (whole.empty()) return std::nullopt;
  Affine part(expr->constant, std::move(rest));
  if (!RangeOf(part).Within({0, k - 1})) return std::nullopt;
  return std::make_pair(Affine(0, std::move(whole)), part);
}

Affine Space::FloorDiv(const Affine& expr, int64_t k) const {
  if (k <= 1) return expr.FloorDiv(k);
  auto [multiples, inside] = SplitMultiples(expr, k);
  Affine outside = multiples.FloorDiv(k);
  Range quotients = uir::FloorDiv(RangeOf(inside), k);
  if (quotients.Constant()) return outside + Affine::Constant(quotients.low);
  for (int64_t g : CommonFactors(inside, k)) {
    auto [whole, rest] = SplitMultiples(inside, g);
    if (RangeOf(rest).Within({0, g - 1})) return outside + FloorDiv(whole.FloorDiv(g), k / g);
  }
  if (auto aligned = Aligned(inside, k)) return outside + aligned->first.FloorDiv(k);
  if (inside->terms.size() == 1 && inside->constant == 0 && inside->terms[0]->coeff == 1) {
    const Term term = inside->terms[0];
    int64_t both;
    // floor(floor(e / m) / k) = floor(e / (m * k))
    if (term->kind == "floordiv" && !__builtin_mul_overflow(term->divisor, k, &both)) {
      return outside + FloorDiv(InnerOf(term), both);
    }
    // (e mod m) / k = (e / k) mod (m / k) where k divides m
    if (term->kind == "mod" && term->divisor % k == 0) {
      return outside + Mod(FloorDiv(InnerOf(term), k), term->divisor / k);
    }
  }
  return outside + inside.FloorDiv(k);
}

Affine Space::Mod(const Affine& expr, int64_t k) const {
  if (k <= 1) return expr.Mod(k);
  for (const Term& term : expr->terms) {
    // c * (e mod m) = c * e, modulo k, where k divides c * m
    if (term->kind == "mod" && Divides(k, term->coeff, term->divisor)) {
      return Mod(expr + InnerOf(term).Scale(term->coeff) - AffineOf(term), k);
    }
  }
  Affine inside = SplitMultiples(expr, k).second;
  Range quotients = uir::FloorDiv(RangeOf(inside), k);
  if (quotients.Constant()) return inside - Affine::Constant(CheckedMul(k, quotients.low));
  for (int64_t g : CommonFactors(inside, k)) {
    auto [whole, rest] = SplitMultiples(inside, g);
    if (RangeOf(rest).Within({0, g - 1})) return Mod(whole.FloorDiv(g), k / g).Scale(g) + rest;
  }
  if (auto aligned = Aligned(inside, k)) return aligned->second;
  return inside.Mod(k);
}

Affine Space::Fold(const Affine& expr) const {
  Affine folded = Joined(expr);
  for (const Term& term : folded->terms) {
    if (term->kind != "mod") continue;
    Affine spread = Joined(Spread(folded));
    return spread->terms.size() < folded->terms.size() ? spread : folded;
  }
  return folded;
}

Affine Space::Joined(const Affine& expr) const {
  size_t terms = expr->terms.size();
  for (const Term& term : expr->terms) {
    if (term->kind != "mod") continue;
    Affine quotient = FloorDiv(InnerOf(term), term->divisor);
    Affine joined = expr - AffineOf(term) - quotient.Scale(CheckedMul(term->coeff, term->divisor));
    size_t left = joined->terms.size();
    if (left + 1 < terms || (quotient->terms.size() == 1 && left + 2 == terms)) {
      return Joined(joined + InnerOf(term).Scale(term->coeff));
    }
  }
  return expr;
}

/*! \brief floor((c*(e mod m) + r)/k) as floor((c*e + r)/k) - (c*m/k)*floor(e/m), k dividing c*m. */
Affine Space::Spread(const Affine& expr) const {
  Affine result = expr;
  for (const Term& term : expr->terms) {
    if (term->kind != "floordiv") continue;
    Affine inner = InnerOf(term), taken = Affine::Constant(0);
    bool spreads = false;
    for (const Term& part : InnerOf(term)->terms) {
      if (part->kind != "mod" || !Divides(term->divisor, part->coeff, part->divisor)) continue;
      inner = inner - AffineOf(part) + InnerOf(part).Scale(part->coeff);
      Affine whole = FloorDiv(InnerOf(part), part->divisor);
      taken = taken + whole.Scale(part->coeff * part->divisor / term->divisor);
      spreads = true;
    }
    if (!spreads || (taken->terms.empty() && taken->constant == 0)) continue;
    Affine spread = FloorDiv(inner, term->divisor) - taken;
    result = result - AffineOf(term) + spread.Scale(term->coeff);
  }
  return result;
}

}  // namespace uir
