// SPDX-License-Identifier: Apache-2.0
// Whether two instances of instructions touch one byte and one of them writes.
//
// Instances are told by their iterations in the shortened run (program.h).  The outermost loop around both in which
// they differ carries the conflict; loops outside of it have the same iteration.  What counts of an iteration is its
// residue by the loop's period: the address is a + shift * t with t the number of whole periods, so that over all real
// iterations with this residue t is one more strided index:
//
//   loops outside of the carrying one   t is the same for both: an index with stride shift2 - shift1
//   the carrying loop, equal shifts     t cancels, the distance counts; distances that the run does not show are
//                                       asked for as well, and if there is a conflict, any distance counts as one
//   the carrying loop, other shifts     one index for each
//   loops inside, loops around one      one index for each
//
// The last two take iterations together that do not meet: a superset, exact for UB addresses, whose shifts are zero in
// all loops or whose loops are short (a loop that is run whole has one t).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "codegen/pipes/program.h"
#include "igraph/range.h"

namespace uir::codegen::pipes {

/*! \brief An instance of an instruction: its number in Program::ops and its iterations, outermost loop first. */
struct Instance {
  int op = 0;
  std::vector<int64_t> iterations;
};

class Conflicts {
 public:
  /*! \brief `extents`: those of the shortened run. */
  Conflicts(const Program& program, std::vector<int64_t> extents);

  /*! \brief Whether some instances of the two may conflict; `first` is issued earlier. */
  bool Possible(int first, int second) const;
  /*! \brief Whether the two conflict; `first` is issued earlier. */
  bool Meet(const Instance& first, const Instance& second);
  /*! \brief "raw", "war", "waw" or two of them, for what `Meet` found. */
  std::string Kinds(const Instance& first, const Instance& second) const;

 private:
  int Carrier(const Instance& first, const Instance& second) const;
  bool Meet(const Bytes& a, const Bytes& b, const Instance& first, const Instance& second) const;
  bool MeetAt(const Bytes& a, const Bytes& b, const std::vector<int64_t>& va, const std::vector<int64_t>& vb,
              std::vector<Dim> dims) const;
  int64_t Residue(int loop, int64_t iteration) const;
  /*! \brief Number of real iterations with this residue. */
  int64_t Times(int loop, int64_t residue) const;
  int64_t PeriodOf(int variable) const;

  const Program& program_;
  std::vector<int64_t> extents_;
  /*! \brief First byte and the one behind the last of each region of each op, over all iterations. */
  std::vector<std::vector<Range>> spans_;
  std::map<std::vector<int64_t>, bool> known_;
};

}  // namespace uir::codegen::pipes
