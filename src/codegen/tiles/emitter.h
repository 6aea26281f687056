// SPDX-License-Identifier: Apache-2.0
// What the emitters of iOps of every device with tiles have in common: the tree of a kernel as it grows, names,
// bounds, refusals.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/error.h"
#include "codegen/pipes/tree.h"
#include "codegen/printer.h"
#include "codegen/scope.h"
#include "codegen/sizes.h"
#include "codegen/tiles/plan.h"
#include "codegen/tiles/tile.h"

namespace uir::codegen::tiles {

//! \brief In expressions, how many groups a block has had where they are dealt: no variable of a graph has a space in
//! its name.
inline constexpr const char* kTurn = "turn of group";

/*! \brief Builds the tree of one kernel; a device's emitter adds its tensors to it. */
class Emitter {
 public:
  Emitter(Plan* plan, Names* names);

  virtual ~Emitter() = default;

  // ---- operands -------------------------------------------------------------------------------------------
  /*! \brief A slice of any memory that the device's functions take. */
  virtual Tile TileOf(const ISlice& slice) = 0;
  /*! \brief The tiles of a target and its sources. */
  std::vector<Tile> TilesOf(const ISlice& target, const std::vector<ISlice>& sources);
  /*! \brief Whether what lies outside of the target's valid box holds values that someone reads later. */
  bool SparesOutside(const ISlice& target) const { return plan_->SparesOutside(target); }
  /*! \brief The current iOp is printed with those before it, from a position on. */
  void Cover(int first) { plan_->Cover(position_, first); }
  /*! \brief Bytes of the largest work buffer that the current iOp could get. */
  int64_t FreeBytes() const { return plan_->FreeAt(position_); }
  /*! \brief Work buffers that are made while it lives are free again afterwards: a step's of an iOp of many. */
  class Scratch {
   public:
    explicit Scratch(Emitter* e) : plan_(e->plan_), position_(e->position_), kept_(plan_->Reserved(position_)) {}
    ~Scratch() { plan_->Release(position_, kept_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

   private:
    Plan* plan_;
    int position_;
    size_t kept_;
  };

  // ---- texts ----------------------------------------------------------------------------------------------
  /*! \brief The text of an expression over pid and open loops. */
  std::string Text(const Affine& expr) const { return scope_.Text(expr); }
  /*! \brief A local name that is not taken. */
  std::string Fresh(const std::string& hint) { return names_->Fresh(hint); }
  /*! \brief The tile from its first element on, in the device's words.  `more`: further elements, as text. */
  virtual std::string At(const Tile& tile, const std::string& more = "") const = 0;
  //! \brief `count` rows or columns of a tile in elements; no more than the place of an element in its tensor.
  //! \param pitch The stride, where sizes decide it.
  Bound Along(const Bound& count, int64_t stride, const std::optional<Affine>& pitch) const;
  Bound RowsOf(const Tile& tile, const Bound& count) const { return Along(count, tile.row_stride, tile.row_pitch); }
  Bound ColsOf(const Tile& tile, const Bound& count) const { return Along(count, tile.col_stride, tile.col_pitch); }
  /*! \brief How far a row of a number that only the run knows is from the first, as text; the number is an int64_t. */
  std::string RowText(const Tile& tile, const std::string& number) const;
  /*! \brief The tile from `from` elements after its first, and `more`, on. */
  std::string At(const Tile& tile, const Bound& from, const std::string& more = "") const;

  // ---- instructions of the current paragraph ---------------------------------------------------------------
  //! \brief One instruction.
  //! \param pipe A pipe of the device's vocabulary (pipes/vocabulary.h).
  //! \param lines Its text; several lines must not depend on each other.
  //! \param regions All that it reads and writes (`Reads(tile)`, `Writes(tile)`).
  //! \param blocks Whether the core issues nothing before it is done.
  //! \param awaits Pipes that it waits for by itself (pipes::Instruction).
  void Do(const std::string& pipe, const std::vector<std::string>& lines, const std::vector<pipes::Region>& regions,
          bool blocks = false, const std::set<std::string>& awaits = {});
  void Do(const std::string& pipe, const std::string& line, const std::vector<pipes::Region>& regions) {
    Do(pipe, std::vector<std::string>{line}, regions);
  }
  /*! \brief An instruction as it is. */
  void Add(pipes::Instruction instruction);
  /*! \brief A declaration or a comment: a line that touches no memory. */
  void Plain(const std::string& line);
  //! \brief The plain lines that `emit` adds, for a block of their own: they use no name of a bound from around it.
  //! \note It may print no instructions.
  std::vector<std::string> Apart(const std::function<void()>& emit);
  /*! \brief A line for people in the report of the kernel, e.g. the cost of a move. */
  void Note(const std::string& text) { notes_.push_back(where_iop_ + ": " + text); }

  // ---- refusals -------------------------------------------------------------------------------------------
  /*! \brief Graph and iOp. */
  std::string where() const { return std::string(plan_->graph()->name) + ": " + where_iop_; }
  [[noreturn]] void Refuse(const std::string& what, const std::string& need = "", const std::string& limit = "",
                           const std::string& remedy = "") const {
    CodegenError(what, where(), need, limit, remedy);
  }
  /*! \brief Refuses for want of room on chip, which smaller tiles mend. */
  [[noreturn]] void LacksRoom(const std::string& what, const Lack& lack, const std::string& need,
                              const std::string& limit) const {
    CapacityError(what, where(), lack, need, limit);
  }

  const Plan& plan() const { return *plan_; }
  const SizeArguments& sizes() const { return sizes_; }
  /*! \brief Where sizes decide the number of groups: names of that, and of how many a block has had. */
  const std::string& groups() const { return groups_; }
  const std::string& turn() const { return turn_; }
  const Scope& scope() const { return scope_; }
  /*! \brief pid and all loops of the kernel, those that are closed included. */
  const Scope& every_scope() const { return every_scope_; }

  // ---- for the walk over the loop tree ----------------------------------------------------------------------
  /*! \brief Starts the paragraph of an iOp; its number is that of `Use::position`. */
  void Begin(const IOp& iop, int position);
  /*! \brief Starts a paragraph of what the kernel makes once, before its iOps. */
  void Begin(const std::string& title);
  void End();
  void Enter(const Loop& loop);
  /*! \brief Whether a loop is open. */
  bool InLoop() const { return !headers_.empty(); }
  void Leave(const Loop& loop);
  std::vector<pipes::Node> Take() { return std::move(bodies_.front()); }
  const std::vector<std::string>& notes() const { return notes_; }

 protected:
  Bound BoundOf(const ffi::Optional<Affine>& bound, int64_t length, bool end, const std::string& hint);
  Box BoxOf(const ISlice& slice);
  /*! \brief A slice of a tensor that begins at a byte of a memory; nothing is said of the tensor's own text. */
  Tile TileIn(const ISlice& slice, const std::string& memory, int64_t base);
  /*! \brief A buffer of `size` elements whose place is yet to be found: rows `row_stride` elements apart. */
  Tile Buffer(const std::string& memory, const std::string& dtype, int64_t rows, int64_t cols, int64_t row_stride,
              int64_t size) const;
  /*! \brief Puts a buffer at a byte of its memory. */
  void PlaceAt(Tile* tile, int64_t base) const;
  /*! \brief The same bytes under another dtype but for the text; sizes of columns scale, strides must stay whole. */
  Tile Seen(const Tile& tile, const std::string& dtype) const;
  int64_t BytesOf(const std::string& dtype) const { return plan_->memory().bytes_of(dtype, where()); }
  /*! \brief Text of the elements from a tensor's first to a tile's first, and `more`; empty for none. */
  std::string OffsetText(const Tile& tile, const std::string& more) const;

  Plan* plan_;
  Names* names_;
  Scope scope_, every_scope_;
  SizeArguments sizes_;
  std::string groups_, turn_;
  std::string where_iop_, brief_;
  int position_ = 0;

 private:
  /*! \brief What stands before the braces of a loop; `text`: its variable's. */
  std::string HeadOf(const Loop& loop, const std::string& text);

  /*! \brief The variable of the loop over a unit's tiles, where the graph has one. */
  std::string tiles_;
  /*! \brief The body that grows and those around it; the paragraph is the last. */
  std::vector<std::vector<pipes::Node>> bodies_{1};
  /*! \brief Names of bounds by their text, for every open body. */
  std::vector<std::map<std::string, std::string>> bounds_{1};
  std::vector<std::string> headers_;
  /*! \brief Of every open loop the tile that there is in its rounds, where it has one. */
  std::vector<std::optional<Affine>> facts_;
  std::vector<std::string> notes_;
};

}  // namespace uir::codegen::tiles
