// SPDX-License-Identifier: Apache-2.0
// Two operations of fp32 as one `__bang_fusion`, and operations with numbers that fold into one.
//
// A fused function takes the time of one operation.  Whether it rounds between its two depends on the architecture, so
// nothing may be fused that needs either: additions of a number to a sum with a number stay apart, since they are how
// programs round to whole numbers.
//
// Numbers fold where a function's own formula has one of them.  Two operations of the model are two roundings, and may
// overflow between: they stay two.
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "codegen/bang/api.h"
#include "codegen/bang/program.h"

namespace uir::codegen::bang {
namespace {

/*! \brief Larger addends are there to round. */
constexpr double kMostAddend = 1024;

/*! \brief An operand: a step, or a number. */
struct FusedTerm {
  int step = -1;
  std::string number;
};

double NumberOf(const std::string& literal) { return std::strtod(literal.c_str(), nullptr); }
std::string FloatLiteral(double number) { return Literal(number, "float"); }

bool Normal(double number) { return std::isfinite(number) && std::fabs(number) < 1e38 && std::fabs(number) > 1e-37; }

/*! \brief x * scale + addend of one step x. */
struct Scaled {
  double scale, addend;
};

class Fuser {
 public:
  Fuser(std::vector<Step>* steps, int result, const std::set<int>& apart, const std::set<int>& given)
      : steps_(*steps), result_(result), apart_(apart), given_(given), uses_(steps->size(), 0), same_(steps->size()) {
    for (size_t k = 0; k < same_.size(); ++k) same_[k] = static_cast<int>(k);
    Count();
  }

  int Run() {
    for (size_t k = 0; k < steps_.size(); ++k) {
      for (int& arg : steps_[k].args) arg = same_[arg];
      if (uses_[k] == 0 || !IsPlain(static_cast<int>(k))) continue;
      Gather(static_cast<int>(k));
      Fold(static_cast<int>(k));
      if (same_[k] == static_cast<int>(k)) Join(static_cast<int>(k));
    }
    return same_[result_];
  }

 private:
  void Count() {
    uses_[result_] = 1;
    for (size_t k = steps_.size(); k-- > 0;) {
      if (uses_[k] == 0) continue;
      for (int arg : steps_[k].args) ++uses_[arg];
    }
  }

  /*! \brief Whether a step is an operation of fp32 on whole elements. */
  bool IsPlain(int id) const {
    const Step& step = steps_[id];
    return step.dtype == "fp32" && step.per == 1 && step.pack == 1 && !step.column &&
           (step.form == Step::Form::kPlain || step.form == Step::Form::kScalar);
  }
  bool Is(int id, const char* api) const { return IsPlain(id) && steps_[id].api == api; }
  /*! \brief Whether a step may be drawn into the one that uses it. */
  bool Drawn(int id, const char* api) const { return uses_[id] == 1 && Is(id, api); }

  /*! \brief Whether the numbers of two steps may become one. */
  bool MayFold(int a, int b) const { return !given_.count(a) || !given_.count(b); }

  bool AffineOf(int id, Scaled* made) const {
    const Step& step = steps_[id];
    if (Is(id, "mul_scalar")) {
      *made = {NumberOf(step.literal), 0};
      return true;
    }
    if (!Is(id, "fusion") || step.mode != "FUSION_FMA" || step.numbers[1].empty() || step.numbers[2].empty())
      return false;
    *made = {NumberOf(step.numbers[1]), NumberOf(step.numbers[2])};
    return true;
  }

  /*! \brief The number of one factor of a product goes to what multiplies by numbers already, before it or behind it.
   */
  void Gather(int k) {
    if (Is(k, "mul")) {
      for (int side : {0, 1}) {
        int scaled = steps_[k].args[side], other = steps_[k].args[1 - side];
        Scaled affine;
        if (scaled == other || !MayFold(scaled, other)) continue;
        if (!Drawn(scaled, "mul_scalar") || uses_[other] != 1 || !AffineOf(other, &affine)) continue;
        double scale = NumberOf(steps_[scaled].literal);
        if (!Normal(affine.scale * scale) || std::fabs(affine.addend) > kMostAddend) continue;
        int source = steps_[other].args[0];
        same_[other] = other;
        Put(other, source, {affine.scale * scale, affine.addend * scale});
        steps_[k].args[side] = steps_[scaled].args[0];
        for (int& arg : steps_[k].args) arg = same_[arg];
        uses_[scaled] = 0;
        return;
      }
    } else if (Is(k, "mul_scalar") && Drawn(steps_[k].args[0], "mul")) {
      Step& product = steps_[steps_[k].args[0]];
      for (int& arg : product.args) {
        double scale = NumberOf(steps_[k].literal);
        if (product.args[0] == product.args[1] || !Drawn(arg, "mul_scalar") || !MayFold(k, arg)) continue;
        scale *= NumberOf(steps_[arg].literal);
        if (!Normal(scale)) continue;
        steps_[k].literal = FloatLiteral(scale);
        given_.erase(k);
        uses_[arg] = 0;
        arg = steps_[arg].args[0];
        return;
      }
    }
  }

