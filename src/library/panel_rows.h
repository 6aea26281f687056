// SPDX-License-Identifier: Apache-2.0
// Rows of a product that are laid out as tiles read them, and what tiles do with a panel of a matrix: a piece of k at a
// time, so that the second cache holds the rows, which all panels read, and a panel, which all tiles of rows read.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/rounding.h"
#include "library/epilogue.h"
#include "library/panel_kernels.h"
#include "library/parallel.h"

namespace uir::library {

/*! Some rows, as tiles read them: the rows of a tile side by side. */
struct RowBlock {
  Range rows;
  int64_t tiles;
  const float* x;       // [pieces][tiles][length, rows of a tile]
  int64_t least, more;  // rows of a tile, at least; tiles that have one more

  RowBlock(const Range& given, int64_t most, const float* where)
      : rows(given), tiles(CeilDiv(given.size, most)), x(where), least(given.size / tiles), more(given.size % tiles) {}
  /*! Rows of tile number `at`, and of those before it. */
  int Rows(int64_t at) const { return static_cast<int>(least + (at < more)); }
  int64_t Before(int64_t at) const { return at * least + std::min(at, more); }
};

/*! Rows of a matrix before they are laid out. */
struct PlainRows {
  const float* first;     // number 0 of row 0
  int64_t row, step = 1;  // floats from row to row, from number to number
};

/*! Columns of a result, and a piece of the matrix that makes them: [length, width], zeros beyond the columns. */
struct PanelPiece {
  int64_t begin, size, width;
  const float* weight;
  const float* ahead = nullptr;  // what is read next, as much, if anything
};

class PanelRows {
 public:
  /*! `rows`: of a task, at most; `depth`: products of a sum. */
  PanelRows(const Epilogue& epilogue, int64_t rows, int64_t depth, const PanelKernels& kernels);

  int64_t pieces() const { return pieces_; }
  int64_t Begin(int64_t piece) const { return piece * length_; }
  int64_t Length(int64_t piece) const { return std::min(length_, depth_ - Begin(piece)); }

  /*! Rows of a block of so many; the block of some rows, laid out there. */
  int64_t HighOf(int64_t rows) const;
  RowBlock BlockOf(const Range& rows, const float* x) const { return {rows, kernels_.most_rows, x}; }

  /*! Lay out some tiles of a block. */
  void Pack(const PlainRows& from, const RowBlock& block, const Range& tiles, float* to) const;

  //! All rows of a block by a piece of a panel, into sums [rows, width]; after the last piece, their results.
  void Run(const PanelEnd& end, const RowBlock& block, const PanelPiece& panel, int64_t piece, float* sums) const;

 private:
  /*! Whether what follows the sums is of a few instructions: no function, nothing behind bounds. */
  bool EndsTiles() const;
  void Bound(PanelTile* tile) const;

  const Epilogue epilogue_;
  const PanelKernels& kernels_;
  PanelFinishOf finish_;
  int64_t depth_, length_, pieces_;
};

}  // namespace uir::library
