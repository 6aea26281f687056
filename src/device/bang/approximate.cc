// SPDX-License-Identifier: Apache-2.0
// The `__bang_active_` functions, which are approximate and have limits.
//
// Ranges, results beyond them and average relative errors are those of the vendor's header. The model gives the exact
// value with half of the stated error, upwards or downwards by the operand's bits, so that a text that takes them for
// exact is found by its results. Beyond the stated range the result is NaN, as nothing is promised there.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "device/bang/call.h"
#include "device/bang/lanes.h"

namespace uir::bang {

namespace {

double Rsqrt(double x) { return 1 / std::sqrt(x); }
double Recip(double x) { return 1 / x; }
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double Gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double Relu(double x) { return x > 0 ? x : 0; }
double Sign(double x) { return x >= 0 ? 1 : -1; }

constexpr double kAny = std::numeric_limits<double>::infinity();

struct Approximation {
  double (*exact)(double);
  double error[2];  // relative: of float, of half
  double least[2];
  double most[2];
  /*! \brief Below the first number of each, and above the second, the result is a constant: {bound, result}. */
  double low_at[2];
  double low;
  double high_at;
  double high;
};

Approximation Simple(double (*exact)(double), double error, double least, double most) {
  return {exact, {error, error}, {least, least}, {most, most}, {-kAny, -kAny}, 0, kAny, 0};
}

const std::map<std::string, Approximation>& Table() {
  const double pi2 = 2 * 3.14159265358979323846;
  static const auto* table = new std::map<std::string, Approximation>{
      {"exp", {std::exp, {0.01, 0.01}, {-kAny, -kAny}, {10.25, 10.25}, {-7.75, -7.75}, 5.96e-8, kAny, 0}},
      {"exphp", {std::exp, {0.003, 0.007}, {-kAny, -kAny}, {16, 10.25}, {-15, -7.75}, 3e-7, kAny, 0}},
      {"exp_less_0", {std::exp, {0.003, 0.01}, {-kAny, -kAny}, {0, 0}, {-15.5, -15.5}, 5.96e-8, kAny, 0}},
      {"log", Simple(std::log, 0.01, 6.1e-5, 63484)},
      {"loghp", {std::log, {0.001, 0.002}, {7.2e-9, 6.1e-5}, {507903, 65504}, {-kAny, -kAny}, 0, kAny, 0}},
      {"sqrt", Simple(std::sqrt, 0.01, 0, 63487)},
      {"rsqrt", Simple(Rsqrt, 0.01, 0.005, 63487)},
      {"recip", {Recip, {0.003, 0.01}, {0.00391, 0.00391}, {63487, 63487}, {-kAny, -kAny}, 0, kAny, 0}},
      {"reciphp", {Recip, {0.0004, 0.0004}, {0.00391, 0.00391}, {2e6, 65504}, {-kAny, -kAny}, 0, kAny, 0}},
      {"tanh", Simple(std::tanh, 0.01, -kAny, kAny)},
      {"sigmoid", {Sigmoid, {0.01, 0.01}, {-kAny, -kAny}, {kAny, kAny}, {-7.75, -7.75}, 0, 7.75, 1}},
      {"gelu", {Gelu, {0.003, 0.003}, {-kAny, -kAny}, {kAny, kAny}, {-3.875, -3.875}, -5.96e-8, kAny, 0}},
      {"gelup", {Gelu, {0.003, 0.00411}, {-kAny, -kAny}, {kAny, kAny}, {-3.875, -3.875}, -5.96e-8, kAny, 0}},
      {"sin", Simple(std::sin, 0.01, -pi2, pi2)},
      {"cos", Simple(std::cos, 0.01, -pi2, pi2)},
      {"relu", Simple(Relu, 0, -kAny, kAny)},
      {"abs", Simple(std::fabs, 0, -kAny, kAny)},
      {"sign", Simple(Sign, 0, -kAny, kAny)},
  };
  return *table;
}

float Approximate(const Approximation& how, float x, bool half) {
  if (x != x || x < how.least[half] || x > how.most[half]) return std::numeric_limits<float>::quiet_NaN();
  if (x < how.low_at[half]) return static_cast<float>(how.low);
  if (x > how.high_at) return static_cast<float>(how.high);
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  double away = how.error[half] / 2 * (__builtin_popcount(bits) & 1 ? 1 : -1);
  return static_cast<float>(how.exact(x) * (1 + away));
}

const std::string kPrefix = "active_";

void RunApproximate(const Given& given) {
  const Approximation& how = Table().at(given.name().substr(kPrefix.size()));
  int64_t n = given.number(0), size = given.size(0);
  if (!given.Positive(n, "the count")) return;
  Operand& source = given.Source(1, "source", n * size);
  Operand& target = given.Target(n * size);
  given.NeedApart(target, source, true);
  if (given.instruction.faulty() || !given.instruction.Begin()) return;
  given.End(n * size);
  if (!machine.values) return;
  if (target.data != source.data) std::memcpy(target.known, source.known, static_cast<size_t>(n * size));
  uint32_t type = given.of(0).type;
  float x[kChunk];
  for (int64_t at = 0; at < n; at += kChunk) {
    int64_t count = std::min(kChunk, n - at);
    LoadReal(type, source.data + at * size, x, count);
    for (int64_t i = 0; i < count; ++i) x[i] = Approximate(how, x[i], type == kBangHalf);
    StoreReal(type, target.data + at * size, x, count);
  }
}

}  // namespace

Handler ApproximateOf(const std::string& name) {
  bool known = name.rfind(kPrefix, 0) == 0 && Table().count(name.substr(kPrefix.size()));
  return known ? RunApproximate : nullptr;
}

}  // namespace uir::bang
