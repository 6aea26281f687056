// SPDX-License-Identifier: Apache-2.0
// Intervals of the steps of a program, of what is known of its operands.
#include "codegen/bang/interval.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "codegen/bang/program.h"

namespace uir::codegen::bang {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/*! \brief What becomes of numbers in a dtype. */
struct Rounding {
  /*! \brief Smaller ones may become zero, if the device has no subnormal numbers. */
  double least;
  /*! \brief What functions within some ULP, and the rounding, may change of a number. */
  double slack;
};
constexpr Rounding kFloat = {1.2e-38, 1e-5}, kHalf = {6.2e-5, 1e-3}, kBfloat = {1.2e-38, 1e-2};

/*! \brief An interval of exact results as one of rounded results. */
Interval Rounded(double low, double high, const Rounding& rounding = kFloat) {
  if (std::isnan(low) || std::isnan(high)) return {};
  auto settled = [&](double bound, double sign) {
    double moved = bound + sign * std::fabs(bound) * rounding.slack;
    return std::isnan(moved) ? bound : std::fabs(moved) < rounding.least ? 0.0 : moved;
  };
  return {settled(low, -1), settled(high, 1)};
}

Interval Multiplied(const Interval& a, const Interval& b) {
  double low = kInfinity, high = -kInfinity;
  for (double x : {a.low, a.high}) {
    for (double y : {b.low, b.high}) {
      double corner = x == 0 || y == 0 ? 0 : x * y;  // 0 times infinity is NaN, and other numbers go to 0
      low = std::min(low, corner);
      high = std::max(high, corner);
    }
  }
  return Rounded(low, high);
}

Interval Magnitude(const Interval& x) {
  double least = x.low > 0 ? x.low : x.high < 0 ? -x.high : 0;
  return {least, std::max(std::fabs(x.low), std::fabs(x.high))};
}

/*! \brief A literal of fp32; anything where it is none that is read. */
Interval Number(const std::string& literal) {
  char* end = nullptr;
  double value = std::strtod(literal.c_str(), &end);
  bool whole = end != literal.c_str() && (*end == 0 || std::string(end) == "f");
  return whole ? Interval{value, value} : Interval{};
}

class Reader {
 public:
  Reader(const std::vector<Step>& steps, const std::map<int, Interval>& known) : steps_(steps), known_(known) {}

  Interval Of(int id) {
    auto known = known_.find(id);
    if (known == known_.end()) known = known_.emplace(id, Compute(steps_[id])).first;
    return known->second;
  }

 private:
  Interval Compute(const Step& step) {
    if (step.form == Step::Form::kView) return OfView(step);
    if (step.form == Step::Form::kCast) return OfCast(step);
    if (step.dtype != "fp32") return {};
    if (step.form == Step::Form::kFill) return Number(step.literal);
    if (step.form != Step::Form::kPlain && step.form != Step::Form::kScalar) return {};
    const std::string& api = step.api;
    auto arg = [&](size_t k) { return Of(step.args[k]); };
    if (api == "add_scalar" || api == "mul_scalar") {
      Interval x = arg(0), number = Number(step.literal);
      return api == "mul_scalar" ? Multiplied(x, number) : Rounded(x.low + number.low, x.high + number.high);
    }
    if (api == "mul") {
      Interval x = arg(0), made = Multiplied(x, arg(1));
      return step.args[0] == step.args[1] ? Interval{std::max(made.low, 0.0), made.high} : made;
    }
    if (api == "add" || api == "sub") {
      Interval x = arg(0), y = arg(1);
      if (api == "sub") y = {-y.high, -y.low};
      return Rounded(x.low + y.low, x.high + y.high);
    }
    if (api == "nan_maximum" || api == "nan_minimum") {
      Interval x = arg(0), y = arg(1);
      if (api == "nan_maximum") return {std::max(x.low, y.low), std::max(x.high, y.high)};
      return {std::min(x.low, y.low), std::min(x.high, y.high)};
    }
    if (api == "pow2") {
      Interval x = arg(0);
      return Rounded(std::exp2(x.low), std::exp2(x.high));
    }
    if (api == "recip") {
      Interval x = arg(0);
      return x.low > 0 ? Rounded(1 / x.high, 1 / x.low) : Interval{};
    }
    if (api == "sqrt") {
      Interval x = arg(0);
      return Rounded(std::sqrt(std::max(x.low, 0.0)), std::sqrt(std::max(x.high, 0.0)));
    }
    return {};
  }

  /*! \brief Between floats; integers are not followed. */
  Interval OfCast(const Step& step) {
    Interval x = Of(step.args[0]);
    if (step.dtype == "fp16") return Rounded(x.low, x.high, kHalf);
    if (step.dtype == "bf16") return Rounded(x.low, x.high, kBfloat);
    bool exact = step.api == "half2float" || step.api == "bfloat162float";
    return exact ? x : Interval{};
  }

  Interval OfView(const Step& step) {
    int from = step.args[0];
    if (steps_[from].dtype == step.dtype) return Of(from);
    // the sign bit taken away
    const Step& bits = steps_[from];
    bool absolute = step.dtype == "fp32" && bits.api == "band_scalar" && bits.literal == "0x7fffffff";
    if (!absolute || steps_[bits.args[0]].form != Step::Form::kView) return {};
    int x = steps_[bits.args[0]].args[0];
    return steps_[x].dtype == "fp32" ? Magnitude(Of(x)) : Interval{};
  }

  const std::vector<Step>& steps_;
  std::map<int, Interval> known_;
};

}  // namespace

Interval Program::IntervalOf(Value x) const { return Reader(steps_, intervals_).Of(x.id); }

}  // namespace uir::codegen::bang
