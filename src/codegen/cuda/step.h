// SPDX-License-Identifier: Apache-2.0
// What is decided of an iOp before anything is printed: how its operands come into registers and back, and where the
// lanes of its warp meet.
//
// Every class of iOps has a step of its own, beside the function that plans it; `Print` prints what the step says and
// decides nothing.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "codegen/cuda/choose.h"
#include "codegen/cuda/layout.h"
#include "igraph/nodes.h"

namespace uir::codegen::cuda {

class Emitter;
class StepPlanner;

/*! \brief Number of a place where the lanes of a warp may have to meet (hazards.h). */
using MeetingPlace = int;
/*! \brief Where they never do. */
constexpr MeetingPlace kNowhere = -1;

/*! \brief Blocks along the rows, rows within a block, blocks along the columns, columns within a block. */
using RegisterOffset = std::array<int64_t, 4>;

/*! \brief How a tile lies in scratch: element (i, j) is i * pitch + j, or with `turned` j * pitch + i. */
struct ScratchTile {
  int64_t pitch = 1;
  bool turned = false;
  /*! \brief Elements of one access to it, and of one from it. */
  int64_t width_in = 1, width_out = 1;
};

/*! \brief From registers of one layout to those of another. */
struct Conversion {
  enum class Way {
    kCopy,     // the same registers of the same lanes
    kShuffle,  // from lane to lane
    kScratch,  // through the warp's scratch
  };
  Way way = Way::kCopy;
  /*! \brief kShuffle: how far on the lanes find the elements that one register of theirs holds; one for a shuffle. */
  std::vector<RegisterOffset> offsets;
  /*! \brief kScratch: the tile, its elements, and where lanes meet before it is written and read. */
  ScratchTile tile;
  int64_t elements = 0;
  MeetingPlace written = kNowhere, read = kNowhere;
};

/*! \brief How memory is to be loaded or stored. */
struct MoveHint {
  /*! \brief The data is used once: leave the caches to others. */
  bool stream = false;
  /*! \brief Bytes that every row's start is stated to be a multiple of. */
  int64_t align = 1;
  /*! \brief The slice that is written from what is loaded: nothing is read outside of its valid box either. */
  std::optional<ISlice> within = std::nullopt;
};

/*! \brief Between a slice in memory and registers. */
struct Transfer {
  ISlice slice;
  MoveHint hint;
  /*! \brief Registers in which lanes are neighbours in memory, where the access goes through them. */
  std::optional<Fragment> between;
  Conversion conversion;
  /*! \brief What one access moves: as far as it is proved, and where the box cuts nothing off. */
  Width exact, wide;
  /*! \brief Whether whole tiles move by the wide accesses, others by the exact ones. */
  bool split = false;
  MeetingPlace meets = kNowhere;
};

/*! \brief An operand in registers. */
struct Operand {
  enum class Way {
    kInPlace,    // they are its home
    kConverted,  // its home is registers of another layout
    kMoved,      // its home is memory
  };
  ISlice slice;
  Way way = Way::kInPlace;
  Fragment fragment;
  /*! \brief kConverted. */
  Conversion conversion;
  /*! \brief kMoved. */
  std::optional<Transfer> transfer;
  /*! \brief Of a target: writes to its home leave what lies outside of its valid box. */
  bool spares = false;

  /*! \brief Whether writes to the operand's registers go straight to its home and spare what lies outside. */
  bool spares_in_place() const { return way == Way::kInPlace && spares; }
};

/*! \brief One iOp with all that is decided of it. */
class Step {
 public:
  explicit Step(const IOp& iop) : iop(iop) {}
  virtual ~Step() = default;
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  virtual void Print(Emitter& e) const = 0;

  const IOp iop;
};

using PlanFn = std::unique_ptr<Step> (*)(StepPlanner& p, const IOp& iop);

}  // namespace uir::codegen::cuda
