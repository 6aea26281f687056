// SPDX-License-Identifier: Apache-2.0
// Prints what brings registers of one layout to another: copies, shuffles, or the way through the warp's scratch.
#include <cstdio>

#include "codegen/cuda/conversion.h"
#include "codegen/cuda/emitter.h"
#include "codegen/cuda/loops.h"
#include "codegen/words.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief `(text / divisor) % modulus * factor` without what does nothing. */
std::string Field(const std::string& text, int64_t divisor, int64_t modulus, int64_t factor) {
  if (modulus == 1 || factor == 0 || text == "0") return "";
  std::string out = text.find(' ') == std::string::npos ? text : "(" + text + ")";
  if (divisor > 1) out += " / " + Text(divisor);
  out += " % " + Text(modulus);
  return factor > 1 ? out + " * " + Text(factor) : out;
}

std::string Sum(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) {
    if (!part.empty()) out += (out.empty() ? "" : " + ") + part;
  }
  return out.empty() ? "0" : out;
}

/*! \brief Lane that holds element (row, col), as text; of copies the first. */
std::string LaneText(const Fragment& f, const std::string& row, const std::string& col) {
  const Layout& l = f.layout;
  int64_t row_step = l.lanes_col_major ? 1 : l.lanes_c, col_step = l.lanes_col_major ? l.lanes_r : 1;
  return Sum({f.replicated_r() ? "" : Field(row, l.vec_r, l.lanes_r, row_step),
              f.replicated_c() ? "" : Field(col, l.vec_c, l.lanes_c, col_step)});
}

/*! \brief Prints one conversion. */
class ConversionPrinter {
 public:
  ConversionPrinter(Emitter* e, const Conversion& how, const Regs& to, const Regs& from, const Box& box)
      : e_(*e), how_(how), to_(to), from_(from), type_(TypeOf(to.dtype)), box_(box) {}

  void Copy() {
    e_.Each(to_, {&from_}, [&](const Cell& at) { e_.out.Line(to_[at] + " = " + from_[at] + ";"); });
  }

  void Shuffle() {
    e_.out.Comment("to " + to_.fragment.layout.ToString() + " from " + from_.fragment.layout.ToString());
    e_.needs.Helper(std::string("shuffle:") + type_.name);
    const Fragment& t = to_.fragment;
    const Layout& l = t.layout;
    Loops loops(&e_);
    Place row = loops.Side(t, true, false), col = loops.Side(t, false, false);
    loops.OpenBlock();
    // the part of the coordinates that is the same in all lanes decides the register, all of it the lane
    std::string row_fixed = Fixed(row, t.replicated_r(), l.step_r()),
                col_fixed = Fixed(col, t.replicated_c(), l.step_c());
    std::string row_all = t.replicated_r() ? "0" : WithLane(e_.LaneRow(l), l.vec_r, row_fixed);
    std::string col_all = t.replicated_c() ? "0" : WithLane(e_.LaneCol(l), l.vec_c, col_fixed);
    std::string source = LaneText(from_.fragment, Named("row", row_all), Named("col", col_all));
    if (source.find(' ') != std::string::npos) {
      e_.out.Line("const int source = " + source + ";");
      source = "source";
    }
    std::string target = to_.At(row.block, col.block, row.within, col.within);
    if (how_.offsets.size() == 1) {
      e_.out.Line(target + " = shuffle(" + FromAt(row_fixed, col_fixed, how_.offsets[0]) + ", " + source + ");");
    } else {
      Kept(target, row_fixed, col_fixed, source);
    }
    loops.Close();
  }

  void Scratch() {
    const ScratchTile& tile = how_.tile;
    e_.out.Comment("to " + to_.fragment.layout.ToString() + " from " + from_.fragment.layout.ToString() +
                   ", through scratch");
    std::string at = e_.TemporaryScratch();
    e_.Meet(how_.written);
    e_.out.Open("");
    e_.needs.Core("shared_at");
    e_.out.Line(std::string("auto tile = shared_at<") + type_.stored + ", " + Text(how_.elements) + ">(smem, " + at +
                ");");
    Pass(from_, tile, tile.width_in, true);
    e_.Meet(how_.read);
    Pass(to_, tile, tile.width_out, false);
    e_.out.Close();
  }

