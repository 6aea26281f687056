// SPDX-License-Identifier: Apache-2.0
// The sums of a product: registers to add to, and what becomes of them.
#pragma once

#include <optional>
#include <string>

#include "codegen/cuda/contract.h"
#include "codegen/cuda/emitter.h"
#include "codegen/cuda/step_planner.h"

namespace uir::codegen::cuda {

//! \brief The target's own registers where sums may lie there, else an array beside it.
//!
//! They begin with what the target holds where the product accumulates, with zeros else.
struct SumsPlan {
  /*! \brief The dtype in which is summed. */
  std::string dtype;
  /*! \brief Whether the target's registers are the sums. */
  bool direct = false;
  bool accumulates = false;
  Operand target;
  /*! \brief What the product adds to, where it accumulates. */
  std::optional<Operand> old;

  /*! \brief What the sums begin with; they lie in this layout.
   *  \param fits Whether the target's registers may be the sums. */
  static SumsPlan Of(StepPlanner& p, const IOp& iop, const std::string& dtype, const Layout& layout, bool fits);
  /*! \brief The same of matrix instructions. */
  static SumsPlan OfInstruction(StepPlanner& p, const IOp& iop, const MmaRow& row);
  /*! \brief How they reach the target. */
  void Finish(StepPlanner& p) { p.Commit(&target); }
};

/*! \brief Prints the sums of a product. */
class ProductSums {
 public:
  /*! \brief Prints what the sums begin with. */
  ProductSums(Emitter& e, const SumsPlan& plan);

  const Regs& regs() const { return sums_; }
  /*! \brief Prints how the sums reach the target. */
  void Finish();

 private:
  void Zero();

  Emitter& e_;
  const SumsPlan& plan_;
  const ScalarType& type_;
  Regs sums_;
};

}  // namespace uir::codegen::cuda
