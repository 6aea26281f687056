// SPDX-License-Identifier: Apache-2.0
#include "codegen/scope.h"

#include <tvm/ffi/error.h>

#include <algorithm>
#include <vector>

#include "igraph/checked.h"

namespace uir::codegen {

namespace {

int64_t Magnitude(Range r) { return std::max(std::abs(r.low), std::abs(r.high)); }

bool IsPowerOfTwo(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

int Log2(int64_t value) { return __builtin_ctzll(static_cast<unsigned long long>(value)); }

/*! \brief An expression with c*k*floor(e/k) as c*(e - e mod k), which shows what cancels. */
Affine WithoutQuotients(const Affine& expr) {
  Affine total = Affine::Constant(expr->constant);
  for (const Term& term : expr->terms) {
    if (term->kind != "floordiv" || term->coeff % term->divisor != 0) {
      total = total + Affine(0, {term});
      continue;
    }
    const Affine inner = InnerOf(term);
    total = total + (inner - inner.Mod(term->divisor)).Scale(term->coeff / term->divisor);
  }
  return total;
}

/*! \brief How often a sum of variables is in an expression: none where it has them otherwise. */
std::optional<int64_t> TimesIn(const Affine& expr, const Affine& sum) {
  std::optional<int64_t> times;
  for (const Term& part : sum->terms) {
    auto own = std::find_if(expr->terms.begin(), expr->terms.end(),
                            [&](const Term& term) { return term->kind == "var" && term->var == part->var; });
    if (own == expr->terms.end() || (*own)->coeff % part->coeff != 0) return std::nullopt;
    const int64_t each = (*own)->coeff / part->coeff;
    if (times && *times != each) return std::nullopt;
    times = each;
  }
  return times;
}

Range Intersection(Range a, Range b) { return {std::max(a.low, b.low), std::min(a.high, b.high)}; }

/*! \brief The multiple of the divisor that makes all values of the range non-negative (0 where they are). */
int64_t Lift(Range inner, int64_t divisor) { return inner.low >= 0 ? 0 : -FloorDivInt(inner.low, divisor) * divisor; }

}  // namespace

void Scope::Bind(const std::string& name, const std::string& text, Range range, int64_t multiple_of) {
  space_.Bind(name, {range, multiple_of});
  texts_[name] = text;
}

Range Scope::Of(const Affine& expr) const {
  Range range = space_.RangeOf(expr);
  for (const Most& most : most_) {
    const std::optional<int64_t> times = TimesIn(expr, most.sum);
    if (!times) continue;
    // the same variables in quotients count as others that run over all their values: that is no less than the truth
    const Affine last = expr - most.sum.Scale(*times) + most.value.Scale(*times);
    const Range at_last = Intersection(space_.RangeOf(last), space_.RangeOf(WithoutQuotients(last)));
    if (*times < 0) range.low = std::max(range.low, at_last.low);
    if (*times > 0) range.high = std::min(range.high, at_last.high);
  }
  return range;
}

void Scope::Unbind(const std::string& name) {
  space_.Unbind(name);
  texts_.erase(name);
}

int64_t Scope::PowerOfTwo(const Affine& expr, int64_t limit) const {
  uint64_t divisor = space_.ClassOf(expr).Divisor();
  uint64_t power = divisor & -divisor;
  return power == 0 || power > static_cast<uint64_t>(limit) ? limit : static_cast<int64_t>(power);
}

bool Scope::Wide(const Affine& expr) const {
  // every partial sum lies within the sum of the magnitudes
  int64_t total = std::abs(expr->constant);
  for (const Term& term : expr->terms) {
    if (term->kind == "product") {
      if (space_.MagnitudeOf(Affine(0, {term})) > INT32_MAX) return true;
    } else if (term->kind != "var") {
      Affine inner = InnerOf(term);
      Range range = Of(inner);
      if (Wide(inner) || Magnitude(range) + Lift(range, term->divisor) > INT32_MAX) return true;
    }
    total = CheckedAdd(total, Magnitude(Of(Affine(0, {term}))));
  }
  return total > INT32_MAX;
}

std::string Scope::Text(const Affine& expr, Precedence at_least) const { return Sum(expr, Wide(expr), at_least); }

std::string Scope::Atom(const Term& term, bool wide) const {
  if (term->kind == "var") {
    auto it = texts_.find(std::string(term->var));
    TVM_FFI_CHECK(it != texts_.end(), InternalError) << "no variable " << term->var << " is open here";
    return it->second;
  }
  Affine inner = InnerOf(term);
  if (term->kind == "product") {
    auto it = texts_.find(std::string(term->var));
    TVM_FFI_CHECK(it != texts_.end(), InternalError) << "no variable " << term->var << " is open here";
    // the first factor decides the type
    return (wide ? "int64_t(" + it->second + ")" : it->second) + " * " + Atom(inner->terms[0], false);
  }
  int64_t k = term->divisor;
  bool division = term->kind == "floordiv";
  if (IsPowerOfTwo(k)) {
    // shifts and masks round down for negative values too
    std::string text = Sum(inner, wide, Precedence::kProduct);
    return division ? "(" + text + " >> " + std::to_string(Log2(k)) + ")"
                    : "(" + text + " & " + std::to_string(k - 1) + ")";
  }
  int64_t lift = Lift(Of(inner), k);
  std::string text = Sum(inner + Affine::Constant(lift), wide, Precedence::kAtom);
  std::string result = text + (division ? " / " : " % ") + std::to_string(k);
  if (division && lift != 0) result += " - " + std::to_string(lift / k);
  return "(" + result + ")";
}

std::string Scope::Sum(const Affine& expr, bool wide, Precedence at_least) const {
  struct Part {
    bool negative;
    std::string text;
  };
  std::vector<Part> parts;
  for (const Term& term : expr->terms) {
    bool first = parts.empty();
    int64_t c = std::abs(term->coeff);
    std::string atom = Atom(term, wide);
    // in a wide sum the first term decides the type of the partial sums, and a wide product that of itself
    bool cast = wide && term->kind != "product" && (first || Magnitude(Of(Affine(0, {term}))) > INT32_MAX);
    std::string text = c == 1 ? (cast ? "int64_t(" + atom + ")" : atom)
                              : (cast ? "int64_t(" + std::to_string(c) + ")" : std::to_string(c)) + " * " + atom;
    parts.push_back({term->coeff < 0, text});
  }
  // a positive term first, unless that one gives the type
  if (!wide) {
    std::stable_partition(parts.begin(), parts.end(), [](const Part& part) { return !part.negative; });
  }
  std::string text;
  for (const Part& part : parts) {
    if (text.empty()) {
      text = part.negative ? "-" + part.text : part.text;
    } else {
      text += (part.negative ? " - " : " + ") + part.text;
    }
  }
  int64_t constant = expr->constant;
  bool large = std::abs(constant) > INT32_MAX;
  std::string digits = std::to_string(std::abs(constant)) + (large ? "LL" : "");
  if (text.empty()) return constant < 0 ? "(-" + digits + ")" : digits;
  if (constant != 0) text += (constant < 0 ? " - " : " + ") + digits;
  bool sum = parts.size() > 1 || constant != 0 || parts[0].negative;
  bool product = text.find(" * ") != std::string::npos;
  bool bracket = at_least == Precedence::kProduct ? sum : at_least == Precedence::kAtom && (sum || product);
  return bracket ? "(" + text + ")" : text;
}

}  // namespace uir::codegen
