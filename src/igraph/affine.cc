// SPDX-License-Identifier: Apache-2.0
#include "igraph/affine.h"

#include <tvm/ffi/error.h>
#include <tvm/ffi/reflection/registry.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "igraph/checked.h"

namespace uir {

namespace {

/*! \brief The term without its coefficient, as text: the sort and merge key. */
std::string AtomOf(const Term& term) {
  if (term->kind == "var") return std::string(term->var);
  if (term->kind == "product") return std::string(term->var) + "*" + AtomOf(InnerOf(term)->terms[0]);
  const char* op = term->kind == "floordiv" ? " / " : " % ";
  Affine inner = InnerOf(term);
  std::string text = inner.ToString();
  bool atom = inner->constant == 0 && inner->terms.size() == 1 && inner->terms[0].as_or_throw<Term>()->coeff == 1;
  return "(" + (atom ? text : "(" + text + ")") + op + std::to_string(term->divisor) + ")";
}

Term WithCoeff(const Term& term, int64_t coeff) {
  return Term(coeff, term->kind, term->var, term->inner, term->divisor);
}

/*! \brief The variables that a term multiplies, and the quotient or remainder among its factors. */
struct Factors {
  std::vector<std::string> variables;
  std::optional<Term> quotient;

  void Take(const Term& term) {
    if (term->kind == "var" || term->kind == "product") variables.push_back(std::string(term->var));
    if (term->kind == "product") return Take(InnerOf(term)->terms[0]);
    if (term->kind == "var") return;
    if (quotient) {
      TVM_FFI_THROW(IGraphError) << "A product of two quotients or remainders, " << AtomOf(*quotient) << " and "
                                 << AtomOf(term) << ", is no address.";
    }
    quotient = WithCoeff(term, 1);
  }

