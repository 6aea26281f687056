// SPDX-License-Identifier: Apache-2.0
// Which rows of queries read which keys. Rows are made where they are computed with, a part of them at a time: of all
// heads they would be more than caches of a core hold.
#pragma once

#include <optional>
#include <vector>

#include "library/attention.h"
#include "library/parallel.h"

namespace uir::library {

/*! Keys that a mask opens to a row: [begin, end). */
struct OpenKeys {
  int64_t begin, end;
};

/*! The first row of a head of queries. */
struct AttentionHead {
  const char* query;  // of float32
  const char* mask;   // null without one
  char* out;
  int64_t open;  // where in `AttentionUnits::open` those of the mask's rows are
};

/*! One head of keys, and all heads of queries that read it. */
struct AttentionUnit {
  const char *keys, *values;
  std::vector<AttentionHead> heads;
};

/*! All of them, of as many rows each. */
struct AttentionUnits {
  int64_t keys = 0, head_rows = 0;                      // keys of a unit, rows of a head
  int64_t query_step = 0, mask_step = 0, out_step = 0;  // bytes from row to row
  std::optional<int64_t> first, last;                   // the band, as `AttentionAttrs` has it
  std::vector<OpenKeys> open;
  std::vector<AttentionUnit> units;

  /*! Rows of a unit. */
  int64_t rows() const { return static_cast<int64_t>(units[0].heads.size()) * head_rows; }
  /*! Some of a unit's rows. */
  void MakeRows(const AttentionUnit& unit, const Range& rows, AttentionRow* to) const;
};

//! Batch axes along which keys stay the same give a unit more heads; each of the others gives more units. Queries that
//! are narrow are widened into `wide`, which must outlive what is returned.
AttentionUnits UnitsOf(const AttentionAttrs& attrs, const AttentionData& data, std::vector<float>* wide);

}  // namespace uir::library
