// SPDX-License-Identifier: Apache-2.0
// reduce: first the registers of a lane, then the lanes that share a row (column), then the warps of a set.
//
// A lane joins what it holds in a few independent partial results; the lanes join theirs by a butterfly of shuffles,
// after which each of them holds the result.  In a group form every warp writes its result to the buffer, the set
// meets, and its first warp joins them.  What lies outside the source's valid box counts as the operation's identity.
#include <tvm/ffi/any.h>

#include <algorithm>

#include "codegen/attributes.h"
#include "codegen/cuda/functions.h"
#include "codegen/cuda/group.h"
#include "codegen/cuda/loops.h"
#include "codegen/cuda/ops.h"
#include "codegen/cuda/step_planner.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief Partial results of one lane that do not wait for each other. */
constexpr int64_t kPartials = 4;

bool SameBound(const ffi::Optional<Affine>& a, const ffi::Optional<Affine>& b) {
  if (!a || !b) return !a && !b;
  return a.value().ToString() == b.value().ToString();
}

/*! \brief Partial results for so many terms. */
int64_t PartialsOf(int64_t terms) { return terms >= 2 * kPartials ? kPartials : terms >= kPartials ? 2 : 1; }

/*! \brief A reduce; *folded* is the side that is reduced, *kept* the other. */
class ReduceStep final : public Step {
 public:
  using Step::Step;
  void Print(Emitter& e) const final;

  bool by_row = true;
  Operand source, target;
  std::optional<GroupPlan> group;
  /*! \brief Whether the source's box bounds the kept side as the target's does: what is not read is not written. */
  bool same_kept = false;
  /*! \brief Whether it matters that an element exists on the kept side. */
  bool kept_masked = false;
  /*! \brief Partial results of a lane, and of the warp that joins those of a set. */
  int64_t partials = 1, set_partials = 1;
};

/*! \brief Prints one reduce. */
class ReducePrinter {
 public:
  ReducePrinter(Emitter* e, const ReduceStep& step)
      : e_(*e),
        step_(step),
        name_(step.iop->name),
        dtype_(step.iop->dtype),
        carried_(TypeOf(TypeOf(dtype_).carried)),
        by_row_(step.by_row) {
    identity_ = IdentityLiteral(name_, dtype_);
    for (const std::string& key : ConversionHelpers(TypeOf(dtype_))) e_.needs.Helper(key);
  }

  void Print() {
    Regs source = e_.Source(step_.source);
    Regs target = e_.Target(step_.target);
    Box box = e_.BoxOf(step_.source.slice);
    if (step_.same_kept) {
      (by_row_ ? box.row_begin : box.col_begin).reset();
      (by_row_ ? box.row_end : box.col_end).reset();
    }
    if (!step_.group) {
      Warp(source, target, box, nullptr);
      return e_.Commit(step_.target, target);
    }
    const Group group(&e_, *step_.group);
    e_.Meet(step_.group->written);
    Warp(source, target, box, &group);
    group.Barrier();
    e_.Meet(step_.group->read);
    Leader(target, group);
    if (step_.target.way == Operand::Way::kInPlace) return;
    // only the first warp has something to bring home
    e_.BoxOf(step_.target.slice);
    e_.out.Open("if (" + group.Member() + " == 0)");
    e_.Commit(step_.target, target);
    e_.out.Close();
  }

 private:
  /*! \brief `into = into joined with value`. */
  void Join(const std::string& into, const std::string& value) {
    Expression made = JoinExpression(name_, dtype_, into, value);
    for (const std::string& key : made.helpers) e_.needs.Helper(key);
    e_.out.Line(into + " = " + made.text + ";");
  }

  /*! \brief Declares `count` partial results that hold the identity; returns the name of the first. */
  std::string Partials(int64_t count) {
    if (count == 1) {
      e_.out.Line(std::string(carried_.compute) + " sum = " + identity_ + ";");
      return "sum";
    }
    e_.needs.Core("reg");
    e_.out.Line(std::string("reg<") + carried_.compute + ", " + std::to_string(count) + "> part;");
    e_.out.Line("#pragma unroll");
    e_.out.Line("for (int k = 0; k < " + std::to_string(count) + "; ++k) part[k] = " + identity_ + ";");
    return "part[0]";
  }

