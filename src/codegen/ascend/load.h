// SPDX-License-Identifier: Apache-2.0
/*!
 * \file load.h
 * \brief From global memory to the UB, whatever the strides.
 */
#ifndef UIR_CODEGEN_ASCEND_LOAD_H_
#define UIR_CODEGEN_ASCEND_LOAD_H_

#include <optional>

#include "emitter.h"

namespace uir {
namespace codegen {
namespace ascend {

/*! \brief What a load must know of its target. */
struct Landing {
  /*! \brief Values outside of the target's box are read later. */
  bool spares = false;
  /*! \brief Nobody's values lie between the end of a row and the end of its last block. */
  bool row_ends_free = true;
};

/*!
 * \brief Brings the elements of `from` that lie in both boxes to `to`; with `pad`, the rest of `to`'s box becomes pad.
 *
 * Rows whose columns follow each other in memory come straight; a transposed slice comes as rows of its other side,
 * which are turned in the UB; elements a few apart come with what lies between them and are gathered; others come
 * into a block each.
 */
void Load(Emitter& e, Tile to, Tile from, const std::optional<ffi::Any>& pad, const Landing& landing);

}  // namespace ascend
}  // namespace codegen
}  // namespace uir

#endif  // UIR_CODEGEN_ASCEND_LOAD_H_
