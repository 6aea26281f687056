// SPDX-License-Identifier: Apache-2.0
/*!
 * \file hazards.h
 * \brief Where the lanes of a warp must meet: which accesses to memory are unordered, and whether they overlap.
 *
 * Two accesses of a warp that no barrier separates need one where one of them writes, they may name the same element
 * and the lanes that do so differ.  Offsets are compared as what they are, functions of pid and of loops: stages of a
 * buffer (`k % 2` and `(k + 1) % 2`), rows of successive iterations, pieces of one scratch are apart.
 *
 * A loop's first access meets what its last iteration left unordered, which is known only once the body has been
 * printed: so a kernel is printed again with what it was found to leave, until that is no more than was expected.
 */
#ifndef UIR_CODEGEN_CUDA_HAZARDS_H_
#define UIR_CODEGEN_CUDA_HAZARDS_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../scope.h"
#include "../uses.h"
#include "layout.h"

namespace uir {
namespace codegen {
namespace cuda {

/*! \brief An access of a warp to elements of one pointer. */
struct Touch {
  std::string pointer;
  bool write = false;
  Affine offset = Affine::Constant(0);
  int64_t rows = 1, cols = 1, row_stride = 0, col_stride = 1;
  /*! \brief Which lane has which element, where that is known. */
  std::optional<Fragment> lanes;
  /*! \brief Its number among all accesses, in the order in which they are printed. */
  int id = 0;
  /*! \brief The loops around it; the one from whose iteration before it comes, where it does. */
  std::vector<const LoopNode*> loops;
  const LoopNode* carried = nullptr;
  /*! \brief Variables of its offset that no open loop has: iterations of loops that are over, and how many before. */
  std::map<std::string, Range> free;

  Touch() = default;
  Touch(const ISlice& slice, bool write, std::optional<Fragment> lanes);
};

/*! \brief For every loop the accesses that its iterations leave to the next. */
using Carried = std::map<const LoopNode*, std::vector<Touch>>;

/*! \brief Whether every access of `some` is in `all`. */
bool IsWithin(const Carried& some, const Carried& all);
/*! \brief What is in either. */
Carried Joined(const Carried& a, const Carried& b);

/*! \brief The unordered accesses while a kernel is printed. */
class Hazards {
 public:
  Hazards(const Scope& scope, Carried carried) : scope_(scope), carried_(std::move(carried)) {}

  /*! \brief Whether an access needs a barrier before it. */
  bool Meets(const Touch& touch) const;
  void Note(Touch touch);
  /*! \brief All lanes have met. */
  void Clear() { pending_.clear(); }

  /*! \brief What is unordered now; `Add` has it again, for what only some warps execute. */
  const std::vector<Touch>& pending() const { return pending_; }
  void Add(const std::vector<Touch>& touches);

  void Enter(const Loop& loop);
  void Leave(const Loop& loop);

  /*! \brief Of every loop that was left: all accesses in it, and those that are unordered at the end of its body. */
  const Carried& touched() const { return touched_; }
  const Carried& left() const { return left_; }

 private:
  bool Overlap(const Touch& now, const Touch& before) const;

  const Scope& scope_;
  Carried carried_, touched_, left_;
  std::vector<Touch> pending_, all_;
  std::vector<const LoopNode*> open_;
  int count_ = 0;
};

}  // namespace cuda
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_CUDA_HAZARDS_H_
