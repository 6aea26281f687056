// SPDX-License-Identifier: Apache-2.0
// Which products of a kernel four warps make together, and which tiles in shared memory are made of atoms.
#include <algorithm>
#include <iterator>
#include <set>

#include "codegen/attributes.h"
#include "codegen/cuda/contract.h"
#include "codegen/cuda/planner.h"
#include "codegen/cuda/staged.h"
#include "codegen/cuda/wgmma.h"
#include "igraph/parts.h"

namespace uir::codegen::cuda {

namespace {

constexpr int64_t kChunk = 16;
/*! \brief Bytes along the contracted side that one instruction takes. */
constexpr int64_t kDepthBytes = 32;

/*! \brief The graph's attribute: unset (what pays), true (what can be), false (nothing). */
std::optional<bool> Asked(const IGraph& graph) {
  const ffi::Any asked = AttrOf(graph->attrs, "wgmma");
  return asked == nullptr ? std::nullopt : std::optional<bool>(asked.cast<bool>());
}

/*! \brief The number of four neighbouring warps, and which of them a warp is. */
constexpr const char *kFour = "#four", *kWarp = "#warp";

bool SpeaksOf(const Affine& expr, const char* name) {
  const auto variables = expr.Variables();
  return std::find(variables.begin(), variables.end(), name) != variables.end();
}

/*! \brief Columns of the instructions that make up so many, widest first; across lines each begins an atom. */
std::optional<std::vector<std::pair<int64_t, int>>> PiecesOf(int64_t cols, int64_t begins) {
  std::vector<std::pair<int64_t, int>> out;
  for (int64_t at = 0; at < cols;) {
    auto width =
        std::find_if(std::begin(kWgmmaColumns), std::end(kWgmmaColumns), [&](int n) { return at + n <= cols; });
    if (width == std::end(kWgmmaColumns) || at % begins != 0) return std::nullopt;
    out.emplace_back(at, *width);
    at += *width;
  }
  return out;
}

}  // namespace

std::optional<std::pair<Affine, int64_t>> OfFourWarps(const Affine& offset) {
  // what else an offset speaks of is left as it is, and so are terms that are the same for four warps anyway
  Space space;
  for (const ffi::String& name : offset.Variables()) space.Bind(name, {{INT32_MIN, INT32_MAX}});
  space.Bind("pid", {{0, INT32_MAX}});
  space.Bind(kFour, {{0, INT32_MAX / kWarpgroup}});
  space.Bind(kWarp, {{0, kWarpgroup - 1}});
  const Affine pid = Affine::Var(kFour).Scale(kWarpgroup) + Affine::Var(kWarp);
  const Affine apart = Substitute(offset, {{"pid", pid}}, space);
  const auto [own, common] = Split(apart, [](const Affine& term) { return SpeaksOf(term, kWarp); });
  const bool one = own->terms.empty() || (own->terms.size() == 1 && own->terms[0]->kind == "var");
  if (!one) return std::nullopt;
  const Affine first = Substitute(common, {{kFour, Affine::Var("pid").FloorDiv(kWarpgroup)}}, space);
  return std::make_pair(first, own->terms.empty() ? int64_t{0} : own->terms[0]->coeff);
}

/*! \brief The analysis of one product. */
class WgmmaCandidate {
 public:
  WgmmaCandidate(const Plan& plan, const std::vector<Use>& uses, const IOp& iop)
      : plan_(plan), uses_(uses), iop_(iop) {}

