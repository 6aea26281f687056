// SPDX-License-Identifier: Apache-2.0
// What the emitter of an iOp works with: tiles, work buffers, instructions of the current paragraph.
//
// An elementwise iOp on dense tiles reads, in full:
//
//     Tile x = e.TileOf(iop->sources[0]), y = e.TileOf(iop->targets[0]);
//     e.Do("COMPUTE", Call(e, "__bang_sqrt", ..., {e.At(y), e.At(x), "1024"}) + ";", {Reads(x), Writes(y)});
//
// Each `Do` is one instruction to the planner of syncs, which orders it against others by the bytes it touches:
// emitters print no syncs.  An instruction may have several lines (a loop over rows), if no line depends on another.
// Pipes: "IO" (a copy with GDRAM on one side), "MOVE" (from one of NRAM, WRAM and SRAM to another), "COMPUTE"
// (`__bang_*`), and "S" for scalar code over NRAM, which waits for the vector functions that it reads from and is done
// before anything later is issued.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "codegen/api.h"
#include "codegen/bang/interval.h"
#include "codegen/bang/scalar.h"
#include "codegen/tiles/box.h"
#include "codegen/tiles/emitter.h"
#include "codegen/tiles/gaps.h"
#include "codegen/tiles/lines.h"
#include "codegen/uses.h"

namespace uir::codegen::bang {

using tiles::AsRow;
using tiles::AtLeastZero;
using tiles::Both;
using tiles::Bound;
using tiles::Box;
using tiles::GapsFree;
using tiles::Looped;
using tiles::OverBox;
using tiles::OverCols;
using tiles::OverRows;
using tiles::Place;
using tiles::Plan;
using tiles::Reads;
using tiles::Tile;
using tiles::TimesText;
using tiles::Under;
using tiles::Writes;

/*! \brief Bytes that tensors of NRAM, WRAM and SRAM start at multiples of: what a vector instruction takes a cycle. */
constexpr int64_t kBlockBytes = 128;

/*! \brief Ranges of WRAM: an operand has a 64th of its bytes in each. */
constexpr int64_t kWramRanges = 64;

/*! \brief Names of memories in tiles and regions; a dram pointer's is its own. */
inline constexpr const char* kNram = "nram";
inline constexpr const char* kWram = "wram";
inline constexpr const char* kSram = "sram";

/*! \brief What a plan must know of NRAM. */
extern const tiles::CoreMemory kCoreMemory;

/*! \brief A typed pointer that the kernel declares: `float *const x = (float *)(nram + 1024);`. */
struct Pointer {
  std::string name;
  /*! \brief Its element type in the text: "float". */
  std::string type;
  /*! \brief kNram, kWram or kSram. */
  std::string memory;
  int64_t begin = 0;
  int64_t bytes = 0;
};

/*! \brief All cores of the cluster meet; what they were given before is done, and all that follows comes after. */
pipes::Instruction Meeting(const std::string& comment);

/*! \brief Builds the tree of one kernel; the emitters of iOps get it. */
class Emitter : public tiles::Emitter {
 public:
  Emitter(Plan* plan, Names* names);

  // ---- operands -------------------------------------------------------------------------------------------
  /*! \brief A slice of reg (NRAM), sram or dram. */
  Tile TileOf(const ISlice& slice) final;
  //! \brief A work buffer in NRAM for the current iOp; what it holds is undefined.
  //! \param row_stride Elements from row to row; 0: the columns.
  //! \note It starts at a multiple of 128 bytes and is alive until the iOp ends.  CodegenError where NRAM has no room.
  Tile Work(const std::string& dtype, int64_t rows, int64_t cols, int64_t row_stride = 0);
  /*! \brief A work buffer in WRAM for the current iOp, dense; CodegenError where WRAM has no room. */
  Tile Weights(const std::string& dtype, int64_t rows, int64_t cols);
  //! \brief The same bytes under another dtype; sizes of columns scale, strides must stay whole.
  //! The text gets a pointer of its own; `type`: how it spells the element type where that is not the dtype's
  //! ("char" for int8_t in functions on bytes).
  Tile As(const Tile& tile, const std::string& dtype, const std::string& type = "");

  // ---- texts ----------------------------------------------------------------------------------------------
  /*! \brief The address of an element: "x", "x + 128 * k".  `more`: further elements, as text. */
  std::string At(const Tile& tile, const std::string& more = "") const final;
  using tiles::Emitter::At;
  /*! \brief Element (row, col), texts that bind at least like a product: "x[i * 64 + j]", for scalar code. */
  std::string Element(const Tile& tile, const std::string& row, const std::string& col) const;
  /*! \brief A constant of the graph (int, bool or float) as a literal of the stored type of a dtype. */
  std::string Literal(const std::string& dtype, const ffi::Any& value) const;

