// SPDX-License-Identifier: Apache-2.0
/*!
 * \file contract_mma.cc
 * \brief Products on tensor cores: fragments by ldmatrix, element by element, or from registers; mma.sync on them.
 *
 * Of both operands a lane holds runs of `vec` elements along the contracted side: in blocks of 8 rows of a (columns
 * of b) and 4 * vec elements, lane l has the elements of row l / 4 from vec * (l % 4) on.  An instruction of 16 rows
 * takes two blocks of a above one another, and where it contracts two blocks side by side, those too.
 */
#include <algorithm>
#include <string>

#include "contract.h"

namespace uir {
namespace codegen {
namespace cuda {

namespace {

/*! \brief How an operand gets into fragments. */
enum class Fetch { kMatrix, kElements, kRegisters };

/*! \brief `4 * i + 2`, without what is nothing; constants are texts too. */
std::string Plus(std::initializer_list<std::pair<int64_t, std::string>> terms) {
  std::string out;
  int64_t constant = 0;
  for (const auto& [factor, text] : terms) {
    if (text.find_first_not_of("0123456789") == std::string::npos) {
      constant += factor * std::stoll(text);
    } else {
      out += (out.empty() ? "" : " + ") + (factor == 1 ? text : std::to_string(factor) + " * " + text);
    }
  }
  if (out.empty()) return std::to_string(constant);
  return constant == 0 ? out : out + " + " + std::to_string(constant);
}

/*! \brief One operand of a product: a, whose `major` side is its rows, or b, whose it is its columns. */
struct Factor {
  ISlice slice;
  bool is_a;
  Fetch fetch = Fetch::kElements;
  Regs regs;
  Box box;
  int64_t major, depth;

  Factor(const ISlice& slice, bool is_a)
      : slice(slice), is_a(is_a), major(is_a ? slice->rows : slice->cols), depth(is_a ? slice->cols : slice->rows) {}

  int64_t depth_stride() const { return is_a ? slice->col_stride : slice->row_stride; }
  int64_t major_stride() const { return is_a ? slice->row_stride : slice->col_stride; }
  /*! \brief (row, column) of element `m` along the major side, `k` along the contracted one. */
  std::pair<std::string, std::string> At(const std::string& m, const std::string& k) const {
    return is_a ? std::make_pair(m, k) : std::make_pair(k, m);
  }
};

class MmaPrinter {
 public:
  MmaPrinter(Emitter& e, const IOp& iop, const MmaRow& row)
      : e_(e), iop_(iop), row_(row), a_(iop->sources[0], true), b_(iop->sources[1], false) {
    type_ = &TypeOf(std::string(iop->sources[0]->pointer->dtype));
    wide_ = type_->bytes == 8;
    accumulate_ = iop->attrs.count("accumulate") != 0 && iop->attrs["accumulate"].cast<bool>();
    blocks_m_ = Blocks(a_.major, 8);
    blocks_n_ = Blocks(b_.major, kMmaColumns);
    steps_ = Blocks(a_.depth, row.k);
    deep_ = row.k / (4 * row.vec);  // blocks along the contracted side in one instruction
  }

  void Print() {
    Prepare(&a_, FactorLayoutA(row_));
    Prepare(&b_, FactorLayoutB(row_));
    ends_ = a_.box;
    if (ends_.cols() || a_.depth % row_.k != 0) {
      limited_ = true;
    }
    e_.needs.Intrinsic(row_.intrinsic);
    e_.needs.Dtype(type_->name);
    e_.needs.Dtype(std::string(iop_->targets[0]->pointer->dtype));
    e_.needs.Core("reg");
    lane_ = "lane";
    Sums();
    e_.out.Open("");
    if (blocks_m_ % 2 != 0 && row_.m == 16) {
      rest_ = e_.names.Fresh("rest");
      e_.out.Line("reg<" + std::string(TypeOf(row_.sum).stored) + ", 2> " + rest_ + ";  // rows that do not exist");
      e_.out.Line(rest_ + "[0] = 0;");
      e_.out.Line(rest_ + "[1] = 0;");
    }
    Step();
    e_.out.Close();
    Finish();
  }

