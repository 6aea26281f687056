// SPDX-License-Identifier: Apache-2.0
// Boxes, addresses, loads and stores of register arrays, barriers.
#include <tvm/ffi/error.h>

#include <algorithm>

#include "codegen/cuda/bounds.h"
#include "codegen/cuda/emitter.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief ` + name * factor`, with nothing where it is 0 and 64 bits where the greatest value needs them. */
std::string TermText(const std::string& name, int64_t factor, int64_t greatest) {
  if (name == "0" || factor == 0) return "";
  std::string sign = factor < 0 ? " - " : " + ";
  factor = std::abs(factor);
  if (factor == 1) return sign + name;
  std::string text = Text(factor);
  return sign + name + " * " + (greatest * factor > INT32_MAX ? "int64_t(" + text + ")" : text);
}

/*! \brief A sum of terms (`TermText`) by itself: without the sign before its first one, unless that is a minus. */
std::string BareSum(const std::string& terms) {
  if (terms.empty()) return "0";
  return (terms.rfind(" - ", 0) == 0 ? "-" : "") + terms.substr(3);
}

/*! \brief One loop over registers: its variable, how often it runs, and where an access goes with it. */
struct Side {
  const char* loop;
  int64_t count;
  std::string term;
};

}  // namespace

std::optional<std::string> Emitter::Bound(const ffi::Optional<Affine>& bound, int64_t length, bool end) {
  if (!IsBinding(bound, length, end, scope)) return std::nullopt;
  const Affine& value = bound.value();
  Range range = scope.Of(value);
  if (range.Constant()) return Text(std::min(std::max<int64_t>(range.low, 0), length));
  bool wide = scope.Wide(value);
  std::string text = scope.Text(value), zero = wide ? "int64_t(0)" : "0";
  if (range.low < 0) text = "max(" + text + ", " + zero + ")";
  if (range.high > length) text = "min(" + text + ", " + (wide ? "int64_t(" + Text(length) + ")" : Text(length)) + ")";
  // a table may have more rows than an int counts
  const bool far = std::min(range.high, length) > INT32_MAX;
  if (wide && !far) text = "int(" + text + ")";
  for (const auto& block : bounds_) {
    auto known = block.find(text);
    if (known != block.end()) return known->second;
  }
  std::string name = names.Fresh(end ? "end" : "begin");
  std::string line = std::string("const ") + (far ? "int64_t " : "int ") + name + " = " + text + ";";
  auto variables = value.Variables();
  bool fixed = std::all_of(variables.begin(), variables.end(), [](const ffi::String& v) { return v == "pid"; });
  if (fixed) {
    Prologue(line);
    bounds_.front()[text] = name;
  } else {
    out.Line(line);
    bounds_.back()[text] = name;
  }
  return name;
}

Box Emitter::BoxOf(const ISlice& slice) {
  return {Bound(slice->row_begin, slice->rows, false), Bound(slice->row_end, slice->rows, true),
          Bound(slice->col_begin, slice->cols, false), Bound(slice->col_end, slice->cols, true)};
}

Box Emitter::BoxOf(const Transfer& how) {
  const Box box = BoxOf(how.slice);
  return how.hint.within ? Both(box, BoxOf(*how.hint.within)) : box;
}

Box Emitter::Both(const Box& a, const Box& b) {
  auto both = [](const std::optional<std::string>& x, const std::optional<std::string>& y, const char* which) {
    if (!x || !y || *x == *y) return x ? x : y;
    return std::optional<std::string>(std::string(which) + "(" + *x + ", " + *y + ")");
  };
  return {both(a.row_begin, b.row_begin, "max"), both(a.row_end, b.row_end, "min"),
          both(a.col_begin, b.col_begin, "max"), both(a.col_end, b.col_end, "min")};
}

Address Emitter::AddressOf(const ISlice& slice) {
  const Home& home = plan.HomeOf(slice);
  TVM_FFI_CHECK(!home.registers(), InternalError) << "registers have no address";
  Address address;
  std::string offset = scope.Text(slice->offset);
  address.text = TextOf(std::string(slice->pointer->name));
  if (offset != "0") address.text += (offset[0] == '-' ? " - " + offset.substr(1) : " + " + offset);
  address.align = AccessOf(slice, scope).align;
  return address;
}

std::string Emitter::Swizzled(const ISlice& slice, const std::string& index) {
  const ScalarType& type = TypeOf(std::string(slice->pointer->dtype));
  if (const int64_t pitch = plan.HomeOf(slice).atoms_pitch) {
    needs.Core("in_atoms");
    return TextOf(std::string(slice->pointer->name)) + " + in_atoms<" + Text(pitch) + ", " + Text(type.bytes) + ">(" +
           index + ")";
  }
  needs.Core("swizzled");
  const Swizzle& swizzle = plan.HomeOf(slice).swizzle;
  return TextOf(std::string(slice->pointer->name)) + " + swizzled<" + Text(swizzle.line) + ", " + Text(swizzle.places) +
         ", " + Text(swizzle.step) + ", " + Text(type.bytes) + ">(" + index + ")";
}

