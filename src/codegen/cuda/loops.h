// SPDX-License-Identifier: Apache-2.0
// Unrolled loops over the registers of one side of a fragment, for emitters that need both sides apart.
#pragma once

#include <string>

#include "codegen/cuda/emitter.h"

namespace uir::codegen::cuda {

/*! \brief A row or a column of registers: the block's number and the place within the block. */
struct Place {
  std::string block = "0";
  std::string within = "0";
  /*! \brief The element's coordinate; empty unless it was asked for. */
  std::string coordinate;
};

/*! \brief Opens loops and closes as many. */
class Loops {
 public:
  explicit Loops(Emitter* e) : e_(*e) {}

  /*! \brief A loop with a name; a constant 0 where it runs once. */
  std::string Open(const std::string& name, int64_t count);
  /*! \brief A block of statements without a loop; without a head only where none is open yet. */
  void OpenBlock(const std::string& head = "");
  //! \brief The rows (or columns) of registers that a lane holds, with the coordinate where it is wanted.
  //! \param width Neighbours of a block that one turn takes.
  Place Side(const Fragment& fragment, bool rows, bool coordinate, int width = 1);
  /*! \brief Closes all that is open. */
  void Close();

 private:
  Emitter& e_;
  int opened_ = 0;
};

/*! \brief A cell from its two places. */
Cell CellOf(const Place& row, const Place& col);

}  // namespace uir::codegen::cuda