 private:
  static std::string Fixed(const Place& at, bool replicated, int64_t step) {
    if (replicated) return "0";
    std::string block = at.block == "0" ? "" : step == 1 ? at.block : at.block + " * " + Text(step);
    return Sum({block, at.within == "0" ? "" : at.within});
  }

  static std::string WithLane(const std::string& lane, int64_t vec, const std::string& fixed) {
    std::string part = lane == "0" ? "" : vec == 1 ? lane : lane + " * " + Text(vec);
    return Sum({part, fixed == "0" ? "" : fixed});
  }

  std::string Named(const std::string& name, const std::string& value) {
    if (value.find(' ') == std::string::npos) return value;
    e_.out.Line("const int " + name + " = " + value + ";");
    return name;
  }

  /*! \brief The register of the source at fixed coordinates, and `offset` on. */
  std::string FromAt(const std::string& row, const std::string& col, const RegisterOffset& offset) const {
    const Fragment &f = from_.fragment, &t = to_.fragment;
    const Layout& l = f.layout;
    auto atom = [](const std::string& at) { return at.find(' ') == std::string::npos ? at : "(" + at + ")"; };
    auto block = [&](const std::string& at, int64_t step, int64_t blocks, int64_t on, int64_t covered) {
      if (blocks == 1) return std::string("0");
      std::string text = at == "0" ? "" : step == 1 ? atom(at) : atom(at) + " / " + Text(step);
      text = Sum({text, on == 0 ? "" : Text(on)});
      // lanes beyond the last element get any register, but one that exists
      bool beyond = (covered - 1) / step >= blocks;
      return beyond ? "min(" + text + ", " + Text(blocks - 1) + ")" : atom(text);
    };
    auto within = [&](const std::string& at, int64_t vec, int64_t on) {
      if (vec == 1) return std::string("0");
      std::string text = at == "0" ? "" : atom(at) + " % " + Text(vec);
      return atom(Sum({text, on == 0 ? "" : Text(on)}));
    };
    std::string block_r = block(row, l.step_r(), f.blocks_r(), offset[0], t.blocks_r() * t.layout.step_r());
    std::string block_c = block(col, l.step_c(), f.blocks_c(), offset[2], t.blocks_c() * t.layout.step_c());
    return from_.At(block_r, block_c, within(row, l.vec_r, offset[1]), within(col, l.vec_c, offset[3]));
  }

  /*! \brief Several shuffles, of which each lane keeps the one that brought its element. */
  void Kept(const std::string& target, const std::string& row, const std::string& col, const std::string& source) {
    for (size_t k = 0; k < how_.offsets.size(); ++k) {
      std::string value = "shuffle(" + FromAt(row, col, how_.offsets[k]) + ", " + source + ")";
      if (k == 0) {
        e_.out.Line(target + " = " + value + ";");
        continue;
      }
      std::string name = "other" + Text(static_cast<int64_t>(k));
      e_.out.Line(std::string("const ") + type_.stored + " " + name + " = " + value + ";");
      e_.out.Line("if (" + LaneCondition(how_.offsets[k]) + ") " + target + " = " + name + ";");
    }
  }

