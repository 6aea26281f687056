// SPDX-License-Identifier: Apache-2.0
// Tiles whose rows lie as far apart on chip as they are long, which only a launch knows.
#pragma once

#include <map>
#include <string>

#include "codegen/scope.h"
#include "codegen/tiles/plan.h"

namespace uir::codegen::bang {

//! \brief The reg pointers whose rows lie packed, with the elements from row to row, which sizes alone decide.
//!
//! A tile of rows of open length has the width of their border in the graph. Where copies alone touch it, all of the
//! same rows and columns, any other pitch that is the same for all of them serves as well; with the rows' own length
//! as the pitch, what is one run in global memory is one run on chip too:
//!
//!     x[128*n*pid; (128,64); (n,1); cols :n] -> t[0; (128,64); (64,1); cols :n]    128 segments of n
//!                                                t[0; (128,64); (n,1); cols :n]     one run of 128*n
//!
//! \param plan Of the graph.
std::map<std::string, Affine> PackedPitches(const tiles::Plan& plan);

}  // namespace uir::codegen::bang
