// SPDX-License-Identifier: Apache-2.0
// How the factors of a product by fused multiply-adds come along the contracted side, in how many registers.
//
// A factor whose neighbours in memory follow each other along the contracted side is read by deep accesses, each of
// which serves as many steps as it has elements.  Both factors of such steps may take more registers than a lane
// has left beside its sums: with 16 rows and 4 columns in a lane and 4 elements deep, 64 + 16.  So one is streamed: a
// piece of it is read, multiplied by all that is held of the other one, and forgotten (4 + 16).
#pragma once

#include "codegen/cuda/emitter.h"

namespace uir::codegen::cuda {

/*! \brief Elements of one access to a factor, and whether they follow each other along the contracted side. */
struct Reach {
  int64_t elements = 1;
  bool deep = false;

  /*! \brief Elements along the contracted side. */
  int64_t depth() const { return deep ? elements : 1; }
};

/*! \brief Whether neighbours in memory are neighbours along the contracted side, and along the other one. */
struct Neighbours {
  bool deep = false, along = false;
};

/*! \brief The widest access to a factor whose lines begin at multiples of `align` bytes. */
Reach WidestOf(const ISlice& slice, bool is_a, Neighbours are, int64_t align, const Fragment& sums);
/*! \brief The same of a slice in memory. */
Reach WidestOf(const Plan& plan, const ISlice& slice, bool is_a, const Fragment& sums);

/*! \brief Which factor is read piece by piece within a step; of none, both are held. */
enum class Streamed { kNone, kA, kB };

/*! \brief The steps along the contracted side. */
struct Steps {
  Reach a, b;
  /*! \brief Elements of the contracted side in one step: those of a deep access. */
  int64_t length = 1;
  Streamed streamed = Streamed::kNone;
  /*! \brief Elements of both factors that a lane holds at once. */
  int64_t held = 0;
};

//! \brief The longest steps that leave registers for the rest of the kernel.
//! \param a, b The widest accesses to the factors; deep ones get shorter, down to a word of 4 bytes.
//! \param bytes Of a factor's element in memory.
//! \param wide Of one in registers, where it is summed.
Steps StepsOf(Reach a, Reach b, const Fragment& sums, int bytes, int wide);

/*! \brief The layout of the sums: they stay where they are, the factors are read from memory whatever their layout. */
Layout FmaSums(const Plan& plan, const IOp& iop);

}  // namespace uir::codegen::cuda