  /*! \brief True in the lanes whose elements lie that many registers on. */
  std::string LaneCondition(const RegisterOffset& offset) const {
    uint32_t mask = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      auto [i, j] = FirstOf(to_.fragment, lane);
      bool exists = i < to_.fragment.rows && j < to_.fragment.cols;
      if (exists && OffsetOf(from_.fragment, i, j) == offset) mask |= uint32_t{1} << lane;
    }
    char text[16];
    std::snprintf(text, sizeof(text), "0x%08xu", mask);
    return std::string(text) + " >> lane & 1";
  }

  /*! \brief All registers to the tile or from it. */
  void Pass(const Regs& regs, const ScratchTile& tile, int64_t width, bool store) {
    const Fragment& f = regs.fragment;
    const Layout& l = f.layout;
    Loops loops(&e_);
    bool by_rows = tile.turned && width > 1, by_cols = !tile.turned && width > 1;
    Place row, col;
    row.block = loops.Open("rb", f.blocks_r());
    col.block = loops.Open("cb", f.blocks_c());
    row.within = loops.Open("vr", by_rows ? l.vec_r / width : l.vec_r);
    col.within = loops.Open("vc", by_cols ? l.vec_c / width : l.vec_c);
    loops.OpenBlock();
    auto coordinate = [&](bool replicated, const std::string& lane, const Place& at, int64_t vec, int64_t step,
                          int64_t each) {
      if (replicated) return std::string("0");
      std::string within = at.within == "0" ? "" : each == 1 ? at.within : at.within + " * " + Text(each);
      return Sum({lane == "0" ? ""
                  : vec == 1  ? lane
                              : lane + " * " + Text(vec),
                  at.block == "0" ? "" : at.block + " * " + Text(step), within});
    };
    Cell cell;
    cell.row = Named("row", coordinate(f.replicated_r(), e_.LaneRow(l), row, l.vec_r, l.step_r(), by_rows ? width : 1));
    cell.col = Named("col", coordinate(f.replicated_c(), e_.LaneCol(l), col, l.vec_c, l.step_c(), by_cols ? width : 1));
    // what is outside of the box nothing wrote; vectors may hold some of it, and what they read is written whole
    const bool boxed = width == 1 && (!store || tile.width_out == 1);
    std::string condition = e_.Inside(f, boxed ? box_ : Box(), cell);
    std::string copies = store ? e_.OneOfCopies(f) : "";
    if (!copies.empty()) condition += (condition.empty() ? "" : " && ") + copies;
    if (!condition.empty()) loops.OpenBlock("if (" + condition + ")");
    const std::string &outer = tile.turned ? cell.col : cell.row, &inner = tile.turned ? cell.row : cell.col;
    std::string place = Sum({outer == "0" ? "" : outer + " * " + Text(tile.pitch), inner == "0" ? "" : inner});
    Access(regs, row, col, place, width, by_rows, store);
    loops.Close();
  }

  void Access(const Regs& regs, const Place& row, const Place& col, const std::string& place, int64_t width,
              bool by_rows, bool store) {
    if (width == 1) {
      std::string value = regs.At(row.block, col.block, row.within, col.within), element = "tile[" + place + "]";
      e_.out.Line((store ? element + " = " + value : value + " = " + element) + ";");
      return;
    }
    auto within = [width](const std::string& at) {
      return at == "0" ? std::string("n") : "(" + at + " * " + Text(width) + " + n)";
    };
    std::string value = by_rows ? regs.At(row.block, col.block, within(row.within), col.within)
                                : regs.At(row.block, col.block, row.within, within(col.within));
    std::string kind = std::string(type_.stored) + ", " + Text(width) + ">";
    std::string each = "for (int n = 0; n < " + Text(width) + "; ++n) ";
    e_.needs.Core("vec");
    e_.needs.Core(store ? "store_vec" : "load_vec");
    if (!store) e_.out.Line("const vec<" + kind + " v = load_vec<" + kind + "(tile + " + place + ");");
    if (store) e_.out.Line("vec<" + kind + " v;");
    e_.out.Line("#pragma unroll");
    e_.out.Line(each + (store ? "v.v[n] = " + value : value + " = v.v[n]") + ";");
    if (store) e_.out.Line("store_vec<" + kind + "(tile + " + place + ", v);");
  }

  Emitter& e_;
  const Conversion& how_;
  const Regs& to_;
  const Regs& from_;
  const ScalarType& type_;
  const Box& box_;
};

}  // namespace

void Emitter::Convert(const Conversion& how, const Regs& to, const Regs& from, const Box& box) {
  ConversionPrinter printer(this, how, to, from, box);
  switch (how.way) {
    case Conversion::Way::kCopy:
      return printer.Copy();
    case Conversion::Way::kShuffle:
      return printer.Shuffle();
    case Conversion::Way::kScratch:
      return printer.Scratch();
  }
}

}  // namespace uir::codegen::cuda
