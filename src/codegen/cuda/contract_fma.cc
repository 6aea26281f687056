// SPDX-License-Identifier: Apache-2.0
/*!
 * \file contract_fma.cc
 * \brief Products by fused multiply-adds: exact fp32, and what no matrix instruction takes.
 *
 * Each lane has a tile of the sums in registers.  A step along the contracted side loads what the lane's rows need
 * of a and its columns of b, 16 bytes at a time where that is proved; lanes that need the same elements read the
 * same address, which costs one access.  An operand that lies in registers goes through the warp's scratch first.
 */
#include <algorithm>
#include <string>

#include "contract.h"

namespace uir {
namespace codegen {
namespace cuda {

namespace {

/*! \brief An operand that every lane can read. */
struct Readable {
  ISlice slice;
  const ScalarType* type = nullptr;
  Box box;
  /*! \brief Of a copy in scratch: its name and the elements of a row; empty where the slice itself is read. */
  std::string copy;
  int64_t pitch = 0;
  /*! \brief Elements that one access takes along the contracted side (a) or along a row (b). */
  int64_t vec = 1;
};

class FmaPrinter {
 public:
  FmaPrinter(Emitter& e, const IOp& iop) : e_(e), iop_(iop), target_(iop->targets[0]) {
    accumulate_ = iop->attrs.count("accumulate") != 0 && iop->attrs["accumulate"].cast<bool>();
    type_ = &TypeOf(std::string(target_->pointer->dtype));
    // the sums stay where they are; the factors are read from memory whatever their layout
    const Home& home = e.plan.HomeOf(target_);
    layout_ = home.registers() ? home.class_layout : e.plan.WorkLayout(iop);
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
    e_.WarpBarrier();
    for (const Readable* r : {&a_, &b_}) {
      if (r->copy.empty()) continue;
      const std::string at = r == &b_ && CopyBytes(a_) > 0 ? " + " + std::to_string(CopyBytes(a_)) : "";
      e_.needs.Core("shared_at");
      e_.out.Line("auto " + r->copy + " = shared_at<" + r->type->stored + ", " +
                  std::to_string(CopyBytes(*r) / r->type->bytes) + ">(smem, " + place + at + ");");
      Regs held = e_.Source(r->slice, e_.plan.HomeOf(r->slice).fragment.layout);
      e_.Each(held, {}, [&](const Cell& at_cell) { Copy(*r, held, at_cell); }, Coordinates{true, true});
    }
    e_.out.Line("__syncwarp();");
    e_.Met();
  }

  void Copy(const Readable& r, const Regs& held, const Cell& at) {
    std::string inside = e_.Inside(held.fragment, r.box, at), one = e_.OneOfCopies(held.fragment);
    std::string when = inside.empty() ? one : one.empty() ? inside : inside + " && " + one;
    std::string to = r.copy + "[(" + (at.row.empty() ? "0" : at.row) + ") * " + std::to_string(r.pitch) + " + " +
                     (at.col.empty() ? "0" : at.col) + "] = " + held[at] + ";";
    e_.out.Line(when.empty() ? to : "if (" + when + ") " + to);
  }

  /*! \brief How many elements each access may take. */
  void Vectors() {
    const bool bounded = a_.box.cols();
    const int64_t a = std::max<int64_t>(1, 16 / a_.type->bytes);
    const int64_t b = std::min<int64_t>(std::max<int64_t>(1, 16 / b_.type->bytes), fragment_.layout.vec_c);
    if (!bounded && depth_ % a == 0 && Aligned(a_, 16)) a_.vec = a;
    if (fragment_.exact_c() && !b_.box.cols() && b > 1 && Aligned(b_, static_cast<int>(b * b_.type->bytes))) {
      b_.vec = b;
    }
  }

  bool Aligned(const Readable& r, int bytes) {
    if (!r.copy.empty()) return true;
    const int64_t pitch = r.slice->row_stride * r.type->bytes;
    return r.slice->col_stride == 1 && pitch % bytes == 0 && e_.AddressOf(r.slice).align >= bytes;
  }

