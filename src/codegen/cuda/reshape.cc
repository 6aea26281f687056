// SPDX-License-Identifier: Apache-2.0
#include "codegen/cuda/reshape.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/cuda/piece.h"
#include "codegen/uses.h"
#include "igraph/parts.h"

namespace uir::codegen::cuda {

namespace {

using Bound = ffi::Optional<Affine>;

/*! \brief A move or fill while it is being reshaped. */
struct Move {
  ISlice target, source;
  bool changed = false;
};

ISlice Copy(const ISlice& slice, int64_t rows, int64_t cols, int64_t row_stride, int64_t col_stride) {
  auto node = ffi::make_object<ISliceNode>(*slice.get());
  node->rows = rows;
  node->cols = cols;
  node->row_stride = row_stride;
  node->col_stride = col_stride;
  return ISlice(node);
}

/*! \brief e / k where k divides every term of e. */
std::optional<Affine> Divided(const Affine& e, int64_t k) {
  const auto [whole, rest] = SplitMultiples(e, k);
  if (rest->constant != 0 || !rest->terms.empty()) return std::nullopt;
  return whole.FloorDiv(k);
}

/*! \brief One row of rows*cols elements as rows of cols; nothing where its box does not end with a row. */
std::optional<ISlice> Folded(const ISlice& slice, int64_t rows, int64_t cols) {
  if (slice->rows != 1 || slice->cols != rows * cols || slice->OpenStrides()) return std::nullopt;
  bool by_row = slice->row_begin || slice->row_end, by_col = slice->col_begin || slice->col_end;
  if (by_row && by_col) return std::nullopt;
  auto folded = [&](const Bound& row, const Bound& col, Bound* out) {
    // the one row there was is there or not: so are all rows now
    if (row) *out = row.value().Scale(rows);
    if (!col) return true;
    std::optional<Affine> part = Divided(col.value(), cols);
    if (part) *out = *part;
    return part.has_value();
  };
  Bound begin, end;
  if (!folded(slice->row_begin, slice->col_begin, &begin) || !folded(slice->row_end, slice->col_end, &end)) {
    return std::nullopt;
  }
  auto node = ffi::make_object<ISliceNode>(*Copy(slice, rows, cols, cols * slice->col_stride, slice->col_stride).get());
  node->row_begin = begin;
  node->row_end = end;
  node->col_begin = node->col_end = std::nullopt;
  return ISlice(node);
}

/*! \brief The move with this side's slice as the piece; nothing where it cannot be. */
std::optional<Move> Fitted(const Move& move, bool target, const Piece& piece) {
  const ISlice& own = target ? move.target : move.source;
  Piece now(own);
  if (now == piece) return move;
  if (now.Turned() == piece) return Move{Turned(move.target), Turned(move.source), true};
  if (!piece.Linear() || now.offset != piece.offset || !now.Linear()) return std::nullopt;
  Move flat = move;
  if (own->cols == 1 && own->rows > 1) flat = {Turned(move.target), Turned(move.source), true};
  std::optional<ISlice> t = Folded(flat.target, piece.rows, piece.cols),
                        s = Folded(flat.source, piece.rows, piece.cols);
  if (!t || !s) return std::nullopt;
  return Move{*t, *s, true};
}

/*! \brief All moves and fills of a graph, reshaped pointer by pointer. */
class Reshape {
 public:
  explicit Reshape(const IGraph& graph) : graph_(graph), uses_(UsesOf(graph)) {
    for (const Use& use : uses_) {
      if (use.iop->op == "move") moves_[use.position] = {use.iop->targets[0], use.iop->sources[0], false};
      // one value in all elements: its source may as well have the target's shape
      if (use.iop->op == "fill") moves_[use.position] = {use.iop->targets[0], use.iop->targets[0], false};
    }
  }

  IGraph Run() {
    for (const IPointer& pointer : graph_->pointers) {
      if (pointer->level == "reg") Pointer(std::string(pointer->name));
    }
    bool any = std::any_of(moves_.begin(), moves_.end(), [](const auto& one) { return one.second.changed; });
    if (!any) return graph_;
    auto node = ffi::make_object<IGraphNode>(*graph_.get());
    int position = 0;
    node->body = Body(graph_->body, &position);
    return IGraph(node);
  }

 private:
  /*! \brief Reshapes the moves of a pointer to the one piece as which all else uses it, if there is one. */
  void Pointer(const std::string& name) {
    std::vector<Piece> fixed, free;
    for (const Use& use : uses_) {
      if (use.pointer() != name) continue;
      auto move = moves_.find(use.position);
      const ISlice& slice = move == moves_.end() ? use.slice : use.write ? move->second.target : move->second.source;
      if (!slice->offset->terms.empty()) return;
      (move == moves_.end() ? fixed : free).emplace_back(slice);
    }
    for (const Piece& piece : fixed) {
      if (!(piece == fixed[0])) return;
    }
    // with moves alone, the shape with most rows is the one that cannot be one row
    std::stable_sort(free.begin(), free.end(), [](const Piece& a, const Piece& b) { return a.rows > b.rows; });
    for (const Piece& piece : fixed.empty() ? free : std::vector<Piece>{fixed[0]}) {
      if (Fit(name, piece)) return;
    }
  }

  bool Fit(const std::string& name, const Piece& piece) {
    std::map<int, Move> fitted;
    for (const Use& use : uses_) {
      if (use.pointer() != name || !moves_.count(use.position)) continue;
      auto known = fitted.find(use.position);
      const Move& move = known == fitted.end() ? moves_[use.position] : known->second;
      std::optional<Move> result = Fitted(move, use.write, piece);
      if (!result) return false;
      fitted[use.position] = *result;
    }
    for (const auto& [position, move] : fitted) moves_[position] = move;
    return true;
  }

  ffi::Array<ffi::ObjectRef> Body(const ffi::Array<ffi::ObjectRef>& body, int* position) {
    ffi::Array<ffi::ObjectRef> out;
    for (const ffi::ObjectRef& node : body) {
      if (auto loop = node.as<Loop>()) {
        auto copy = ffi::make_object<LoopNode>(*(*loop).get());
        copy->body = Body((*loop)->body, position);
        out.push_back(Loop(copy));
        continue;
      }
      auto move = moves_.find((*position)++);
      if (move == moves_.end() || !move->second.changed) {
        out.push_back(node);
        continue;
      }
      auto copy = ffi::make_object<IOpNode>(*node.as_or_throw<IOp>().get());
      copy->targets = {move->second.target};
      if (copy->op == "move") copy->sources = {move->second.source};
      out.push_back(IOp(copy));
    }
    return out;
  }

  IGraph graph_;
  std::vector<Use> uses_;
  std::map<int, Move> moves_;
};

}  // namespace

IGraph ReshapeMoves(const IGraph& graph) { return Reshape(graph).Run(); }

}  // namespace uir::codegen::cuda