 private:
  static int64_t Blocks(int64_t extent, int64_t block) { return (extent + block - 1) / block; }
  int per_tile() const { return row_.m / 8; }
  std::string g() const { return lane_ + " / 4"; }
  std::string t() const { return lane_ + " % 4"; }
  std::string Element() const { return wide_ ? "double" : "uint32_t"; }
  /*! \brief Registers of one tile of an operand. */
  int Registers(const Factor& f) const { return wide_ ? 2 : f.is_a ? 4 : 2; }

  void Prepare(Factor* f, const Layout& layout) {
    f->box = e_.plan.HomeOf(f->slice).registers() ? e_.BoxOf(f->slice) : ReadableBox(e_, iop_, f->is_a ? 0 : 1);
    const Home& home = e_.plan.HomeOf(f->slice);
    if (home.registers()) {
      f->fetch = Fetch::kRegisters;
      f->regs = e_.Source(f->slice, layout);
      return;
    }
    e_.Reads(f->slice);
    if (CanLoadMatrices(*f, home)) f->fetch = Fetch::kMatrix;
  }

  bool CanLoadMatrices(const Factor& f, const Home& home) {
    if (home.kind != Home::Kind::kSram && home.kind != Home::Kind::kScratch) return false;
    if (type_->bytes > 2 || !f.box.whole() || f.major % 8 != 0 || f.depth % row_.k != 0) return false;
    // rows of 16 bytes in memory lie along the contracted side, or (16 bits only: .trans) across it
    const bool along = f.depth_stride() == 1, across = f.major_stride() == 1 && type_->bytes == 2;
    if (!along && !across) return false;
    const int64_t pitch = (along ? f.major_stride() : f.depth_stride()) * type_->bytes;
    return pitch % 16 == 0 && e_.AddressOf(f.slice).align >= 16;
  }

  // ---- sums -------------------------------------------------------------------------------------------------
  void Sums() {
    const ISlice& target = iop_->targets[0];
    const Home& home = e_.plan.HomeOf(target);
    const Fragment fragment(SumsLayout(), target->rows, target->cols);
    const bool same = home.registers() && home.fragment.layout == SumsLayout();
    direct_ = same && std::string(target->pointer->dtype) == row_.sum && !e_.plan.SparesOutside(target);
    if (direct_) {
      sums_ = e_.Target(target, SumsLayout());
      if (!accumulate_) Zero();
      return;
    }
    std::optional<Regs> old;
    if (accumulate_) old = e_.Source(target, SumsLayout());
    sums_ = e_.Temporary("sums", row_.sum, fragment);
    if (!old) {
      Zero();
      return;
    }
    const ScalarType& type = TypeOf(old->dtype);
    e_.Each(sums_, {&*old}, [&](const Cell& at) { e_.Assign(sums_, at, Widen(type, (*old)[at])); });
  }

  void Zero() {
    e_.Each(sums_, {}, [&](const Cell& at) { e_.Assign(sums_, at, StoredLiteral(TypeOf(row_.sum), 0.0)); });
  }

  void Finish() {
    const ISlice& target = iop_->targets[0];
    if (!direct_) {
      const ScalarType& type = TypeOf(std::string(target->pointer->dtype));
      Regs out = e_.Target(target, SumsLayout());
      Coordinates need;
      if (out.spare) need = e_.InsideNeeds(out.fragment, *out.spare);
      e_.Each(out, {&sums_}, [&](const Cell& at) { e_.Assign(out, at, Narrow(type, sums_[at])); }, need);
      e_.Commit(target, out);
    } else {
      e_.Commit(target, sums_);
    }
  }