  /*! \brief A product or sum with a number, of what is x * scale + addend, is such a one itself. */
  void Fold(int k) {
    Scaled outer, inner;
    bool adds = Is(k, "add_scalar");
    if (adds) {
      outer = {1, NumberOf(steps_[k].literal)};
    } else if (!AffineOf(k, &outer)) {
      return;
    }
    int source = steps_[k].args[0];
    if (uses_[source] != 1 || !MayFold(k, source) || !AffineOf(source, &inner)) return;
    // a sum of a product becomes a function of its own
    if (adds && inner.addend == 0) return;
    if (std::fabs(inner.addend) > kMostAddend || std::fabs(outer.addend) > kMostAddend) return;
    Put(k, steps_[source].args[0], {inner.scale * outer.scale, inner.addend * outer.scale + outer.addend});
  }

  void Put(int k, int source, const Scaled& affine) {
    if (!Normal(affine.scale)) return;
    given_.erase(k);
    if (affine.scale == 1 && affine.addend == 0) {
      same_[k] = source;
      uses_[source] += uses_[k] - 1;
      return;
    }
    Step& step = steps_[k];
    step.args = {source};
    if (affine.addend == 0) {
      step.form = Step::Form::kScalar;
      step.api = "mul_scalar";
      step.literal = FloatLiteral(affine.scale);
    } else {
      Write(k, "FUSION_FMA", {source, ""}, {-1, FloatLiteral(affine.scale)}, {-1, FloatLiteral(affine.addend)});
    }
  }

  bool Write(int k, const std::string& mode, const FusedTerm& first, const FusedTerm& second, const FusedTerm& third) {
    if (steps_[first.step].column) return false;
    for (const FusedTerm* term : {&second, &third}) {
      // of the operands the first alone may be the target
      if (k == result_ && term->step >= 0 && steps_[term->step].form == Step::Form::kInput &&
          apart_.count(steps_[term->step].operand)) {
        return false;
      }
    }
    Step& step = steps_[k];
    step.form = Step::Form::kPlain;
    step.api = "fusion";
    step.mode = mode;
    step.literal.clear();
    step.args = {first.step};
    step.numbers = {"", second.number, third.number};
    if (second.step >= 0) step.args.push_back(second.step);
    if (third.step >= 0) step.args.push_back(third.step);
    return true;
  }

  /*! \brief One operation drawn into the next; `letter` is that of the next: A, S or M. */
  bool Draw(int k, int inner, char letter, const FusedTerm& third) {
    static const struct {
      const char* api;
      const char* mode;
      bool number;
    } table[] = {{"mul", "FM", false},
                 {"mul_scalar", "FM", true},
                 {"add", "FA", false},
                 {"add_scalar", "FA", true},
                 {"sub", "FS", false}};
    for (const auto& row : table) {
      if (!Drawn(inner, row.api)) continue;
      if (row.mode[1] == 'M' && letter == 'M') return false;
      const Step& step = steps_[inner];
      FusedTerm first{step.args[0], ""},
          second = row.number ? FusedTerm{-1, step.literal} : FusedTerm{step.args[1], ""};
      if (row.number && third.step < 0 && row.mode[1] == 'A' && letter != 'M') return false;
      if (steps_[first.step].column && row.mode[1] != 'S' && !row.number) std::swap(first, second);
      std::string mode = std::string("FUSION_") + row.mode + letter;
      if (!Write(k, mode, first, second, third)) return false;
      uses_[inner] = 0;
      return true;
    }
    return false;
  }

  void Join(int k) {
    const Step step = steps_[k];
    if (step.api == "add_scalar") {
      Draw(k, step.args[0], 'A', {-1, step.literal});
    } else if (step.api == "mul_scalar") {
      Draw(k, step.args[0], 'M', {-1, step.literal});
    } else if (step.api == "add" || step.api == "mul") {
      char letter = step.api == "add" ? 'A' : 'M';
      int a = step.args[0], b = step.args[1];
      // products before sums
      for (const char* api : {"mul", "mul_scalar", ""}) {
        for (auto [inner, other] : {std::make_pair(a, b), std::make_pair(b, a)}) {
          if (*api != '\0' && !Is(inner, api)) continue;
          if (Draw(k, inner, letter, {other, ""})) return;
        }
      }
    } else if (step.api == "sub") {
      int a = step.args[0], b = step.args[1];
      if (Is(a, "mul") && Draw(k, a, 'S', {b, ""})) return;
      if (Drawn(b, "mul_scalar") && !steps_[steps_[b].args[0]].column) {
        FusedTerm number{-1, FloatLiteral(-NumberOf(steps_[b].literal))};
        if (Write(k, "FUSION_FMA", {steps_[b].args[0], ""}, number, {a, ""})) {
          uses_[b] = 0;
          return;
        }
      }
      Draw(k, a, 'S', {b, ""});
    }
  }

  std::vector<Step>& steps_;
  int result_;
  const std::set<int>& apart_;
  /*! \brief Operations of the model that are still as it has them. */
  std::set<int> given_;
  std::vector<int> uses_;
  /*! \brief The step that a step is the same as. */
  std::vector<int> same_;
};

}  // namespace

Value Program::Fuse(Value result, const std::set<int>& apart) {
  return {Fuser(&steps_, result.id, apart, given_).Run()};
}

}  // namespace uir::codegen::bang
