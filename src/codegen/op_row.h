// SPDX-License-Identifier: Apache-2.0
// A printer's table of the classes of iOps.
#pragma once

#include <string>

#include "codegen/error.h"
#include "igraph/nodes.h"

namespace uir::codegen {

/*! \brief What prints a class of iOps on a device with the emitter `E`. */
template <typename E>
struct OpRowOn {
  const char* op;
  void (*emit)(E& e, const IOp& iop);
};

/*! \brief The row of an op in a table of rows with a member `op`; refuses one without. */
template <typename Row, size_t kRows>
const Row& FindRow(const Row (&rows)[kRows], const IOp& iop, const char* printer, const std::string& where) {
  for (const Row& row : rows) {
    if (iop->op == row.op) return row;
  }
  CodegenError("The " + std::string(printer) + " printer has no emitter for '" + std::string(iop->op) + "'.", where, "",
               "", "run this operator on the host");
}

}  // namespace uir::codegen
