// SPDX-License-Identifier: Apache-2.0
#include "igraph/numbered.h"

#include <tvm/ffi/reflection/registry.h>

#include <numeric>

#include "igraph/checked.h"

namespace uir {

NumberedAffine::NumberedAffine(const Affine& expr, const std::function<int(const std::string&)>& number_of) {
  constant_ = expr->constant;
  for (const Term& term : expr->terms) {
    Part part;
    part.coeff = term->coeff;
    if (term->kind == "var") {
      part.var = number_of(std::string(term->var));
    } else {
      part.kind = term->kind == "product" ? Kind::kTimes : term->kind == "floordiv" ? Kind::kDiv : Kind::kMod;
      if (part.kind == Kind::kTimes) part.var = number_of(std::string(term->var));
      part.divisor = term->divisor;
      part.inner.emplace_back(InnerOf(term), number_of);
    }
    parts_.push_back(std::move(part));
  }
}

int64_t NumberedAffine::Evaluate(const std::vector<int64_t>& values) const {
  int64_t result = constant_;
  for (const Part& part : parts_) {
    int64_t atom;
    if (part.kind == Kind::kVar) {
      atom = values[part.var];
    } else {
      int64_t inner = part.inner[0].Evaluate(values);
      atom = part.kind == Kind::kTimes ? CheckedMul(values[part.var], inner)
             : part.kind == Kind::kDiv ? FloorDivInt(inner, part.divisor)
                                       : FloorModInt(inner, part.divisor);
    }
    result = CheckedAdd(result, CheckedMul(part.coeff, atom));
  }
  return result;
}

std::optional<int64_t> NumberedAffine::GrowthIn(int v, int64_t step) const {
  int64_t total = 0;
  for (const Part& part : parts_) {
    int64_t growth = part.var == v ? step : 0;
    if (part.kind == Kind::kTimes) {
      if (part.Has(v)) return std::nullopt;
      growth = 0;
    } else if (part.kind != Kind::kVar) {
      std::optional<int64_t> inner = part.inner[0].GrowthIn(v, step);
      if (!inner || *inner % part.divisor != 0) return std::nullopt;
      growth = part.kind == Kind::kDiv ? *inner / part.divisor : 0;
    }
    total = CheckedAdd(total, CheckedMul(part.coeff, growth));
  }
  return total;
}

std::optional<Period> NumberedAffine::PeriodIn(int v, int64_t most) const {
  Period all;
  for (const Part& part : parts_) {
    Period one;
    if (part.kind == Kind::kVar) {
      one.shift = part.var == v ? part.coeff : 0;
    } else if (part.kind == Kind::kTimes) {
      if (part.Has(v)) return std::nullopt;
    } else {
      std::optional<Period> inner = part.inner[0].PeriodIn(v, most);
      if (!inner) return std::nullopt;
      int64_t times = part.divisor / std::gcd(inner->shift, part.divisor);
      if (__builtin_mul_overflow(inner->period, times, &one.period) || one.period > most) return std::nullopt;
      int64_t whole = part.kind == Kind::kDiv ? CheckedMul(inner->shift, times) / part.divisor : 0;
      one.shift = CheckedMul(part.coeff, whole);
    }
    int64_t both;
    if (__builtin_mul_overflow(all.period / std::gcd(all.period, one.period), one.period, &both) || both > most) {
      return std::nullopt;
    }
    all.shift = CheckedAdd(CheckedMul(all.shift, both / all.period), CheckedMul(one.shift, both / one.period));
    all.period = both;
  }
  return all;
}

void NumberedAffine::Variables(std::set<int>* out) const {
  for (const Part& part : parts_) {
    if (part.kind == Kind::kVar || part.kind == Kind::kTimes) out->insert(part.var);
    if (part.kind != Kind::kVar) part.inner[0].Variables(out);
  }
}

bool NumberedAffine::Part::Has(int v) const {
  std::set<int> found;
  inner[0].Variables(&found);
  return var == v || found.count(v);
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::GlobalDef().def("uir.affine.growth", [](const Affine& e, const ffi::String& name, int64_t step) {
    NumberedAffine numbered(e, [&](const std::string& one) { return one == std::string(name) ? 0 : 1; });
    std::optional<int64_t> growth = numbered.GrowthIn(0, step);
    return growth ? ffi::Optional<int64_t>(*growth) : ffi::Optional<int64_t>(std::nullopt);
  });
}

}  // namespace uir
