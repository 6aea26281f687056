// SPDX-License-Identifier: Apache-2.0
// Products by fused multiply-adds: exact fp32, and what no matrix instruction takes.
//
// Each lane has a tile of the sums in registers.  A step along the contracted side loads what the lane's rows need
// of a and its columns of b, 16 bytes at a time where that is proved: of a along the contracted side, of b along its
// rows or, where it is transposed, along the contracted side as well.  Such a deep access serves several steps; the
// factor of which a lane needs more is then streamed: a piece of it is read, used and forgotten, while the other one
// is held.  Lanes that need the same elements read the same address, which costs one access.  An operand that lies in
// registers goes through the warp's scratch first.
#include <algorithm>
#include <string>
#include <utility>

#include "base/rounding.h"
#include "codegen/attributes.h"
#include "codegen/cuda/contract.h"
#include "codegen/cuda/fma_steps.h"
#include "codegen/cuda/step_planner.h"
#include "codegen/cuda/sums.h"

namespace uir::codegen::cuda {

namespace {

//! \brief Multiply-adds that stand one after the other, without a jump between them.
//!
//! They hide the way of a load from shared memory.  Of longer runs the compiler loads what all of them need before the
//! first, into more registers than there are: of 512, with 64 sums, it spills.
constexpr int64_t kUnrolled = 256;

/*! \brief How an operand comes to where every lane can read it. */
struct ReadablePlan {
  ISlice slice;
  bool is_a = true;
  /*! \brief Of one in registers: they, and its copy in scratch, elements of a row and all of its bytes. */
  std::optional<Operand> held;
  int64_t pitch = 0, bytes = 0;
  /*! \brief Of one in memory: its box, and where lanes meet before it is read. */
  ReadableBounds bounds;
  MeetingPlace read = kNowhere;

  static ReadablePlan Of(StepPlanner& p, const IOp& iop, int source);
  /*! \brief How many elements each access may take: what bounds the side along which it goes forbids it. */
  Reach ReachOf(const Plan& plan, const Fragment& sums, const ReadablePlan& other) const;
};

ReadablePlan ReadablePlan::Of(StepPlanner& p, const IOp& iop, int source) {
  ReadablePlan out;
  out.slice = iop->sources[source];
  out.is_a = source == 0;
  const Home& home = p.plan.HomeOf(out.slice);
  if (!home.registers()) {
    out.bounds = ReadableBoundsOf(p, iop, source);
    out.read = p.Reads(out.slice);
    return out;
  }
  out.bounds.bounds = p.BoundsOf(out.slice);
  out.held = p.Source(out.slice, home.fragment.layout);
  // a row of whole 16-byte pieces, and one more so that neighbouring rows lie in other banks
  const int bytes = TypeOf(std::string(out.slice->pointer->dtype)).bytes;
  const int64_t piece = std::max<int64_t>(1, 16 / bytes);
  out.pitch = RoundUp(out.slice->cols, piece) + piece;
  out.bytes = RoundUp(out.pitch * out.slice->rows * bytes, 16);
  return out;
}

Reach ReadablePlan::ReachOf(const Plan& plan, const Fragment& sums, const ReadablePlan& other) const {
  // a copy has rows of whole 16-byte pieces
  const Reach widest =
      held ? WidestOf(slice, is_a, {is_a, !is_a}, kLaneBytes, sums) : WidestOf(plan, slice, is_a, sums);
  const Bounds &own = bounds.bounds, &others = other.bounds.bounds;
  const bool contracted = is_a ? own.cols || others.rows : own.rows || others.cols;
  return (widest.deep ? contracted : own.cols) ? Reach() : widest;
}

/*! \brief A product by fused multiply-adds. */
class FmaStep final : public Step {
 public:
  using Step::Step;
  void Print(Emitter& e) const final;

