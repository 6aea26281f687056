// SPDX-License-Identifier: Apache-2.0
// Functions of one, two or three elements: on vectors, with a scalar, or with a vector that repeats.
//
// A function computes in double (sums, products and quotients of floats in float, which gives the same) and rounds
// once. NaN: `nan_maximum` and `nan_minimum` keep one; `maxequal`, `maximum` and their like give the other operand.
#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "device/bang/call.h"
#include "device/bang/lanes.h"

namespace uir::bang {

namespace {

using Real = float (*)(float a, float b);
using Bits = int64_t (*)(int64_t a, int64_t b);

float Truth(bool value) { return value ? 1.0f : 0.0f; }
template <double (*kFunction)(double)>
float InDouble(float a, float) {
  return static_cast<float>(kFunction(a));
}
double DoubleRsqrt(double x) { return 1 / std::sqrt(x); }
double DoubleRecip(double x) { return 1 / x; }

/*! \brief Which sources may be the same bytes as the target, by the vendor's header ("homologous operands"). */
enum class InPlace { kAny, kFirst, kNone };

/*! \brief A function of two numbers, the second of which may be unused. */
struct Function {
  Real real;
  Bits bits;  // of integers; null where there is none
  int operands;
  InPlace in_place{InPlace::kAny};
};

const std::map<std::string, Function>& Functions() {
  static const auto* table = new std::map<std::string, Function>{
      {"add", {[](float a, float b) { return a + b; }, nullptr, 2}},
      {"sub", {[](float a, float b) { return a - b; }, nullptr, 2}},
      {"mul", {[](float a, float b) { return a * b; }, nullptr, 2}},
      {"div", {[](float a, float b) { return a / b; }, nullptr, 2}},
      {"maxequal", {[](float a, float b) { return a > b    ? a
                                                  : b == b ? b
                                                           : a; }, nullptr, 2, InPlace::kFirst}},
      {"minequal", {[](float a, float b) { return a < b    ? a
                                                  : b == b ? b
                                                           : a; }, nullptr, 2, InPlace::kFirst}},
      {"nan_maximum", {[](float a, float b) { return a > b || a != a ? a : b; }, nullptr, 2}},
      {"nan_minimum", {[](float a, float b) { return a < b || a != a ? a : b; }, nullptr, 2}},
      {"lt", {[](float a, float b) { return Truth(a < b); }, nullptr, 2}},
      {"le", {[](float a, float b) { return Truth(a <= b); }, nullptr, 2}},
      {"gt", {[](float a, float b) { return Truth(a > b); }, nullptr, 2}},
      {"ge", {[](float a, float b) { return Truth(a >= b); }, nullptr, 2}},
      {"eq", {[](float a, float b) { return Truth(a == b); }, nullptr, 2}},
      {"ne", {[](float a, float b) { return Truth(a != b); }, nullptr, 2}},
      {"and",
       {[](float a, float b) { return Truth(a != 0 && b != 0); },
        [](int64_t a, int64_t b) { return int64_t{a != 0 && b != 0}; }, 2, InPlace::kFirst}},
      {"or",
       {[](float a, float b) { return Truth(a != 0 || b != 0); },
        [](int64_t a, int64_t b) { return int64_t{a != 0 || b != 0}; }, 2, InPlace::kFirst}},
      {"xor",
       {[](float a, float b) { return Truth((a != 0) != (b != 0)); },
        [](int64_t a, int64_t b) { return int64_t{(a != 0) != (b != 0)}; }, 2, InPlace::kFirst}},
      {"not", {[](float a, float) { return Truth(a == 0); }, [](int64_t a, int64_t) { return int64_t{a == 0}; }, 1}},
      {"band", {nullptr, [](int64_t a, int64_t b) { return a & b; }, 2, InPlace::kFirst}},
      {"bor", {nullptr, [](int64_t a, int64_t b) { return a | b; }, 2, InPlace::kFirst}},
      {"bxor", {nullptr, [](int64_t a, int64_t b) { return a ^ b; }, 2, InPlace::kFirst}},
      {"bnot", {nullptr, [](int64_t a, int64_t) { return ~a; }, 1}},
      {"sqrt", {InDouble<std::sqrt>, nullptr, 1}},
      {"rsqrt", {InDouble<DoubleRsqrt>, nullptr, 1}},
      {"recip", {InDouble<DoubleRecip>, nullptr, 1}},
      {"pow2", {InDouble<std::exp2>, nullptr, 1}},
      {"log2", {InDouble<std::log2>, nullptr, 1}},
      {"sin", {InDouble<std::sin>, nullptr, 1}},
      {"cos", {InDouble<std::cos>, nullptr, 1}},
      {"floor", {InDouble<std::floor>, nullptr, 1, InPlace::kNone}},
      {"round", {InDouble<std::round>, nullptr, 1, InPlace::kNone}},
      {"square", {[](float a, float) { return a * a; }, nullptr, 1}},
      {"abs", {[](float a, float) { return std::fabs(a); }, nullptr, 1}},
      {"relu", {[](float a, float) { return a > 0 ? a : 0.0f; }, nullptr, 1}},
  };
  return *table;
}

/*! \brief Other spellings of a function. */
const std::map<std::string, std::string>& Aliases() {
  static const auto* table = new std::map<std::string, std::string>{
      {"log", "log2"},
      {"maximum", "maxequal"},
      {"minimum", "minequal"},
      {"maxeq_scalar", "maxequal"},
      {"mineq_scalar", "minequal"},
  };
  return *table;
}

/*! \brief The function of a name in any of its forms; null where there is none. */
const Function* Find(std::string name) {
  const std::string cycle = "cycle_", scalar = "_scalar";
  auto look = [&]() -> const Function* {
    auto alias = Aliases().find(name);
    auto found = Functions().find(alias == Aliases().end() ? name : alias->second);
    return found == Functions().end() ? nullptr : &found->second;
  };
  if (const Function* whole = look()) return whole;
  if (name.rfind(cycle, 0) == 0) {
    name.erase(0, cycle.size());
  } else if (name.size() > scalar.size() && name.compare(name.size() - scalar.size(), scalar.size(), scalar) == 0) {
    name.erase(name.size() - scalar.size());
  }
  return look();
}

/*! \brief The same, of names looked up once. */
const Function* FunctionOf(const std::string& name) {
  static auto* known = new std::unordered_map<std::string, const Function*>();
  auto found = known->find(name);
  return found != known->end() ? found->second : known->emplace(name, Find(name)).first->second;
}

/*! \brief A source as a stream of numbers: a vector, one that repeats, or a scalar. */
struct Stream {
  const UirBangOperand& operand;
  const Operand* placed;
  int64_t period;  // elements

