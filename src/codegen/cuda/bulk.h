// SPDX-License-Identifier: Apache-2.0
// Loads of multi-buffered loops by bulk copies: whole runs of memory, counted by barrier objects.
//
// A loop of S stages has a ring of S barrier objects; the n-th group of copies belongs to number n % S, in its phase
// n / S.  Every warp that loads a part of the group says how many bytes it fetches, and copies them; whoever reads
// waits for the phase.  Where warps have tiles of their own, each of them has a ring of its own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codegen/cuda/plan.h"
#include "codegen/cuda/step.h"
#include "codegen/uses.h"

namespace uir::codegen::cuda {

/*! \brief The barrier objects of one loop. */
struct Ring {
  int stages = 2;
  /*! \brief Whether each warp has its own. */
  bool own = false;
  /*! \brief From the start of shared memory, in bytes. */
  int64_t at = 0;
};

/*! \brief Texts of a ring: the first barrier object, the groups begun, the groups waited for. */
struct RingTexts {
  std::string full, begun, waited;
};

/*! \brief What a ring does before, and after, a node of the loop tree. */
struct RingStep {
  int ring = 0;
  /*! \brief Before: wait until at most so many groups are in flight. */
  std::optional<int> wait;
  /*! \brief Before: the next group begins, of which this warp copies so many bytes. */
  int64_t expect = 0;
  /*! \brief After: the group is complete. */
  bool commit = false;
};

/*! \brief Why a copy that runs ahead cannot be a bulk copy; empty where it can. */
std::string WhyNotBulk(const Plan& plan, const std::vector<Use>& uses, const IOp& move);

/*! \brief Bytes of shared memory that a ring takes. */
int64_t BytesOfRing(const Plan& plan, const Ring& ring);

/*! \brief Bytes that a warp copies in one run of a move. */
int64_t BytesOfCopy(const IOp& move);

/*! \brief Says where warps meet once rings are initialised. */
void PlanRings(StepPlanner& p, const std::vector<Ring>& rings);
/*! \brief Names the rings and prints their initialisation at the kernel's start. */
void OpenRings(Emitter& e);

/*! \brief The copies of a move, counted by a ring. */
std::unique_ptr<Step> PlanBulkCopy(StepPlanner& p, const IOp& move, int ring);

/*! \brief Prints what a step has before, and after, its node: first waits, then (after barriers) what begins. */
void EmitRingWait(Emitter& e, const RingStep& step);
void EmitRingBegin(Emitter& e, const RingStep& step);
void EmitRingCommit(Emitter& e, const RingStep& step);

}  // namespace uir::codegen::cuda