  SumsPlan sums;
  ReadablePlan a, b;
  Steps steps;
  /*! \brief Turns of the loop over steps that stand one after the other; 0 where it has one turn. */
  int64_t unroll = 0;
  /*! \brief Before operands are copied to scratch, and before the copies are read. */
  MeetingPlace copied = kNowhere, read = kNowhere;
};

/*! \brief An operand that every lane can read, while it is printed. */
struct Readable {
  const ReadablePlan* plan = nullptr;
  ISlice slice;
  const ScalarType* type = nullptr;
  Box box;
  /*! \brief Of a copy in scratch: its name; empty where the slice itself is read. */
  std::string copy;
  Reach reach;
  /*! \brief The registers that hold it. */
  std::string part;
};

class FmaPrinter {
 public:
  FmaPrinter(Emitter& e, const FmaStep& step)
      : e_(e), step_(step), type_(&TypeOf(std::string(step.iop->targets[0]->pointer->dtype))), sums_(e, step.sums) {}

  void Print() {
    fragment_ = sums_.regs().fragment;
    for (Readable* r : {&a_, &b_}) Prepare(r);
    if (step_.steps.streamed != Streamed::kNone) streamed_ = step_.steps.streamed == Streamed::kA ? &a_ : &b_;
    Copies();
    e_.needs.Core("reg");
    e_.needs.Dtype(type_->name);
    Loop();
    sums_.Finish();
  }

 private:
  void Prepare(Readable* r) {
    const int source = r == &a_ ? 0 : 1;
    r->plan = source == 0 ? &step_.a : &step_.b;
    r->slice = step_.iop->sources[source];
    r->type = &TypeOf(std::string(r->slice->pointer->dtype));
    r->reach = source == 0 ? step_.steps.a : step_.steps.b;
    e_.needs.Dtype(r->type->name);
    if (r->plan->held) {
      r->box = e_.BoxOf(r->slice);
      r->copy = e_.names.Fresh("operand");
    } else {
      r->box = ReadableBox(e_, step_.iop, source, r->plan->bounds);
      e_.Meet(r->plan->read);
    }
  }

  /*! \brief Brings operands that lie in registers to where every lane can read them. */
  void Copies() {
    if (step_.a.bytes + step_.b.bytes == 0) return;
    std::string place = e_.TemporaryScratch();
    e_.Meet(step_.copied);
    for (const Readable* r : {&a_, &b_}) {
      if (r->copy.empty()) continue;
      const std::string at = r == &b_ && step_.a.bytes > 0 ? " + " + std::to_string(step_.a.bytes) : "";
      e_.needs.Core("shared_at");
      e_.out.Line("auto " + r->copy + " = shared_at<" + r->type->stored + ", " +
                  std::to_string(r->plan->bytes / r->type->bytes) + ">(smem, " + place + at + ");");
      Regs held = e_.Source(*r->plan->held);
      e_.Each(held, {}, [&](const Cell& at_cell) { Copy(*r, held, at_cell); }, Coordinates{true, true});
    }
    e_.Meet(step_.read);
  }

  void Copy(const Readable& r, const Regs& held, const Cell& at) {
    std::string inside = e_.Inside(held.fragment, r.box, at), one = e_.OneOfCopies(held.fragment);
    std::string when = inside.empty() ? one : one.empty() ? inside : inside + " && " + one;
    std::string to = r.copy + "[(" + (at.row.empty() ? "0" : at.row) + ") * " + std::to_string(r.plan->pitch) + " + " +
                     (at.col.empty() ? "0" : at.col) + "] = " + held[at] + ";";
    e_.out.Line(when.empty() ? to : "if (" + when + ") " + to);
  }

  std::string Pointer(const Readable& r, const std::string& row, const std::string& col) {
    if (r.copy.empty()) return e_.Element(r.slice, Grouped(row), Grouped(col));
    return r.copy + " + " + Grouped(row) + " * " + std::to_string(r.plan->pitch) + " + " + col;
  }