  // ---- one step along the contracted side -------------------------------------------------------------------
  void Step() {
    const int64_t tiles = blocks_m_ / per_tile(), half = blocks_m_ % per_tile();
    std::string k = OpenUnrolled(e_, "k", steps_);
    std::string a = e_.names.Fresh("a_part");
    e_.out.Line("reg<" + Element() + ", " + std::to_string(Registers(a_) * (tiles + half)) + "> " + a + ";");
    if (tiles > 0) {
      std::string i = OpenUnrolled(e_, "i", tiles);
      FetchA(a, i, k, false);
      CloseUnrolled(e_, tiles);
    }
    if (half) FetchA(a, std::to_string(tiles), k, true);

    const int64_t pairs = blocks_n_ / 2;
    if (pairs > 0) {
      std::string j = OpenUnrolled(e_, "j", pairs);
      Columns(a, k, Plus({{2, j}}), 2);
      CloseUnrolled(e_, pairs);
    }
    if (blocks_n_ % 2) Columns(a, k, std::to_string(blocks_n_ - 1), 1);
    CloseUnrolled(e_, steps_);
  }

  /*! \brief Some columns of b, and all rows of a with them. */
  void Columns(const std::string& a, const std::string& k, const std::string& j, int count) {
    const int64_t tiles = blocks_m_ / per_tile(), half = blocks_m_ % per_tile();
    const bool scoped = blocks_n_ / 2 <= 1;
    if (scoped) e_.out.Open("");
    std::string b = e_.names.Fresh("b_part");
    e_.out.Line("reg<" + Element() + ", " + std::to_string(Registers(b_) * count) + "> " + b + ";");
    FetchB(b, j, k, count);
    if (tiles > 0) {
      std::string i = OpenUnrolled(e_, "i", tiles);
      for (int c = 0; c < count; ++c) Multiply(a, b, i, Plus({{1, j}, {1, std::to_string(c)}}), c, false);
      CloseUnrolled(e_, tiles);
    }
    for (int c = 0; half && c < count; ++c) {
      Multiply(a, b, std::to_string(tiles), Plus({{1, j}, {1, std::to_string(c)}}), c, true);
    }
    if (scoped) e_.out.Close();
  }

  void Multiply(const std::string& a, const std::string& b, const std::string& i, const std::string& j, int column,
                bool half) {
    auto sums = [&](int above) {
      return "&" + sums_.At(Grouped(Plus({{per_tile(), i}, {1, std::to_string(above)}})), Grouped(j), "0", "0");
    };
    if (wide_) {
      for (int part = 0; part < 2; ++part) {
        e_.out.Line(std::string(row_.intrinsic) + "(" + sums(0) + ", " + a + "[" +
                    Plus({{2, i}, {1, std::to_string(part)}}) + "], " + b + "[" + std::to_string(2 * column + part) +
                    "]);");
      }
      return;
    }
    std::string high = half ? "&" + rest_ + "[0]" : sums(1);
    e_.out.Line(std::string(row_.intrinsic) + "(" + sums(0) + ", " + high + ", &" + a + "[" + Plus({{4, i}}) + "], &" +
                b + "[" + std::to_string(2 * column) + "]);");
  }

  // ---- fragments --------------------------------------------------------------------------------------------
  void FetchA(const std::string& a, const std::string& i, const std::string& k, bool half) {
    if (a_.fetch == Fetch::kMatrix) {
      MatricesA(a, i, k, half);
    } else {
      for (int q = 0; q < Registers(a_); ++q) {
        // registers go down the rows first, then along the contracted side
        const int down = wide_ ? 0 : q % 2, along = wide_ ? q : q / 2;
        std::string to = a + "[" + Plus({{Registers(a_), i}, {1, std::to_string(q)}}) + "]";
        if (down == 1 && half) {
          e_.out.Line(to + " = 0;");
        } else {
          e_.out.Line(to + " = " + Register(a_, Plus({{per_tile(), i}, {1, std::to_string(down)}}), k, along) + ";");
        }
      }
    }
  }

