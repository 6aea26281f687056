// SPDX-License-Identifier: Apache-2.0
/*!
 * \file contract_fma.cc
 * \brief Products by fused multiply-adds: exact fp32, and what no matrix instruction takes.
 *
 * Each lane has a tile of the sums in registers.  A step along the contracted side loads what the lane's rows need
 * of a and its columns of b, 16 bytes at a time where that is proved: of a along the contracted side, of b along its
 * rows or, where it is transposed, along the contracted side as well.  Lanes that need the same elements read the
 * same address, which costs one access.  An operand that lies in registers goes through the warp's scratch first.
 */
#include <algorithm>
#include <string>

#include "contract.h"

namespace uir {
namespace codegen {
namespace cuda {

namespace {

/*! \brief Elements of one access to a factor, and whether they follow each other along the contracted side. */
struct Reach {
  int64_t elements = 1;
  bool deep = false;
};

/*! \brief The layout of the sums: they stay where they are, the factors are read from memory whatever their layout. */
Layout SumsOf(const Plan& plan, const IOp& iop) {
  const Home& home = plan.HomeOf(iop->targets[0]);
  return home.registers() ? home.class_layout : plan.WorkLayout(iop);
}

/*! \brief Whether neighbours in memory are neighbours along the contracted side, and along the other one. */
struct Neighbours {
  bool deep = false, along = false;
};

/*! \brief The widest access to a factor whose lines begin at multiples of `align` bytes. */
Reach WidestOf(const ISlice& slice, bool is_a, Neighbours are, int64_t align, const Fragment& sums) {
  const int bytes = TypeOf(std::string(slice->pointer->dtype)).bytes;
  const int64_t widest = std::max<int64_t>(1, kLaneBytes / bytes), depth = is_a ? slice->cols : slice->rows;
  if (are.deep) return widest > 1 && depth % widest == 0 && align >= kLaneBytes ? Reach{widest, true} : Reach{};
  const int64_t n = std::min<int64_t>(widest, sums.layout.vec_c);
  return !is_a && are.along && n > 1 && sums.exact_c() && align >= n * bytes ? Reach{n, false} : Reach{};
}

/*! \brief The same of a slice in memory. */
Reach WidestOf(const Plan& plan, const ISlice& slice, bool is_a, const Fragment& sums) {
  const bool by_rows = slice->col_stride == 1, by_cols = !by_rows && slice->row_stride == 1;
  const Access access = AccessOf(slice, plan.scope());
  int64_t align = access.align;
  const int64_t pitch = (by_rows ? slice->row_stride : slice->col_stride) * access.bytes;
  while (align > 1 && pitch % align != 0) align /= 2;
  return WidestOf(slice, is_a, is_a ? Neighbours{by_rows, by_cols} : Neighbours{by_cols, by_rows}, align, sums);
}

/*! \brief An operand that every lane can read. */
struct Readable {
  ISlice slice;
  const ScalarType* type = nullptr;
  Box box;
  /*! \brief Of a copy in scratch: its name and the elements of a row; empty where the slice itself is read. */
  std::string copy;
  int64_t pitch = 0;
  Reach reach;
};

class FmaPrinter {
 public:
  FmaPrinter(Emitter& e, const IOp& iop) : e_(e), iop_(iop), target_(iop->targets[0]) {
    accumulate_ = iop->attrs.count("accumulate") != 0 && iop->attrs["accumulate"].cast<bool>();
    type_ = &TypeOf(std::string(target_->pointer->dtype));
    layout_ = SumsOf(e.plan, iop);
    depth_ = iop->sources[0]->cols;
  }

  void Print() {
    const Home& home = e_.plan.HomeOf(target_);
    direct_ = home.registers() && !IsNarrow(*type_) && !e_.plan.SparesOutside(target_);
    std::optional<Regs> old;
    if (direct_) {
      sums_ = e_.Target(target_, layout_);
      if (!accumulate_) Zero();
    } else {
      if (accumulate_) old = e_.Source(target_, layout_);
      // a dtype that is computed in another one is summed in that
      const std::string held = IsNarrow(*type_) ? std::string(type_->carried) : std::string(type_->name);
      sums_ = e_.Temporary("sums", held, Fragment(layout_, target_->rows, target_->cols));
      if (old) {
        e_.Each(sums_, {&*old}, [&](const Cell& at) { e_.Assign(sums_, at, Widen(*type_, (*old)[at])); });
      } else {
        Zero();
      }
    }
    fragment_ = sums_.fragment;
    Prepare(&a_, iop_->sources[0]);
    Prepare(&b_, iop_->sources[1]);
    Copies();
    Vectors();
    e_.needs.Core("reg");
    e_.needs.Dtype(type_->name);
    Loop();
    if (!direct_) {
      Regs out = e_.Target(target_, layout_);
      Coordinates need;
      if (out.spare) need = e_.InsideNeeds(out.fragment, *out.spare);
      e_.Each(out, {&sums_}, [&](const Cell& at) { e_.Assign(out, at, Narrow(*type_, sums_[at])); }, need);
      e_.Commit(target_, out);
    } else {
      e_.Commit(target_, sums_);
    }
  }