  /*! \brief Joins the partial results pairwise into the first. */
  void Fold(int64_t count) {
    for (int64_t half = count / 2; half >= 1; half /= 2) {
      for (int64_t k = 0; k < half; ++k) {
        Join("part[" + std::to_string(k) + "]", "part[" + std::to_string(k + half) + "]");
      }
    }
  }

  /*! \brief What the warp's lanes hold of every kept row, joined and in all lanes of it. */
  void Warp(const Regs& source, const Regs& target, const Box& box, const Group* group) {
    const Fragment& f = source.fragment;
    Coordinates needed = e_.InsideNeeds(f, box);
    // a row that does not exist has no result that counts
    (by_row_ ? needed.row : needed.col) = step_.kept_masked && (by_row_ ? needed.row : needed.col);
    Coordinates target_needs = KeptNeeds(target);
    bool kept_wanted = (by_row_ ? needed.row || target_needs.row : needed.col || target_needs.col) || group != nullptr;

    Loops kept(&e_);
    Place at = kept.Side(f, by_row_, kept_wanted);
    const int64_t count = step_.partials;
    // names of one result are its own
    kept.OpenBlock();
    std::string sum = Partials(count);
    Loops folded(&e_);
    Place along = folded.Side(f, !by_row_, by_row_ ? needed.col : needed.row);
    Cell cell = by_row_ ? CellOf(at, along) : CellOf(along, at);
    std::string inside = InsideFolded(f, box, cell);
    std::string value = Carry(dtype_, source[cell]);
    if (!inside.empty()) value = "(" + inside + " ? " + value + " : " + identity_ + ")";
    Join(count == 1 ? sum : "part[" + PartialIndex(f, along, count) + "]", value);
    folded.Close();
    Fold(count);
    Butterfly(f, sum);
    Result(target, at, sum, group);
    kept.Close();
  }

  Coordinates KeptNeeds(const Regs& target) {
    return target.spare ? e_.InsideNeeds(target.fragment, *target.spare) : Coordinates();
  }

  /*! \brief Whether an element counts; that it exists on the kept side matters only where results go to memory. */
  std::string InsideFolded(const Fragment& f, const Box& box, const Cell& cell) {
    if (step_.kept_masked) return e_.Inside(f, box, cell);
    // an exact fragment of the same folded side asks for nothing on the kept side
    Fragment exact = f;
    (by_row_ ? exact.rows : exact.cols) = 1;
    return e_.Inside(exact, box, cell);
  }

  std::string PartialIndex(const Fragment& f, const Place& along, int64_t count) {
    int64_t vec = by_row_ ? f.layout.vec_c : f.layout.vec_r;
    std::string modulo = " % " + std::to_string(count);
    if (vec == count) return along.within;
    if (vec % count == 0) return along.within + modulo;
    if (vec == 1) return along.block + modulo;
    return "(" + along.block + " * " + std::to_string(vec) + " + " + along.within + ")" + modulo;
  }

  /*! \brief Joins over the lanes that share a kept row; where the side has one element, they hold copies. */
  void Butterfly(const Fragment& f, const std::string& sum) {
    const Layout& l = f.layout;
    if (by_row_ ? f.replicated_c() : f.replicated_r()) return;
    int lanes = by_row_ ? l.lanes_c : l.lanes_r;
    // neighbours along the side are one lane apart, or as many as the other side has
    bool neighbours = by_row_ != l.lanes_col_major;
    int step = neighbours ? 1 : (by_row_ ? l.lanes_r : l.lanes_c);
    for (int distance = lanes / 2; distance >= 1; distance /= 2) {
      Join(sum, "__shfl_xor_sync(0xffffffffu, " + sum + ", " + std::to_string(distance * step) + ")");
    }
  }