  void Loop() {
    std::string k = e_.names.Fresh("k");
    std::string begin = a_.box.col_begin.value_or("0"), end = a_.box.col_end.value_or(std::to_string(a_.slice->cols));
    if (step_.unroll > 0) e_.out.Line("#pragma unroll " + std::to_string(step_.unroll));
    e_.out.Open("for (int " + k + " = " + begin + "; " + k + " < " + end + "; " +
                (length() > 1 ? k + " += " + std::to_string(length()) : "++" + k) + ")");
    a_.part = e_.names.Fresh("a_part");
    b_.part = e_.names.Fresh("b_part");
    streamed_ != nullptr ? Stream(k) : Hold(k);
    e_.out.Close();
  }

  /*! \brief Both factors are held: those of deep accesses for all of the step, others one element deep. */
  void Hold(const std::string& k) {
    for (const Readable* r : {&a_, &b_}) {
      if (r->reach.deep) Factor(*r, k);
    }
    const std::string q = OpenUnrolled(e_, "q", length());
    if (length() == 1) e_.out.Open("");
    for (const Readable* r : {&a_, &b_}) {
      if (!r->reach.deep) Factor(*r, length() == 1 ? k : k + " + " + q);
    }
    const auto [i, r] = OpenSide(a_);
    const auto [j, c] = OpenSide(b_);
    Multiply(i, r, j, c, q);
    CloseSide(b_);
    CloseSide(a_);
    e_.out.Close();
  }

  /*! \brief One factor is held for all of the step, of the other one a piece at a time. */
  void Stream(const std::string& k) {
    const Readable &one = *streamed_, &other = streamed_ == &a_ ? b_ : a_;
    Factor(other, k);
    const auto [block, n] = OpenSide(one);
    if (RegistersOf(one) == 1) e_.out.Open("");
    Declare(one, one.reach.elements);
    Access(one, block, n, k, "0");
    const std::string q = OpenUnrolled(e_, "q", length());
    const auto [along, m] = OpenSide(other);
    &one == &a_ ? Multiply(block, n, along, m, q) : Multiply(along, m, block, n, q);
    CloseSide(other);
    CloseUnrolled(e_, length());
    if (RegistersOf(one) == 1) e_.out.Close();
    CloseSide(one);
  }

  /*! \brief The blocks of a lane along the side of a factor that is not contracted, and the elements of a block. */
  std::pair<int64_t, int64_t> SideOf(const Readable& r) const {
    const Layout& l = fragment_.layout;
    return &r == &a_ ? std::pair<int64_t, int64_t>{fragment_.blocks_r(), l.vec_r}
                     : std::pair<int64_t, int64_t>{fragment_.blocks_c(), l.vec_c};
  }
  int64_t RegistersOf(const Readable& r) const { return SideOf(r).first * SideOf(r).second; }

  std::pair<std::string, std::string> OpenSide(const Readable& r) {
    const auto [blocks, vec] = SideOf(r);
    std::string block = OpenUnrolled(e_, &r == &a_ ? "i" : "j", blocks);
    return {block, OpenUnrolled(e_, &r == &a_ ? "r" : "c", vec)};
  }
  void CloseSide(const Readable& r) {
    CloseUnrolled(e_, SideOf(r).second);
    CloseUnrolled(e_, SideOf(r).first);
  }

  void Declare(const Readable& r, int64_t registers) {
    e_.out.Line("reg<" + std::string(type_->compute) + ", " + std::to_string(registers) + "> " + r.part + ";");
  }

  /*! \brief Whether a factor of shallow accesses is held for all of a step: step by step, one after the other. */
  bool Repeated(const Readable& r) const { return streamed_ != nullptr && !r.reach.deep && length() > 1; }

  /*! \brief Registers of a factor, and what fills them at `k`. */
  void Factor(const Readable& r, const std::string& k) {
    const auto [blocks, vec] = SideOf(r);
    const bool repeated = Repeated(r);
    Declare(r, RegistersOf(r) * (repeated ? length() : r.reach.depth()));
    const std::string q = repeated ? OpenUnrolled(e_, "q", length()) : "";
    const std::string block = OpenUnrolled(e_, &r == &a_ ? "i" : "j", blocks);
    const int64_t along = r.reach.deep ? 1 : r.reach.elements, turns = vec / along;
    const std::string c = OpenUnrolled(e_, &r == &a_ ? "r" : "c", turns);
    const std::string first = turns == 1 ? "0" : along == 1 ? c : std::to_string(along) + " * " + c;
    Access(r, block, first, repeated ? k + " + " + q : k, Register(r, Number(block, vec, first), repeated ? q : "0"));
    CloseUnrolled(e_, turns);
    CloseUnrolled(e_, blocks);
    if (repeated) CloseUnrolled(e_, length());
  }

