// SPDX-License-Identifier: Apache-2.0
// The classes of iOps: what plans a step of each, and what each asks of layouts; ops.cc holds the table.
#pragma once

#include <memory>
#include <vector>

#include "codegen/cuda/plan.h"
#include "codegen/cuda/step.h"

namespace uir::codegen::cuda {

using WishFn = std::vector<Wish> (*)(const IOp& iop, const IGraph& graph, const Arch& arch);

/*! \brief What the printer knows of a class of iOps. */
struct OpRow {
  const char* op;
  PlanFn plan;
  /*! \brief Operands that share one layout, as bits (bit 0 the target, bit n the n-th source). */
  unsigned joined;
  /*! \brief Operands that must not be in registers: they are indexed by what only the run knows. */
  unsigned in_memory;
  /*! \brief Layouts that it asks for, or nullptr. */
  WishFn wishes;
};

/*! \brief The row of an op; refuses one without. */
const OpRow& OpRowOf(const IOp& iop);

using StepPtr = std::unique_ptr<Step>;

// moves.cc
StepPtr PlanMove(StepPlanner& p, const IOp& iop);
// contract.cc
StepPtr PlanContract(StepPlanner& p, const IOp& iop);
std::vector<Wish> ContractWishes(const IOp& iop, const IGraph& graph, const Arch& arch);
// simple.cc
StepPtr PlanFill(StepPlanner& p, const IOp& iop);
StepPtr PlanIdentity(StepPlanner& p, const IOp& iop);
StepPtr PlanSync(StepPlanner& p, const IOp& iop);
// elementwise.cc
StepPtr PlanUnary(StepPlanner& p, const IOp& iop);
StepPtr PlanBinary(StepPlanner& p, const IOp& iop);
StepPtr PlanCompare(StepPlanner& p, const IOp& iop);
StepPtr PlanSelect(StepPlanner& p, const IOp& iop);
StepPtr PlanCast(StepPlanner& p, const IOp& iop);
StepPtr PlanIota(StepPlanner& p, const IOp& iop);
// reduce.cc, broadcast.cc
StepPtr PlanReduce(StepPlanner& p, const IOp& iop);
StepPtr PlanBroadcast(StepPlanner& p, const IOp& iop);
// exchange.cc, indexed.cc
StepPtr PlanTranspose(StepPlanner& p, const IOp& iop);
StepPtr PlanGather(StepPlanner& p, const IOp& iop);
StepPtr PlanScatter(StepPlanner& p, const IOp& iop);

}  // namespace uir::codegen::cuda
