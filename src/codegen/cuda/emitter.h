// SPDX-License-Identifier: Apache-2.0
// What the emitter of an iOp works with: register arrays, loops over them, addresses, boxes, barriers.
//
// An elementwise iOp reads, in full:
//
//     Layout layout = e.plan.WorkLayout(iop);
//     Regs x = e.Source(iop->sources[0], layout);       // as it is, or converted, or loaded
//     Regs y = e.Target(iop->targets[0], layout);
//     e.Each(y, {&x}, [&](const Cell& at) { e.Assign(y, at, "expf(" + x[at] + ")"); });
//     e.Commit(iop->targets[0], y);                     // stores it where the target is not in registers
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/cuda/choose.h"
#include "codegen/cuda/hazards.h"
#include "codegen/cuda/plan.h"
#include "codegen/cuda/prelude.h"
#include "codegen/cuda/scalar.h"
#include "codegen/error.h"
#include "codegen/printer.h"
#include "codegen/uses.h"
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

/*! \brief What is known of a move. */
struct Transfer {
  /*! \brief The data is used once: leave the caches to others. */
  bool stream = false;
  /*! \brief Bytes that every row's start is stated to be a multiple of. */
  int64_t align = 1;
  /*! \brief The slice that is written from what is loaded: nothing is read outside of its valid box either. */
  std::optional<ISlice> within;
};

/*! \brief Prints one kernel; the emitters of iOps get it. */
class Emitter {
 public:
  Emitter(const Plan& plan, const std::vector<Use>& uses, Printer& out, Names& names, Needs& needs);

  const Plan& plan;
  Printer& out;
  Names& names;
  Needs& needs;
  /*! \brief pid and the open loops, with their texts in the source. */
  Scope scope;

  // ---- operands -------------------------------------------------------------------------------------------
  /*! \brief The slice's elements in registers of that layout: its own, or converted, or loaded (0 outside its box). */
  Regs Source(const ISlice& slice, const Layout& layout);
  /*! \brief Registers of that layout to write the slice's elements to; `Commit` brings them home. */
  Regs Target(const ISlice& slice, const Layout& layout);
  /*! \brief After the last `Assign`: converts or stores where the slice's home is not these registers. */
  void Commit(const ISlice& slice, const Regs& regs);
  /*! \brief A fresh array, declared here. */
  Regs Temporary(const std::string& hint, const std::string& dtype, const Fragment& fragment);
  //! \brief Loads from memory, inside of the box only; `outside` is the literal (stored type) for the rest; where it
  //! is empty the rest keeps what it holds.
  //! By the widest accesses that are proved; through another layout where that one suits memory much better.
  void Load(const Regs& regs, const ISlice& slice, const std::string& outside, const Transfer& how = {});
  /*! \brief Stores to memory, inside of the box only; of copies one lane stores. */
  void Store(const ISlice& slice, const Regs& regs, const Transfer& how = {});
  /*! \brief A constant of the graph (int, bool or float) as a stored value of a dtype. */
  std::string Literal(const std::string& dtype, const ffi::Any& value);
  /*! \brief Prints what fills `to` (same shape and dtype, another layout) from `from`. */
  void Convert(const Regs& to, const Regs& from);

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
  /*! \brief Pointer to an element of a swizzled home, by its index (text) from the pointer's first element. */
  std::string Swizzled(const ISlice& slice, const std::string& index);
  /*! \brief Shared memory of the block beyond the graph's own; returns its first byte. */
  int64_t AllocateShared(int64_t bytes, int64_t align);
  //! \brief Scratch of the warp for use within one iOp; the text of its first byte's place in `smem`.
  //! Lanes read what others wrote there, and other iOps use it too: say so by `WritesTemporary` and `ReadsTemporary`.
  std::string TemporaryScratch(int64_t bytes);

