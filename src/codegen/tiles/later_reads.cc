// SPDX-License-Identifier: Apache-2.0
#include "codegen/tiles/later_reads.h"

#include <algorithm>
#include <optional>
#include <string>

namespace uir::codegen::tiles {
namespace {

/*! \brief A tile of rows that lie `pitch` apart, and the ends of what is valid of it; none: all. */
struct Ends {
  int64_t rows, cols, pitch;
  std::optional<Affine> row_end, col_end;

  bool Whole() const { return !row_end && !col_end; }
  /*! \brief Elements from one tile to the next in a pointer that has several. */
  int64_t size() const { return rows * pitch; }
  bool SameShape(const Ends& other) const { return rows == other.rows && cols == other.cols && pitch == other.pitch; }
};

/*! \brief A slice as such a tile; none where it lies otherwise, or begins later. */
std::optional<Ends> EndsOf(const ISlice& slice) {
  if (slice->OpenStrides() || slice->row_begin || slice->col_begin) return std::nullopt;
  if (slice->cols > 1 && slice->col_stride != 1) return std::nullopt;
  Ends ends{slice->rows, slice->cols, slice->rows == 1 ? slice->cols : slice->row_stride, {}, {}};
  if (ends.pitch < ends.cols) return std::nullopt;
  if (slice->row_end) ends.row_end = slice->row_end.value();
  if (slice->col_end) ends.col_end = slice->col_end.value();
  return ends;
}

/*! \brief The tile as one row; none where there are gaps in what is valid. */
std::optional<Ends> AsRun(const Ends& ends) {
  if (ends.rows == 1) return ends.row_end ? std::nullopt : std::optional(ends);
  if (ends.pitch != ends.cols || ends.col_end) return std::nullopt;
  Ends run{1, ends.size(), ends.size(), {}, {}};
  if (ends.row_end) run.col_end = ends.row_end->Scale(ends.cols);
  return run;
}

/*! \brief The loops that two uses have in common. */
size_t CommonLoops(const Use& a, const Use& b) {
  size_t common = 0;
  while (common < std::min(a.loops.size(), b.loops.size()) && a.loops[common].same_as(b.loops[common])) ++common;
  return common;
}

/*! \brief Whether a read keeps to the box of a use, in every iteration that comes later. */
class Order {
 public:
  Order(const Use& use, const Ends& box, const Use& read, const Ends& part, const Scope& scope)
      : use_(use), box_(box), read_(read), part_(part), scope_(scope), common_(CommonLoops(use, read)) {}

  bool KeepsInside() const {
    if (read_.position > use_.position && !InsideAt(common_, false)) return false;
    for (size_t k = 0; k < common_; ++k) {
      if (use_.loops[k]->extent > 1 && !InsideAt(k, true)) return false;
    }
    return true;
  }

 private:
  /*! \brief The same where loops from `first` on are anywhere; `later`: that loop itself is in a later iteration. */
  bool InsideAt(size_t first, bool later) const {
    Scope scope = scope_;
    ffi::Map<ffi::String, Affine> before, after;
    auto apart = [&](const Use& use, size_t from, const std::string& mark, ffi::Map<ffi::String, Affine>* env) {
      for (size_t k = from; k < use.loops.size(); ++k) {
        const std::string name = mark + std::to_string(k);
        scope.Bind(name, name, {0, std::max<int64_t>(use.loops[k]->extent - 1, 0)});
        env->Set(use.loops[k]->var, Affine::Var(name));
      }
    };
    apart(use_, later ? first + 1 : first, "before#", &before);
    apart(read_, later ? first + 1 : first, "after#", &after);
    if (later) {
      const Loop& loop = use_.loops[first];
      scope.Bind("step#", "step#", {1, loop->extent - 1});
      after.Set(loop->var, Affine::Var(loop->var) + Affine::Var("step#"));
    }
    auto keeps = [&](const std::optional<Affine>& end, const std::optional<Affine>& limit, int64_t whole) {
      if (!limit) return true;
      const Affine own = end ? Substitute(*end, after) : Affine::Constant(whole);
      return scope.Of(own - Substitute(*limit, before)).high <= 0;
    };
    return keeps(part_.row_end, box_.row_end, part_.rows) && keeps(part_.col_end, box_.col_end, part_.cols);
  }

  const Use& use_;
  const Ends& box_;
  const Use& read_;
  const Ends& part_;
  const Scope& scope_;
  size_t common_;
};

}  // namespace

bool LaterReadsKeepInside(const std::vector<const Use*>& uses, const Scope& scope) {
  std::vector<Ends> ends;
  for (const Use* use : uses) {
    const std::optional<Ends> own = EndsOf(use->slice);
    if (!own) return false;
    ends.push_back(*own);
  }
  auto alike = [&] {
    return std::all_of(ends.begin(), ends.end(), [&](const Ends& own) { return own.SameShape(ends[0]); });
  };
  if (!alike()) {
    for (Ends& own : ends) {
      const std::optional<Ends> run = AsRun(own);
      if (!run) return false;
      own = *run;
    }
    if (!alike()) return false;
  }
  const bool beside = std::all_of(uses.begin(), uses.end(), [&](const Use* use) {
    return scope.space().ClassOf(use->slice->offset).IsMultiple(ends[0].size());
  });
  if (!beside) return false;
  for (size_t k = 0; k < uses.size(); ++k) {
    if (ends[k].Whole()) continue;
    for (size_t j = 0; j < uses.size(); ++j) {
      if (uses[j]->write && !uses[j]->reads_too) continue;
      if (!Order(*uses[k], ends[k], *uses[j], ends[j], scope).KeepsInside()) return false;
    }
  }
  return true;
}

}  // namespace uir::codegen::tiles