  std::string Pointer(const Readable& r, const std::string& row, const std::string& col) {
    if (r.copy.empty()) return e_.Element(r.slice, Grouped(row), Grouped(col));
    return r.copy + " + " + Grouped(row) + " * " + std::to_string(r.pitch) + " + " + col;
  }

  void Loop() {
    std::string k = e_.names.Fresh("k");
    std::string begin = a_.box.col_begin.value_or("0"), end = a_.box.col_end.value_or(std::to_string(depth_));
    if (depth_ / a_.vec > 1) e_.out.Line(a_.vec > 1 ? "#pragma unroll 2" : "#pragma unroll 4");
    e_.out.Open("for (int " + k + " = " + begin + "; " + k + " < " + end + "; " +
                (a_.vec > 1 ? k + " += " + std::to_string(a_.vec) : "++" + k) + ")");
    const int64_t rows = fragment_.blocks_r() * fragment_.layout.vec_r;
    const int64_t cols = fragment_.blocks_c() * fragment_.layout.vec_c;
    std::string a = e_.names.Fresh("a_part"), b = e_.names.Fresh("b_part");
    e_.out.Line("reg<" + std::string(type_->compute) + ", " + std::to_string(rows * a_.vec) + "> " + a + ";");
    RowsOfA(a, k);
    std::string q = OpenUnrolled(e_, "q", a_.vec);
    if (a_.vec == 1) e_.out.Open("");
    e_.out.Line("reg<" + std::string(type_->compute) + ", " + std::to_string(cols) + "> " + b + ";");
    ColumnsOfB(b, a_.vec == 1 ? k : k + " + " + q);
    Multiply(a, b, q);
    e_.out.Close();
    e_.out.Close();
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
    if (a_.vec == 1) {
      std::string value = Converted(a_, "*(" + Pointer(a_, row, k) + ")");
      e_.out.Line(a + "[" + number + "] = " + (where.empty() ? value : where + " ? " + value + " : 0") + ";");
    } else {
      Wide(a_, a, Grouped(number) + " * " + std::to_string(a_.vec), Pointer(a_, row, k), where);
    }
    CloseUnrolled(e_, fragment_.layout.vec_r);
    CloseUnrolled(e_, fragment_.blocks_r());
  }

  void ColumnsOfB(const std::string& b, const std::string& k) {
    std::string block = OpenUnrolled(e_, "j", fragment_.blocks_c());
    const int64_t turns = fragment_.layout.vec_c / b_.vec;
    std::string c = OpenUnrolled(e_, "c", turns);
    std::string first = turns == 1 ? "0" : b_.vec == 1 ? c : std::to_string(b_.vec) + " * " + c;
    std::string col = Index(false, block, first), number = Number(block, fragment_.layout.vec_c, first);
    std::string where = Where(col, fragment_.exact_c(), b_.slice->cols, b_.box.col_begin, b_.box.col_end);
    if (b_.vec == 1) {
      std::string value = Converted(b_, "*(" + Pointer(b_, k, col) + ")");
      e_.out.Line(b + "[" + number + "] = " + (where.empty() ? value : where + " ? " + value + " : 0") + ";");
    } else {
      Wide(b_, b, number, Pointer(b_, k, col), where);
    }
    CloseUnrolled(e_, turns);
    CloseUnrolled(e_, fragment_.blocks_c());
  }

  /*! \brief One access of several elements into consecutive registers. */
  void Wide(const Readable& r, const std::string& to, const std::string& from, const std::string& pointer,
            const std::string& where) {
    e_.needs.Core("vec");
    e_.needs.Core("load_vec");
    const std::string type = std::string(r.type->stored), n = std::to_string(r.vec);
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
    std::string x = a + "[" + (a_.vec == 1 ? row : Grouped(row) + " * " + std::to_string(a_.vec) + " + " + q) + "]";
    std::string y = b + "[" + Number(j, fragment_.layout.vec_c, c) + "]";
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
  int64_t depth_;
  bool accumulate_ = false, direct_ = false;
};

}  // namespace

void EmitFma(Emitter& e, const IOp& iop) { FmaPrinter(e, iop).Print(); }

}  // namespace cuda
}  // namespace codegen
}  // namespace uir