  /*! \brief The register of a held factor for a number along its side and a step. */
  std::string Register(const Readable& r, const std::string& number, const std::string& q) const {
    const std::string step = q == "0" ? "" : " + " + q;
    if (r.reach.deep) return Grouped(number) + " * " + std::to_string(r.reach.elements) + step;
    return Repeated(r) ? Grouped(q) + " * " + std::to_string(RegistersOf(r)) + " + " + number : number;
  }

  /*! \brief Coordinates of the registers along one side. */
  std::string Index(bool along_rows, const std::string& block, const std::string& n) {
    const Layout& l = fragment_.layout;
    if (along_rows ? fragment_.replicated_r() : fragment_.replicated_c()) return "0";
    const int lanes = along_rows ? l.lanes_r : l.lanes_c, vec = along_rows ? l.vec_r : l.vec_c;
    std::string lane = along_rows ? e_.LaneRow(l) : e_.LaneCol(l);
    std::string out = block == "0" ? lane : block + " * " + std::to_string(lanes) + " + " + lane;
    if (vec > 1) out = "(" + out + ") * " + std::to_string(vec) + (n == "0" ? "" : " + " + n);
    return out;
  }

  static std::string Number(const std::string& block, int64_t vec, const std::string& n) {
    if (vec == 1) return block;
    return block + " * " + std::to_string(vec) + " + " + n;
  }

  std::string Converted(const Readable& r, const std::string& value) {
    std::string wide = Widen(*r.type, value);
    if (std::string(TypeOf(r.type->carried).compute) == type_->compute && IsNarrow(*r.type)) return wide;
    return std::string(r.type->stored) == type_->compute
               ? wide
               : "static_cast<" + std::string(type_->compute) + ">(" + wide + ")";
  }

  std::string Where(const std::string& index, bool exact, int64_t extent, const std::optional<std::string>& begin,
                    const std::optional<std::string>& end) {
    std::vector<std::string> out;
    if (!exact) out.push_back(index + " < " + std::to_string(extent));
    if (begin) out.push_back(index + " >= " + *begin);
    if (end) out.push_back(index + " < " + *end);
    return Join(out, " && ");
  }

  /*! \brief One access to a factor at step `k`, into its registers from `to` on. */
  void Access(const Readable& r, const std::string& block, const std::string& n, const std::string& k,
              const std::string& to) {
    const bool is_a = &r == &a_;
    const std::string index = Index(is_a, block, n), pointer = is_a ? Pointer(r, index, k) : Pointer(r, k, index);
    const std::string where = is_a ? Where(index, fragment_.exact_r(), r.slice->rows, r.box.row_begin, r.box.row_end)
                                   : Where(index, fragment_.exact_c(), r.slice->cols, r.box.col_begin, r.box.col_end);
    if (r.reach.elements > 1) return Wide(r, to, pointer, where);
    const std::string value = Converted(r, "*(" + pointer + ")");
    e_.out.Line(r.part + "[" + to + "] = " + (where.empty() ? value : where + " ? " + value + " : 0") + ";");
  }

  /*! \brief One access of several elements into consecutive registers. */
  void Wide(const Readable& r, const std::string& to, const std::string& pointer, const std::string& where) {
    e_.needs.Core("vec");
    e_.needs.Core("load_vec");
    const std::string type = std::string(r.type->stored), n = std::to_string(r.reach.elements);
    std::string piece = e_.names.Fresh("piece"), c = e_.names.Fresh("c");
    e_.out.Open(where.empty() ? "" : "if (" + where + ")");
    e_.out.Line("const vec<" + type + ", " + n + "> " + piece + " = load_vec<" + type + ", " + n + ">(" + pointer +
                ");");
    e_.out.Line("#pragma unroll");
    const std::string each = "for (int " + c + " = 0; " + c + " < " + n + "; ++" + c + ") " + r.part + "[" +
                             (to == "0" ? "" : to + " + ") + c + "] = ";
    e_.out.Line(each + Converted(r, piece + ".v[" + c + "]") + ";");
    e_.out.Close();
    if (where.empty()) return;
    e_.out.Open("else");
    e_.out.Line("#pragma unroll");
    e_.out.Line(each + "0;");
    e_.out.Close();
  }

