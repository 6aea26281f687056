// SPDX-License-Identifier: Apache-2.0
// Which layout is cheapest for a class of values: every layout is tried against a simple model of a warp.
//
// The model counts issue slots: one for an instruction, a quarter for a 32-byte sector that a memory instruction
// touches (four sectors go through the first-level cache in a cycle), one for a 128-byte line, so that whole lines are
// preferred: requests of a part of a line halve what the second-level cache delivers.
// Only the order of layouts matters, not the figure.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/cuda/layout.h"
#include "codegen/scope.h"
#include "igraph/nodes.h"

namespace uir::codegen::cuda {

/*! \brief The widest access of a lane. */
constexpr int kWidestBytes = 16;

/*! \brief A move between registers and memory, as the choice sees it. */
struct Access {
  int64_t rows = 1, cols = 1;
  int64_t row_stride = 0, col_stride = 1;
  int bytes = 4;
  /*! \brief What the first element's address, and (where there are rows) the distance of rows, is a multiple of. */
  int64_t align = 4;
  /*! \brief Bytes that a lane moves at once at most. */
  int64_t widest = kWidestBytes;
  /*! \brief What the bounds of the valid box along rows and columns are multiples of, in elements. */
  int64_t row_bounds = 16, col_bounds = 16;
  /*! \brief How often it runs. */
  double times = 1;
};

//! \brief A slice in memory as an access.
//! \param stated Bytes that every row's start is said to be a multiple of (a move's `align`), or 1.
Access AccessOf(const ISlice& slice, const Scope& scope, int64_t stated = 1);

/*! \brief Work of one iOp on a fragment; of a reduction, over which axis its lanes meet. */
struct Work {
  int64_t rows = 1, cols = 1;
  enum class Meets { kNo, kRow, kCol } meets = Meets::kNo;
  double times = 1;
};

/*! \brief Elements that one lane moves at once under a layout, and along which side they lie. */
struct Width {
  int elements = 1;
  bool along_rows = false;
};

/*! \brief The widest move that the access, its alignment, contiguity and valid box allow. */
Width WidthOf(const Access& access, const Layout& layout);

/*! \brief Modelled cost of one access under a layout. */
double CostOf(const Access& access, const Layout& layout);

/*! \brief Modelled cost of bringing all registers of a fragment to another layout. */
double ConversionCost(const Fragment& fragment);

/*! \brief The cheapest layout of a class. */
Layout ChooseLayout(const std::vector<Access>& accesses, const std::vector<Work>& works);

}  // namespace uir::codegen::cuda