  // ---- instructions ---------------------------------------------------------------------------------------
  /*! \brief One instruction, see tiles::Emitter::Do; `pipe` may be "S". */
  void Do(const std::string& pipe, const std::vector<std::string>& lines, const std::vector<pipes::Region>& regions);
  void Do(const std::string& pipe, const std::string& line, const std::vector<pipes::Region>& regions) {
    Do(pipe, std::vector<std::string>{line}, regions);
  }
  /*! \brief A copy that, where it is made, waits for all before it and is done before anything later is issued. */
  void DoBlocking(const std::vector<std::string>& lines, const std::vector<pipes::Region>& regions);
  /*! \brief While it lives, every instruction stands under a condition, a C++ text. */
  class Condition {
   public:
    Condition(Emitter* e, const std::string& text) : e_(e) { e_->condition_ = text; }
    ~Condition() {
      e_->condition_.clear();
      e_->given_.clear();
    }
    Condition(const Condition&) = delete;
    Condition& operator=(const Condition&) = delete;

   private:
    Emitter* e_;
  };
  Condition When(const std::string& text) { return Condition(this, text); }
  //! \brief The condition that an iOp has anything to do, where sides of its target are there as a whole or not at all.
  //!
  //! Of 64 columns, `4096*(pid / 4) - 8192*block + 4096` are all or none.  While it lives, tiles have no bounds that
  //! follow from it.  So it is with an iOp that `reads_numbers`, of which memory may have none, where its target may be
  //! empty.
  Condition WhenThere(const IOp& iop, bool reads_numbers = false);
  /*! \brief A meeting of the cluster. */
  void MeetCluster();

  /*! \brief The number of the group, where groups are clusters: text. */
  const std::string& cluster() const { return cluster_; }
  /*! \brief Groups are dealt to clusters: their number is a variable, whose name is returned. */
  const std::string& DealClusters();

  // ---- values ---------------------------------------------------------------------------------------------
  /*! \brief Notes what the current iOp writes. */
  void NoteInterval(const ISlice& target, const Interval& interval);
  //! \brief What the current iOp reads, if it is what has been noted last, and all of what an iOp with this target
  //! computes with.
  Interval IntervalOf(const ISlice& source, const ISlice& target) const;

  // ---- the device -----------------------------------------------------------------------------------------
  /*! \brief __BANG_ARCH__ (372, 592), and the version of cncc. */
  const Platform& platform() const { return platform_; }
  /*! \brief A figure of the graph's hardware; 0 where it has none. */
  int64_t Figure(const std::string& name) const;

  // ---- for the kernel ---------------------------------------------------------------------------------------
  const std::vector<Pointer>& pointers() const { return pointers_; }
  const std::string& ParameterOf(const std::string& pointer) const { return parameters_.at(pointer); }
  /*! \brief Bytes of WRAM in use. */
  int64_t weights_total() const { return weights_total_; }
  bool meets_cluster() const { return meets_cluster_; }

 private:
  const Pointer& Declare(const Pointer& pointer);
  /*! \brief The divisor of an end of a side, more than 1, where that is always all of the side or nothing; else 0. */
  int64_t StepOfEnd(const ffi::Optional<Affine>& begin, const ffi::Optional<Affine>& end, int64_t length) const;
  /*! \brief A slice without the bounds that follow from the condition that stands. */
  ISlice WithoutGiven(const ISlice& slice) const;
  /*! \brief Lines under the condition that stands, if one does. */
  std::vector<std::string> Conditional(const std::vector<std::string>& lines) const;

  std::map<std::string, std::string> parameters_, locals_;
  /*! \brief Pointers whose rows lie as far apart as they are long (packed.h). */
  std::map<std::string, Affine> packed_;
  std::vector<Pointer> pointers_;
  /*! \brief WRAM of the iOp at `weights_position_`. */
  int64_t weights_ = 0, weights_total_ = 0;
  int weights_position_ = -1;
  bool meets_cluster_ = false;
  /*! \brief The last write of a pointer that something is known of. */
  struct Written {
    ISlice place;
    Interval interval;
    int position;
    /*! \brief Whether it left out what is not valid. */
    bool boxed;
    /*! \brief What it stood under. */
    std::string condition;
  };
  /*! \brief Whether nothing else writes its pointer before the current iOp reads it, in any iteration. */
  bool Stands(const Written& written) const;
  std::map<std::string, Written> written_;
  Platform platform_;
  std::string condition_;
  /*! \brief What is more than zero under the condition. */
  std::vector<Affine> given_;
  std::string cluster_ = "taskIdY";
};

}  // namespace uir::codegen::bang