 private:
  void Zero() {
    const ScalarType& held = TypeOf(sums_.dtype);
    e_.Each(sums_, {}, [&](const Cell& at) {
      e_.Assign(sums_, at, held.kind == Kind::kFloat ? StoredLiteral(held, 0.0) : StoredLiteral(held, int64_t{0}));
    });
  }

  void Prepare(Readable* r, const ISlice& slice) {
    r->slice = slice;
    r->type = &TypeOf(std::string(slice->pointer->dtype));
    const int source = r == &a_ ? 0 : 1;
    r->box = e_.plan.HomeOf(slice).registers() ? e_.BoxOf(slice) : ReadableBox(e_, iop_, source);
    e_.needs.Dtype(r->type->name);
    if (!e_.plan.HomeOf(slice).registers()) {
      e_.Reads(slice);
      return;
    }
    // a row of whole 16-byte pieces, and one more so that neighbouring rows lie in other banks
    const int64_t piece = std::max<int64_t>(1, 16 / r->type->bytes);
    r->pitch = (slice->cols + piece - 1) / piece * piece + piece;
    r->copy = e_.names.Fresh("operand");
  }

  static int64_t CopyBytes(const Readable& r) {
    return r.copy.empty() ? 0 : (r.pitch * r.slice->rows * r.type->bytes + 15) / 16 * 16;
  }

  /*! \brief Brings operands that lie in registers to where every lane can read them. */
  void Copies() {
    const int64_t bytes = CopyBytes(a_) + CopyBytes(b_);
    if (bytes == 0) return;
    std::string place = e_.TemporaryScratch(bytes);
    e_.WritesTemporary(bytes);
    for (const Readable* r : {&a_, &b_}) {
      if (r->copy.empty()) continue;
      const std::string at = r == &b_ && CopyBytes(a_) > 0 ? " + " + std::to_string(CopyBytes(a_)) : "";
      e_.needs.Core("shared_at");
      e_.out.Line("auto " + r->copy + " = shared_at<" + r->type->stored + ", " +
                  std::to_string(CopyBytes(*r) / r->type->bytes) + ">(smem, " + place + at + ");");
      Regs held = e_.Source(r->slice, e_.plan.HomeOf(r->slice).fragment.layout);
      e_.Each(held, {}, [&](const Cell& at_cell) { Copy(*r, held, at_cell); }, Coordinates{true, true});
    }
    e_.ReadsTemporary(bytes);
  }

  void Copy(const Readable& r, const Regs& held, const Cell& at) {
    std::string inside = e_.Inside(held.fragment, r.box, at), one = e_.OneOfCopies(held.fragment);
    std::string when = inside.empty() ? one : one.empty() ? inside : inside + " && " + one;
    std::string to = r.copy + "[(" + (at.row.empty() ? "0" : at.row) + ") * " + std::to_string(r.pitch) + " + " +
                     (at.col.empty() ? "0" : at.col) + "] = " + held[at] + ";";
    e_.out.Line(when.empty() ? to : "if (" + when + ") " + to);
  }

  /*! \brief How many elements each access may take: what bounds the side along which it goes forbids it. */
  void Vectors() {
    for (Readable* r : {&a_, &b_}) {
      const bool is_a = r == &a_;
      // a copy has rows of whole 16-byte pieces
      r->reach = r->copy.empty() ? WidestOf(e_.plan, r->slice, is_a, fragment_)
                                 : WidestOf(r->slice, is_a, {is_a, !is_a}, kLaneBytes, fragment_);
      const bool bounded = r->reach.deep ? a_.box.cols() || b_.box.rows() : r->box.cols();
      if (bounded) r->reach = Reach();
    }
    // both go down the contracted side in the same steps
    step_ = std::max(a_.reach.deep ? a_.reach.elements : 1, b_.reach.deep ? b_.reach.elements : 1);
    for (Readable* r : {&a_, &b_}) {
      if (r->reach.deep && step_ % r->reach.elements != 0) r->reach = Reach();
    }
  }