  /*! \brief A kept row's result to its register, or to the warp's slot of the buffer. */
  void Result(const Regs& target, const Place& at, const std::string& sum, const Group* group) {
    std::string value = Uncarry(dtype_, sum);
    Place none;
    none.coordinate = "0";
    Cell cell = by_row_ ? CellOf(at, none) : CellOf(none, at);
    if (group == nullptr) {
      e_.Assign(target, cell, value);
      return;
    }
    const Fragment& f = target.fragment;
    std::string condition = e_.Inside(f, Box(), cell), copies = e_.OneOfCopies(f);
    if (!copies.empty()) condition += (condition.empty() ? "" : " && ") + copies;
    std::string slot = group->Slot(SlotIndex(f, group->Member(), at.coordinate));
    e_.out.Line((condition.empty() ? "" : "if (" + condition + ") ") + slot + " = " + value + ";");
  }

  /*! \brief Slot of a member's result: all results of one member, then those of the next. */
  std::string SlotIndex(const Fragment& f, const std::string& member, const std::string& element) {
    int64_t count = by_row_ ? f.rows : f.cols;
    std::string text = member.find(' ') == std::string::npos ? member : "(" + member + ")";
    if (count > 1) text += " * " + std::to_string(count);
    return element == "0" ? text : text + " + " + element;
  }

  /*! \brief The set's first warp joins the results of all; the others keep what their target held. */
  void Leader(const Regs& target, const Group& group) {
    const Fragment& f = target.fragment;
    Loops kept(&e_);
    kept.OpenBlock("if (" + group.Member() + " == 0)");
    Place at = kept.Side(f, by_row_, true);
    kept.OpenBlock();
    const int64_t count = step_.set_partials;
    std::string sum = Partials(count);
    Place none;
    none.coordinate = "0";
    Cell cell = by_row_ ? CellOf(at, none) : CellOf(none, at);
    std::string exists = e_.Inside(f, Box(), cell);
    Loops members(&e_);
    std::string member = members.Open("m", group.plan().size);
    std::string value = Carry(dtype_, group.Slot(SlotIndex(f, member, at.coordinate)));
    if (!exists.empty()) value = "(" + exists + " ? " + value + " : " + identity_ + ")";
    Join(count == 1 ? sum : "part[m % " + std::to_string(count) + "]", value);
    members.Close();
    Fold(count);
    e_.Assign(target, cell, Uncarry(dtype_, sum));
    kept.Close();
  }

  Emitter& e_;
  const ReduceStep& step_;
  std::string name_, dtype_;
  const ScalarType& carried_;
  bool by_row_;
  std::string identity_;
};

void ReduceStep::Print(Emitter& e) const { ReducePrinter(&e, *this).Print(); }

}  // namespace

StepPtr PlanReduce(StepPlanner& p, const IOp& iop) {
  auto step = std::make_unique<ReduceStep>(iop);
  const ISlice &s = iop->sources[0], &t = iop->targets[0];
  const Layout layout = p.plan.WorkLayout(iop);
  const bool by_row = step->by_row = IsByRow(iop);
  step->source = p.Source(s, layout);
  step->target = p.Target(t, layout);
  step->group = GroupPlan::Of(p, iop);
  const bool same = by_row ? SameBound(s->row_begin, t->row_begin) && SameBound(s->row_end, t->row_end)
                           : SameBound(s->col_begin, t->col_begin) && SameBound(s->col_end, t->col_end);
  step->same_kept = same && !step->group;
  const Bounds bounds = p.BoundsOf(s);
  step->kept_masked = step->group || (!step->same_kept && (by_row ? bounds.rows : bounds.cols));
  const Fragment& f = step->source.fragment;
  step->partials = PartialsOf(by_row ? f.blocks_c() * f.layout.vec_c : f.blocks_r() * f.layout.vec_r);
  if (!step->group) {
    p.Commit(&step->target);
    return step;
  }
  GroupPlan& group = *step->group;
  step->set_partials = PartialsOf(group.size);
  if (group.size % step->set_partials != 0) step->set_partials = 1;
  group.written = p.Writes(group.buffer);
  p.Met();
  group.read = p.Reads(group.buffer);
  p.OnlySome([&] { p.Commit(&step->target); });
  return step;
}

}  // namespace uir::codegen::cuda
