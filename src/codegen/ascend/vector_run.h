// SPDX-License-Identifier: Apache-2.0
// How one vector function is printed over a window of rows and columns.
#pragma once

#include <string>
#include <vector>

#include "codegen/ascend/emitter.h"

namespace uir::codegen::ascend {

//! \brief One vector function with its tensors (the target first) and what follows them.
//!
//! `types` are the element types of its row in the table; tensors may be of different dtypes (Cast), and `units[k]` is
//! the number of stored elements of tensor k per counted element.
struct VectorCall {
  std::string api;
  std::vector<std::string> types;
  std::vector<Tile> tensors;
  /*! \brief Arguments between the tensors and the count: a number, a mode. */
  std::vector<std::string> arguments;
};

/*! \brief Prints a call over `count` consecutive elements from the start of every tensor: one instruction. */
void CallCount(Emitter& e, const VectorCall& call, const Bound& count, const std::string& form = "count");

//! \brief Prints a call over rows x cols elements of tensors whose rows lie apart: repeats over the rows where the
//! strides allow, else a loop over the rows in count form.  One instruction.
//! \note Rows start at 32-byte blocks.
void CallRows(Emitter& e, const VectorCall& call, const Bound& rows, const Bound& cols);

/*! \brief Whether tensors' rows can be reached by the strides of repeats. */
bool RowsReachable(const std::vector<Tile>& tensors);

/*! \brief `total - done`, held to [0, most]. */
std::string RestText(const Bound& total, int64_t done, int64_t most);

/*! \brief A loop of the emitter's own around instructions: `var` may stand in offsets until `Close`. */
class OwnLoop {
 public:
  OwnLoop(Emitter& e, const std::string& hint, int64_t extent);
  void Close();
  Affine var() const { return Affine::Var(loop_->var); }
  /*! \brief The variable as it is printed. */
  std::string Text() const { return e_.Text(var()); }

 private:
  Emitter& e_;
  Loop loop_;
};

}  // namespace uir::codegen::ascend