  std::string Pointer(const Readable& r, const std::string& row, const std::string& col) {
    if (r.copy.empty()) return e_.Element(r.slice, Grouped(row), Grouped(col));
    return r.copy + " + " + Grouped(row) + " * " + std::to_string(r.pitch) + " + " + col;
  }

  void Loop() {
    std::string k = e_.names.Fresh("k");
    std::string begin = a_.box.col_begin.value_or("0"), end = a_.box.col_end.value_or(std::to_string(depth_));
    if (depth_ / step_ > 1) e_.out.Line(step_ > 1 ? "#pragma unroll 2" : "#pragma unroll 4");
    e_.out.Open("for (int " + k + " = " + begin + "; " + k + " < " + end + "; " +
                (step_ > 1 ? k + " += " + std::to_string(step_) : "++" + k) + ")");
    std::string a = e_.names.Fresh("a_part"), b = e_.names.Fresh("b_part");
    // what is read along the contracted side serves the whole step
    if (a_.reach.deep) Factor(a_, a, k);
    if (b_.reach.deep) Factor(b_, b, k);
    std::string q = OpenUnrolled(e_, "q", step_);
    if (step_ == 1) e_.out.Open("");
    const std::string now = step_ == 1 ? k : k + " + " + q;
    if (!a_.reach.deep) Factor(a_, a, now);
    if (!b_.reach.deep) Factor(b_, b, now);
    Multiply(a, b, q);
    e_.out.Close();
    e_.out.Close();
  }