  void Load(int64_t at, float* out, int64_t n) const {
    if (operand.scalar) return std::fill(out, out + n, static_cast<float>(operand.real));
    int64_t size = TypeBytes(operand.type);
    while (n > 0) {
      int64_t from = at % period, count = std::min(n, period - from);
      LoadReal(operand.type, placed->data + from * size, out, count);
      out += count;
      at += count;
      n -= count;
    }
  }
  int64_t Integer(int64_t at) const {
    if (operand.scalar) return operand.integer;
    return LoadInteger(operand.type, placed->data + at % period * TypeBytes(operand.type));
  }
  bool Knows(int64_t at) const {
    if (operand.scalar) return true;
    int64_t size = TypeBytes(operand.type);
    return placed->Knows(at % period * size, size);
  }
  bool KnowsAll() const { return operand.scalar || placed->Knows(0, placed->ranges.Bytes()); }
};

/*! \brief Which elements of the target hold values that follow from known ones. */
void Learn(const Operand& target, const Stream* streams, int count, int64_t n, int64_t size) {
  bool all = true;
  for (int i = 0; i < count; ++i) all = all && streams[i].KnowsAll();
  if (all) return target.Learn(0, n * size);
  for (int64_t at = 0; at < n; ++at) {
    bool known = true;
    for (int i = 0; i < count; ++i) known = known && streams[i].Knows(at);
    target.Learn(at * size, size, known);
  }
}

/*! \brief Elements of a vector that repeats; 0 after a finding. */
int64_t PeriodOf(const Given& given, int64_t n, int64_t period) {
  if (!given.Positive(period, "the repeated vector's count")) return 0;
  if (n % period == 0) return period;
  given.instruction.Fault(
      "size", std::to_string(n) + " elements are no multiple of the repeated vector's " + std::to_string(period));
  return 0;
}

/*! \brief The header leaves quotients by zero undefined; what nobody wrote is judged where its result is read. */
void CheckDivisor(const Given& given, const Stream& divisor, int64_t n) {
  float held[kChunk];
  for (int64_t at = 0; at < n; at += kChunk) {
    int64_t count = std::min(kChunk, n - at);
    divisor.Load(at, held, count);
    for (int64_t i = 0; i < count; ++i) {
      if (held[i] != 0 || !divisor.Knows(at + i)) continue;
      given.instruction.Fault("undefined", "element " + std::to_string(at + i) +
                                               " of the second source is 0, for which the header has none");
      return;
    }
  }
}

void RunElementwise(const Given& given) {
  const Function& function = *FunctionOf(given.name());
  int64_t n = given.number(0), size = given.size(0);
  if (!given.Positive(n, "the count")) return;
  bool cycle = given.call.numbers > 1;
  int64_t period = cycle ? PeriodOf(given, n, given.number(1)) : n;
  if (!period) return;
  uint32_t type = given.of(0).type;
  Operand& a = given.Source(1, function.operands == 1 ? "source" : "first source", n * size);
  const UirBangOperand& second = given.of(given.call.operands - 1);
  Operand* b = nullptr;
  if (function.operands == 2 && !second.scalar) b = &given.Source(2, "second source", period * size);
  Operand& target = given.Target(n * size);
  given.NeedApart(target, a, function.in_place != InPlace::kNone);
  if (b) given.NeedApart(target, *b, !cycle && function.in_place == InPlace::kAny);
  if (given.instruction.faulty() || !given.instruction.Begin()) return;
  given.End(n * size);
  if (!machine.values) return;
  Stream streams[] = {{given.of(1), &a, n}, {second, b, period}};
  Learn(target, streams, function.operands, n, size);
  if (given.name() == "div") CheckDivisor(given, streams[1], n);
  if (IsFloating(type)) {
    float x[kChunk], y[kChunk];
    for (int64_t at = 0; at < n; at += kChunk) {
      int64_t count = std::min(kChunk, n - at);
      streams[0].Load(at, x, count);
      if (function.operands == 2) streams[1].Load(at, y, count);
      for (int64_t i = 0; i < count; ++i) x[i] = function.real(x[i], y[i]);
      StoreReal(type, target.data + at * size, x, count);
    }
  } else {
    for (int64_t at = 0; at < n; ++at) {
      int64_t other = function.operands == 2 ? streams[1].Integer(at) : 0;
      StoreInteger(size, target.data + at * size, function.bits(streams[0].Integer(at), other));
    }
  }
}

/*! \brief Architectures below round each of the two operations (they have two units in a row, no fused one). */
constexpr int64_t kFirstFusedRounding = 500;

/*! \brief src0 op src1 op src2, rounded once. */
double Fused(int64_t op, double a, double b, double c) {
  switch (op) {
    case 0:
      return std::fma(a, b, c);
    case 1:
      return std::fma(a, b, -c);
    case 2:
      return (a + b) * c;
    case 3:
      return (a - b) * c;
    case 4:
      return a + b + c;
    case 5:
      return a + b - c;
    case 6:
      return a - b - c;
    default:
      return a - b + c;
  }
}

/*! \brief The same with each operation rounded to `type`. */
float InTurn(uint32_t type, int64_t op, float a, float b, float c) {
  float first = Rounded(type, op < 2 ? a * b : op == 2 || op == 4 || op == 5 ? a + b : a - b);
  if (op == 2 || op == 3) return first * c;
  return op == 0 || op == 4 || op == 7 ? first + c : first - c;
}

void RunFusion(const Given& given) {
  int64_t op = given.number(0), n = given.number(1), size = given.size(0);
  if (!given.Positive(n, "the count")) return;
  int64_t period = PeriodOf(given, n, given.number(2));
  if (!period) return;
  Operand* placed[3] = {&given.Source(1, "first source", n * size), nullptr, nullptr};
  if (!given.of(2).scalar) placed[1] = &given.Source(2, "second source", period * size);
  if (!given.of(3).scalar) placed[2] = &given.Source(3, "third source", period * size);
  Operand& target = given.Target(n * size);
  for (int i = 0; i < 3; ++i) {
    // the header allows the first operand alone in the target's place
    if (placed[i]) given.NeedApart(target, *placed[i], i == 0);
  }
  if (given.instruction.faulty() || !given.instruction.Begin()) return;
  given.End(n * size);
  if (!machine.values) return;
  Stream streams[] = {{given.of(1), placed[0], n}, {given.of(2), placed[1], period}, {given.of(3), placed[2], period}};
  Learn(target, streams, 3, n, size);
  uint32_t type = given.of(0).type;
  float x[kChunk], y[kChunk], z[kChunk];
  for (int64_t at = 0; at < n; at += kChunk) {
    int64_t count = std::min(kChunk, n - at);
    streams[0].Load(at, x, count);
    streams[1].Load(at, y, count);
    streams[2].Load(at, z, count);
    bool once = machine.device.arch >= kFirstFusedRounding;
    for (int64_t i = 0; i < count; ++i) {
      x[i] = once ? static_cast<float>(Fused(op, x[i], y[i], z[i])) : InTurn(type, op, x[i], y[i], z[i]);
    }
    StoreReal(type, target.data + at * size, x, count);
  }
}

}  // namespace

Handler ElementwiseOf(const std::string& name) {
  if (name == "fusion") return RunFusion;
  return FunctionOf(name) ? RunElementwise : nullptr;
}

}  // namespace uir::bang
