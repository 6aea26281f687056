// SPDX-License-Identifier: Apache-2.0
// Elementwise iOps that stand one after another, printed as one program.
//
// What one of them leaves for the next alone is never stored: it stays in a work buffer of a chunk, functions draw the
// next operation into themselves, and a column that is repeated along rows is a number for each row.  Which iOps a
// device can print so is a table of its own; whether they may be is decided here.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codegen/tiles/emitter.h"
#include "codegen/tiles/program.h"

namespace uir::codegen::tiles {

/*! \brief What a device prints as one program. */
struct ChainRules {
  /*! \brief Whether an iOp's elements are values of those of its sources. */
  bool (*has_value)(const IOp& iop);
  /*! \brief Whether an iOp repeats a column along rows, which functions take as a number for each row. */
  bool (*repeats)(const IOp& iop);
  /*! \brief Whether an iOp takes such a column as its second operand, or as its first. */
  bool (*takes_column)(const IOp& iop, bool second);
  /*! \brief Whether it is of use that some iOps are one program. */
  bool (*is_of_use)(const std::vector<IOp>& chain);
  /*! \brief Rows of tiles that go with columns, at most. */
  int64_t most_rows;
};

//! \brief The longest chain that begins at an item of a body; empty where there is none of two iOps.
//!
//! Single columns without gaps may come back as rows: then a number that is repeated along them is one for each row.
//! \param position Of that item (`Use::position`).
std::vector<IOp> ChainAt(const ChainRules& rules, const Emitter& e, const ffi::Array<ffi::ObjectRef>& body, size_t at,
                         int position);

//! \brief What the last iOp of a chain makes.
//! \param input The value of an operand from outside, which is asked for once.
//! \param value The value of an iOp of the chain by its number, of the values of its sources.
Value ValueOfChain(const ChainRules& rules, const std::vector<IOp>& chain,
                   const std::function<Value(const ISlice& slice, bool column)>& input,
                   const std::function<Value(size_t at, const std::vector<Value>& sources)>& value);

}  // namespace uir::codegen::tiles