  WgmmaChoice Choose() {
    WgmmaChoice choice;
    const MmaRow* mma = MmaOf(iop_, plan_.graph(), plan_.arch());
    if (mma == nullptr) return choice;
    const WgmmaRow* row = WgmmaRowOf(mma->intrinsic);
    choice.reason = WhyNot(row);
    if (!choice.reason.empty()) return choice;
    const ISlice t = iop_->targets[0], a = iop_->sources[0], b = iop_->sources[1];
    std::optional<WgmmaTile> tile = TileOf(b, false, *row, 0, &choice.reason);
    if (!tile) return choice;
    choice.b = *tile;
    auto pieces = PiecesOf(t->cols, choice.b.across ? choice.b.chunks * kChunk / Bytes(b) : 1);
    if (!pieces) {
      choice.reason = std::to_string(t->cols) + " columns are not made up of whole atoms";
      return choice;
    }
    choice.pieces = *pieces;
    std::string why_registers = t->rows == kWarpRows ? "" : "a warp has several times 16 rows";
    if (why_registers.empty()) choice.a = TileOf(a, true, *row, kWarpRows, &why_registers);
    if (!choice.a && row->k == kTf32Depth && !IsInLines(a)) {
      choice.reason = std::string(a->pointer->name) + " does not lie in whole lines of 16 bytes";
      return choice;
    }
    std::string figures;
    const bool pays =
        WgmmaPays({t->rows, t->cols, a->cols, static_cast<int>(Bytes(b)), static_cast<int>(choice.pieces.size()),
                   !plan_.HomeOf(a).registers(), choice.a.has_value()},
                  &figures);
    const bool asked = Asked(plan_.graph()).has_value();
    if (pays || asked) choice.row = row;
    choice.reason = figures + (asked ? ", asked for" : "");
    return choice;
  }

 private:
  static int64_t Bytes(const ISlice& slice) { return TypeOf(std::string(slice->pointer->dtype)).bytes; }

  std::string WhyNot(const WgmmaRow* row) const {
    const ISlice t = iop_->targets[0], a = iop_->sources[0], b = iop_->sources[1];
    const auto asked = Asked(plan_.graph());
    if (asked && !*asked) return "the graph forbids it";
    if (row == nullptr) return "it has no product of " + std::string(b->pointer->dtype);
    if (row->coarse && !MayRound(plan_.graph()) && !asked) {
      return "it sums " + std::string(b->pointer->dtype) + " in fewer bits, which needs fast_math";
    }
    if (a->pointer->dtype != b->pointer->dtype) return "the factors differ in dtype";
    if (plan_.graph()->num_units % kWarpgroup != 0) return "a block has no multiple of four warps";
    if (t->rows % kWarpRows != 0) return "a warp has no multiple of 16 rows";
    if (t->cols % kMmaColumns != 0) return "a warp has no multiple of 8 columns";
    if (SumsLayout(iop_) != Layout{8, 4, 1, 2, false}) return "a factor of bytes lies across memory";
    if (a->cols % row->k != 0) return "the contracted side is no multiple of " + std::to_string(row->k);
    return "";
  }

  /*! \brief A factor as a tile of atoms, each further warp `step` rows on; nothing, and why, where it is none. */
  std::optional<WgmmaTile> TileOf(const ISlice& slice, bool is_a, const WgmmaRow& row, int64_t step,
                                  std::string* why) const {
    const std::string name(slice->pointer->name);
    auto no = [&](const std::string& text) {
      *why = name + " " + text;
      return std::nullopt;
    };
    if (plan_.HomeOf(slice).kind != Home::Kind::kSram) return no("is not in sram");
    WgmmaTile tile;
    const int64_t bytes = Bytes(slice);
    const int64_t depth_stride = is_a ? slice->col_stride : slice->row_stride;
    const int64_t major_stride = is_a ? slice->row_stride : slice->col_stride;
    tile.across = depth_stride != 1;
    if (tile.across && (major_stride != 1 || !row.either_way)) {
      return no("does not lie along the contracted side, as " + std::string(slice->pointer->dtype) + " must");
    }
    const int64_t line = tile.across ? depth_stride : major_stride;
    tile.pitch = line * bytes;
    if (tile.pitch != 2 * kChunk && tile.pitch != 4 * kChunk && (tile.pitch == 0 || tile.pitch % kAtomLine != 0)) {
      return no("has lines of " + std::to_string(tile.pitch) + " bytes");
    }
    tile.chunks = static_cast<int>(std::min(tile.pitch, kAtomLine) / kChunk);
    if (slice->pointer->size % (kAtomRows * line) != 0) return no("ends within an atom");
    const ISlice t = iop_->targets[0];
    const bool bounded = is_a ? t->row_begin || t->row_end : t->col_begin || t->col_end;
    if ((bounded || !BoxText(slice).empty()) && !IsZeroBeyond(slice)) return no("is not filled beyond its end");
    auto four = OfFourWarps(slice->offset);
    if (!four || four->second != step * (is_a ? major_stride : 0)) {
      return no(is_a ? "is not 64 neighbouring rows of four warps" : "is not the same for four warps");
    }
    tile.offset = four->first;
    // within a line: chunks of one instruction along it, whole atoms across it
    const int64_t unit = (tile.across ? tile.chunks * kChunk : kDepthBytes) / bytes;
    const Affine within = SplitMultiples(tile.offset, kAtomRows * line).second;
    const Affine apart = SplitMultiples(within, unit).second;
    const Range range = plan_.scope().Of(within);
    const int64_t length = tile.across ? (is_a ? kWarpgroup * step : slice->cols) : (is_a ? slice->cols : slice->rows);
    const bool whole = apart->constant == 0 && apart->terms.empty();
    if (!whole || range.low < 0 || range.high + length > line) return no("begins within an atom");
    return tile;
  }

