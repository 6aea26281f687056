// SPDX-License-Identifier: Apache-2.0
// Memory of devices that calls of kernels take and give back.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

namespace uir::runtime {

//! \brief The workspaces of a process, each of one stream of one device.
//!
//! A call gives its workspace back before its launches need have run.  Launches of later calls on the same stream are
//! ordered after them, whichever thread enqueues them, so that they may take the memory at once; those on another
//! stream may not.  What is idle is freed with its stream, and where the device has no memory left.
class WorkspacePool {
 public:
  /*! \brief Allocates on a device; frees there, once the work of a stream is done. Both throw where they fail. */
  struct Source {
    std::function<void*(int device, size_t bytes)> allocate;
    std::function<void(int device, void* stream, void* data)> free;
  };

  explicit WorkspacePool(Source source) : source_(std::move(source)) {}

  /*! \brief One of the size that is idle on the stream, else a new one. */
  void* Take(int device, void* stream, size_t bytes) {
    {
      std::lock_guard<std::mutex> guard(lock_);
      for (Row& row : rows_) {
        if (row.taken || row.device != device || row.stream != stream || row.bytes != bytes) continue;
        row.taken = true;
        return row.data;
      }
    }
    void* data = Allocate(device, bytes);
    std::lock_guard<std::mutex> guard(lock_);
    rows_.push_back({device, stream, bytes, true, data});
    return data;
  }

  void Give(void* data) {
    std::lock_guard<std::mutex> guard(lock_);
    for (Row& row : rows_) {
      if (row.data == data) row.taken = false;
    }
  }

  /*! \brief Frees what is idle on a stream, before the stream goes: its address may be given to another. */
  void FreeStream(int device, void* stream) {
    FreeIdle([=](const Row& row) { return row.device == device && row.stream == stream; });
  }

  /*! \brief Frees what is idle on a device; whether there was any. */
  bool FreeDevice(int device) {
    return FreeIdle([=](const Row& row) { return row.device == device; });
  }

 private:
  struct Row {
    int device;
    void* stream;
    size_t bytes;
    bool taken;
    void* data;
  };

  /*! \brief Of the device, after what is idle there is freed if it must. */
  void* Allocate(int device, size_t bytes) {
    try {
      return source_.allocate(device, bytes);
    } catch (...) {
      if (!FreeDevice(device)) throw;
    }
    return source_.allocate(device, bytes);
  }

  template <typename Wanted>
  bool FreeIdle(const Wanted& wanted) {
    std::vector<Row> idle, rest;
    {
      std::lock_guard<std::mutex> guard(lock_);
      for (const Row& row : rows_) (!row.taken && wanted(row) ? idle : rest).push_back(row);
      rows_.swap(rest);
    }
    for (const Row& row : idle) source_.free(row.device, row.stream, row.data);
    return !idle.empty();
  }

  Source source_;
  std::mutex lock_;
  std::vector<Row> rows_;
};

}  // namespace uir::runtime
