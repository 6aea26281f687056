// SPDX-License-Identifier: Apache-2.0
// The sums of a product on tensor cores: registers to add to, and what becomes of them.
#pragma once

#include "codegen/cuda/contract.h"

namespace uir::codegen::cuda {

//! \brief The target's own registers where they lie as instructions write them, else an array beside it.
//!
//! They begin with what the target holds where the product accumulates, with zeros else.
class ProductSums {
 public:
  /*! \brief Prints what the sums begin with. */
  ProductSums(Emitter& e, const IOp& iop, const MmaRow& row);

  const Regs& regs() const { return sums_; }
  /*! \brief Prints how the sums reach the target. */
  void Finish();

 private:
  void Zero();

  Emitter& e_;
  const IOp& iop_;
  const MmaRow& row_;
  Layout layout_;
  bool direct_ = false;
  Regs sums_;
};

}  // namespace uir::codegen::cuda
