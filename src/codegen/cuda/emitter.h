// SPDX-License-Identifier: Apache-2.0
// What the emitter of an iOp works with: register arrays, loops over them, addresses, boxes, barriers.
//
// An elementwise iOp reads, in full:
//
//     Regs x = e.Source(step.source);
//     Regs y = e.Target(step.target);
//     e.Each(y, {&x}, [&](const Cell& at) { e.Assign(y, at, "expf(" + x[at] + ")"); });
//     e.Commit(step.target, y);
//
// How x comes into registers, and y to its home, the step says (step_planner.h).
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/cuda/body_plan.h"
#include "codegen/cuda/plan.h"
#include "codegen/cuda/prelude.h"
#include "codegen/cuda/scalar.h"
#include "codegen/cuda/step.h"
#include "codegen/error.h"
#include "codegen/printer.h"
#include "codegen/words.h"

namespace uir::codegen::cuda {

/*! \brief One register of every lane inside of `Emitter::Each`: texts of the loop variables, constants where single. */
struct Cell {
  /*! \brief The register's number where the loop is one flat loop, else empty. */
  std::string flat;
  std::string block_r, block_c, r, c;
  /*! \brief Coordinates of the lane's element in the slice, where they were asked for. */
  std::string row, col;
};

/*! \brief The valid box of a slice as C texts (names or constants); an absent side does not bound. */
struct Box {
  std::optional<std::string> row_begin, row_end, col_begin, col_end;

  bool rows() const { return row_begin || row_end; }
  bool cols() const { return col_begin || col_end; }
  bool whole() const { return !rows() && !cols(); }
};

/*! \brief A register array, or whole blocks of one. */
struct Regs {
  std::string name;
  std::string dtype;
  Fragment fragment;
  /*! \brief Number of the array's first register that is meant: text, "0" for the whole array. */
  std::string base = "0";
  /*! \brief Blocks along the columns of the whole array; that of the fragment unless it is a part. */
  int64_t array_blocks_c = 1;
  /*! \brief Of a target: writes spare what is outside of this box. */
  std::optional<Box> spare;

  /*! \brief Whether register k of the fragment is register k of the array. */
  bool dense() const { return base == "0" && array_blocks_c == fragment.blocks_c(); }
  /*! \brief The register at a cell; of a replicated side the only one. */
  std::string operator[](const Cell& at) const;
  /*! \brief The register of constant or symbolic block and place. */
  std::string At(const std::string& block_r, const std::string& block_c, const std::string& r,
                 const std::string& c) const;
};

/*! \brief Which coordinates a loop over registers defines. */
struct Coordinates {
  bool row = false;
  bool col = false;
};

/*! \brief A memory slice's element (0, 0). */
struct Address {
  /*! \brief Pointer to it, as text: "x + 256 * pid". */
  std::string text;
  /*! \brief Bytes (a power of two up to 16) that the address is proved to be a multiple of. */
  int64_t align = 1;
};

/*! \brief Prints one kernel; the emitters of iOps get it. */
class Emitter {
 public:
  Emitter(const Plan& plan, const BodyPlan& body, Printer& out, Names& names, Needs& needs);

  const Plan& plan;
  const BodyPlan& body;
  Printer& out;
  Names& names;
  Needs& needs;
  /*! \brief pid and the open loops, with their texts in the source. */
  Scope scope;
  /*! \brief Of the rings of loads that run ahead (`OpenRings`). */
  std::vector<RingTexts> rings;

  // ---- operands -------------------------------------------------------------------------------------------
  //! \brief The operand's elements in registers.
  //! \param outside The literal (stored type) for what lies outside of its box in memory; zero unless it is given.
  Regs Source(const Operand& operand, const std::string& outside = "");
  /*! \brief Registers to write the operand's elements to; `Commit` brings them home. */
  Regs Target(const Operand& operand);
  /*! \brief After the last `Assign`: what converts or stores the registers where they are not the operand's home. */
  void Commit(const Operand& operand, const Regs& regs);
  /*! \brief A fresh array, declared here. */
  Regs Temporary(const std::string& hint, const std::string& dtype, const Fragment& fragment);
  //! \brief Loads from memory, inside of the box only; `outside` is the literal (stored type) for the rest; where it
  //! is empty the rest keeps what it holds.
  void Load(const Transfer& how, const Regs& regs, const std::string& outside);
  /*! \brief Stores to memory, inside of the box only; of copies one lane stores. */
  void Store(const Transfer& how, const Regs& regs);
  /*! \brief A constant of the graph (int, bool or float) as a stored value of a dtype. */
  std::string Literal(const std::string& dtype, const ffi::Any& value);
  //! \brief Prints what fills `to` (same shape and dtype, another layout) from `from`.
  //! \param box Outside of it nothing is wanted, and may not be written.
  void Convert(const Conversion& how, const Regs& to, const Regs& from, const Box& box = Box());
  /*! \brief The box outside of which a transfer moves nothing. */
  Box BoxOf(const Transfer& how);

