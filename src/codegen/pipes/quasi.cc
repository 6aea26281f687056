// SPDX-License-Identifier: Apache-2.0
#include "codegen/pipes/quasi.h"

#include <cstdlib>
#include <numeric>

namespace uir {
namespace codegen {
namespace pipes {

Quasi::Quasi(const Affine& expr, const std::function<int(const std::string&)>& number_of) {
  constant_ = expr->constant;
  for (const Term& term : expr->terms) {
    Part part;
    part.coeff = term->coeff;
    if (term->kind == "var") {
      part.var = number_of(std::string(term->var));
    } else {
      part.kind = term->kind == "floordiv" ? Kind::kDiv : Kind::kMod;
      part.divisor = term->divisor;
      part.inner.emplace_back(term->inner.value().as_or_throw<Affine>(), number_of);
    }
    parts_.push_back(std::move(part));
  }
}

namespace {

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

}  // namespace

int64_t Quasi::Evaluate(const std::vector<int64_t>& values) const {
  int64_t result = constant_;
  for (const Part& part : parts_) {
    if (part.kind == Kind::kVar) {
      result += part.coeff * values[part.var];
      continue;
    }
    int64_t inner = part.inner[0].Evaluate(values);
    int64_t quotient = FloorDiv(inner, part.divisor);
    result += part.coeff * (part.kind == Kind::kDiv ? quotient : inner - quotient * part.divisor);
  }
  return result;
}

std::optional<Period> Quasi::PeriodIn(int v, int64_t most) const {
  Period all;
  for (const Part& part : parts_) {
    Period one;
    if (part.kind == Kind::kVar) {
      one.shift = part.var == v ? part.coeff : 0;
    } else {
      std::optional<Period> inner = part.inner[0].PeriodIn(v, most);
      if (!inner) return std::nullopt;
      int64_t times = part.divisor / std::gcd(std::llabs(inner->shift), part.divisor);
      one.period = inner->period * times;
      if (one.period > most) return std::nullopt;
      one.shift = part.kind == Kind::kDiv ? part.coeff * (inner->shift * times / part.divisor) : 0;
    }
    int64_t both = std::lcm(all.period, one.period);
    if (both > most) return std::nullopt;
    all.shift = all.shift * (both / all.period) + one.shift * (both / one.period);
    all.period = both;
  }
  return all;
}

std::pair<int64_t, int64_t> Quasi::RangeOver(const std::vector<std::pair<int64_t, int64_t>>& ranges) const {
  std::pair<int64_t, int64_t> all(constant_, constant_);
  for (const Part& part : parts_) {
    std::pair<int64_t, int64_t> one;
    if (part.kind == Kind::kVar) {
      one = ranges[part.var];
    } else {
      one = part.inner[0].RangeOver(ranges);
      int64_t low = FloorDiv(one.first, part.divisor), high = FloorDiv(one.second, part.divisor);
      if (part.kind == Kind::kDiv) {
        one = {low, high};
      } else if (low == high) {
        one = {one.first - low * part.divisor, one.second - low * part.divisor};
      } else {
        one = {0, part.divisor - 1};
      }
    }
    all.first += part.coeff * (part.coeff > 0 ? one.first : one.second);
    all.second += part.coeff * (part.coeff > 0 ? one.second : one.first);
  }
  return all;
}

void Quasi::Variables(std::set<int>* out) const {
  for (const Part& part : parts_) {
    if (part.kind == Kind::kVar) {
      out->insert(part.var);
    } else {
      part.inner[0].Variables(out);
    }
  }
}

}  // namespace pipes
}  // namespace codegen
}  // namespace uir