std::string Emitter::Along(const ISlice& slice, bool rows, const std::string& name, int64_t factor,
                           int64_t greatest) const {
  const auto& pitch = rows ? slice->row_pitch : slice->col_pitch;
  if (!pitch) return TermText(name, factor * (rows ? slice->row_stride : slice->col_stride), greatest);
  if (name == "0") return "";
  const Affine step = pitch.value().Scale(factor);
  const std::string text = scope.Text(step, Precedence::kAtom);
  const bool wide = !scope.Wide(step) && scope.Of(step).high * greatest > INT32_MAX;
  return " + " + name + " * " + (wide ? "int64_t(" + text + ")" : text);
}

std::string Emitter::Element(const ISlice& slice, const std::string& row, const std::string& col) {
  const Home& home = plan.HomeOf(slice);
  if (home.permuted()) {
    return Swizzled(slice, scope.Text(slice->offset) + Along(slice, true, row, 1, slice->rows) +
                               Along(slice, false, col, 1, slice->cols));
  }
  return AddressOf(slice).text + Along(slice, true, row, 1, slice->rows) + Along(slice, false, col, 1, slice->cols);
}

void Emitter::Load(const Transfer& how, const Regs& regs, const std::string& outside) {
  if (!how.between) return Move(how, regs, true, outside);
  Regs between = Temporary(regs.name + "_by_line", regs.dtype, *how.between);
  Move(how, between, true, outside);
  Convert(how.conversion, regs, between, how.slice->OpenStrides() && outside.empty() ? BoxOf(how) : Box());
}

void Emitter::Store(const Transfer& how, const Regs& regs) {
  if (!how.between) return Move(how, regs, false, "");
  Regs between = Temporary(regs.name + "_by_line", regs.dtype, *how.between);
  Convert(how.conversion, between, regs, how.slice->OpenStrides() ? BoxOf(how) : Box());
  Move(how, between, false, "");
}

void Emitter::Move(const Transfer& how, const Regs& regs, bool load, const std::string& outside) {
  const ISlice& slice = how.slice;
  const Fragment& f = regs.fragment;
  const Box box = BoxOf(how);
  Meet(how.meets);
  out.Open("");
  std::string type = TypeOf(regs.dtype).stored;
  bool constant = load && slice->pointer->level == "dram";
  const Layout& l = f.layout;
  std::string lane = f.replicated_r() ? "" : Along(slice, true, LaneRow(l), l.vec_r, f.rows);
  lane += f.replicated_c() ? "" : Along(slice, false, LaneCol(l), l.vec_c, f.cols);
  if (plan.HomeOf(slice).permuted()) {
    // the permutation acts on the whole index, so only the index is common to the accesses
    out.Line("const int first = " + scope.Text(slice->offset) + lane + ";");
  } else {
    // the place of a lane that is masked out may lie outside of the memory, so it is only named here
    std::string pointer = constant ? "const " + type + "*" : slice->pointer->level == "dram" ? type + "*" : "auto";
    out.Line(pointer + " const " + (load ? "from" : "to") + " = " + AddressOf(slice).text + lane + ";");
  }
  if (how.split) {
    // most tiles are whole: they move by wide accesses, one that the box cuts moves element by element
    const bool by_rows = how.wide.along_rows;
    const auto& begin = by_rows ? box.row_begin : box.col_begin;
    const auto& end = by_rows ? box.row_end : box.col_end;
    std::vector<std::string> whole;
    if (begin) whole.push_back(*begin + " == 0");
    if (end) whole.push_back(*end + " == " + Text(by_rows ? f.rows : f.cols));
    Box across = box;
    (by_rows ? across.row_begin : across.col_begin).reset();
    (by_rows ? across.row_end : across.col_end).reset();
    out.Open("if (" + Join(whole, " && ") + ")");
    Accesses(how, regs, across, how.wide, load, outside);
    out.Close(" else {");
    Printer rest(out.indent() + 1);
    std::swap(out, rest);
    Accesses(how, regs, box, how.exact, load, outside);
    std::swap(out, rest);
    out.Append(rest);
    out.Line("}");
  } else {
    Accesses(how, regs, box, how.exact, load, outside);
  }
  out.Close();
}

