// SPDX-License-Identifier: Apache-2.0
/*!
 * \file emitter.h
 * \brief What the emitter of an iOp works with: tiles, work buffers, instructions of the current paragraph.
 *
 * An elementwise iOp on tiles that lie alike reads, in full:
 *
 *     Tile x = e.TileOf(iop->sources[0]), y = e.TileOf(iop->targets[0]);
 *     e.Do("V", Call("Exp", e.At(y), e.At(x), count), {Reads(x), Writes(y)});
 *
 * Each `Do` is one instruction to the planner of syncs, which orders it against others by the bytes it touches:
 * emitters print no syncs.  An instruction may have several lines (a loop over rows), if no line depends on another.
 */
#ifndef UIR_CODEGEN_ASCEND_EMITTER_H_
#define UIR_CODEGEN_ASCEND_EMITTER_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "../error.h"
#include "../pipes/tree.h"
#include "../printer.h"
#include "../scope.h"
#include "../uses.h"
#include "plan.h"
#include "scalar.h"
#include "tile.h"

namespace uir {
namespace codegen {
namespace ascend {

/*! \brief Builds the tree of one kernel; the emitters of iOps get it. */
class Emitter {
 public:
  Emitter(Plan* plan, Names* names);

  // ---- operands -------------------------------------------------------------------------------------------
  /*! \brief A slice of reg or dram. */
  Tile TileOf(const ISlice& slice);
  /*!
   * \brief A work buffer in the UB for the current iOp; what it holds is undefined.
   * \param row_stride Elements from row to row; 0: the columns rounded up to whole blocks.
   * \note It is alive until the iOp ends.  CodegenError where the UB has no room for it.
   */
  Tile Work(const std::string& dtype, int64_t rows, int64_t cols, int64_t row_stride = 0);
  /*! \brief The same bytes under another dtype (ReinterpretCast); sizes of columns scale, strides must stay whole. */
  Tile As(const Tile& tile, const std::string& dtype);
  /*! \brief Whether what lies outside of the target's valid box holds values that someone reads later. */
  bool SparesOutside(const ISlice& target) const { return plan_->SparesOutside(target); }
  /*! \brief Bytes of the largest work buffer that the current iOp could get. */
  int64_t FreeBytes() const { return plan_->FreeAt(position_); }

  // ---- texts ----------------------------------------------------------------------------------------------
  /*! \brief The tensor from an element on: "x", "x[128 * k]".  `more`: further elements, as text. */
  std::string At(const Tile& tile, const std::string& more = "") const;
  /*! \brief The tensor from `from` elements after the tile's first, and `more`, on. */
  std::string At(const Tile& tile, const Bound& from, const std::string& more = "") const;
  /*! \brief The text of an expression over pid and open loops. */
  std::string Text(const Affine& expr) const { return scope_.Text(expr); }
  /*! \brief A constant of the graph (int, bool or float) as a literal of the stored type of a dtype. */
  std::string Literal(const std::string& dtype, const ffi::Any& value) const;
  /*! \brief A local name that is not taken. */
  std::string Fresh(const std::string& hint) { return names_->Fresh(hint); }

  // ---- instructions of the current paragraph ---------------------------------------------------------------
  /*!
   * \brief One instruction.
   * \param pipe "V", "MTE2", "MTE3" or "S".
   * \param lines Its text; several lines must not depend on each other.
   * \param regions All that it reads and writes (`Reads(tile)`, `Writes(tile)`).
   * \param blocks Whether the core issues nothing before it is done.
   */
  void Do(const std::string& pipe, const std::vector<std::string>& lines, const std::vector<pipes::Region>& regions,
          bool blocks = false);
  void Do(const std::string& pipe, const std::string& line, const std::vector<pipes::Region>& regions) {
    Do(pipe, std::vector<std::string>{line}, regions);
  }
  /*! \brief A declaration or a comment: a line that touches no memory. */
  void Plain(const std::string& line);
  /*! \brief A line for people in the report of the kernel, e.g. the cost of a move. */
  void Note(const std::string& text) { notes_.push_back(where_iop_ + ": " + text); }

  // ---- refusals -------------------------------------------------------------------------------------------
  /*! \brief Graph and iOp. */
  std::string where() const { return std::string(plan_->graph()->name) + ": " + where_iop_; }
  [[noreturn]] void Refuse(const std::string& what, const std::string& need = "", const std::string& limit = "",
                           const std::string& remedy = "") const {
    CodegenError(what, where(), need, limit, remedy);
  }

  /*! \brief The tensors of the UB that the kernel declares: reg pointers and work buffers. */
  struct Tensor {
    std::string name;
    std::string dtype;
    int64_t begin = 0;
    int64_t size = 0;
    bool work = false;
  };
  const std::vector<Tensor>& tensors() const { return tensors_; }
  /*! \brief Names of dram pointers' parameters and GlobalTensors. */
  const std::string& ParameterOf(const std::string& pointer) const { return parameters_.at(pointer); }
  const std::string& GlobalOf(const std::string& pointer) const { return globals_.at(pointer); }

  const Plan& plan() const { return *plan_; }
  const Scope& scope() const { return scope_; }
  /*! \brief pid and all loops of the kernel, those that are closed included. */
  const Scope& every_scope() const { return every_scope_; }

  // ---- for the walk over the loop tree ----------------------------------------------------------------------
  /*! \brief Starts the paragraph of an iOp; its number is that of `Use::position`. */
  void Begin(const IOp& iop, int position);
  void End();
  void Enter(const Loop& loop);
  void Leave(const Loop& loop);
  std::vector<pipes::Node> Take() { return std::move(bodies_.front()); }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Bound BoundOf(const ffi::Optional<Affine>& bound, int64_t length, bool end, const std::string& hint);

  Box BoxOf(const ISlice& slice);

  Plan* plan_;
  Names* names_;
  Scope scope_, every_scope_;
  std::map<std::string, std::string> parameters_, globals_, locals_;
  std::vector<Tensor> tensors_;
  /*! \brief The body that grows and those around it; the paragraph is the last. */
  std::vector<std::vector<pipes::Node>> bodies_{1};
  /*! \brief Names of bounds by their text, for every open body. */
  std::vector<std::map<std::string, std::string>> bounds_{1};
  std::vector<std::string> headers_;
  std::vector<std::string> notes_;
  std::string where_iop_, brief_;
  int position_ = 0;
};

}  // namespace ascend
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_ASCEND_EMITTER_H_
