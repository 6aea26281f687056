// SPDX-License-Identifier: Apache-2.0
// A shortened run of a kernel, and what its pipes know of each other with given syncs.
//
// Each pipe counts its instructions; known[p][q] is how many of q are certainly done before the next instruction of p
// starts.  A flag carries what its setter knows, and all that the setter was given before, to the waiter.  A barrier
// makes a pipe know its own count.  What the issuing pipe waits for, all pipes know from then on.  The same is kept
// for waits: a flag may only be set again when the setter knows that the last wait for it is over.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "codegen/pipes/conflicts.h"
#include "codegen/pipes/program.h"
#include "codegen/pipes/syncs.h"

namespace uir::codegen::pipes {

/*! \brief Instances in issue order with the gaps between them, and whom each must wait for. */
class Run {
 public:
  /*! \brief Which of the loops that may be left out are run. */
  enum class Optional { kAll, kButLast, kNone };

  //! \param optional Those that are run: all; all but those in the last iteration of the loop around them; none.
  Run(const Program& program, std::vector<int64_t> extents, Optional optional = Optional::kAll);

  struct Step {
    /*! \brief Number of an instance; -1 for a gap. */
    int instance = -1;
    int body = 0;
    int gap = 0;
  };

  /*! \brief For each instance the latest conflicting ones of each pipe, as far as they exist. */
  void FindNeeds(Conflicts* conflicts);

  const Program& program;
  std::vector<int64_t> extents;
  std::vector<Step> steps;
  std::vector<Instance> instances;
  /*! \brief Its number among those of its pipe, from 1. */
  std::vector<int64_t> counts;
  std::vector<std::vector<int>> needs;

 private:
  void Walk(int body, std::vector<int64_t>* iterations);
  bool Runs(int loop, const std::vector<int64_t>& iterations) const;

  Optional optional_;
};

/*! \brief `second` may start before `first` is done (numbers of instances). */
struct Race {
  int first = 0;
  int second = 0;
};

struct Outcome {
  std::vector<Race> races;
  /*! \brief By sync: how many ids a flag needs in turn, so that none is set before the wait for it is over. */
  std::vector<int64_t> ids;
};

//! \brief Runs the kernel with its syncs.
//! \param actions `Arrange` of the syncs.
//! \param without A sync that is left out; -1 for none.
//! \param stop_at_first Give up at the first instance that races.
Outcome Check(const Run& run, const Vocabulary& vocabulary, const std::vector<Placed>& syncs, const Actions& actions,
              int without, bool stop_at_first);

/*! \brief The races of a run in which each that is found is taken as ordered from then on. */
std::vector<Race> Missing(const Run& run, const Vocabulary& vocabulary, const std::vector<Placed>& syncs);

//! \brief Pairs of flags (the lesser number first) that must not share an id.
//!
//! One of the two is set where the waits for the other are not known to be over.
std::set<std::pair<int, int>> Together(const Run& run, const Vocabulary& vocabulary, const std::vector<Placed>& syncs,
                                       const std::vector<int>& flags);

}  // namespace uir::codegen::pipes