  // ---- barriers -------------------------------------------------------------------------------------------
  /*! \brief Prints a barrier of the block, before it what lets products of four warps see the tiles that lanes wrote.
   */
  void BlockBarrier();
  /*! \brief Prints `__syncwarp();`. */
  void WarpBarrier();
  //! \brief Says that lanes read or write a memory pointer here; `Settle` decides whether lanes meet before.
  //! \param lanes Which lane has which element, where that is known: a lane does not wait for itself.
  void Reads(const ISlice& slice, std::optional<Fragment> lanes = {});
  void Writes(const ISlice& slice, std::optional<Fragment> lanes = {});
  /*! \brief The same of so many bytes of `TemporaryScratch`. */
  void ReadsTemporary(int64_t bytes);
  void WritesTemporary(int64_t bytes);
  /*! \brief Says that a lane set up what its warp takes later, before the body. */
  void Starts();
  /*! \brief Says that other lanes take it here: where no barrier stands between, the warp meets before the body. */
  void SeesStart();
  /*! \brief Prints what only some of the block's warps execute: the others have met at no barrier in it. */
  void OnlySome(const std::function<void()>& body);
  /*! \brief Says that somebody else orders the accesses to a pointer: its reads and writes print no barriers. */
  void Untrack(const std::string& pointer) { tracked_.erase(pointer); }
  /*! \brief Says that a barrier of the warp or more has just been printed. */
  void Met();

  /*! \brief A statement at the start of the kernel, once for each text. */
  void Prologue(const std::string& line);
  /*! \brief The iOp that is being printed, for refusals. */
  std::string where;
  [[noreturn]] void Refuse(const std::string& what, const std::string& need = "", const std::string& limit = "",
                           const std::string& remedy = "") const;

  // ---- for the walk over the loop tree ---------------------------------------------------------------------
  /*! \brief Text of a pointer: its register array, parameter or pointer to shared memory. */
  const std::string& TextOf(const std::string& pointer) const { return texts_.at(pointer); }
  /*! \brief Prints the array of a reg pointer. */
  void Declare(const std::string& pointer);
  /*! \brief Opens a block in which names of bounds live; `loop` as is, for what meets on its way back. */
  void Enter(const Loop& loop);
  void Leave(const Loop& loop);
  /*! \brief After the body: decides where the lanes of a warp meet (hazards.h), in the body and before it. */
  void Settle();

  /*! \brief All slices of the graph. */
  const std::vector<Use>& uses() const { return uses_; }
  const std::vector<std::string>& prologue() const { return prologue_; }
  int64_t extra_shared_bytes() const { return extra_shared_bytes_; }
  int64_t temporary_scratch_bytes() const { return temporary_scratch_bytes_; }

 private:
  /*! \brief The array of a pointer that lives in registers. */
  Regs Whole(const ISlice& slice);
  /*! \brief A bound's name or constant; empty where it does not bound. */
  std::optional<std::string> Bound(const ffi::Optional<Affine>& bound, int64_t length, bool end);
  /*! \brief Prints the accesses of a load or store. */
  void Move(const Regs& regs, const ISlice& slice, bool load, const std::string& outside, const Transfer& how);
  void Accesses(const Regs& regs, const ISlice& slice, const Box& box, Width width, bool load,
                const std::string& outside, bool stream);
  void Touches(Touch touch);

  const std::vector<Use>& uses_;
  std::map<std::string, std::string> texts_;
  std::vector<std::string> prologue_;
  std::vector<std::map<std::string, std::string>> bounds_{1};
  int64_t extra_shared_bytes_ = 0;
  int64_t temporary_scratch_bytes_ = 0;
  std::set<std::string> tracked_;
  Meetings meetings_;
  /*! \brief Where lanes take what was set up before the body, as places of `meetings_`. */
  std::vector<int> starts_;
};

using EmitFn = void (*)(Emitter& e, const IOp& iop);
using WishFn = std::vector<Wish> (*)(const IOp& iop, const IGraph& graph, const Arch& arch);

/*! \brief What the printer knows of a class of iOps; ops.cc holds the table, a file for each class the functions. */
struct OpRow {
  const char* op;
  EmitFn emit;
  /*! \brief Operands that share one layout, as bits (bit 0 the target, bit n the n-th source). */
  unsigned joined;
  /*! \brief Operands that must not be in registers: they are indexed by what only the run knows. */
  unsigned in_memory;
  /*! \brief Layouts that it asks for, or nullptr. */
  WishFn wishes;
};

/*! \brief The row of an op; refuses one without. */
const OpRow& OpRowOf(const IOp& iop);

}  // namespace uir::codegen::cuda
