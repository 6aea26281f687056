// SPDX-License-Identifier: Apache-2.0
// From one layout of registers to another: by copies, by shuffles, or through the warp's scratch.
//
// All figures of a layout are powers of two, so a coordinate is a string of bits of which some number the lane and
// the others the register.  The number of an element's register is the sum of what the *receiving* register's bits
// give and what the receiving lane's bits give.  Where the latter are zero, one shuffle brings a whole register;
// where they take d values, d shuffles of different registers do and every lane keeps one.  From three on, scratch is
// cheaper: each value is stored and loaded once.
#include "codegen/cuda/convert.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <set>

#include "codegen/cuda/banks.h"
#include "codegen/cuda/choose.h"
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

/*! \brief Where element (i, j) lies in its lane. */
RegisterOffset OffsetOf(const Fragment& f, int64_t i, int64_t j) {
  const Layout& l = f.layout;
  RegisterOffset at{0, 0, 0, 0};
  if (!f.replicated_r()) at[0] = i / l.step_r(), at[1] = i % l.vec_r;
  if (!f.replicated_c()) at[2] = j / l.step_c(), at[3] = j % l.vec_c;
  return at;
}

/*! \brief Position of a lane in the grid of lanes. */
std::pair<int, int> PositionOf(const Layout& l, int lane) {
  return l.lanes_col_major ? std::make_pair(lane % l.lanes_r, lane / l.lanes_r)
                           : std::make_pair(lane / l.lanes_c, lane % l.lanes_c);
}

/*! \brief Coordinates of a lane's first element. */
std::pair<int64_t, int64_t> FirstOf(const Fragment& f, int lane) {
  auto [r, c] = PositionOf(f.layout, lane);
  return {f.replicated_r() ? 0 : int64_t{r} * f.layout.vec_r, f.replicated_c() ? 0 : int64_t{c} * f.layout.vec_c};
}

/*! \brief Lane that holds element (row, col), as text; of copies the first. */
std::string LaneText(const Fragment& f, const std::string& row, const std::string& col) {
  const Layout& l = f.layout;
  int64_t row_step = l.lanes_col_major ? 1 : l.lanes_c, col_step = l.lanes_col_major ? l.lanes_r : 1;
  return Sum({f.replicated_r() ? "" : Field(row, l.vec_r, l.lanes_r, row_step),
              f.replicated_c() ? "" : Field(col, l.vec_c, l.lanes_c, col_step)});
}

/*! \brief How a tile lies in scratch: element (i, j) is i * pitch + j, or with `turned` j * pitch + i. */
struct Tile {
  int64_t pitch = 1;
  bool turned = false;
  int64_t width_in = 1, width_out = 1;
};

/*! \brief Elements that one access moves: a block's neighbours, as far as rows of the tile keep them aligned. */
int64_t WidthOf(const Fragment& f, const Tile& tile, int bytes) {
  int64_t vec = tile.turned ? f.layout.vec_r : f.layout.vec_c;
  int64_t length = tile.turned ? f.rows : f.cols;
  int64_t width = std::min<int64_t>(vec, kWidestBytes / bytes);
  while (width > 1 && (tile.pitch % width != 0 || length % width != 0)) width /= 2;
  return width;
}

/*! \brief Cost of moving a fragment to or from the tile, in wavefronts. */
int64_t CostOf(const Fragment& f, const Tile& tile, int64_t width, int bytes) {
  std::vector<int64_t> addresses;
  for (int lane = 0; lane < kLanes; ++lane) {
    auto [i, j] = FirstOf(f, lane);
    if (i >= f.rows || j >= f.cols) continue;
    addresses.push_back((tile.turned ? j * tile.pitch + i : i * tile.pitch + j) * bytes);
  }
  return BankPasses(addresses, width * bytes) * (f.size() / width);
}

/*! \brief The padding and the order with the fewest bank conflicts both ways. */
Tile ChooseTile(const Fragment& to, const Fragment& from, int bytes) {
  Tile best;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (bool turned : {false, true}) {
    int64_t length = turned ? to.rows : to.cols;
    for (int64_t pad : {0, 1, 2, 4, 8, 16}) {
      Tile tile{length + pad, turned};
      tile.width_in = WidthOf(from, tile, bytes);
      tile.width_out = WidthOf(to, tile, bytes);
      int64_t cost = CostOf(from, tile, tile.width_in, bytes) + CostOf(to, tile, tile.width_out, bytes);
      if (cost < least) {
        least = cost;
        best = tile;
      }
    }
  }
  return best;
}

}  // namespace

std::vector<RegisterOffset> RegisterOffsets(const Fragment& to, const Fragment& from) {
  std::set<RegisterOffset> offsets;
  for (int lane = 0; lane < kLanes; ++lane) {
    auto [i, j] = FirstOf(to, lane);
    if (i < to.rows && j < to.cols) offsets.insert(OffsetOf(from, i, j));
  }
  return {offsets.begin(), offsets.end()};
}

namespace {

/*! \brief Prints one conversion. */
class Conversion {
 public:
  Conversion(Emitter* e, const Regs& to, const Regs& from)
      : e_(*e), to_(to), from_(from), type_(TypeOf(to.dtype)), offsets_(RegisterOffsets(to.fragment, from.fragment)) {}

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
    if (offsets_.size() == 1) {
      e_.out.Line(target + " = shuffle(" + FromAt(row_fixed, col_fixed, offsets_[0]) + ", " + source + ");");
    } else {
      Kept(target, row_fixed, col_fixed, source);
    }
    loops.Close();
  }

  void Scratch() {
    Tile tile = ChooseTile(to_.fragment, from_.fragment, type_.bytes);
    int64_t lines = tile.turned ? to_.fragment.cols : to_.fragment.rows;
    int64_t count = lines * tile.pitch;
    e_.out.Comment("to " + to_.fragment.layout.ToString() + " from " + from_.fragment.layout.ToString() +
                   ", through scratch");
    std::string at = e_.TemporaryScratch(count * type_.bytes);
    e_.WritesTemporary(count * type_.bytes);
    e_.out.Open("");
    e_.needs.Core("shared_at");
    e_.out.Line(std::string("auto tile = shared_at<") + type_.stored + ", " + Text(count) + ">(smem, " + at + ");");
    Pass(from_, tile, tile.width_in, true);
    e_.ReadsTemporary(count * type_.bytes);
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
    for (size_t k = 0; k < offsets_.size(); ++k) {
      std::string value = "shuffle(" + FromAt(row, col, offsets_[k]) + ", " + source + ")";
      if (k == 0) {
        e_.out.Line(target + " = " + value + ";");
        continue;
      }
      std::string name = "other" + Text(static_cast<int64_t>(k));
      e_.out.Line(std::string("const ") + type_.stored + " " + name + " = " + value + ";");
      e_.out.Line("if (" + LaneCondition(offsets_[k]) + ") " + target + " = " + name + ";");
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
  void Pass(const Regs& regs, const Tile& tile, int64_t width, bool store) {
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
    std::string condition = e_.Inside(f, Box(), cell);
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
  const Regs& to_;
  const Regs& from_;
  const ScalarType& type_;
  std::vector<RegisterOffset> offsets_;
};

}  // namespace

void Emitter::Convert(const Regs& to, const Regs& from) {
  Conversion conversion(this, to, from);
  if (SameHolding(to.fragment, from.fragment)) {
    conversion.Copy();
  } else if (RegisterOffsets(to.fragment, from.fragment).size() <= kShuffles) {
    conversion.Shuffle();
  } else {
    conversion.Scratch();
  }
}

}  // namespace uir::codegen::cuda
