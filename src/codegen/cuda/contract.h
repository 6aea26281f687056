// SPDX-License-Identifier: Apache-2.0
// The contract iOp: which instruction a product runs on, and the two ways to print it.
//
// On tensor cores (contract_mma.cc) the sums lie as mma.sync has them: lanes (8, 4), vec (1, 2), one 8 x 8 block
// after the other.  Everything else, and exact fp32, is fused multiply-adds on a tile of registers in each lane
// (contract_fma.cc), whose operands lie in memory.
#pragma once

#include <string>
#include <vector>

#include "codegen/cuda/banks.h"
#include "codegen/cuda/bounds.h"
#include "codegen/cuda/emitter.h"
#include "codegen/cuda/ops.h"

namespace uir::codegen::cuda {

/*! \brief A matrix instruction. */
struct MmaRow {
  /*! \brief The dtype of its factors. */
  const char* factor;
  /*! \brief The dtype of its sums. */
  const char* sum;
  /*! \brief The wrapper in intrinsics.h. */
  const char* intrinsic;
  /*! \brief Rows of a, and columns of a that one instruction contracts. */
  int m, k;
  /*! \brief Neighbouring elements of a row of a in one lane. */
  int vec;
  /*! \brief Whether it rounds its factors (tf32), which only a graph that allows it may. */
  bool rounds;
};

/*! \brief Columns of b in one instruction: all have 8. */
constexpr int kMmaColumns = 8;

/*! \brief The instruction for a product of these dtypes, or nullptr: then it runs on fused multiply-adds. */
const MmaRow* MmaOf(const std::string& target, const std::string& factor, const Arch& arch, bool may_round);

/*! \brief As `MmaOf`, for an iOp of a graph; vectors (one row or one column) are no work for it. */
const MmaRow* MmaOf(const IOp& iop, const IGraph& graph, const Arch& arch);

//! \brief Whether an operand of bytes lies across memory, so that its blocks along the side that it shares with the
//! result have every second row (column) of 16: see fragments.h.
bool ComesInPairs(const IOp& iop, int source);

/*! \brief How the sums, and operands in registers, lie. */
Layout SumsLayout(const IOp& iop);
Layout FactorLayoutA(const MmaRow& row);
Layout FactorLayoutB(const MmaRow& row);

/*! \brief The accesses by which a product reads an operand in memory; what bounds it is left aside. */
std::vector<TileAccess> ContractReads(const Plan& plan, const IOp& iop, int source);
std::vector<TileAccess> FmaReads(const Plan& plan, const IOp& iop, int source);

StepPtr PlanMma(StepPlanner& p, const IOp& iop, const MmaRow& row);
StepPtr PlanFma(StepPlanner& p, const IOp& iop);
StepPtr PlanWgmma(StepPlanner& p, const IOp& iop, const MmaRow& row, const WgmmaChoice& choice);

//! \brief The bounds within which an operand in memory may be read: its own, and where that does not bound a side that
//! it shares with the result, the result's, unless all of the operand's tile was filled.
struct ReadableBounds {
  Bounds bounds;
  /*! \brief Whether the shared side has those of the result. */
  bool as_result = false;
};
ReadableBounds ReadableBoundsOf(const StepPlanner& p, const IOp& iop, int source);
/*! \brief The same as texts. */
Box ReadableBox(Emitter& e, const IOp& iop, int source, const ReadableBounds& bounds);

/*! \brief The text in parentheses, unless it is one word: emitters multiply what they are given. */
std::string Grouped(const std::string& text);

/*! \brief Opens `for (int NAME = 0; NAME < extent; ++NAME)`, unrolled; gives the name, or "0" where there is one turn.
 */
std::string OpenUnrolled(Emitter& e, const std::string& hint, int64_t extent);
/*! \brief Closes what `OpenUnrolled` opened. */
void CloseUnrolled(Emitter& e, int64_t extent);

}  // namespace uir::codegen::cuda