  // ---- loops over registers -------------------------------------------------------------------------------
  //! \brief Unrolled loops over the registers of `whole`, and the body for every one.
  //! One flat loop where every operand is whole and laid out alike and no coordinate is asked for, else one loop
  //! for each of block_r, block_c, r, c.  A part where the fragment is not exact or `whole.spare` bounds it is not
  //! masked by itself: see `Inside`.
  void Each(const Regs& whole, const std::vector<const Regs*>& operands, const std::function<void(const Cell&)>& body,
            Coordinates coordinates = {});
  /*! \brief `target[at] = value;`, under the condition of its `spare` box where it has one. */
  void Assign(const Regs& target, const Cell& at, const std::string& value);
  /*! \brief Condition that a cell's element exists and lies in the box; empty where it always does. */
  std::string Inside(const Fragment& fragment, const Box& box, const Cell& at);
  /*! \brief The coordinates that `Inside` reads. */
  Coordinates InsideNeeds(const Fragment& fragment, const Box& box) const;
  /*! \brief Condition that is true in one of the lanes that hold copies of an element; empty where there are none. */
  std::string OneOfCopies(const Fragment& fragment);
  /*! \brief The lane's position in the grid of lanes: a name that is defined at the kernel's start, or a constant. */
  std::string LaneRow(const Layout& layout);
  std::string LaneCol(const Layout& layout);

  // ---- memory ---------------------------------------------------------------------------------------------
  /*! \brief Bounds of a slice's valid box, clamped into its shape and named where they are no constants. */
  Box BoxOf(const ISlice& slice);
  /*! \brief What lies in both boxes. */
  static Box Both(const Box& a, const Box& b);
  /*! \brief Where a slice in dram, sram or scratch begins. */
  Address AddressOf(const ISlice& slice);
  /*! \brief Pointer to element (row, col), both texts; honours the home's swizzle. */
  std::string Element(const ISlice& slice, const std::string& row, const std::string& col);
  //! \brief ` + name * stride * factor` along the rows or columns of a slice; nothing where that is 0.
  //! \param greatest Of the name.
  std::string Along(const ISlice& slice, bool rows, const std::string& name, int64_t factor, int64_t greatest) const;
  /*! \brief Pointer to an element of a swizzled home, by its index (text) from the pointer's first element. */
  std::string Swizzled(const ISlice& slice, const std::string& index);
  /*! \brief Scratch of the warp for use within one iOp: the text of its first byte's place in `smem`. */
  std::string TemporaryScratch();

  // ---- barriers -------------------------------------------------------------------------------------------
  /*! \brief Prints a barrier of the block, before it what lets products of four warps see the tiles that lanes wrote.
   */
  void BlockBarrier();
  /*! \brief Prints `__syncwarp();`. */
  void WarpBarrier();
  /*! \brief The same where it was planned that the lanes of the warp meet. */
  void Meet(MeetingPlace place);
  /*! \brief Prints that barrier before the body where it was planned for what is set up there. */
  void MeetAtStart();

  /*! \brief A statement at the start of the kernel, once for each text. */
  void Prologue(const std::string& line);
  // ---- for the walk over the loop tree ---------------------------------------------------------------------
  /*! \brief Text of a pointer: its register array, parameter or pointer to shared memory. */
  const std::string& TextOf(const std::string& pointer) const { return texts_.at(pointer); }
  /*! \brief Prints the array of a reg pointer. */
  void Declare(const std::string& pointer);
  /*! \brief Opens and closes a block in which names of bounds live. */
  void Enter() { bounds_.emplace_back(); }
  void Leave() { bounds_.pop_back(); }

  const std::vector<std::string>& prologue() const { return prologue_; }

 private:
  /*! \brief The array of a pointer that lives in registers. */
  Regs Whole(const ISlice& slice);
  /*! \brief A bound's name or constant; empty where it does not bound. */
  std::optional<std::string> Bound(const ffi::Optional<Affine>& bound, int64_t length, bool end);
  /*! \brief Prints the accesses of a load or store. */
  void Move(const Transfer& how, const Regs& regs, bool load, const std::string& outside);
  void Accesses(const Transfer& how, const Regs& regs, const Box& box, Width width, bool load,
                const std::string& outside);

  std::map<std::string, std::string> texts_;
  std::vector<std::string> prologue_;
  std::vector<std::map<std::string, std::string>> bounds_{1};
};

}  // namespace uir::codegen::cuda