  /*! \brief Registers of a factor, and what fills them at `k`. */
  void Factor(const Readable& r, const std::string& name, const std::string& k) {
    const bool is_a = &r == &a_;
    const int64_t count =
        is_a ? fragment_.blocks_r() * fragment_.layout.vec_r : fragment_.blocks_c() * fragment_.layout.vec_c;
    e_.out.Line("reg<" + std::string(type_->compute) + ", " +
                std::to_string(count * (r.reach.deep ? r.reach.elements : 1)) + "> " + name + ";");
    is_a ? RowsOfA(name, k) : ColumnsOfB(name, k);
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

  void RowsOfA(const std::string& a, const std::string& k) {
    std::string block = OpenUnrolled(e_, "i", fragment_.blocks_r());
    std::string r = OpenUnrolled(e_, "r", fragment_.layout.vec_r);
    std::string row = Index(true, block, r), number = Number(block, fragment_.layout.vec_r, r);
    std::string where = Where(row, fragment_.exact_r(), a_.slice->rows, a_.box.row_begin, a_.box.row_end);
    if (!a_.reach.deep) {
      std::string value = Converted(a_, "*(" + Pointer(a_, row, k) + ")");
      e_.out.Line(a + "[" + number + "] = " + (where.empty() ? value : where + " ? " + value + " : 0") + ";");
    } else {
      Wide(a_, a, Grouped(number) + " * " + std::to_string(a_.reach.elements), Pointer(a_, row, k), where);
    }
    CloseUnrolled(e_, fragment_.layout.vec_r);
    CloseUnrolled(e_, fragment_.blocks_r());
  }

  void ColumnsOfB(const std::string& b, const std::string& k) {
    std::string block = OpenUnrolled(e_, "j", fragment_.blocks_c());
    const int64_t along = b_.reach.deep ? 1 : b_.reach.elements, turns = fragment_.layout.vec_c / along;
    std::string c = OpenUnrolled(e_, "c", turns);
    std::string first = turns == 1 ? "0" : along == 1 ? c : std::to_string(along) + " * " + c;
    std::string col = Index(false, block, first), number = Number(block, fragment_.layout.vec_c, first);
    std::string where = Where(col, fragment_.exact_c(), b_.slice->cols, b_.box.col_begin, b_.box.col_end);
    if (b_.reach.elements == 1) {
      std::string value = Converted(b_, "*(" + Pointer(b_, k, col) + ")");
      e_.out.Line(b + "[" + number + "] = " + (where.empty() ? value : where + " ? " + value + " : 0") + ";");
    } else {
      const std::string to = b_.reach.deep ? Grouped(number) + " * " + std::to_string(b_.reach.elements) : number;
      Wide(b_, b, to, Pointer(b_, k, col), where);
    }
    CloseUnrolled(e_, turns);
    CloseUnrolled(e_, fragment_.blocks_c());
  }

  /*! \brief One access of several elements into consecutive registers. */
  void Wide(const Readable& r, const std::string& to, const std::string& from, const std::string& pointer,
            const std::string& where) {
    e_.needs.Core("vec");
    e_.needs.Core("load_vec");
    const std::string type = std::string(r.type->stored), n = std::to_string(r.reach.elements);
    std::string piece = e_.names.Fresh("piece"), c = e_.names.Fresh("c");
    e_.out.Open(where.empty() ? "" : "if (" + where + ")");
    e_.out.Line("const vec<" + type + ", " + n + "> " + piece + " = load_vec<" + type + ", " + n + ">(" + pointer +
                ");");
    e_.out.Line("#pragma unroll");
    e_.out.Line("for (int " + c + " = 0; " + c + " < " + n + "; ++" + c + ") " + to + "[" + from + " + " + c +
                "] = " + Converted(r, piece + ".v[" + c + "]") + ";");
    e_.out.Close();
    if (where.empty()) return;
    e_.out.Open("else");
    e_.out.Line("#pragma unroll");
    e_.out.Line("for (int " + c + " = 0; " + c + " < " + n + "; ++" + c + ") " + to + "[" + from + " + " + c +
                "] = 0;");
    e_.out.Close();
  }

  void Multiply(const std::string& a, const std::string& b, const std::string& q) {
    std::string i = OpenUnrolled(e_, "i", fragment_.blocks_r()), r = OpenUnrolled(e_, "r", fragment_.layout.vec_r);
    std::string j = OpenUnrolled(e_, "j", fragment_.blocks_c()), c = OpenUnrolled(e_, "c", fragment_.layout.vec_c);
    std::string row = Number(i, fragment_.layout.vec_r, r);
    auto at = [&q](const Readable& r, const std::string& number) {
      return r.reach.deep ? Grouped(number) + " * " + std::to_string(r.reach.elements) + " + " + q : number;
    };
    std::string x = a + "[" + at(a_, row) + "]", y = b + "[" + at(b_, Number(j, fragment_.layout.vec_c, c)) + "]";
    std::string sum = sums_.At(i, j, r, c);
    e_.out.Line(sum + " = " + Sum(x, y, sum) + ";");
    CloseUnrolled(e_, fragment_.layout.vec_c);
    CloseUnrolled(e_, fragment_.blocks_c());
    CloseUnrolled(e_, fragment_.layout.vec_r);
    CloseUnrolled(e_, fragment_.blocks_r());
  }

  std::string Sum(const std::string& x, const std::string& y, const std::string& sum) {
    if (type_->kind == Kind::kFloat) {
      return std::string(type_->compute) == "double" ? "fma(" + x + ", " + y + ", " + sum + ")"
                                                     : "fmaf(" + x + ", " + y + ", " + sum + ")";
    }
    const std::string held = TypeOf(sums_.dtype).name;
    e_.needs.Helper("wrap_add:" + held);
    e_.needs.Helper("wrap_mul:" + held);
    return "wrap_add(" + sum + ", wrap_mul(" + x + ", " + y + "))";
  }

  Emitter& e_;
  const IOp& iop_;
  ISlice target_;
  const ScalarType* type_;
  Layout layout_;
  Fragment fragment_;
  Readable a_, b_;
  Regs sums_;
  int64_t depth_, step_ = 1;
  bool accumulate_ = false, direct_ = false;
};

}  // namespace

std::vector<TileAccess> FmaReads(const Plan& plan, const IOp& iop, int source) {
  const ISlice slice = iop->sources[source], target = iop->targets[0];
  const bool is_a = source == 0;
  const Fragment sums(SumsOf(plan, iop), target->rows, target->cols);
  const Reach reach = WidestOf(plan, slice, is_a, sums);
  // the lanes' places along the side that the factor shares with the result; the other side is the step
  const Fragment own = is_a ? Fragment(sums.layout, sums.rows, 1) : Fragment(sums.layout, 1, sums.cols);
  std::vector<TileAccess> out;
  for (const TileAccess& one : AccessesOf(own, reach.deep ? 1 : reach.elements, is_a)) {
    for (int64_t k = 0; k < (is_a ? slice->cols : slice->rows); k += reach.deep ? reach.elements : 1) {
      out.push_back(one);
      out.back().elements = reach.elements;
      for (auto& [row, col] : out.back().at) (is_a ? col : row) = k;
    }
  }
  return out;
}

void EmitFma(Emitter& e, const IOp& iop) { FmaPrinter(e, iop).Print(); }

}  // namespace cuda
}  // namespace codegen
}  // namespace uir
