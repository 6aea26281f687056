// SPDX-License-Identifier: Apache-2.0
// Products on tensor cores: mma.sync on the fragments that fragments.cc fills.
#include <algorithm>
#include <string>

#include "base/rounding.h"
#include "codegen/cuda/contract.h"
#include "codegen/cuda/fragments.h"
#include "codegen/cuda/sums.h"

namespace uir::codegen::cuda {

namespace {

class MmaStep final : public Step {
 public:
  MmaStep(const IOp& iop, const MmaRow& row) : Step(iop), row(row) {}
  void Print(Emitter& e) const final;

  const MmaRow& row;
  FragmentsPlan fragments;
  SumsPlan sums;
};

class MmaPrinter {
 public:
  MmaPrinter(Emitter& e, const MmaStep& step)
      : e_(e), row_(step.row), fragments_(e, step.iop, step.fragments, step.row), sums_(e, step.sums) {
    type_ = &TypeOf(std::string(step.iop->sources[0]->pointer->dtype));
    wide_ = type_->bytes == 8;
    blocks_m_ = CeilDiv(fragments_.a().major, 8);
    blocks_n_ = CeilDiv(fragments_.b().major, kMmaColumns);
    steps_ = CeilDiv(fragments_.a().depth, row_.k);
  }

  void Print() {
    e_.needs.Intrinsic(row_.intrinsic);
    e_.needs.Dtype(type_->name);
    e_.needs.Core("reg");
    e_.out.Open("");
    if (blocks_m_ % 2 != 0 && row_.m == 16) {
      rest_ = e_.names.Fresh("rest");
      e_.out.Line("reg<" + std::string(TypeOf(row_.sum).stored) + ", " + std::to_string(column_step() + 1) + "> " +
                  rest_ + ";  // rows that do not exist");
      e_.out.Line(rest_ + "[0] = 0;");
      e_.out.Line(rest_ + "[" + std::to_string(column_step()) + "] = 0;");
    }
    Step();
    e_.out.Close();
    sums_.Finish();
  }

 private:
  int per_tile() const { return row_.m / 8; }
  /*! \brief Registers from a column of the sums of one instruction to its neighbour: of pairs it has every second. */
  int column_step() const { return fragments_.b().paired ? 2 : 1; }

  // ---- one step along the contracted side -------------------------------------------------------------------
  void Step() {
    const int64_t tiles = blocks_m_ / per_tile(), half = blocks_m_ % per_tile();
    std::string k = OpenUnrolled(e_, "k", steps_);
    std::string a = e_.names.Fresh("a_part");
    e_.out.Line("reg<" + fragments_.Element() + ", " + std::to_string(fragments_.Registers(true) * (tiles + half)) +
                "> " + a + ";");
    if (tiles > 0) {
      std::string i = OpenUnrolled(e_, "i", tiles);
      fragments_.FetchA(a, i, k, false);
      CloseUnrolled(e_, tiles);
    }
    if (half) fragments_.FetchA(a, std::to_string(tiles), k, true);

    const int64_t pairs = blocks_n_ / 2;
    if (pairs > 0) {
      std::string j = OpenUnrolled(e_, "j", pairs);
      Columns(a, k, j, 2);
      CloseUnrolled(e_, pairs);
    }
    if (blocks_n_ % 2) Columns(a, k, std::to_string(pairs), 1);
    CloseUnrolled(e_, steps_);
  }

  /*! \brief The `pair`-th two (or the last one) of the columns' blocks of b, and all rows of a with them. */
  void Columns(const std::string& a, const std::string& k, const std::string& pair, int count) {
    const int64_t tiles = blocks_m_ / per_tile(), half = blocks_m_ % per_tile();
    const bool scoped = blocks_n_ / 2 <= 1;
    if (scoped) e_.out.Open("");
    std::string b = e_.names.Fresh("b_part");
    e_.out.Line("reg<" + fragments_.Element() + ", " + std::to_string(fragments_.Registers(false) * count) + "> " + b +
                ";");
    fragments_.FetchB(b, Plus({{2, pair}}), k, count);
    if (tiles > 0) {
      std::string i = OpenUnrolled(e_, "i", tiles);
      for (int c = 0; c < count; ++c) Multiply(a, b, i, pair, c, false);
      CloseUnrolled(e_, tiles);
    }
    for (int c = 0; half && c < count; ++c) Multiply(a, b, std::to_string(tiles), pair, c, true);
    if (scoped) e_.out.Close();
  }

  /*! \brief Tile `i` of a with column block `2 * pair + column` of b. */
  void Multiply(const std::string& a, const std::string& b, const std::string& i, const std::string& pair, int column,
                bool half) {
    const bool paired_a = fragments_.a().paired, paired_b = fragments_.b().paired;
    auto sums = [&](int above) {
      const std::string block_r = paired_a ? i : Plus({{per_tile(), i}, {1, std::to_string(above)}});
      const std::string block_c = paired_b ? pair : Plus({{2, pair}, {1, std::to_string(column)}});
      return "&" + sums_.regs().At(Grouped(block_r), Grouped(block_c), paired_a ? std::to_string(above) : "0",
                                   paired_b ? std::to_string(column) : "0");
    };
    if (wide_) {
      for (int part = 0; part < 2; ++part) {
        e_.out.Line(std::string(row_.intrinsic) + "(" + sums(0) + ", " + a + "[" +
                    Plus({{2, i}, {1, std::to_string(part)}}) + "], " + b + "[" + std::to_string(2 * column + part) +
                    "]);");
      }
      return;
    }
    const std::string step = column_step() == 1 ? "" : "<" + std::to_string(column_step()) + ">";
    std::string high = half ? "&" + rest_ + "[0]" : sums(1);
    e_.out.Line(std::string(row_.intrinsic) + step + "(" + sums(0) + ", " + high + ", &" + a + "[" + Plus({{4, i}}) +
                "], &" + b + "[" + std::to_string(2 * column) + "]);");
  }

  Emitter& e_;
  const MmaRow& row_;
  FragmentPrinter fragments_;
  ProductSums sums_;
  const ScalarType* type_;
  bool wide_ = false;
  int64_t blocks_m_ = 0, blocks_n_ = 0, steps_ = 0;
  std::string rest_;
};

void MmaStep::Print(Emitter& e) const { MmaPrinter(e, *this).Print(); }

}  // namespace

StepPtr PlanMma(StepPlanner& p, const IOp& iop, const MmaRow& row) {
  auto step = std::make_unique<MmaStep>(iop, row);
  step->fragments = FragmentsPlan::Of(p, iop, row);
  step->sums = SumsPlan::OfInstruction(p, iop, row);
  step->sums.Finish(p);
  return step;
}

}  // namespace uir::codegen::cuda
