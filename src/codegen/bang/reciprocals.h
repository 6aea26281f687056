// SPDX-License-Identifier: Apache-2.0
// Numbers that do nothing but divide.
#pragma once

#include "igraph/nodes.h"

namespace uir::codegen::bang {

//! \brief The graph with the reciprocals of numbers that are only divided by, each made where its number is.
//!
//! A quotient by a number for each row is a product with its reciprocal on this device (`Program::Apply`).  Where one
//! number, as the length of rows that a size decides, divides all, its reciprocal is made once, and beside the first
//! load where it is made there:
//!
//!     cast.int64.fp32 f, n;                      broadcast w, f;  binary.div y, x, w
//!     cast.int64.fp32 f, n;  unary.recip f, f;   broadcast w, f;  binary.mul y, x, w
//!
//! \return The graph itself where there is no such number.
IGraph WithReciprocals(const IGraph& graph);

}  // namespace uir::codegen::bang
