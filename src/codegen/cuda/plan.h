// SPDX-License-Identifier: Apache-2.0
// Where every pointer of a kernel lives, and how registers are laid out; decided once, before printing.
//
// A reg pointer lives in registers where all of its slices are the same piece of it (or whole blocks of that piece
// at constant places); its layout is that of its class, the pointers that iOps join by working on them element by
// element.  Any other reg pointer lives in *scratch*: a linear region of shared memory that belongs to one warp.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/cuda/choose.h"
#include "codegen/cuda/intrinsics.h"
#include "codegen/cuda/layout.h"
#include "codegen/cuda/piece.h"
#include "codegen/cuda/swizzle.h"
#include "codegen/cuda/wgmma.h"
#include "codegen/scope.h"
#include "igraph/nodes.h"

namespace uir::codegen::cuda {

/*! \brief At multiples of how many bytes homes in shared memory begin, and scratch as a whole. */
constexpr int64_t kSharedAlign = 128;

/*! \brief Where a pointer lives. */
struct Home {
  enum class Kind {
    kRegisters,  // a register array of each lane
    kScratch,    // linear, in the warp's own part of shared memory
    kSram,       // linear, in the block's shared memory
    kDram,       // a parameter of the kernel
  };
  Kind kind = Kind::kDram;
  /*! \brief kRegisters: the piece that the array holds. */
  Fragment fragment;
  /*! \brief kRegisters: the layout of its class, not cut to the piece. */
  Layout class_layout;
  /*! \brief kRegisters: where that piece lies in the pointer. */
  Piece piece;
  /*! \brief kScratch: from the start of the warp's region; kSram: from the start of shared memory. In bytes. */
  int64_t at = 0;
  /*! \brief kScratch, kSram: how chunks of a tile that products read change places. */
  Swizzle swizzle;
  /*! \brief kSram: whether products of four warps read it, as atoms (wgmma.h), and where lines are longer than those of
   * an atom: bytes of a line. */
  bool atoms = false;
  int64_t atoms_pitch = 0;
  /*! \brief Why a reg pointer is not in registers, for the report. */
  std::string reason;

  bool registers() const { return kind == Kind::kRegisters; }
  /*! \brief Whether elements are not where their index says. */
  bool permuted() const { return !swizzle.none() || atoms_pitch != 0; }
};

/*! \brief A layout that an operand of an iOp asks for; operand 0 is the first target, 1.. are the sources. */
struct Wish {
  int operand = 0;
  Layout layout;
  /*! \brief Whether the iOp cannot work otherwise (a tensor core's fragment), or only works better. */
  bool must = false;
};

/*! \brief The plan of one kernel. */
class Plan {
 public:
  /*! \brief Decides homes and layouts; refuses what exceeds shared memory. */
  explicit Plan(const IGraph& graph);

  const IGraph& graph() const { return graph_; }
  const Arch& arch() const { return arch_; }
  /*! \brief pid and all loops by name, with their ranges; the texts are the names in the graph. */
  const Scope& scope() const { return scope_; }

  /*! \brief `AccessOf`, with dram as wide as the schedule asks (the graph's `vector_bytes`: those of a warp). */
  Access MoveOf(const ISlice& slice, const Scope& scope, int64_t stated = 1) const;

  const Home& HomeOf(const std::string& pointer) const;
  const Home& HomeOf(const ISlice& slice) const { return HomeOf(std::string(slice->pointer->name)); }
  /*! \brief The layout in which an iOp works: that of its largest operand in registers, else the best for memory. */
  Layout WorkLayout(const IOp& iop) const;
  //! \brief Whether a write to registers must spare what lies outside the target's valid box, because another
  //! write may have put values there that are still read.
  bool SparesOutside(const ISlice& target) const;

  /*! \brief How four warps make a product together, or why not; nullptr where the architecture has no such products. */
  const WgmmaChoice* WgmmaOf(const IOp& iop) const;
  /*! \brief Whether products of four warps read any tile. */
  bool has_atoms() const { return has_atoms_; }

  /*! \brief Bytes of all sram pointers, and of one warp's scratch. */
  int64_t sram_bytes() const { return sram_bytes_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }

 private:
  friend class Planner;
  IGraph graph_;
  Arch arch_;
  Scope scope_;
  std::map<std::string, Home> homes_;
  /*! \brief Pointers that hold something beside boxes, each with the boxes whose writes need not mind. */
  std::map<std::string, std::set<std::string>> spares_;
  std::map<const IOpNode*, WgmmaChoice> wgmma_;
  bool has_atoms_ = false;
  int64_t widest_ = kWidestBytes;
  int64_t sram_bytes_ = 0;
  int64_t scratch_bytes_ = 0;
};

}  // namespace uir::codegen::cuda
