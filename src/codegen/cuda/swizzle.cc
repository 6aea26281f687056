// SPDX-License-Identifier: Apache-2.0
// Which tiles in shared memory are swizzled, and how: as costs the instructions on them the fewest passes.
//
// What products read and moves write is laid out on the tile access by access, as the emitters print it, and the
// passes of shared memory are counted for every swizzle of the family.  None is tried first and wins where it is as
// good: a tile that is not swizzled may be filled by bulk copies.
#include "codegen/cuda/swizzle.h"

#include <algorithm>
#include <set>

#include "codegen/cuda/async.h"
#include "codegen/cuda/banks.h"
#include "codegen/cuda/contract.h"
#include "codegen/cuda/planner.h"

namespace uir::codegen::cuda {

namespace {

/*! \brief The family; lines of a tile whose rows have so many bytes. */
std::vector<Swizzle> SwizzlesFor(int64_t pitch) {
  constexpr int64_t kFarthest = 8;
  const int64_t row = pitch % kPassBytes == 0 && pitch > 0 ? pitch : kPassBytes;
  std::vector<Swizzle> out = {Swizzle()};
  for (int64_t line = row; line <= kFarthest * row; line *= 2) {
    for (int step = kLaneBytes; step < kPassBytes; step *= 2) {
      for (int places = static_cast<int>(kPassBytes / step); places > 1; places /= 2)
        out.push_back({line, places, step});
    }
  }
  return out;
}

/*! \brief An access of a warp, as byte addresses in the tile's pointer. */
struct ByteAccess {
  int64_t bytes = 0;
  double times = 1;
  std::vector<int64_t> at;
};

/*! \brief Bytes from one line in memory to the next. */
int64_t LinePitch(const ISlice& slice) {
  const int64_t bytes = TypeOf(std::string(slice->pointer->dtype)).bytes;
  return (slice->col_stride == 1 ? slice->row_stride : slice->col_stride) * bytes;
}

/*! \brief How a move between a tile and dram or registers touches the tile. */
std::vector<TileAccess> MoveAccesses(const Plan& plan, const IOp& move, const ISlice& slice) {
  const int bytes = TypeOf(std::string(slice->pointer->dtype)).bytes;
  if (const int piece = CopyBytes(plan, plan.scope(), move)) {
    // lanes take pieces of the lines one after the other
    const bool by_rows = slice->col_stride == 1;
    const int64_t each = piece / bytes, in_line = (by_rows ? slice->cols : slice->rows) / each;
    const int64_t pieces = in_line * (by_rows ? slice->rows : slice->cols);
    std::vector<TileAccess> out;
    for (int64_t p = 0; p < pieces; ++p) {
      if (p % kLanes == 0) out.push_back({each, {}});
      const int64_t line = p / in_line, at = p % in_line * each;
      out.back().at.emplace_back(by_rows ? line : at, by_rows ? at : line);
    }
    return out;
  }
  const Layout layout = plan.WorkLayout(move);
  const Width width = WidthOf(AccessOf(slice, plan.scope()), layout);
  return AccessesOf(Fragment(layout, slice->rows, slice->cols), width.elements, width.along_rows);
}

/*! \brief The places in the pointer at which units find a slice, as far as they differ within what swizzles tell. */
std::set<int64_t> PlacesOf(const ISlice& slice, int64_t units, int64_t period) {
  std::set<int64_t> out;
  ffi::Map<ffi::String, int64_t> at;
  for (const ffi::String& name : slice->offset.Variables()) at.Set(name, 0);
  for (int64_t unit = 0; unit < units; ++unit) {
    at.Set("pid", unit);
    const int64_t offset = slice->offset.Evaluate(at) % period;
    out.insert(offset < 0 ? offset + period : offset);
  }
  return out;
}

}  // namespace

void Planner::ChooseSwizzles() {
  for (auto& [name, home] : plan_->homes_) {
    if ((home.kind != Home::Kind::kSram && home.kind != Home::Kind::kScratch) || home.atoms) continue;
    const std::vector<const Use*>& uses = by_pointer_[name];
    const bool multiplied =
        std::any_of(uses.begin(), uses.end(), [](const Use* use) { return use->iop->op == "contract" && !use->write; });
    // the buffer of a group form is addressed without its home
    const bool buffer =
        std::any_of(uses.begin(), uses.end(), [](const Use* use) { return use->operand == kBufferOperand; });
    if (!multiplied || buffer) continue;
    const int64_t bytes = TypeOf(std::string(uses.front()->slice->pointer->dtype)).bytes;
    const int64_t all = uses.front()->slice->pointer->size * bytes;
    // chunks change places within so many bytes, all of which must belong to the pointer
    if (all % kPassBytes != 0) continue;

    int64_t pitch = 0;
    for (const Use* use : uses) {
      if (use->iop->op == "contract" && !use->write) pitch = std::max(pitch, LinePitch(use->slice));
    }
    const std::vector<Swizzle> candidates = SwizzlesFor(pitch);
    const int64_t period = candidates.back().line * kPassBytes / kLaneBytes;
    std::vector<ByteAccess> accesses;
    for (const Use* use : uses) {
      std::vector<TileAccess> own;
      if (use->iop->op == "contract" && !use->write) {
        own = ContractReads(*plan_, use->iop, use->operand - 1);
      } else if (use->iop->op == "move") {
        own = MoveAccesses(*plan_, use->iop, use->slice);
      }
      for (int64_t offset : PlacesOf(use->slice, plan_->graph_->num_units, period / bytes)) {
        for (const TileAccess& one : own) {
          accesses.push_back({one.elements * bytes, use->times(), {}});
          for (const auto& [row, col] : one.at) {
            accesses.back().at.push_back((offset + row * use->slice->row_stride + col * use->slice->col_stride) *
                                         bytes);
          }
        }
      }
    }
    double least = -1;
    for (const Swizzle& swizzle : candidates) {
      double passes = 0;
      for (const ByteAccess& access : accesses) {
        std::vector<int64_t> places;
        for (int64_t byte : access.at) places.push_back(swizzle(byte));
        passes += access.times * static_cast<double>(BankPasses(places, access.bytes));
        if (least >= 0 && passes >= least) break;
      }
      if (least >= 0 && passes >= least) continue;
      least = passes;
      home.swizzle = swizzle;
    }
  }
}

}  // namespace uir::codegen::cuda
