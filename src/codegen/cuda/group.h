// SPDX-License-Identifier: Apache-2.0
// What the group forms of reduce and broadcast share: the sets of warps, their barrier, their buffer.
#pragma once

#include <optional>
#include <string>

#include "codegen/cuda/emitter.h"

namespace uir::codegen::cuda {

/*! \brief The set of warps of one block that a group form joins, and the shared buffer between them. */
class Group {
 public:
  /*! \brief The set of an iOp of scope group; none of scope unit, nor of a set of one warp. */
  static std::optional<Group> Of(Emitter* e, const IOp& iop);

  int64_t size() const { return size_; }
  /*! \brief The warp's number within its set. */
  std::string Member() const;
  /*! \brief The buffer's k-th element in the order of its rows, as an lvalue; `k` binds as a sum. */
  std::string Slot(const std::string& k) const;
  /*! \brief The set meets: all warps of the block, or the named barrier of the set. */
  void Barrier();

 private:
  Emitter* e_ = nullptr;
  int64_t size_ = 1, units_ = 1;
  std::optional<ISlice> buffer_;
  std::string base_;
};

}  // namespace uir::codegen::cuda
