// SPDX-License-Identifier: Apache-2.0
// Loads of multi-buffered loops that run while the warp computes: which copies, groups and waits there are.
//
// The pass `multibuffer` leaves a prologue, a loop whose attribute `stages` is S, and an epilogue.  The loads of one
// iteration are one group of copies: the prologue commits S - 1 groups, each iteration one more.  What an iteration
// reads must have arrived for all units that share it: a wait that leaves as many groups in flight as may be, then
// the barrier that the graph has there anyway.  The copies of a loop are bulk copies where all of them can be
// (bulk.h), else each lane's own (cp.async).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/cuda/bulk.h"
#include "codegen/cuda/plan.h"
#include "codegen/cuda/step.h"
#include "codegen/uses.h"

namespace uir::codegen::cuda {

/*! \brief Index in the graph's body, then in the body of every loop around it. */
using Path = std::vector<int>;

/*! \brief What stands before and after a node of the loop tree. */
struct AsyncStep {
  enum class Barrier { kNone, kWarp, kBlock };
  /*! \brief The node is a copy that runs on its own. */
  bool copy = false;
  /*! \brief The ring of that copy, where it is a bulk copy. */
  std::optional<int> ring;
  /*! \brief Before the node: wait until at most so many groups are in flight. */
  std::optional<int> wait;
  Barrier barrier = Barrier::kNone;
  /*! \brief After the node: what was copied since the last one is a group. */
  bool commit = false;
  /*! \brief The same of loops with bulk copies, whose groups are counted apart. */
  std::vector<RingStep> rings;
};

/*! \brief Which moves of a graph are asynchronous, and where that needs waits. */
class AsyncPlan {
 public:
  AsyncPlan(const Plan& plan, const std::vector<Use>& uses);

  /*! \brief The step of a node; nullptr where nothing is to be said of it. */
  const AsyncStep* At(const Path& path) const;
  /*! \brief The pointers that are filled by copies; the steps order all accesses to them. */
  const std::set<std::string>& buffers() const { return buffers_; }
  /*! \brief Barrier objects of loops with bulk copies, and the bytes that they take behind the graph's sram. */
  const std::vector<Ring>& rings() const { return rings_; }
  int64_t ring_bytes() const { return ring_bytes_; }
  /*! \brief Lines for people: how each loop copies, and why. */
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  friend class StagedLoop;
  void Body(const ffi::Array<ffi::ObjectRef>& body, const Path& path);
  void PlaceRings();

  const Plan& plan_;
  const std::vector<Use>& uses_;
  std::map<Path, AsyncStep> steps_;
  std::set<std::string> buffers_;
  std::vector<Ring> rings_;
  int64_t ring_bytes_ = 0;
  std::vector<std::string> notes_;
};

//! \brief Bytes that one lane copies at once in a move from dram to shared memory, or 0 where it cannot be a copy:
//! rows that are contiguous on both sides, whole on the target's, with 0 for what the source lacks.
int CopyBytes(const Plan& plan, const Scope& scope, const IOp& move);

/*! \brief The copies of a move, each lane its own pieces. */
std::unique_ptr<Step> PlanCopy(StepPlanner& p, const IOp& move);

/*! \brief Says where lanes meet in what a step has before its node. */
void PlanBefore(StepPlanner& p, const AsyncStep& step);
/*! \brief Prints what a step has before, and after, its node. */
void EmitBefore(Emitter& e, const AsyncStep& step);
void EmitAfter(Emitter& e, const AsyncStep& step);

}  // namespace uir::codegen::cuda