void Emitter::Accesses(const Transfer& how, const Regs& regs, const Box& box, Width width, bool load,
                       const std::string& outside) {
  const ISlice& slice = how.slice;
  const bool stream = how.hint.stream;
  const Fragment& f = regs.fragment;
  const Layout& l = f.layout;
  int w = width.elements;
  bool by_rows = width.along_rows;
  Coordinates needed = InsideNeeds(f, box);
  const int64_t in_rows = by_rows ? l.vec_r / w : l.vec_r, in_cols = by_rows ? l.vec_c : l.vec_c / w;
  std::vector<Side> sides = {
      {"rb", f.blocks_r(), Along(slice, true, "rb", l.step_r(), f.blocks_r())},
      {"cb", f.blocks_c(), Along(slice, false, "cb", l.step_c(), f.blocks_c())},
      {"vr", in_rows, Along(slice, true, "vr", by_rows ? w : 1, in_rows)},
      {"vc", in_cols, Along(slice, false, "vc", by_rows ? 1 : w, in_cols)},
  };
  std::vector<std::string> at;
  std::string offset;
  int opened = 0;
  for (const Side& side : sides) {
    if (side.count == 1) {
      at.emplace_back("0");
      continue;
    }
    std::string name = side.loop;
    out.Line("#pragma unroll");
    out.Open("for (int " + name + " = 0; " + name + " < " + Text(side.count) + "; ++" + name + ")");
    offset += side.term;
    at.push_back(name);
    ++opened;
  }
  auto coordinate = [&](bool wanted, bool replicated, const char* name, const std::string& lane, int vec, int step,
                        const std::string& block, const std::string& within, int stride) {
    if (!wanted || replicated) return std::string("0");
    std::string text =
        TermText(lane, vec, kLanes) + TermText(block, step, INT16_MAX) + TermText(within, stride, INT16_MAX);
    out.Line(std::string("const int ") + name + " = " + BareSum(text) + ";");
    return std::string(name);
  };
  Cell cell;
  cell.row =
      coordinate(needed.row, f.replicated_r(), "row", LaneRow(l), l.vec_r, l.step_r(), at[0], at[2], by_rows ? w : 1);
  cell.col =
      coordinate(needed.col, f.replicated_c(), "col", LaneCol(l), l.vec_c, l.step_c(), at[1], at[3], by_rows ? 1 : w);
  std::string condition = Inside(f, box, cell);
  std::string copies = load ? "" : OneOfCopies(f);
  if (!copies.empty()) condition += (condition.empty() ? "" : " && ") + copies;
  std::string type = TypeOf(regs.dtype).stored, pointer = load ? "from" : "to";
  if (plan.HomeOf(slice).permuted()) {
    pointer = "(" + Swizzled(slice, "first" + offset) + ")";
    offset.clear();
  }
  std::string guard = condition.empty() ? "" : "if (" + condition + ") ";
  std::string kind = std::string(stream ? "_stream" : "");
  if (w == 1 && !stream) {
    std::string element = pointer + "[" + BareSum(offset) + "]";
    std::string value = regs.At(at[0], at[1], at[2], at[3]);
    if (load && outside.empty()) {
      out.Line(guard + value + " = " + element + ";");
    } else if (load) {
      out.Line(value + " = " + (condition.empty() ? element : condition + " ? " + element + " : " + outside) + ";");
    } else {
      out.Line(guard + element + " = " + value + ";");
    }
  } else {
    std::string vector = "vec<" + type + ", " + Text(w) + ">";
    std::string call = type + ", " + Text(w) + ">(" + pointer + offset;
    auto within = [w](const std::string& block) {
      if (w == 1) return block;
      return block == "0" ? std::string("n") : "(" + block + " * " + Text(w) + " + n)";
    };
    std::string value =
        by_rows ? regs.At(at[0], at[1], within(at[2]), at[3]) : regs.At(at[0], at[1], at[2], within(at[3]));
    std::string each = "for (int n = 0; n < " + Text(w) + "; ++n) ";
    needs.Core("vec");
    needs.Core((load ? "load_vec" : "store_vec") + kind);
    bool kept = load && outside.empty() && !condition.empty();
    if (kept) out.Open("if (" + condition + ")");
    if (load && (condition.empty() || kept)) {
      out.Line("const " + vector + " v = load_vec" + kind + "<" + call + ");");
    } else if (load) {
      out.Line(vector + " v;");
      out.Line("#pragma unroll");
      out.Line(each + "v.v[n] = " + outside + ";");
      out.Line(guard + "v = load_vec" + kind + "<" + call + ");");
    } else {
      out.Line(vector + " v;");
    }
    out.Line("#pragma unroll");
    out.Line(each + (load ? value + " = v.v[n];" : "v.v[n] = " + value + ";"));
    if (kept) out.Close();
    if (!load) out.Line(guard + "store_vec" + kind + "<" + call + ", v);");
  }
  for (; opened > 0; --opened) out.Close();
}

namespace {

constexpr const char* kWarpBarrier = "__syncwarp();";

}  // namespace

void Emitter::BlockBarrier() {
  if (plan.has_atoms()) {
    // what lanes wrote, products of four warps read in another way
    needs.Intrinsic("fence_async");
    out.Line("fence_async();");
  }
  out.Line("__syncthreads();");
}

void Emitter::WarpBarrier() { out.Line(kWarpBarrier); }

void Emitter::Meet(MeetingPlace place) {
  if (body.Meets(place)) WarpBarrier();
}

void Emitter::MeetAtStart() {
  if (body.meets_at_start()) Prologue(kWarpBarrier);
}

}  // namespace uir::codegen::cuda
