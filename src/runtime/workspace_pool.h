// SPDX-License-Identifier: Apache-2.0
/*!
 * \file workspace_pool.h
 * \brief Memory of a device that a thread's calls take and give back.
 */
#ifndef UIR_RUNTIME_WORKSPACE_POOL_H_
#define UIR_RUNTIME_WORKSPACE_POOL_H_

#include <cstddef>
#include <vector>

namespace uir::runtime {

/*!
 * \brief The workspaces of a thread, kept to the end of the process: launches of its next calls are ordered after
 * those of earlier ones by the stream, so that they may reuse the memory at once.
 */
class WorkspacePool {
 public:
  /*! \brief A free one of the size, or nullptr. */
  void* Take(int device, size_t bytes) {
    for (Row& row : rows_) {
      if (!row.taken && row.device == device && row.bytes == bytes) {
        row.taken = true;
        return row.data;
      }
    }
    return nullptr;
  }

  /*! \brief Adds memory that is taken. */
  void* Add(int device, size_t bytes, void* data) {
    rows_.push_back({device, bytes, true, data});
    return data;
  }

  void Give(void* data) {
    for (Row& row : rows_) {
      if (row.data == data) row.taken = false;
    }
  }

 private:
  struct Row {
    int device;
    size_t bytes;
    bool taken;
    void* data;
  };
  std::vector<Row> rows_;
};

}  // namespace uir::runtime

#endif  // UIR_RUNTIME_WORKSPACE_POOL_H_
