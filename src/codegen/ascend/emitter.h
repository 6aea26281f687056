// SPDX-License-Identifier: Apache-2.0
// What the emitter of an iOp works with: tiles, work buffers, instructions of the current paragraph.
//
// An elementwise iOp on tiles that lie alike reads, in full:
//
//     Tile x = e.TileOf(iop->sources[0]), y = e.TileOf(iop->targets[0]);
//     e.Do("V", e.Call("Exp", "count", {"float"}, {e.At(y), e.At(x), count}) + ";", {Reads(x), Writes(y)});
//
// Each `Do` is one instruction to the planner of syncs, which orders it against others by the bytes it touches:
// emitters print no syncs.  An instruction may have several lines (a loop over rows), if no line depends on another.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/ascend/api.h"
#include "codegen/ascend/scalar.h"
#include "codegen/ascend/tile.h"
#include "codegen/error.h"
#include "codegen/pipes/tree.h"
#include "codegen/printer.h"
#include "codegen/scope.h"
#include "codegen/tiles/emitter.h"
#include "codegen/uses.h"

namespace uir::codegen::ascend {

using tiles::Place;
using tiles::Plan;

/*! \brief What a plan must know of the UB. */
extern const tiles::CoreMemory kUnifiedBuffer;

/*! \brief Builds the tree of one kernel; the emitters of iOps get it. */
class Emitter : public tiles::Emitter {
 public:
  Emitter(Plan* plan, Names* names);

  // ---- operands -------------------------------------------------------------------------------------------
  /*! \brief A slice of reg or dram. */
  Tile TileOf(const ISlice& slice) final;
  //! \brief A work buffer in the UB for the current iOp; what it holds is undefined.
  //! \param row_stride Elements from row to row; 0: the columns rounded up to whole blocks.
  //! \note It is alive until the iOp ends.  CodegenError where the UB has no room for it.
  Tile Work(const std::string& dtype, int64_t rows, int64_t cols, int64_t row_stride = 0);
  /*! \brief The same bytes under another dtype (ReinterpretCast); sizes of columns scale, strides must stay whole. */
  Tile As(const Tile& tile, const std::string& dtype);

  // ---- numbers that count up ------------------------------------------------------------------------------
  /*! \brief The index row that the kernel keeps, if it is as long; notes that such a row is asked for. */
  const Tile* KeptIndex(int64_t count);
  /*! \brief Makes an index row at the kernel's head, before the first iOp. */
  void KeepIndex(int64_t count);
  /*! \brief The longest index row that is asked for more than once, or in a loop; 0: none is. */
  int64_t RepeatedIndex() const { return index_asked_ > 1 ? index_most_ : 0; }

  // ---- texts ----------------------------------------------------------------------------------------------
  /*! \brief The tensor from an element on: "x", "x[128 * k]".  `more`: further elements, as text. */
  std::string At(const Tile& tile, const std::string& more = "") const final;
  using tiles::Emitter::At;
  /*! \brief A constant of the graph (int, bool or float) as a literal of the stored type of a dtype. */
  std::string Literal(const std::string& dtype, const ffi::Any& value) const;
  /*! \brief The text of a call as the graph's version of CANN spells it, without a semicolon (`ApiTable::Call`). */
  std::string Call(const std::string& name, const std::string& form, const std::vector<std::string>& types,
                   const std::vector<std::string>& args) const {
    return Table().Call(where(), name, form, types, args, platform_);
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

 private:
  std::map<std::string, std::string> parameters_, globals_, locals_;
  std::vector<Tensor> tensors_;
  std::optional<Tile> index_;
  Platform platform_;
  int64_t index_most_ = 0, index_asked_ = 0;
};

}  // namespace uir::codegen::ascend
