// SPDX-License-Identifier: Apache-2.0
// What iOps and graphs say by their attributes, as every printer reads it.
#pragma once

#include <tvm/ffi/any.h>

#include <algorithm>
#include <optional>
#include <string>

#include "base/attrs.h"
#include "igraph/nodes.h"

namespace uir::codegen {

/*! \brief A number of the graph (int, bool or float). */
inline double AsDouble(const ffi::Any& value) {
  if (auto whole = value.as<int64_t>()) return static_cast<double>(*whole);
  return value.cast<double>();
}
inline int64_t AsInt(const ffi::Any& value) {
  if (auto whole = value.as<int64_t>()) return *whole;
  return static_cast<int64_t>(value.cast<double>());
}

/*! \brief What a move or a gather puts where its source has nothing, if it says so. */
inline std::optional<ffi::Any> PadOf(const IOp& iop) {
  ffi::Any pad = AttrOf(iop->attrs, "pad");
  return pad == nullptr ? std::nullopt : std::optional<ffi::Any>(std::move(pad));
}
inline bool IsZeroPadded(const IOp& iop) {
  const std::optional<ffi::Any> pad = PadOf(iop);
  return pad && AsDouble(*pad) == 0.0;
}

/*! \brief Whether a contraction adds to what its target holds. */
inline bool Accumulates(const IOp& iop) { return AttrOr(iop->attrs, "accumulate", false); }
/*! \brief Whether a reduction or broadcast goes along rows; `axis` is "row" or "col". */
inline bool IsByRow(const IOp& iop) { return TextAttr(iop->attrs, "axis") == "row"; }
/*! \brief Bytes that a move's rows in dram are stated to start at multiples of. */
inline int64_t StatedAlign(const IOp& iop) { return AttrOr<int64_t>(iop->attrs, "align", 1); }
/*! \brief The rounding of a cast, "" where it is the usual one. */
inline std::string RoundOf(const IOp& iop) { return AttrOr(iop->attrs, "round", std::string()); }
/*! \brief The first parameter of a unary function; 0 where it has none. */
inline ffi::Any ParamOf(const IOp& iop) {
  const auto params = AttrOr(iop->attrs, "params", ffi::Array<ffi::Any>());
  return params.empty() ? ffi::Any(int64_t{0}) : params[0];
}
/*! \brief The number that an iota begins with. */
inline Affine BaseOf(const IOp& iop) {
  const ffi::Any base = AttrOf(iop->attrs, "base");
  if (base == nullptr) return Affine::Constant(0);
  auto whole = base.as<int64_t>();
  return whole ? Affine::Constant(*whole) : base.cast<Affine>();
}

/*! \brief How many rounds of a loop do something, where sizes end it before its extent. */
inline std::optional<Affine> RoundsOf(const Loop& loop) {
  const ffi::Any rounds = AttrOf(loop->attrs, "rounds");
  return rounds == nullptr ? std::nullopt : std::optional<Affine>(rounds.cast<Affine>());
}

/*! \brief Whether a loop is that over a unit's tiles, which ends where these do (`igraph/dealt.py`). */
inline bool IsDealt(const Loop& loop) { return AttrOr(loop->attrs, "dealt", false); }
/*! \brief Whether units take tiles in a loop of the graph. */
inline bool IsDealt(const IGraph& graph) {
  return std::any_of(graph->body.begin(), graph->body.end(), [](const ffi::ObjectRef& node) {
    auto loop = node.as<Loop>();
    return loop.has_value() && IsDealt(*loop);
  });
}
/*! \brief In such a loop: so many rounds later comes the tile that a loop of one round is for; 0: of this round. */
inline int64_t AheadOf(const Loop& loop) { return AttrOr<int64_t>(loop->attrs, "ahead", 0); }

/*! \brief Whether sums of rounded factors are allowed. */
inline bool MayRound(const IGraph& graph) { return AttrOr(graph->attrs, "fast_math", false); }

/*! \brief In capitals, as vendors spell comparisons and roundings. */
inline std::string UpperCase(std::string word) {
  for (char& c : word) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return word;
}

}  // namespace uir::codegen
