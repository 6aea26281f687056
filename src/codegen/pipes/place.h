// SPDX-License-Identifier: Apache-2.0
// Which syncs a kernel needs and where: enough for every race, then none too many.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/pipes/run.h"

namespace uir::codegen::pipes {

/*! \brief Places syncs in a kernel; the steps are in plan.cc. */
class Placer {
 public:
  Placer(const Program& program, const Vocabulary& vocabulary, const std::string& where);

  //! \brief Syncs after which no race remains.
  //!
  //! The first instance in issue order that races gets a sync with the latest instance that it must wait for: the set
  //! of a flag right behind that one, the wait for it (or the barrier) right before the other, both in the innermost
  //! body around both, carried by the loop in which they differ.  Right before the other is the latest place, so that
  //! one barrier serves as many pairs as possible.
  void CoverRaces();
  /*! \brief Drop what is not needed, first in the innermost bodies; with `ids`, what a flag's ids need is kept too. */
  void Prune(bool ids);
  //! \brief Set carried flags before, and wait for the rest behind, the outermost loop that allows it; `ids` as for
  //! Prune.
  //!
  //! Otherwise the pipes wait for each other at the end of the inner loop, in each iteration of the outer one.
  void Hoist(bool ids);
  /*! \brief Flags back to the setter for those flags whose sets could get ahead of their waits without a limit. */
  void LimitSets();
  /*! \brief Gives every flag its ids; where they do not suffice, changes the syncs until they do (ids.cc). */
  void AllocateIds();

  const Run& run() const { return run_; }
  /*! \brief Whether no race is left in any run. */
  bool Ordered(const std::vector<Placed>& syncs, const Actions& actions, int without) const;
  const std::vector<Placed>& syncs() const { return syncs_; }
  Conflicts* conflicts() { return &conflicts_; }

 private:
  bool Valid(const std::vector<Placed>& syncs, const Actions& actions, int without, bool ids) const;
  /*! \brief Ids that each flag needs in turn; 0 where no number suffices. */
  std::vector<int64_t> IdsNeeded(const std::vector<Placed>& syncs, int without) const;
  /*! \brief The pairs of some flags that may be up at once, in any run. */
  std::set<std::pair<int, int>> TogetherIn(const std::vector<int>& flags) const;
  /*! \brief The syncs that order the races of a run are added; answers whether it had any. */
  bool Cover(const Run& run);
  Placed For(const Run& run, const Race& race, const std::vector<Race>& races) const;
  Placed Limiting(const Placed& flag, int64_t distance) const;
  Placed Draining(int from, int body, int gap) const;
  /*! \brief Gives all flags their ids; answers the flags of a pair for which they do not suffice. */
  std::vector<int> GiveIds();
  /*! \brief Gives the flags of a pair their ids; answers whether these suffice. */
  bool Share(const std::vector<int>& flags);
  /*! \brief Makes do with fewer ids: joins two flags, or lets one be set only when another is over, or drains. */
  void Relieve(const std::vector<int>& flags);
  bool Join(const std::vector<int>& flags);
  bool Follow(const std::vector<int>& flags);

  const Program& program_;
  const Vocabulary& vocabulary_;
  std::string where_;
  Run run_;
  /*! \brief A longer one, for what grows with the number of iterations. */
  Run longer_;
  Conflicts conflicts_;
  //! \brief The same without what may be left out: syncs in there order nothing else.
  std::vector<Run> without_;
  std::vector<Placed> syncs_;
};

}  // namespace uir::codegen::pipes
