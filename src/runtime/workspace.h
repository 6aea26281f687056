// SPDX-License-Identifier: Apache-2.0
// Device memory that lives for one call of a kernel.
#pragma once

#include <tvm/runtime/device_api.h>

#include <vector>

#include "runtime/kernel_spec.h"

namespace uir::runtime {

//! \brief Takes workspaces from TVM's device and gives them back.
//!
//! On an NPU or MLU they come from a pool of the stream (workspace_pool.h), on a GPU from TVM's of the thread: after
//! the first call nothing is allocated, which capture into a graph needs.
class WorkspaceOfCall {
 public:
  /*! \param pointers Receives the addresses, in order. */
  WorkspaceOfCall(DLDevice device, const std::vector<WorkspaceSpec>& specs, std::vector<void*>* pointers)
      : device_(device) {
    if (specs.empty()) return;
    api_ = tvm::runtime::DeviceAPI::Get(device);
    for (const WorkspaceSpec& spec : specs) {
      held_.push_back(api_->AllocWorkspace(device, static_cast<size_t>(spec.bytes), DLDataType{kDLUInt, 8, 1}));
      pointers->push_back(held_.back());
    }
  }
  ~WorkspaceOfCall() {
    for (size_t k = held_.size(); k > 0; --k) api_->FreeWorkspace(device_, held_[k - 1]);
  }
  WorkspaceOfCall(const WorkspaceOfCall&) = delete;
  WorkspaceOfCall& operator=(const WorkspaceOfCall&) = delete;

 private:
  DLDevice device_;
  tvm::runtime::DeviceAPI* api_ = nullptr;
  std::vector<void*> held_;
};

}  // namespace uir::runtime