  void FetchB(const std::string& b, const std::string& j, const std::string& k, int count) {
    if (b_.fetch == Fetch::kMatrix) {
      MatricesB(b, j, k, count);
      return;
    }
    for (int c = 0; c < count; ++c) {
      for (int q = 0; q < 2; ++q) {
        e_.out.Line(b + "[" + std::to_string(2 * c + q) +
                    "] = " + Register(b_, Plus({{1, j}, {1, std::to_string(c)}}), k, q) + ";");
      }
    }
  }

  /*! \brief ldmatrix: lane l names row l % 8 of the matrix that becomes register l / 8. */
  void MatricesA(const std::string& a, const std::string& i, const std::string& k, bool half) {
    const bool along = a_.depth_stride() == 1;
    const int64_t width = row_.k / 2;  // elements of 16 bytes
    std::string m, d;
    if (along) {
      m = half ? lane_ + " % 8" : lane_ + " % 16";
      d = half ? lane_ + " / 8 % 2" : lane_ + " / 16";
      d = std::to_string(width) + " * (" + d + ")";
    } else {
      m = half ? "0" : "8 * (" + lane_ + " / 8 % 2)";
      d = half ? lane_ + " % 16" : lane_ + " % 8 + 8 * (" + lane_ + " / 16)";
    }
    std::string address = Address(a_, Plus({{8 * per_tile(), i}, {1, m}}), Plus({{row_.k, k}, {1, d}}));
    std::string trans = along ? "" : "_trans";
    if (!half) {
      e_.needs.Intrinsic("ldmatrix_x4" + trans);
      e_.out.Line("ldmatrix_x4" + trans + "(&" + a + "[" + Plus({{4, i}}) + "], " + address + ");");
      return;
    }
    e_.needs.Intrinsic("ldmatrix_x2" + trans);
    std::string above = e_.names.Fresh("above");
    auto part = [&](int q) { return a + "[" + Plus({{4, i}, {1, std::to_string(q)}}) + "]"; };
    e_.out.Line("reg<uint32_t, 2> " + above + ";");
    e_.out.Line("ldmatrix_x2" + trans + "(&" + above + "[0], " + address + ");");
    e_.out.Line(part(0) + " = " + above + "[0];");
    e_.out.Line(part(1) + " = 0;");
    e_.out.Line(part(2) + " = " + above + "[1];");
    e_.out.Line(part(3) + " = 0;");
  }

  void MatricesB(const std::string& b, const std::string& j, const std::string& k, int count) {
    const bool along = b_.depth_stride() == 1;
    const int64_t width = row_.k / 2;
    const bool pair = count == 2;
    std::string m, d;
    if (along) {
      m = pair ? lane_ + " % 8 + 8 * (" + lane_ + " / 16)" : lane_ + " % 8";
      d = std::to_string(width) + " * (" + lane_ + " / 8 % 2)";
    } else {
      m = pair ? "8 * (" + lane_ + " / 16)" : "0";
      d = lane_ + " % 16";
    }
    std::string name = std::string(pair ? "ldmatrix_x4" : "ldmatrix_x2") + (along ? "" : "_trans");
    e_.needs.Intrinsic(name);
    e_.out.Line(name + "(&" + b + "[0], " + Address(b_, Plus({{8, Grouped(j)}, {1, m}}), Plus({{row_.k, k}, {1, d}})) +
                ");");
  }

  std::string Address(const Factor& f, const std::string& major, const std::string& depth) {
    auto [r, c] = f.At(major, depth);
    return e_.Element(f.slice, Grouped(r), Grouped(c));
  }

