// SPDX-License-Identifier: Apache-2.0
#include "igraph/space.h"

#include <tvm/ffi/error.h>
#include <tvm/ffi/reflection/registry.h>

#include <string_view>

namespace uir {

namespace {

Congruence Sum(Congruence a, Congruence b) {
  int64_t modulus = std::gcd(a.modulus, b.modulus), remainder;
  // where the sum leaves 64 bits, its residue is what counts
  if (__builtin_add_overflow(a.remainder, b.remainder, &remainder)) {
    if (modulus == 0) ThrowOverflow(a.remainder, "+", b.remainder);
    remainder = CheckedAdd(FloorModInt(a.remainder, modulus), FloorModInt(b.remainder, modulus) - modulus);
  }
  return {modulus, remainder};
}

Congruence Product(Congruence a, int64_t factor) {
  if (factor == 0) return Congruence::Of(0);
  int64_t modulus, remainder;
  if (__builtin_mul_overflow(a.modulus, factor, &modulus) || __builtin_mul_overflow(a.remainder, factor, &remainder)) {
    if (a.modulus == 0) ThrowOverflow(a.remainder, "*", factor);
    return {factor, 0};
  }
  return {modulus, remainder};
}

/*! \brief Multiples of `factor`, whichever, times values of a class. */
Congruence Multiples(Congruence a, int64_t factor) {
  const uint64_t divisor = a.Divisor();
  if (divisor == 0) return Congruence::Of(0);
  int64_t modulus;
  if (divisor > INT64_MAX || __builtin_mul_overflow(static_cast<int64_t>(divisor), factor, &modulus))
    return {factor, 0};
  return {modulus, 0};
}

Congruence Quotient(Congruence a, int64_t k) {
  if (a.modulus % k != 0) return {};
  return {a.modulus / k, FloorDivInt(a.remainder, k)};
}

Congruence Remainder(Congruence a, int64_t k) {
  Congruence kept = Coarser(a, std::gcd(a.modulus, k));
  return kept.modulus == k ? Congruence::Of(kept.remainder) : kept;
}

/*! \brief The class of an expression by those of its variables: `of(name)`; `single(term)` may know a term's only
 * value. */
template <typename Of, typename Single>
Congruence ClassBy(const Affine& expr, const Of& of, const Single& single) {
  Congruence total = Congruence::Of(expr->constant);
  for (const Term& term : expr->terms) {
    Congruence atom;
    if (std::optional<int64_t> value = single(term)) {
      atom = Congruence::Of(*value);
    } else if (term->kind == "var") {
      atom = {of(term->var), 0};
    } else if (term->kind == "product") {
      atom = Multiples(ClassBy(InnerOf(term), of, single), of(term->var));
    } else {
      Congruence inner = ClassBy(InnerOf(term), of, single);
      atom = term->kind == "floordiv" ? Quotient(inner, term->divisor) : Remainder(inner, term->divisor);
    }
    total = Sum(total, Product(atom, term->coeff));
  }
  return total;
}

}  // namespace

Congruence ClassOf(const Affine& expr) {
  return ClassBy(
      expr, [](const ffi::String&) -> int64_t { return 1; },
      [](const Term&) -> std::optional<int64_t> { return std::nullopt; });
}

void Space::Bind(const std::string& name, Known known) {
  if (known.multiple_of < 1) TVM_FFI_THROW(ValueError) << name << " is said to be a multiple of " << known.multiple_of;
  if (int64_t m = known.multiple_of; m > 1) {
    known.range = {CheckedMul(-FloorDivInt(-known.range.low, m), m), FloorDivInt(known.range.high, m) * m};
  }
  Unbind(name);
  known_.emplace_back(name, known);
}

void Space::Unbind(const std::string& name) {
  known_.erase(std::remove_if(known_.begin(), known_.end(), [&](const auto& one) { return one.first == name; }),
               known_.end());
}

const Known& Space::Of(const ffi::String& name) const {
  std::string_view wanted(name.data(), name.size());
  for (const auto& [one, known] : known_) {
    if (one == wanted) return known;
  }
  TVM_FFI_THROW(ValueError) << "nothing is known of the variable " << name;
  __builtin_unreachable();
}

Range Space::RangeOf(const Term& term) const {
  if (term->kind == "var") return Of(term->var).range;
  Affine inner = InnerOf(term);
  Range range = RangeOf(inner);
  if (term->kind == "product") return Of(term->var).range * range;
  if (term->kind == "floordiv") return uir::FloorDiv(range, term->divisor);
  return uir::Mod(range, ClassOf(inner), term->divisor);
}

Range Space::RangeOf(const Affine& expr) const {
  Range total{expr->constant, expr->constant};
  for (const Term& term : expr->terms) total = total + RangeOf(term) * term->coeff;
  return total;
}

Congruence Space::ClassOf(const Affine& expr) const {
  return ClassBy(
      expr, [this](const ffi::String& name) { return Of(name).multiple_of; },
      [this](const Term& term) -> std::optional<int64_t> {
        Range range = RangeOf(term);
        if (range.Constant()) return range.low;
        return std::nullopt;
      });
}

int64_t Space::MagnitudeOf(const Affine& expr) const {
  constexpr uint64_t kMost = INT64_MAX;
  uint64_t total = std::min(Absolute(expr->constant), kMost), largest = 0;
  for (const Term& term : expr->terms) {
    uint64_t reach = 0;
    if (term->kind != "var") {
      largest = std::max<uint64_t>(
          {largest, static_cast<uint64_t>(term->divisor), static_cast<uint64_t>(MagnitudeOf(InnerOf(term)))});
      if (largest == kMost) return INT64_MAX;  // the inner range may leave 64 bits
    }
    if (term->kind == "product") {
      Range factor = Of(term->var).range;
      uint64_t inner = std::max<uint64_t>(static_cast<uint64_t>(MagnitudeOf(InnerOf(term))), 1);
      uint64_t most = std::max<uint64_t>({Absolute(factor.low), Absolute(factor.high), 1}), product;
      if (__builtin_mul_overflow(most, inner, &product) || product > kMost) return INT64_MAX;
      largest = std::max(largest, product);
    }
    Range range = RangeOf(term);
    reach = std::max(Absolute(range.low), Absolute(range.high));
    uint64_t scaled;
    if (__builtin_mul_overflow(reach, Absolute(term->coeff), &scaled) || scaled > kMost - total) return INT64_MAX;
    total += scaled;
  }
  return static_cast<int64_t>(std::max(total, largest));
}

namespace {

/*! \brief A space that Python holds. */
class SpaceNode : public ffi::Object {
 public:
  Space space;
  static constexpr bool _type_mutable = true;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("uir.Space", SpaceNode, ffi::Object);
};

class SpaceRef : public ffi::ObjectRef {
 public:
  TVM_FFI_DEFINE_OBJECT_REF_METHODS_NULLABLE(SpaceRef, ffi::ObjectRef, SpaceNode);
};

/*! \brief Two numbers of an answer: cheaper to read from Python than an array. */
class PairNode : public ffi::Object {
 public:
  int64_t first = 0;
  int64_t second = 0;
  TVM_FFI_DECLARE_OBJECT_INFO_FINAL("uir.Pair", PairNode, ffi::Object);
};

ffi::ObjectRef Pair(int64_t first, int64_t second) {
  auto node = ffi::make_object<PairNode>();
  node->first = first;
  node->second = second;
  return ffi::ObjectRef(std::move(node));
}

Known KnownOf(const ffi::Any& value) {
  if (auto extent = value.as<int64_t>()) return {{0, CheckedAdd(*extent, -1)}, 1};
  auto size = value.cast<Size>();
  return {{size->low, size->high}, size->multiple_of};
}

}  // namespace

TVM_FFI_STATIC_INIT_BLOCK() {
  namespace refl = tvm::ffi::reflection;
  refl::ObjectDef<SizeNode>()
      .def_ro("name", &SizeNode::name)
      .def_ro("low", &SizeNode::low)
      .def_ro("high", &SizeNode::high)
      .def_ro("multiple_of", &SizeNode::multiple_of, refl::DefaultValue(int64_t{1}));
  refl::ObjectDef<SpaceNode>(refl::init(false));
  refl::ObjectDef<PairNode>(refl::init(false)).def_ro("first", &PairNode::first).def_ro("second", &PairNode::second);
  refl::GlobalDef()
      .def("uir.space.make",
           [](const ffi::Map<ffi::String, ffi::Any>& variables) {
             auto node = ffi::make_object<SpaceNode>();
             for (const auto& [name, known] : variables) node->space.Bind(std::string(name), KnownOf(known));
             return ffi::ObjectRef(std::move(node));
           })
      .def("uir.space.bind", [](SpaceRef s, const ffi::String& name,
                                const ffi::Any& known) { s->space.Bind(std::string(name), KnownOf(known)); })
      .def("uir.space.range",
           [](const SpaceRef& s, const Affine& e) {
             Range range = s->space.RangeOf(e);
             return Pair(range.low, range.high);
           })
      .def("uir.space.range_of_difference",
           [](const SpaceRef& s, const Affine& a, const Affine& b) {
             Range range = s->space.RangeOf(s->space.Fold(a + b.Scale(-1)));
             return Pair(range.low, range.high);
           })
      .def("uir.space.congruence",
           [](const SpaceRef& s, const Affine& e) {
             Congruence found = s->space.ClassOf(e);
             if (found.modulus != 0) found = Coarser(found, found.modulus);
             return Pair(found.modulus, found.remainder);
           })
      .def("uir.space.magnitude", [](const SpaceRef& s, const Affine& e) { return s->space.MagnitudeOf(e); })
      .def("uir.space.floordiv", [](const SpaceRef& s, const Affine& e, int64_t k) { return s->space.FloorDiv(e, k); })
      .def("uir.space.mod", [](const SpaceRef& s, const Affine& e, int64_t k) { return s->space.Mod(e, k); })
      .def("uir.space.fold", [](const SpaceRef& s, const Affine& e) { return s->space.Fold(e); });
}

}  // namespace uir