  /*! \brief The sum of register (i, r) of the rows and (j, c) of the columns goes on by step `q`. */
  void Multiply(const std::string& i, const std::string& r, const std::string& j, const std::string& c,
                const std::string& q) {
    auto factor = [&](const Readable& f, const std::string& block, const std::string& n) {
      return f.part + "[" + (&f == streamed_ ? q : Register(f, Number(block, SideOf(f).second, n), q)) + "]";
    };
    const std::string sum = sums_.regs().At(i, j, r, c);
    e_.out.Line(sum + " = " + Sum(factor(a_, i, r), factor(b_, j, c), sum) + ";");
  }

  std::string Sum(const std::string& x, const std::string& y, const std::string& sum) {
    if (type_->kind == Kind::kFloat) {
      return std::string(type_->compute) == "double" ? "fma(" + x + ", " + y + ", " + sum + ")"
                                                     : "fmaf(" + x + ", " + y + ", " + sum + ")";
    }
    const std::string held = TypeOf(sums_.regs().dtype).name;
    e_.needs.Helper("wrap_add:" + held);
    e_.needs.Helper("wrap_mul:" + held);
    return "wrap_add(" + sum + ", wrap_mul(" + x + ", " + y + "))";
  }

  /*! \brief Elements of the contracted side in one step. */
  int64_t length() const { return step_.steps.length; }

  Emitter& e_;
  const FmaStep& step_;
  const ScalarType* type_;
  ProductSums sums_;
  Fragment fragment_;
  Readable a_, b_;
  /*! \brief The factor of which a piece at a time is in registers, if any. */
  const Readable* streamed_ = nullptr;
};

void FmaStep::Print(Emitter& e) const { FmaPrinter(e, *this).Print(); }

}  // namespace

StepPtr PlanFma(StepPlanner& p, const IOp& iop) {
  auto step = std::make_unique<FmaStep>(iop);
  const ISlice& target = iop->targets[0];
  const ScalarType& type = TypeOf(std::string(target->pointer->dtype));
  // a dtype that is computed in another one is summed in that
  const std::string held = IsNarrow(type) ? std::string(type.carried) : std::string(type.name);
  step->sums = SumsPlan::Of(p, iop, held, FmaSums(p.plan, iop), !IsNarrow(type));
  step->a = ReadablePlan::Of(p, iop, 0);
  step->b = ReadablePlan::Of(p, iop, 1);
  if (const int64_t bytes = step->a.bytes + step->b.bytes) {
    step->copied = p.WritesTemporary(bytes);
    step->read = p.ReadsTemporary(bytes);
    // the other operand is read behind that meeting, not before it
    for (const ReadablePlan* operand : {&step->a, &step->b}) {
      if (!operand->held) p.Reads(operand->slice);
    }
  }
  const Fragment& sums = step->sums.target.fragment;
  step->steps = StepsOf(step->a.ReachOf(p.plan, sums, step->b), step->b.ReachOf(p.plan, sums, step->a), sums,
                        TypeOf(std::string(iop->sources[0]->pointer->dtype)).bytes, TypeOf(held).bytes);
  const int64_t length = step->steps.length;
  if (iop->sources[0]->cols / length > 1) {
    const int64_t turns = std::min(length > 1 ? int64_t{2} : int64_t{4}, kUnrolled / (sums.size() * length));
    step->unroll = std::max<int64_t>(1, turns);
  }
  step->sums.Finish(p);
  return step;
}

}  // namespace uir::codegen::cuda