  /*! \brief Whether all of a tile may be read: it was filled whole, with zeros for what its source lacks. */
  bool IsZeroBeyond(const ISlice& slice) const {
    return IsFilled(uses_, plan_.scope(), slice) && std::all_of(uses_.begin(), uses_.end(), [&](const Use& use) {
             bool other = !use.write || use.slice->pointer->name != slice->pointer->name;
             return other || !use.iop->attrs.count("pad") || IsZeroPadded(use.iop);
           });
  }

  /*! \brief Whether ldmatrix may read a as it lies: whole lines of 16 bytes along the contracted side. */
  bool IsInLines(const ISlice& a) const {
    const Home& home = plan_.HomeOf(a);
    const bool shared = home.kind == Home::Kind::kSram || home.kind == Home::Kind::kScratch;
    return shared && BoxText(a).empty() && a->col_stride == 1 && a->row_stride * Bytes(a) % kChunk == 0 &&
           AccessOf(a, plan_.scope()).align >= kChunk;
  }

  const Plan& plan_;
  const std::vector<Use>& uses_;
  const IOp& iop_;
};

void Planner::ChooseWarpgroups() {
  const Arch& arch = plan_->arch_;
  if (!HasIntrinsic("wgmma_fence", arch)) return;
  std::map<std::string, std::set<int64_t>> pitches;
  for (const Use& use : uses_) {
    if (use.iop->op != "contract" || use.write || use.operand < 1) continue;
    const ISlice& slice = use.slice;
    const int64_t bytes = TypeOf(std::string(slice->pointer->dtype)).bytes;
    const int64_t pitch = slice->col_stride == 1 ? slice->row_stride : slice->row_stride == 1 ? slice->col_stride : 0;
    pitches[use.pointer()].insert(pitch * bytes);
  }
  auto agreed = [&](const ISlice& slice) { return pitches[std::string(slice->pointer->name)].size() == 1; };
  for (const Use& use : uses_) {
    if (use.iop->op != "contract" || !use.write || use.operand != 0) continue;
    WgmmaChoice choice = WgmmaCandidate(*plan_, uses_, use.iop).Choose();
    if (choice.row != nullptr && !agreed(use.iop->sources[1])) {
      choice.row = nullptr;
      choice.reason = std::string(use.iop->sources[1]->pointer->name) + " is read in lines of different lengths";
    }
    if (choice.a && !agreed(use.iop->sources[0])) choice.a.reset();
    if (choice.row != nullptr) {
      UseAtoms(use.iop->sources[1], choice.b);
      if (choice.a) UseAtoms(use.iop->sources[0], *choice.a);
    }
    if (!choice.reason.empty()) plan_->wgmma_.emplace(use.iop.get(), choice);
  }
}

void Planner::UseAtoms(const ISlice& slice, const WgmmaTile& tile) {
  Home& home = plan_->homes_[std::string(slice->pointer->name)];
  plan_->has_atoms_ = home.atoms = true;
  if (tile.pitch > kAtomLine) {
    home.atoms_pitch = tile.pitch;
  } else {
    home.swizzle = Swizzle{kAtomLine, tile.chunks, static_cast<int>(kChunk)};
  }
}

}  // namespace uir::codegen::cuda