  /*!
   * \brief The value of one fragment register: the elements of a block of 8 along the major side that a lane holds.
   * `along` counts blocks along the contracted side where an instruction takes several, else elements of the block.
   */
  std::string Register(const Factor& f, const std::string& block, const std::string& k, int along) {
    const int count = wide_ || row_.rounds ? 1 : row_.vec;
    std::string block_k = deep_ == 1 ? k : Plus({{deep_, k}, {1, std::to_string(along)}});
    const int first = deep_ == 1 ? along : 0;
    std::vector<std::string> values;
    for (int n = 0; n < count; ++n) values.push_back(Value(f, block, block_k, first + n));
    if (count == 1) return values[0];
    e_.needs.Helper("pack_fragment");
    return "pack_fragment(" + Join(values) + ")";
  }

  std::string Value(const Factor& f, const std::string& block, const std::string& block_k, int n) {
    std::string major = Plus({{8, Grouped(block)}, {1, g()}});
    std::string depth = Plus({{4 * row_.vec, Grouped(block_k)}, {row_.vec, Grouped(t())}, {1, std::to_string(n)}});
    std::vector<std::string> where;
    if (f.fetch == Fetch::kElements && f.major % 8 != 0) where.push_back(major + " < " + std::to_string(f.major));
    if (limited_) {
      if (f.depth % row_.k != 0) where.push_back(depth + " < " + std::to_string(f.depth));
      if (ends_.col_begin) where.push_back(depth + " >= " + Grouped(*ends_.col_begin));
      if (ends_.col_end) where.push_back(depth + " < " + Grouped(*ends_.col_end));
    }
    std::string value;
    if (f.fetch == Fetch::kRegisters) {
      const Fragment& fragment = f.regs.fragment;
      const int64_t blocks = f.is_a ? fragment.blocks_r() : fragment.blocks_c();
      const int64_t blocks_k = f.is_a ? fragment.blocks_c() : fragment.blocks_r();
      if (f.is_a && row_.m == 16 && blocks % 2 != 0) where.push_back(block + " < " + std::to_string(blocks));
      if (blocks_k % deep_ != 0) where.insert(where.begin(), block_k + " < " + std::to_string(blocks_k));
      std::string at = std::to_string(n);
      value = f.is_a ? f.regs.At(Grouped(block), Grouped(block_k), "0", at)
                     : f.regs.At(Grouped(block_k), Grouped(block), at, "0");
    } else {
      AddBox(f, major, &where);
      auto [r, c] = f.At(major, depth);
      value = "*" + Grouped(e_.Element(f.slice, Grouped(r), Grouped(c)));
    }
    if (row_.rounds) {
      e_.needs.Intrinsic("to_tf32");
      value = "to_tf32(" + value + ")";
    }
    if (where.empty()) return value;
    return "(" + Join(where, " && ") + " ? " + value + " : " + Nothing() + ")";
  }

  /*! \brief Memory outside of the valid box is not touched. */
  void AddBox(const Factor& f, const std::string& major, std::vector<std::string>* where) {
    const auto& begin = f.is_a ? f.box.row_begin : f.box.col_begin;
    const auto& end = f.is_a ? f.box.row_end : f.box.col_end;
    if (begin) where->push_back(major + " >= " + Grouped(*begin));
    if (end) where->push_back(major + " < " + Grouped(*end));
  }

  std::string Nothing() const {
    if (row_.rounds) return "0u";
    return StoredLiteral(*type_, 0.0);
  }

  Emitter& e_;
  const IOp& iop_;
  const MmaRow& row_;
  Factor a_, b_;
  const ScalarType* type_;
  bool wide_ = false, accumulate_ = false, direct_ = false, limited_ = false;
  int64_t blocks_m_ = 0, blocks_n_ = 0, steps_ = 0, deep_ = 1;
  Regs sums_;
  Box ends_;
  std::string lane_, rest_;
};

}  // namespace

void EmitMma(Emitter& e, const IOp& iop, const MmaRow& row) { MmaPrinter(e, iop, row).Print(); }

}  // namespace cuda
}  // namespace codegen
}  // namespace uir