  Term Product(int64_t coeff) && {
    std::sort(variables.begin(), variables.end());
    std::optional<Term> made = std::move(quotient);
    if (!made) {
      made = Term(1, "var", variables.back(), std::nullopt, 1);
      variables.pop_back();
    }
    for (auto name = variables.rbegin(); name != variables.rend(); ++name) {
      made = Term(1, "product", *name, ffi::Optional<ffi::ObjectRef>(Affine(0, {*made})), 1);
    }
    return WithCoeff(*made, coeff);
  }
};

void CheckDivisor(int64_t divisor) {
  if (divisor <= 0) {
    TVM_FFI_THROW(ValueError) << "quasi-affine division by " << divisor << ": the divisor must be a positive constant";
  }
}

}  // namespace

Term::Term(int64_t coeff, ffi::String kind, ffi::String var, ffi::Optional<ffi::ObjectRef> inner, int64_t divisor) {
  auto node = ffi::make_object<TermNode>();
  node->coeff = coeff;
  node->kind = std::move(kind);
  node->var = std::move(var);
  node->inner = std::move(inner);
  node->divisor = divisor;
  data_ = std::move(node);
}

Affine::Affine(int64_t constant, std::vector<Term> terms) {
  std::map<std::string, Term> merged;
  for (const Term& term : terms) {
    std::string key = AtomOf(term);
    auto it = merged.find(key);
    if (it == merged.end()) {
      merged.emplace(key, term);
    } else {
      it->second = WithCoeff(term, CheckedAdd(it->second->coeff, term->coeff));
    }
  }
  // c*k*floor(e/k) + c*(e mod k) = c*e
  bool folded = true;
  while (folded) {
    folded = false;
    for (auto it = merged.begin(); it != merged.end() && !folded; ++it) {
      if (it->second->kind != "mod" || it->second->coeff == 0) continue;
      Term mod = it->second;
      Term quotient(1, "floordiv", "", mod->inner, mod->divisor);
      auto div = merged.find(AtomOf(quotient));
      int64_t whole;
      if (__builtin_mul_overflow(mod->coeff, mod->divisor, &whole)) continue;
      if (div == merged.end() || div->second->coeff != whole) continue;
      merged.erase(div);
      merged.erase(AtomOf(mod));
      Affine inner = InnerOf(mod).Scale(mod->coeff);
      constant = CheckedAdd(constant, inner->constant);
      for (const Term& term : inner->terms) {
        std::string key = AtomOf(term);
        auto at = merged.find(key);
        if (at == merged.end()) {
          merged.emplace(key, term);
        } else {
          at->second = WithCoeff(term, CheckedAdd(at->second->coeff, term->coeff));
        }
      }
      folded = true;
    }
  }
  auto node = ffi::make_object<AffineNode>();
  node->constant = constant;
  for (const auto& kv : merged) {
    if (kv.second->coeff != 0) node->terms.push_back(kv.second);
  }
  data_ = std::move(node);
}

Affine Affine::Constant(int64_t value) { return Affine(value, {}); }

Affine Affine::Var(const ffi::String& name) { return Affine(0, {Term(1, "var", name, std::nullopt, 1)}); }

Affine Affine::operator+(const Affine& other) const {
  std::vector<Term> terms(get()->terms.begin(), get()->terms.end());
  terms.insert(terms.end(), other->terms.begin(), other->terms.end());
  return Affine(CheckedAdd(get()->constant, other->constant), std::move(terms));
}

Affine Affine::Scale(int64_t factor) const {
  std::vector<Term> terms;
  for (const Term& term : get()->terms) terms.push_back(WithCoeff(term, CheckedMul(term->coeff, factor)));
  return Affine(CheckedMul(get()->constant, factor), std::move(terms));
}

Affine Affine::operator*(const Affine& other) const {
  if (other->terms.empty()) return Scale(other->constant);
  if (get()->terms.empty()) return other.Scale(get()->constant);
  Affine result = other.Scale(get()->constant) + (*this - Constant(get()->constant)).Scale(other->constant);
  std::vector<Term> products;
  for (const Term& one : get()->terms) {
    for (const Term& two : other->terms) {
      Factors factors;
      factors.Take(one);
      factors.Take(two);
      products.push_back(std::move(factors).Product(CheckedMul(one->coeff, two->coeff)));
    }
  }
  return result + Affine(0, std::move(products));
}

Affine Affine::FloorDiv(int64_t divisor) const {
  CheckDivisor(divisor);
  if (divisor == 1) return *this;
  // Whole multiples of the divisor come out; what stays is floor(rest / divisor).
  std::vector<Term> outside, inside;
  for (const Term& term : get()->terms) {
    (term->coeff % divisor == 0 ? outside : inside)
        .push_back(term->coeff % divisor == 0 ? WithCoeff(term, term->coeff / divisor) : term);
  }
  int64_t quotient = FloorDivInt(get()->constant, divisor);
  int64_t remainder = FloorModInt(get()->constant, divisor);
  Affine result(quotient, std::move(outside));
  if (inside.empty()) return result;
  // floor(floor(e/a)/b) = floor(e/(a*b))
  int64_t both;
  if (inside.size() == 1 && remainder == 0 && inside[0]->kind == "floordiv" && inside[0]->coeff == 1 &&
      !__builtin_mul_overflow(inside[0]->divisor, divisor, &both)) {
    return result + InnerOf(inside[0]).FloorDiv(both);
  }
  Affine inner(remainder, std::move(inside));
  return result + Affine(0, {Term(1, "floordiv", "", ffi::Optional<ffi::ObjectRef>(inner), divisor)});
}

Affine Affine::Mod(int64_t divisor) const {
  CheckDivisor(divisor);
  std::vector<Term> inside;
  for (const Term& term : get()->terms) {
    if (term->coeff % divisor != 0) inside.push_back(term);
  }
  int64_t remainder = FloorModInt(get()->constant, divisor);
  if (inside.empty()) return Constant(remainder);
  Affine inner(remainder, std::move(inside));
  return Affine(0, {Term(1, "mod", "", ffi::Optional<ffi::ObjectRef>(inner), divisor)});
}

Affine Substitute(const Affine& expr, const ffi::Map<ffi::String, Affine>& env) {
  Affine result = Affine::Constant(expr->constant);
  for (const Term& term : expr->terms) {
    Affine atom = Affine::Constant(0);
    if (term->kind == "var") {
      auto it = env.find(term->var);
      atom = it == env.end() ? Affine::Var(term->var) : (*it).second;
    } else if (term->kind == "product") {
      atom = Substitute(Affine::Var(term->var), env) * Substitute(InnerOf(term), env);
    } else {
      Affine inner = Substitute(InnerOf(term), env);
      atom = term->kind == "floordiv" ? inner.FloorDiv(term->divisor) : inner.Mod(term->divisor);
    }
    result = result + atom.Scale(term->coeff);
  }
  return result;
}

int64_t Affine::Evaluate(const ffi::Map<ffi::String, int64_t>& env) const {
  int64_t result = get()->constant;
  auto of = [&env](const Term& term) {
    auto it = env.find(term->var);
    if (it == env.end()) TVM_FFI_THROW(ValueError) << "no value for the variable " << term->var;
    return (*it).second;
  };
  for (const Term& term : get()->terms) {
    if (term->kind == "var") {
      result = CheckedAdd(result, CheckedMul(term->coeff, of(term)));
      continue;
    }
    int64_t inner = InnerOf(term).Evaluate(env);
    int64_t value = term->kind == "product"    ? CheckedMul(of(term), inner)
                    : term->kind == "floordiv" ? FloorDivInt(inner, term->divisor)
                                               : FloorModInt(inner, term->divisor);
    result = CheckedAdd(result, CheckedMul(term->coeff, value));
  }
  return result;
}

namespace {
void CollectVariables(const Affine& e, std::set<std::string>* out) {
  for (const Term& term : e->terms) {
    if (term->kind == "var" || term->kind == "product") out->insert(std::string(term->var));
    if (term->kind != "var") CollectVariables(InnerOf(term), out);
  }
}
}  // namespace

ffi::Array<ffi::String> Affine::Variables() const {
  std::set<std::string> names;
  CollectVariables(*this, &names);
  ffi::Array<ffi::String> result;
  for (const std::string& name : names) result.push_back(name);
  return result;
}

std::string Affine::ToString() const {
  std::string text;
  auto append = [&text](bool negative, const std::string& body) {
    if (text.empty()) {
      text = negative ? "-" + body : body;
    } else {
      text += (negative ? " - " : " + ") + body;
    }
  };
  for (const Term& term : get()->terms) {
    bool negative = term->coeff < 0;
    uint64_t magnitude = Absolute(term->coeff);
    std::string atom = AtomOf(term);
    append(negative, magnitude == 1 ? atom : std::to_string(magnitude) + "*" + atom);
  }
  if (get()->constant != 0 || text.empty()) {
    bool negative = get()->constant < 0;
    append(negative, std::to_string(Absolute(get()->constant)));
  }
  return text;
}

namespace {

/*! \brief How a language writes floor(e / k) and e mod k: what stands before e, between e and k, and after k. */
struct Notation {
  const char* name;
  bool has_products;
  const char* quotient[3];
  const char* remainder[3];
};

constexpr Notation kNotations[] = {
    {"isl", false, {"floor((", ")/", ")"}, {"((", ") mod ", ")"}},
    {"python", true, {"((", ") // ", ")"}, {"((", ") % ", ")"}},
};

std::string RenderIn(const Affine& expr, const ffi::Map<ffi::String, ffi::String>& names, const Notation& language) {
  std::string text = std::to_string(expr->constant);
  for (const Term& term : expr->terms) {
    text += " + " + std::to_string(term->coeff) + "*";
    if (term->kind == "var" || term->kind == "product") {
      auto it = names.find(term->var);
      if (it == names.end()) TVM_FFI_THROW(ValueError) << "no name for the variable " << term->var;
      text += std::string((*it).second);
      if (term->kind == "var") continue;
      if (!language.has_products) {
        TVM_FFI_THROW(IGraphError) << "A product of variables is not affine: " << expr.ToString();
      }
      text += "*(" + RenderIn(InnerOf(term), names, language) + ")";
      continue;
    }
    auto& [before, between, after] = term->kind == "floordiv" ? language.quotient : language.remainder;
    text += before + RenderIn(InnerOf(term), names, language) + between + std::to_string(term->divisor) + after;
  }
  return text;
}

bool IsVariable(const Term& term) { return term->kind == "var"; }

bool IsLinear(const Affine& a) { return std::all_of(a->terms.begin(), a->terms.end(), IsVariable); }

bool IsAffine(const Affine& a) {
  auto affine = [](const Term& t) { return IsVariable(t) || (t->kind != "product" && IsAffine(InnerOf(t))); };
  return std::all_of(a->terms.begin(), a->terms.end(), affine);
}

bool IsLinearIn(const Affine& a, const ffi::String& name) {
  return std::all_of(a->terms.begin(), a->terms.end(), [&](const Term& term) {
    if (IsVariable(term)) return true;
    ffi::Array<ffi::String> inner = InnerOf(term).Variables();
    return term->var != name && std::find(inner.begin(), inner.end(), name) == inner.end();
  });
}

/*! \brief The coefficient of the plain term in a variable, of which there is one at most; else 0. */
int64_t CoefficientOf(const Affine& a, const ffi::String& name) {
  for (const Term& term : a->terms) {
    if (IsVariable(term) && term->var == name) return term->coeff;
  }
  return 0;
}

}  // namespace

std::string Render(const Affine& expr, const ffi::Map<ffi::String, ffi::String>& names, const std::string& language) {
  for (const Notation& one : kNotations) {
    if (language == one.name) return RenderIn(expr, names, one);
  }
  TVM_FFI_THROW(ValueError) << "no notation for " << language;
  __builtin_unreachable();
}

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::ObjectDef<TermNode>(refl::init(false))
      .def_ro("coeff", &TermNode::coeff)
      .def_ro("kind", &TermNode::kind)
      .def_ro("var", &TermNode::var)
      .def_ro("inner", &TermNode::inner)
      .def_ro("divisor", &TermNode::divisor);
  refl::ObjectDef<AffineNode>(refl::init(false))
      .def_ro("constant", &AffineNode::constant)
      .def_ro("terms", &AffineNode::terms);
  refl::GlobalDef()
      .def("uir.affine.constant", &Affine::Constant)
      .def("uir.affine.var", &Affine::Var)
      .def("uir.affine.add", [](const Affine& a, const Affine& b) { return a + b; })
      .def("uir.affine.subtract", [](const Affine& a, const Affine& b) { return a + b.Scale(-1); })
      .def("uir.affine.scale", [](const Affine& a, int64_t k) { return a.Scale(k); })
      .def("uir.affine.multiply", [](const Affine& a, const Affine& b) { return a * b; })
      .def("uir.affine.floordiv", [](const Affine& a, int64_t k) { return a.FloorDiv(k); })
      .def("uir.affine.mod", [](const Affine& a, int64_t k) { return a.Mod(k); })
      .def("uir.affine.substitute", &Substitute)
      .def("uir.affine.evaluate",
           [](const Affine& a, const ffi::Map<ffi::String, int64_t>& env) { return a.Evaluate(env); })
      .def("uir.affine.variables",
           [](const Affine& a) {
             // joined: an array costs Python a call for each name
             std::string joined;
             for (const ffi::String& name : a.Variables()) joined += std::string(name) + '\0';
             return ffi::String(joined);
           })
      .def("uir.affine.is_linear", &IsLinear)
      .def("uir.affine.is_linear_in", &IsLinearIn)
      .def("uir.affine.is_affine", &IsAffine)
      .def("uir.affine.coefficient", &CoefficientOf)
      .def("uir.affine.of_term", [](const Term& term) { return Affine(0, {term}); })
      .def("uir.affine.render",
           [](const Affine& a, const ffi::Map<ffi::String, ffi::String>& names, const ffi::String& language) {
             return ffi::String(Render(a, names, std::string(language)));
           })
      .def("uir.affine.to_string", [](const Affine& a) { return ffi::String(a.ToString()); });
}

}  // namespace uir
