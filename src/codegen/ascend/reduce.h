// SPDX-License-Identifier: Apache-2.0
// What reductions over rows and over columns share.
#pragma once

#include <string>
#include <vector>

#include "codegen/ascend/vector_run.h"

namespace uir::codegen::ascend {

/*! \brief A reduction in the dtype that it is computed in. */
struct Folding {
  /*! \brief dtype of the slices, and of the computation. */
  std::string stored;
  std::string dtype;
  /*! \brief Function of two vectors. */
  std::string pair;
  /*! \brief Ending of WholeReduce... and BlockReduce..., empty where they do not know the dtype or the function. */
  std::string across;
  /*! \brief The value over nothing, a literal of `dtype`. */
  std::string identity;
};

/*! \brief How an iOp is computed; refuses dtypes that the vector core does not know. */
Folding FoldingOf(Emitter& e, const IOp& iop);

/*! \brief target = a op b over rows x cols. */
void Fold(Emitter& e, const Folding& folding, const Tile& target, const Tile& a, const Tile& b, const Bound& rows,
          const Bound& cols);
/*! \brief The identity over rows x cols. */
void FillIdentity(Emitter& e, const Folding& folding, const Tile& target, const Bound& rows, const Bound& cols);
/*! \brief A window as the dtype of the computation, copied: to `target`, of that dtype. */
void Convert(Emitter& e, const Tile& target, const Tile& source, const Bound& rows, const Bound& cols);

/*! \brief (R,1) <- (R,C); what lies outside of the target's box is undefined afterwards. */
void ReduceRow(Emitter& e, const Folding& folding, const Tile& target, const Tile& source);
/*! \brief (1,C) <- (R,C), as `ReduceRow`. */
void ReduceCol(Emitter& e, const Folding& folding, const Tile& target, const Tile& source);

/*! \brief A tile whose first row is `row` of this one, the number being text: its regions stay those of the tile. */
Tile FromRow(Tile tile, const Bound& row);

/*! \brief Byte offsets 0, step, 2 step, ... as uint32, for Gather. */
Tile Offsets(Emitter& e, int64_t count, int64_t step);

/*! \brief Every `step`-th element of a window, `count` of them from byte `base` on, to the target's start. */
void GatherStrided(Emitter& e, const Tile& target, const Tile& source, const Tile& offsets, int64_t base,
                   const Bound& count);

}  // namespace uir::codegen::ascend
